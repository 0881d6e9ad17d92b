"""MySQL's binary JSON: bytes to a tree of Python values, and the tree to JSON text.

sql/json_binary.h of 5.7. A document is a type byte and a value; integers are little-endian; `size`
and offsets take 2 bytes in small objects and arrays, 4 in large ones, and offsets count from the
container's `count`::

    document  type u8 | value
    object    count | size | key entry * count | value entry * count | keys | values
    array     count | size | value entry * count | values
    key entry    offset of the key | length of the key u16
    value entry  type u8 | offset of the value, or the value itself where it fits (see `INLINED`)
    string    length, 7 bits a byte, low bits first, 0x80 = more | UTF-8
    opaque    column type u8 | length as above | bytes

The tree contains JSON values (dict in stored order, list, str, bool, None, int, float) and MySQL's
additional types: `decimal.Decimal`, `JsonDate`, `JsonTime`, `JsonDateTime` and `JsonOpaque`, whose
`text` is the string that SELECT shows for them.

Offsets are followed only forwards and inside their container, and all values of a document together
cannot exceed its length. Therefore, no document can cause a loop or unbounded memory use.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.values.codec import Codec, make_codec, quote
from pyspark_mysqlbinlog.decoder.values.decimals import decimal, decimal_size
from pyspark_mysqlbinlog.decoder.values.numbers import float64_text
from pyspark_mysqlbinlog.decoder.values.strings import prefixed_skip
from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = [
    "INLINED",
    "MAX_DEPTH",
    "JsonDate",
    "JsonDateTime",
    "JsonOpaque",
    "JsonTime",
    "JsonTree",
    "json_document",
    "json_text",
    "parse_json",
]

# Contents of a parsed document; Any stands for the recursion.
JsonTree: TypeAlias = (
    "dict[str, Any] | list[Any] | str | bool | int | float | Decimal"
    " | JsonDate | JsonTime | JsonDateTime | JsonOpaque | None"
)

# JSON_DOCUMENT_MAX_DEPTH: the server rejects deeper documents.
MAX_DEPTH = 100

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0x00, 0x01, 0x02, 0x03
_LITERAL, _INT16, _UINT16, _INT32, _UINT32 = 0x04, 0x05, 0x06, 0x07, 0x08
_INT64, _UINT64, _DOUBLE, _STRING, _OPAQUE = 0x09, 0x0A, 0x0B, 0x0C, 0x0F

_LITERALS = {0: None, 1: True, 2: False}
_NUMBERS = {
    _INT16: struct.Struct("<h"),
    _UINT16: struct.Struct("<H"),
    _INT32: struct.Struct("<i"),
    _UINT32: struct.Struct("<I"),
    _INT64: struct.Struct("<q"),
    _UINT64: struct.Struct("<Q"),
    _DOUBLE: struct.Struct("<d"),
}
# Types that are stored in the value entry instead of an offset, by the offset's size.
INLINED = {
    2: frozenset({_LITERAL, _INT16, _UINT16}),
    4: frozenset({_LITERAL, _INT16, _UINT16, _INT32, _UINT32}),
}
_DATETIMES = (FieldType.DATETIME, FieldType.TIMESTAMP)
_TEMPORALS = (FieldType.DATE, FieldType.TIME, *_DATETIMES)
_BASE64_LINE = 76


@dataclass(frozen=True, slots=True)
class JsonDate:
    """A DATE inside a document; parts may be zero."""

    year: int
    month: int
    day: int

    @property
    def text(self) -> str:
        """``2024-02-29``"""
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"


@dataclass(frozen=True, slots=True)
class JsonTime:
    """A TIME inside a document, in microseconds."""

    micros: int

    @property
    def text(self) -> str:
        """``-12:34:56.789000``: always six digits."""
        seconds, micros = divmod(abs(self.micros), 1_000_000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        sign = "-" if self.micros < 0 else ""
        return f"{sign}{hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"


@dataclass(frozen=True, slots=True)
class JsonDateTime:
    """A DATETIME, or a TIMESTAMP in its session's time zone, inside a document.

    micros : of the day.
    """

    date: JsonDate
    micros: int

    @property
    def text(self) -> str:
        """``2024-02-29 12:34:56.789012``: always six digits."""
        return f"{self.date.text} {JsonTime(self.micros).text}"


@dataclass(frozen=True, slots=True)
class JsonOpaque:
    """A value of a type that JSON lacks: its MySQL column type and its bytes."""

    field_type: int
    data: bytes

    @property
    def text(self) -> str:
        """``base64:type16:BQ==``; base64 is broken into lines of 76, as by the server."""
        encoded = b64encode(self.data).decode("ascii")
        lines = (encoded[at : at + _BASE64_LINE] for at in range(0, len(encoded), _BASE64_LINE))
        return f"base64:type{self.field_type}:" + "\n".join(lines)


def json_document(what: str, length_bytes: int) -> Codec:
    """JSON. Value: the document tree."""
    skip = prefixed_skip(what, length_bytes)

    def read(data: bytes, pos: int) -> tuple[JsonTree, int]:
        end = skip(data, pos)
        return parse_json(data[pos + length_bytes : end], what), end

    return make_codec(read, skip, json_text)


def parse_json(document: bytes, what: str = "a JSON document") -> JsonTree:
    """Return the tree of a whole document.

    An empty document is JSON null: the server itself stores one if a NOT NULL column gets no value
    (INSERT IGNORE, ALTER), and reads it as null (Field_json::val_json).

    Raises MalformedEventError that names `what`.
    """
    return _Parser(document, what).parse() if document else None


class _Container(NamedTuple):
    """An object or array: its offsets count from `start`, its values follow `head` bytes."""

    start: int
    elements: int
    head: int
    end: int
    width: int
    depth: int


class _Parser:
    """One document; offsets in errors count from its first byte."""

    __slots__ = ("_data", "_end", "_left", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._end = len(data)
        self._what = what
        self._left = len(data)

    def parse(self) -> JsonTree:
        self._spend(1, 0)
        return self._value(self._data[0], 1, self._end, 0)

    def _spend(self, size: int, pos: int) -> None:
        """Check that values do not overlap: together they cannot exceed the document's size."""
        self._left -= size
        if self._left < 0:
            raise self._bad(pos, "values that overlap", "each byte in one value")

    def _take(self, pos: int, size: int, end: int) -> bytes:
        """The only read: `size` bytes before `end`."""
        if pos + size > end:
            raise MalformedEventError(
                f"{self._what} holds JSON that is cut short: expected {size} bytes at offset {pos},"
                f" found {max(end - pos, 0)}"
            )
        return self._data[pos : pos + size]

    def _uint(self, pos: int, size: int, end: int) -> int:
        return int.from_bytes(self._take(pos, size, end), "little")

    def _bad(self, pos: int, found: str, expected: str) -> MalformedEventError:
        return MalformedEventError(
            f"{self._what} holds JSON with {found} at offset {pos} of {self._end}, expected"
            f" {expected}"
        )

    def _value(self, code: int, pos: int, end: int, depth: int) -> JsonTree:
        """Return the value that begins at `pos` and ends before `end`."""
        number = _NUMBERS.get(code)
        if number is not None:
            raw = self._take(pos, number.size, end)
            self._spend(number.size, pos)
            value: int | float = number.unpack(raw)[0]
            return value
        if code == _STRING:
            return self._text(*self._extent(pos, end))
        if code == _LITERAL:
            literal = self._uint(pos, 1, end)
            self._spend(1, pos)
            return self._literal(literal, pos)
        if code in (_SMALL_OBJECT, _LARGE_OBJECT):
            return self._object(pos, end, 2 if code == _SMALL_OBJECT else 4, depth + 1)
        if code in (_SMALL_ARRAY, _LARGE_ARRAY):
            return self._array(pos, end, 2 if code == _SMALL_ARRAY else 4, depth + 1)
        if code == _OPAQUE:
            return self._opaque(pos, end)
        raise self._bad(pos, f"a value of type 0x{code:02x}", "one of MySQL 5.7's types")

    def _literal(self, code: int, pos: int) -> bool | None:
        if code not in _LITERALS:
            raise self._bad(pos, f"the literal 0x{code:02x}", "null, true or false")
        return _LITERALS[code]

    def _text(self, start: int, stop: int) -> str:
        try:
            return self._data[start:stop].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._bad(start + error.start, "a text that is not UTF-8", "UTF-8") from None

    def _extent(self, pos: int, end: int) -> tuple[int, int]:
        """Return start and end of the bytes after the variable-length size at `pos`."""
        length = 0
        for at in range(5):
            byte = self._take(pos + at, 1, end)[0]
            length |= (byte & 0x7F) << 7 * at
            if byte < 0x80:
                start = pos + at + 1
                self._take(start, length, end)
                self._spend(at + 1 + length, pos)
                return start, start + length
        raise self._bad(pos, "a length of more than 5 bytes", "at most 5")

    def _container(self, pos: int, end: int, width: int, depth: int, entry: int) -> _Container:
        """Parse the head of the object or array at `pos`, with `entry` bytes per element."""
        if depth > MAX_DEPTH:
            raise self._bad(
                pos, f"more than {MAX_DEPTH} levels", f"at most {MAX_DEPTH}, the limit of servers"
            )
        count = self._uint(pos, width, end)
        size = self._uint(pos + width, width, end)
        head = 2 * width + count * entry
        if size < head:
            raise self._bad(pos, f"{count} elements in {size} bytes", f"at least {head} bytes")
        self._take(pos, size, end)
        self._spend(head, pos)
        return _Container(pos, count, head, pos + size, width, depth)

    def _object(self, pos: int, end: int, width: int, depth: int) -> dict[str, JsonTree]:
        key_entry, value_entry = width + 2, width + 1
        container = self._container(pos, end, width, depth, key_entry + value_entry)
        keys = pos + 2 * width
        values = keys + container.elements * key_entry
        tree: dict[str, JsonTree] = {}
        for index in range(container.elements):
            key = self._key(keys + index * key_entry, container)
            if key in tree:
                raise self._bad(pos, f"the key {key[:40]!r} twice", "each key once")
            tree[key] = self._element(values + index * value_entry, container)
        return tree

    def _array(self, pos: int, end: int, width: int, depth: int) -> list[JsonTree]:
        value_entry = width + 1
        container = self._container(pos, end, width, depth, value_entry)
        values = pos + 2 * width
        return [
            self._element(values + index * value_entry, container)
            for index in range(container.elements)
        ]

    def _key(self, pos: int, container: _Container) -> str:
        """Return the key of the key entry at `pos`."""
        width, end = container.width, container.end
        offset, length = self._uint(pos, width, end), self._uint(pos + width, 2, end)
        if offset < container.head:
            raise self._bad(pos, f"the key offset {offset}", f"at least {container.head}")
        start = container.start + offset
        self._take(start, length, end)
        self._spend(length, pos)
        return self._text(start, start + length)

    def _element(self, pos: int, container: _Container) -> JsonTree:
        """Return the value of the value entry at `pos`."""
        width, end = container.width, container.end
        code = self._uint(pos, 1, end)
        if code in INLINED[width]:
            if code == _LITERAL:
                return self._literal(self._uint(pos + 1, width, end), pos + 1)
            number = _NUMBERS[code]
            value: int = number.unpack(self._take(pos + 1, number.size, end))[0]
            return value
        offset = self._uint(pos + 1, width, end)
        if offset < container.head:
            raise self._bad(pos + 1, f"the offset {offset}", f"at least {container.head}")
        return self._value(code, container.start + offset, end, container.depth)

    def _opaque(self, pos: int, end: int) -> JsonTree:
        field_type = self._uint(pos, 1, end)
        self._spend(1, pos)
        start, stop = self._extent(pos + 1, end)
        raw = self._data[start:stop]
        if field_type == FieldType.NEWDECIMAL:
            return self._decimal(raw, start)
        if field_type not in _TEMPORALS:
            return JsonOpaque(field_type, raw)
        if len(raw) != 8:
            raise self._bad(start, f"a date or time of {len(raw)} bytes", "8")
        return self._temporal(field_type, int.from_bytes(raw, "little", signed=True), start)

    def _decimal(self, raw: bytes, pos: int) -> Decimal:
        """precision u8 | scale u8 | digits as in a DECIMAL column."""
        precision, scale = (raw[0], raw[1]) if len(raw) >= 2 else (0, 0)
        if not 0 < precision <= 81 or scale > precision:
            raise self._bad(pos, f"a DECIMAL({precision},{scale})", "one that MySQL supports")
        if len(raw) != 2 + decimal_size(precision, scale):
            raise self._bad(
                pos,
                f"a DECIMAL({precision},{scale}) of {len(raw)} bytes",
                f"{2 + decimal_size(precision, scale)}",
            )
        text, _ = decimal(self._what, precision, scale).read(raw, 2)
        return Decimal(text)

    def _temporal(self, field_type: int, packed: int, pos: int) -> JsonTree:
        """TIME_from_longlong_*_packed: 24 bits of microseconds, above them::

        TIME      hhhh hhhh hhmm mmmm ssss ss
        others    (year * 13 + month) dddd dhhh hhmm mmmm ssss ss
        """
        negative, packed = packed < 0, abs(packed)
        fraction, packed = packed & 0xFFFFFF, packed >> 24
        second, minute, rest = packed & 63, packed >> 6 & 63, packed >> 12
        if fraction > 999_999 or second > 59 or minute > 59:
            raise self._bad(pos, f"the time {minute}:{second}.{fraction}", "a valid one")
        below_hours = (minute * 60 + second) * 1_000_000 + fraction
        if field_type == FieldType.TIME:
            if rest > 838:
                raise self._bad(pos, f"a TIME of {rest} hours", "at most 838")
            micros = rest * 3_600_000_000 + below_hours
            return JsonTime(-micros if negative else micros)
        hour, day, months = rest & 31, rest >> 5 & 31, rest >> 10
        year, month = divmod(months, 13)
        if negative or hour > 23 or year > 9999:
            raise self._bad(pos, f"the date {year}-{month}-{day} {hour}h", "a valid one")
        date = JsonDate(year, month, day)
        if field_type == FieldType.DATE:
            return date
        return JsonDateTime(date, hour * 3_600_000_000 + below_hours)


def json_text(tree: JsonTree) -> str:
    """Return the tree as JSON: keys in stored order, exact numbers, dates as SELECT's strings.

    Doubles have the shortest digits that parse to the same value; -0.0 keeps its point.
    """
    parts: list[str] = []
    _write(tree, parts.append)
    return "".join(parts)


def _write(tree: JsonTree, write: Callable[[str], None]) -> None:
    if isinstance(tree, str):
        write(quote(tree))
    elif tree is None:
        write("null")
    elif isinstance(tree, bool):
        write("true" if tree else "false")
    elif isinstance(tree, int):
        write(str(tree))
    elif isinstance(tree, float):
        write(float64_text(tree, "a JSON document"))
    elif isinstance(tree, dict):
        comma = "{"
        for key, value in tree.items():
            write(f"{comma}{quote(key)}:")
            _write(value, write)
            comma = ","
        write("}" if tree else "{}")
    elif isinstance(tree, list):
        comma = "["
        for value in tree:
            write(comma)
            _write(value, write)
            comma = ","
        write("]" if tree else "[]")
    elif isinstance(tree, Decimal):
        write(f"{tree:f}")
    else:
        write(quote(tree.text))
