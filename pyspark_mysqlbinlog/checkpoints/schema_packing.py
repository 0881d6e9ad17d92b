"""A schema history as a short text: base85 of bz2 of plain JSON.

::

    {"layout": 1, "tables": [{"database": …, "table": …, "versions": [
        {"from": [file number, pos, file], "columns": [{"name": …, "type": …}, …],
         "primary_key": [column, …], "charset": …, "unique_keys": [[name, [column, …]], …]},
        {"from": […], "unknown": why, "dropped": false}]}]}

Columns and versions have the names of `ColumnSchema` and `TableSchema`. Fields of a column with
their default value are omitted, and so are empty unique keys. Tables are sorted and names are in a
fixed order, so equal histories are equal texts.

Spark repeats offsets in every progress report, so size matters. 200 tables of 50 columns are 0.7 MB
of JSON; bz2 compresses it to 27 kB, lzma to 49 kB, zlib to 58 kB (in base85).
"""

from __future__ import annotations

import base64
import bz2
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pyspark_mysqlbinlog.checkpoints.json_values import (
    flag_of,
    number_of,
    optional_flag_of,
    text_of,
    texts_of,
)
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, Version
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["pack_versions", "unpack_versions"]

_LAYOUT = 1
_LEVEL = 9
# A history of a million columns is smaller; a text that unpacks to more is not a valid history.
_MAX_PLAIN_BYTES = 128 << 20
# How each of a column's fields is parsed.
_COLUMN: dict[str, Callable[[Any], Any]] = {
    "name": text_of,
    "type": text_of,
    "length": number_of,
    "scale": number_of,
    "unsigned": flag_of,
    "charset": text_of,
    "labels": texts_of,
    "nullable": flag_of,
    "virtual": optional_flag_of,
    "generated": flag_of,
}
_DEFAULTS = {field.name: field.default for field in fields(ColumnSchema)}


def pack_versions(versions: Mapping[Table, tuple[Version, ...]]) -> str:
    """Return the text of a history; OffsetError if it exceeds the maximum size."""
    history = {
        "layout": _LAYOUT,
        "tables": [
            {
                "database": table[0],
                "table": table[1],
                "versions": [_described(*version) for version in versions[table]],
            }
            for table in sorted(versions)
        ],
    }
    plain = json.dumps(history, ensure_ascii=False, separators=(",", ":")).encode()
    if len(plain) > _MAX_PLAIN_BYTES:
        raise OffsetError(
            f"the columns of the {len(versions)} followed tables take {len(plain):,} bytes, and an"
            f" offset holds up to {_MAX_PLAIN_BYTES:,}: read fewer tables in one query"
            " (option tables)"
        )
    return base64.b85encode(bz2.compress(plain, _LEVEL)).decode()


def _described(start: Position, what: TableSchema | UnknownSchema) -> dict[str, Any]:
    if isinstance(what, UnknownSchema):
        return {"from": start, "unknown": what.reason, "dropped": what.is_dropped}
    described = {
        "from": start,
        "columns": [_described_column(column) for column in what.columns],
        "primary_key": what.primary_key,
        "charset": what.charset,
    }
    return described | ({"unique_keys": what.unique_keys} if what.unique_keys else {})


def _described_column(column: ColumnSchema) -> dict[str, Any]:
    return {name: value for name in _COLUMN if (value := getattr(column, name)) != _DEFAULTS[name]}


def unpack_versions(text: str) -> dict[Table, tuple[Version, ...]]:
    """Parse the history of a text; OffsetError for any other text."""
    try:
        return _unpacked(base64.b85decode(text))
    except OffsetError:
        raise
    except (
        OSError,  # bz2's error
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise OffsetError(
            f"the offset's schemas can't be read ({type(error).__name__}): it was truncated or"
            " changed; restore the checkpoint, or begin a new one"
        ) from None


def _unpacked(compressed: bytes) -> dict[Table, tuple[Version, ...]]:
    expand = bz2.BZ2Decompressor()
    # One byte above the maximum, so that a text of exactly that size is complete.
    plain = expand.decompress(compressed, _MAX_PLAIN_BYTES + 1)
    if not expand.eof or expand.unused_data or len(plain) > _MAX_PLAIN_BYTES:
        raise ValueError
    history = json.loads(plain)
    if history["layout"] != _LAYOUT:
        raise OffsetError(
            f"the offset's schemas have layout {history['layout']!r}, and this version reads"
            f" {_LAYOUT}: a newer version of pyspark-mysqlbinlog wrote them, use that one"
        )
    versions: dict[Table, tuple[Version, ...]] = {}
    for each in history["tables"]:
        table = text_of(each["database"]), text_of(each["table"])
        found = tuple(_version(table, described) for described in each["versions"])
        starts = [start for start, _ in found]
        if table in versions or not found or sorted(set(starts)) != starts:
            raise ValueError
        versions[table] = found
    return versions


def _version(table: Table, described: dict[str, Any]) -> Version:
    number, pos, file = described["from"]
    start = Position(number_of(number), number_of(pos), text_of(file))
    if "unknown" in described:
        return start, UnknownSchema(text_of(described["unknown"]), flag_of(described["dropped"]))
    columns = tuple(_column(column) for column in described["columns"])
    key = texts_of(described["primary_key"])
    keys = tuple(
        (text_of(name), texts_of(names)) for name, names in described.get("unique_keys", ())
    )
    names = {column.name for column in columns}
    if not all(names.issuperset(each) for each in (key, *(each for _, each in keys))):
        raise ValueError
    charset = described["charset"]
    charset = None if charset is None else text_of(charset)
    return start, TableSchema(*table, columns, key, charset, keys)


def _column(described: dict[str, Any]) -> ColumnSchema:
    return ColumnSchema(**{name: _COLUMN[name](value) for name, value in described.items()})
