"""Layout 1 of a packed schema history, which offsets of version 1 hold. It is only read.

Words, types and positions are listed once in a header, and the columns of all tables follow as one
stream of symbols. A symbol is a word of a name, or the end of a column: its last words, its type
and whether it may be NULL. The text is base85 of zlib of::

    header, JSON in UTF-8 | 0x0a | a code for each symbol

Codes: 0x00-0xdf the first 224 symbols; 0xe0-0xfe and a byte the next 7,936; 0xff and four bytes,
big-endian, any other.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from pyspark_mysqlbinlog.checkpoints.json_values import flag_of, number_of, text_of
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownFrom, Version
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import BLOB_TYPES, ColumnSchema, TableSchema

__all__ = ["unpack_layout_1"]

_LAYOUT = 1
# A history of a million columns unpacks to less; what claims more is not ours.
_MAX_PLAIN = 64 << 20
_ONE_BYTE = 0xE0
_FOUR_BYTES = 0xFF
# Before a name that its words would not make again: it follows whole.
_WHOLE = "\0"


def _joined(words: list[str]) -> str:
    if words[0] == _WHOLE:
        return words[1]
    name = words[0]
    for word in words[1:]:
        camel = "A" <= word[0] <= "Z" and not "A" <= name[-1] <= "Z"
        name += word if camel else "_" + word
    return name


def _indexes(stream: bytes) -> Iterator[int]:
    source = iter(stream)
    for first in source:
        if first < _ONE_BYTE:
            yield first
        elif first < _FOUR_BYTES:
            yield _ONE_BYTE + ((first - _ONE_BYTE) << 8) + next(source)
        else:
            yield int.from_bytes(bytes(next(source) for _ in range(4)), "big")


def unpack_layout_1(compressed: bytes) -> dict[Table, tuple[Version, ...]]:
    """The history of a text of layout 1, base85 removed.

    Raises one of the errors that `schema_packing` catches for bytes that are no such text.
    """
    inflate = zlib.decompressobj()
    plain = inflate.decompress(compressed, _MAX_PLAIN)
    if not inflate.eof or inflate.unused_data:
        raise ValueError
    # JSON writes a newline in a string as \n, so the first byte 0x0a ends the header.
    head, separator, stream = plain.partition(b"\n")
    header = json.loads(head)
    if not separator or header["layout"] != _LAYOUT:
        raise ValueError
    starts = [
        Position(number_of(number), number_of(pos), text_of(file))
        for number, pos, file in header["starts"]
    ]
    columns = _columns(header, stream)
    versions: dict[Table, tuple[Version, ...]] = {}
    for database, table, described in header["tables"]:
        name = (text_of(database), text_of(table))
        found: list[Version] = []
        for start, *what in described:
            found.append((starts[number_of(start)], _version(name, what, columns)))
        if (
            name in versions
            or not found
            or sorted({start for start, _ in found}) != [start for start, _ in found]
        ):
            raise ValueError
        versions[name] = tuple(found)
    if next(columns, None) is not None:
        raise ValueError
    return versions


def _version(
    table: Table, what: list[Any], columns: Iterator[ColumnSchema]
) -> TableSchema | UnknownFrom:
    if isinstance(what[0], str):
        reason, gone = what
        return UnknownFrom(reason, flag_of(gone))
    count, key, charset = what
    its_columns = []
    for _ in range(number_of(count)):
        column = next(columns, None)
        if column is None:
            raise ValueError
        its_columns.append(column)
    return TableSchema(
        *table,
        columns=tuple(its_columns),
        primary_key=tuple(its_columns[number_of(index)].name for index in key),
        charset=None if charset is None else text_of(charset),
    )


def _columns(header: dict[str, Any], stream: bytes) -> Iterator[ColumnSchema]:
    types = [
        (text_of(kind), length, scale, flag_of(unsigned), charset, tuple(map(text_of, labels)))
        for kind, length, scale, unsigned, charset, labels in header["types"]
    ]
    symbols = header["symbols"]
    words: list[str] = []
    for index in _indexes(stream):
        symbol = symbols[index]
        if isinstance(symbol, str):
            words.append(symbol)
            continue
        end, type_index, nullable = symbol
        if end:
            words.append(text_of(end))
        kind, length, scale, unsigned, charset, labels = types[number_of(type_index)]
        yield ColumnSchema(
            _joined(words),
            kind,
            length,
            scale,
            unsigned,
            charset,
            labels,
            flag_of(nullable),
            # The release that wrote this did not tell virtual columns from others.
            virtual=None if kind in BLOB_TYPES else False,
        )
        words = []
    if words:
        raise ValueError
