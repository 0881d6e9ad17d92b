"""Encoders from one value of a binary result to its form in the row image.

The input is the manual's "Binary Protocol Value": integers and floats little-endian, times as
numbers after their length, everything else as a length-encoded string. The output is the input of
`decoder/values`, which describes each layout.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from struct import Struct
from typing import TypeAlias

from pyspark_mysqlbinlog.decoder.result_rows.columns import Kind, SelectedColumn
from pyspark_mysqlbinlog.decoder.result_rows.json_text import Numbers, binary_json
from pyspark_mysqlbinlog.decoder.result_rows.json_types import (
    MOST_IN_DOCUMENT,
    MOST_PATHS,
    UntypedNumbers,
)
from pyspark_mysqlbinlog.decoder.values.decimals import (
    BYTES_OF_DIGITS,
    decimal_size,
    digit_groups,
)
from pyspark_mysqlbinlog.errors import MalformedResultError, UnrepresentableValueError

__all__ = ["Encode", "encoders_of"]

Encode: TypeAlias = Callable[[bytes, int], tuple[bytes, int]]

_MAX_HOURS = 838
_EPOCH = dt.date(1970, 1, 1).toordinal()
_LAST_SECOND = (1 << 32) - 1
_DATE = Struct("<HBB")
_CLOCK = Struct("<BBB")
_TIME = Struct("<BIBBB")


def encoders_of(column: SelectedColumn) -> tuple[Encode, ...]:
    """Return the encoder of a column's values, after that of its additional column, if any.

    They raise MalformedResultError.
    """
    if column.kind == Kind.JSON:
        json = _JsonEncoder(column)
        return (
            (json.encode,) if column.number_types is None else (json.read_number_types, json.encode)
        )
    return (_encoder_of(column),)


def _encoder_of(column: SelectedColumn) -> Encode:
    what, size, schema = column.what, column.size, column.schema
    match column.kind:
        case Kind.EXCLUDED:
            return _excluded(what)
        case Kind.FIXED:
            return _fixed(what, size)
        case Kind.INT24:
            return _int24(what, schema.unsigned)
        case Kind.LABELS:
            return _labels(what, size)
        case Kind.YEAR:
            return _year(what)
        case Kind.DATE:
            return _date(what)
        case Kind.TIME:
            return _time(what, schema.length or 0)
        case Kind.DATETIME:
            return _datetime(what, schema.length or 0)
        case Kind.TIMESTAMP:
            return _timestamp(what, schema.length or 0)
        case Kind.DECIMAL:
            return _decimal(what, column.metadata >> 8, column.metadata & 0xFF)
        case Kind.BIT:
            return _bit(what, size)
        case Kind.BYTES:
            return _bytes(what, size)
        case Kind.BINARY:
            return _binary(what, size)
        case _:
            raise AssertionError(column.kind)


def _cut_short(what: str, length: int, data: bytes, pos: int) -> MalformedResultError:
    return MalformedResultError(
        f"a row is cut short in {what}: expected {length} bytes at offset {pos}, found"
        f" {max(len(data) - pos, 0)}"
    )


def _bad(what: str, found: str, expected: str) -> MalformedResultError:
    return MalformedResultError(f"{what} holds {found}, expected {expected}")


def _take(what: str, data: bytes, pos: int, length: int) -> tuple[bytes, int]:
    end = pos + length
    if end > len(data):
        raise _cut_short(what, length, data, pos)
    return data[pos:end], end


def _lenenc(what: str, data: bytes, pos: int) -> tuple[bytes, int]:
    """Read the bytes after their length-encoded length."""
    (first,), pos = _take(what, data, pos, 1)
    length = first
    if first >= 0xFB:
        if first not in (0xFC, 0xFD, 0xFE):
            raise _bad(what, f"the length 0x{first:02x}", "a length-encoded integer")
        raw, pos = _take(what, data, pos, {0xFC: 2, 0xFD: 3, 0xFE: 8}[first])
        length = int.from_bytes(raw, "little")
    return _take(what, data, pos, length)


def _excluded(what: str) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raise _bad(what, f"a value at offset {pos} of {len(data)}", "NULL, as it is excluded")

    return encode


def _fixed(what: str, size: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        end = pos + size
        if end > len(data):
            raise _cut_short(what, size, data, pos)
        return data[pos:end], end

    return encode


def _int24(what: str, unsigned: bool) -> Encode:
    """The fourth byte repeats the sign."""

    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _take(what, data, pos, 4)
        sign = 0xFF if raw[2] & 0x80 and not unsigned else 0
        if raw[3] != sign:
            raise _bad(what, f"0x{raw[::-1].hex()}", "a number of 24 bits")
        return raw[:3], end

    return encode


def _labels(what: str, size: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _take(what, data, pos, 8)
        if any(raw[size:]):
            raise _bad(what, f"0x{raw[::-1].hex()}", f"a number of {size} bytes")
        return raw[:size], end

    return encode


def _year(what: str) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _take(what, data, pos, 2)
        year = int.from_bytes(raw, "little")
        if year and not 1901 <= year <= 2155:
            raise _bad(what, f"the year {year}", "0, or one from 1901 to 2155")
        return bytes((year - 1900 if year else 0,)), end

    return encode


def _moment(what: str, data: bytes, pos: int) -> tuple[int, int, int, int, int]:
    """Read (year, month, day, microseconds of the day, pos after) of DATE, DATETIME, TIMESTAMP.

    length u8 | year u16 | month u8 | day u8 | hour u8 | minute u8 | second u8 | microseconds u32,
    of which 0, 4, 7 or 11 bytes are present; the others are 0.
    """
    (length,), pos = _take(what, data, pos, 1)
    if length not in (0, 4, 7, 11):
        raise _bad(what, f"a time of {length} bytes", "0, 4, 7 or 11")
    raw, end = _take(what, data, pos, length)
    raw = raw.ljust(11, b"\x00")
    year, month, day = _DATE.unpack_from(raw)
    hour, minute, second = _CLOCK.unpack_from(raw, 4)
    micros = int.from_bytes(raw[7:], "little")
    if year > 9999 or month > 12 or day > 31:
        raise _bad(what, f"the date {year}-{month}-{day}", "one that MySQL supports")
    if hour > 23 or minute > 59 or second > 59 or micros > 999_999:
        raise _bad(what, f"the time {hour}:{minute}:{second}.{micros}", "one of a day")
    seconds = (hour * 60 + minute) * 60 + second
    return year, month, day, seconds * 1_000_000 + micros, end


def _fraction(what: str, fsp: int, micros: int) -> tuple[int, int]:
    """Return (bytes, value) of the microseconds of a second in a column of `fsp` digits."""
    size = (fsp + 1) // 2
    value, lost = divmod(micros, 10 ** (6 - 2 * size))
    if lost or micros % 10 ** (6 - fsp):
        raise _bad(what, f"{micros} microseconds", f"at most {fsp} digits of a second")
    return size, value


def _clock(micros: int) -> tuple[int, int]:
    """Return (hhhhh mmmmmm ssssss as bits, microseconds) of microseconds."""
    seconds, micros = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return hour << 12 | minute << 6 | second, micros


def _date(what: str) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        year, month, day, micros, end = _moment(what, data, pos)
        if micros:
            raise _bad(what, "a time of day", "a date")
        return (year << 9 | month << 5 | day).to_bytes(3, "little"), end

    return encode


def _time(what: str, fsp: int) -> Encode:
    """negative u8 | days u32 | hour u8 | minute u8 | second u8 | microseconds u32, after a length
    of 0, 8 or 12 bytes.
    """

    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        (length,), pos = _take(what, data, pos, 1)
        if length not in (0, 8, 12):
            raise _bad(what, f"a time of {length} bytes", "0, 8 or 12")
        raw, end = _take(what, data, pos, length)
        raw = raw.ljust(12, b"\x00")
        negative, days, hour, minute, second = _TIME.unpack_from(raw)
        micros = int.from_bytes(raw[8:], "little")
        hour += days * 24
        if negative > 1 or hour > _MAX_HOURS or minute > 59 or second > 59 or micros > 999_999:
            raise _bad(what, f"the time {hour}:{minute}:{second}.{micros}", "at most 838:59:59")
        size, fraction = _fraction(what, fsp, micros)
        packed = (hour << 12 | minute << 6 | second) << 8 * size | fraction
        offset = 0x800000 << 8 * size
        return (offset - packed if negative else offset + packed).to_bytes(3 + size, "big"), end

    return encode


def _datetime(what: str, fsp: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        year, month, day, micros, end = _moment(what, data, pos)
        clock, micros = _clock(micros)
        size, fraction = _fraction(what, fsp, micros)
        packed = 1 << 39 | (year * 13 + month) << 22 | day << 17 | clock
        return (packed << 8 * size | fraction).to_bytes(5 + size, "big"), end

    return encode


def _timestamp(what: str, fsp: int) -> Encode:
    """The input is a date and time in UTC, the session's time zone."""

    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        year, month, day, micros, end = _moment(what, data, pos)
        if not (year or month or day or micros):
            return bytes(4 + (fsp + 1) // 2), end
        try:
            days = dt.date(year, month, day).toordinal() - _EPOCH
        except ValueError:
            raise _bad(what, f"the date {year}-{month}-{day}", "a valid one") from None
        seconds, micros = divmod(micros, 1_000_000)
        seconds += days * 86_400
        # Without a fraction, second 0 is the zero date. MariaDB has it with one.
        if not (0 if micros else 1) <= seconds <= _LAST_SECOND:
            raise _bad(what, f"second {seconds} since 1970", f"1 to {_LAST_SECOND}")
        size, fraction = _fraction(what, fsp, micros)
        return seconds.to_bytes(4, "big") + fraction.to_bytes(size, "big"), end

    return encode


def _decimal(what: str, precision: int, scale: int) -> Encode:
    """Digits in groups of up to nine, see `values/decimals.py`; may have ZEROFILL's zeros."""
    size = decimal_size(precision, scale)
    left, right = digit_groups(precision, scale)
    groups = [(digits, BYTES_OF_DIGITS[digits]) for digits in left + right]
    all_bits = (1 << 8 * size) - 1
    sign_bit = 1 << 8 * size - 1

    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _lenenc(what, data, pos)
        negative = raw[:1] == b"-"
        whole, _, fraction = raw[negative:].partition(b".")
        digits = whole.lstrip(b"0").rjust(precision - scale, b"0") + fraction.ljust(scale, b"0")
        if len(digits) != precision or not digits.isdigit():
            shown = raw[:80].decode("latin-1")
            raise _bad(what, f"{shown!r}", f"a number of decimal({precision},{scale})")
        packed = at = 0
        for count, width in groups:
            packed = packed << 8 * width | int(digits[at : at + count])
            at += count
        if negative and packed:
            packed ^= all_bits
        return (packed ^ sign_bit).to_bytes(size, "big"), end

    return encode


def _bit(what: str, size: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _lenenc(what, data, pos)
        if len(raw) != size:
            raise _bad(what, f"{len(raw)} bytes", f"{size}")
        return raw, end

    return encode


def _prefixed(what: str, size: int, raw: bytes) -> bytes:
    if len(raw) >> 8 * size:
        raise _bad(what, f"{len(raw)} bytes", f"less than {1 << 8 * size}")
    return len(raw).to_bytes(size, "little") + raw


def _bytes(what: str, size: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _lenenc(what, data, pos)
        return _prefixed(what, size, raw), end

    return encode


def _binary(what: str, size: int) -> Encode:
    def encode(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, end = _lenenc(what, data, pos)
        return _prefixed(what, size, raw.rstrip(b"\x00")), end

    return encode


class _JsonEncoder:
    """Encodes JSON documents; the answer for its number types precedes each document."""

    __slots__ = ("_answer", "_column")

    def __init__(self, column: SelectedColumn) -> None:
        self._column = column
        self._answer = b""

    def read_number_types(self, data: bytes, pos: int) -> tuple[bytes, int]:
        """Read the answer for the next document; adds nothing to the image."""
        self._answer, end = _lenenc(self._column.what, data, pos)
        return b"", end

    def encode(self, data: bytes, pos: int) -> tuple[bytes, int]:
        """Also raises UntypedNumbers; UnrepresentableValueError if selecting cannot help."""
        column = self._column
        what, requested = column.what, column.numbers
        raw, end = _lenenc(what, data, pos)
        answered = requested.parse(self._answer, what)
        has_points = column.doubles_have_points
        numbers = Numbers(column.typed, answered.types, doubles_have_points=has_points)
        document = binary_json(raw, what, numbers)
        if numbers.untyped:
            is_large = len(numbers.untyped) > MOST_IN_DOCUMENT
            if not (requested.is_full or (is_large and requested.paths)):
                raise UntypedNumbers(column.schema.name, numbers.untyped)
            unsigned = Numbers(
                column.typed, answered.types, unsigned=True, doubles_have_points=has_points
            )
            likely = {len(document), len(binary_json(raw, what, unsigned))}
            if not numbers.as_they_look or answered.size not in likely:
                raise self._untypable(len(numbers.untyped))
        return _prefixed(what, column.size, document), end

    def _untypable(self, count: int) -> UnrepresentableValueError:
        return UnrepresentableValueError(
            f"{self._column.what} holds a document with {count} numbers of unknown type, and types"
            f" are selected for at most {MOST_IN_DOCUMENT} of one document and {MOST_PATHS} of the"
            " column; exclude the column with excludeColumns, or use payload=json"
        )
