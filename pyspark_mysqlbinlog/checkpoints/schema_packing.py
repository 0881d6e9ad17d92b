"""A schema history as a short text.

Spark repeats offsets in every progress report, so 200 tables of 50 columns must stay under 32 kB.
Nearly all of that is column names, and names are made of few words. So words, types and positions
are listed once, and the columns follow as one stream of symbols. A symbol is a word, or the end of
a column: its type, with its last word or its whole name where that comes often with this type
(`…_id` is a bigint, `created_at` a datetime). Frequent symbols have codes of one byte, which zlib
then shortens by their frequency. The text is base85 of zlib of::

    header, JSON in UTF-8 | 0x0a | a code for each symbol

Codes: 0x00-0xdf the first 224 symbols; 0xe0-0xfe and a byte the next 7,936; 0xff and four bytes,
big-endian, any other. Everything is sorted, so equal histories are equal texts.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownFrom, Version
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["pack_versions", "unpack_versions"]

_LAYOUT = 1
# A history of a million columns unpacks to less; what claims more is not ours.
_MAX_UNPACKED = 64 << 20
_ONE_BYTE = 0xE0
_TWO_BYTES = (0xFF - 0xE0) * 256
_FOUR_BYTES = 0xFF


# The end of a column: its last words, index of its type, nullable.
End = tuple[str, int, bool]
Symbol = str | End
# How often an end must come to have its words in it: it costs some bytes in the header.
_OFTEN = 8
# A column's type without its name: type, length, scale, unsigned, charset, labels.
Type = tuple[str, int | None, int | None, bool, str | None, tuple[str, ...]]


# Words of `billing_address_2`, `billingAddress2`, `BILLING_ADDRESS`.
_WORD = re.compile(r"[A-Z]?[^A-Z_]+|[A-Z]+")
# Before a name that its words would not make again: it follows whole.
_WHOLE = "\0"


def _words(name: str) -> list[str]:
    words = _WORD.findall(name)
    if words and _WHOLE not in name and _joined(words) == name:
        return words
    return [_WHOLE, name]


def _joined(words: list[str]) -> str:
    if words[0] == _WHOLE:
        return words[1]
    name = words[0]
    for word in words[1:]:
        camel = "A" <= word[0] <= "Z" and not "A" <= name[-1] <= "Z"
        name += word if camel else "_" + word
    return name


def _type_of(column: ColumnSchema) -> Type:
    return (
        column.type,
        column.length,
        column.scale,
        column.unsigned,
        column.charset,
        column.labels,
    )


def pack_versions(versions: Mapping[Table, tuple[Version, ...]]) -> str:
    """The text of a history; see the module."""
    tables = sorted(versions)
    starts = sorted({start for each in versions.values() for start, _ in each})
    start_index = {start: index for index, start in enumerate(starts)}
    columns = [
        column
        for table in tables
        for _, schema in versions[table]
        if isinstance(schema, TableSchema)
        for column in schema.columns
    ]
    types = sorted({_type_of(column) for column in columns}, key=repr)
    type_index = {each: index for index, each in enumerate(types)}
    stream = _symbols([(each.name, type_index[_type_of(each)], each.nullable) for each in columns])
    counts = Counter(stream)
    symbols = sorted(counts, key=lambda symbol: (-counts[symbol], repr(symbol)))
    codes = {symbol: _code(index) for index, symbol in enumerate(symbols)}
    header = {
        "layout": _LAYOUT,
        "starts": starts,
        "types": types,
        "symbols": symbols,
        "tables": [
            [*table, [_described(start_index[start], what) for start, what in versions[table]]]
            for table in tables
        ],
    }
    plain = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    plain += b"\n" + b"".join(codes[symbol] for symbol in stream)
    return base64.b85encode(zlib.compress(plain, 9)).decode()


def _symbols(columns: list[End]) -> list[Symbol]:
    whole = Counter(columns)
    parts = [(_words(name), kind, nullable) for name, kind, nullable in columns]
    last = Counter(
        (words[-1], kind, nullable)
        for column, (words, kind, nullable) in zip(columns, parts, strict=True)
        if whole[column] < _OFTEN
    )
    stream: list[Symbol] = []
    for column, (words, kind, nullable) in zip(columns, parts, strict=True):
        end = (words[-1], kind, nullable)
        if whole[column] >= _OFTEN:
            stream.append(column)
        elif last[end] >= _OFTEN:
            stream += [*words[:-1], end]
        else:
            stream += [*words, ("", kind, nullable)]
    return stream


def _described(start: int, what: TableSchema | UnknownFrom) -> list[Any]:
    """One version in the header; its columns are in the stream."""
    if isinstance(what, UnknownFrom):
        return [start, what.reason, what.gone]
    names = [column.name for column in what.columns]
    key = [names.index(name) for name in what.primary_key]
    return [start, len(names), key, what.charset]


def _code(index: int) -> bytes:
    if index < _ONE_BYTE:
        return bytes([index])
    rest = index - _ONE_BYTE
    if rest < _TWO_BYTES:
        return bytes([_ONE_BYTE + (rest >> 8), rest & 0xFF])
    return bytes([_FOUR_BYTES]) + index.to_bytes(4, "big")


def _indexes(stream: bytes) -> Iterator[int]:
    source = iter(stream)
    for first in source:
        if first < _ONE_BYTE:
            yield first
        elif first < _FOUR_BYTES:
            yield _ONE_BYTE + ((first - _ONE_BYTE) << 8) + next(source)
        else:
            yield int.from_bytes(bytes(next(source) for _ in range(4)), "big")


def unpack_versions(text: str) -> dict[Table, tuple[Version, ...]]:
    """The history of a text; OffsetError for a text that `pack_versions` did not write."""
    try:
        return _unpacked(text)
    except OffsetError:
        raise
    except (
        zlib.error,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RuntimeError,  # a generator that ran out of bytes
        RecursionError,
        OverflowError,
    ) as error:
        raise OffsetError(
            f"the offset's schemas can't be read ({type(error).__name__}): it was cut or changed;"
            " restore the checkpoint, or begin a new one"
        ) from None


def _unpacked(text: str) -> dict[Table, tuple[Version, ...]]:
    inflate = zlib.decompressobj()
    plain = inflate.decompress(base64.b85decode(text), _MAX_UNPACKED)
    if not inflate.eof or inflate.unused_data:
        raise ValueError
    # JSON writes a newline in a string as \n, so the first byte 0x0a ends the header.
    head, separator, stream = plain.partition(b"\n")
    header = json.loads(head)
    if not separator:
        raise ValueError
    if header["layout"] != _LAYOUT:
        raise OffsetError(
            f"the offset's schemas have layout {header['layout']!r}, and this version reads"
            f" {_LAYOUT}: a newer version of pyspark-mysqlbinlog wrote them, use that one"
        )
    starts = [
        Position(_number(number), _number(pos), _text(file))
        for number, pos, file in header["starts"]
    ]
    columns = _columns(header, stream)
    versions: dict[Table, tuple[Version, ...]] = {}
    for database, table, described in header["tables"]:
        name = (_text(database), _text(table))
        found: list[Version] = []
        for start, *what in described:
            found.append((starts[_number(start)], _version(name, what, columns)))
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
        return UnknownFrom(reason, _flag(gone))
    count, key, charset = what
    its_columns = []
    for _ in range(_number(count)):
        column = next(columns, None)
        if column is None:
            raise ValueError
        its_columns.append(column)
    return TableSchema(
        *table,
        columns=tuple(its_columns),
        primary_key=tuple(its_columns[_number(index)].name for index in key),
        charset=None if charset is None else _text(charset),
    )


def _columns(header: dict[str, Any], stream: bytes) -> Iterator[ColumnSchema]:
    types = [
        (_text(kind), length, scale, _flag(unsigned), charset, tuple(map(_text, labels)))
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
            words.append(_text(end))
        kind, length, scale, unsigned, charset, labels = types[_number(type_index)]
        yield ColumnSchema(
            _joined(words), kind, length, scale, unsigned, charset, labels, _flag(nullable)
        )
        words = []
    if words:
        raise ValueError


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value
