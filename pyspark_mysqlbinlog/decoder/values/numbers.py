"""Integers, FLOAT, DOUBLE, BIT and YEAR.

Integers and floats are little-endian and of fixed size; only BIT is big-endian. The schema, not the
table map, determines the sign of an integer.
"""

from __future__ import annotations

import math
import struct

from pyspark_mysqlbinlog.decoder.values.codec import Codec, cut_short, fixed_skip, make_codec
from pyspark_mysqlbinlog.decoder.values.strings import prefixed_skip
from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = [
    "bit",
    "double",
    "float32",
    "float32_text",
    "float64_text",
    "integer",
    "vector",
    "year",
]

_FORMATS = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}


def integer(what: str, size: int, unsigned: bool) -> Codec:
    """TINY, SHORT, INT24, LONG, LONGLONG: `size` bytes. Value: int."""
    if size == 3:
        return _integer24(what, unsigned)
    code = _FORMATS[size]
    unpack = struct.Struct(code.upper() if unsigned else code).unpack_from

    def read(data: bytes, pos: int) -> tuple[int, int]:
        try:
            return unpack(data, pos)[0], pos + size
        except struct.error:
            raise cut_short(what, size, data, pos) from None

    def read_json(data: bytes, pos: int) -> tuple[str, int]:
        try:
            return str(unpack(data, pos)[0]), pos + size
        except struct.error:
            raise cut_short(what, size, data, pos) from None

    return make_codec(read, fixed_skip(what, size), str, read_json)


def _integer24(what: str, unsigned: bool) -> Codec:
    def read(data: bytes, pos: int) -> tuple[int, int]:
        end = pos + 3
        if end > len(data):
            raise cut_short(what, 3, data, pos)
        return int.from_bytes(data[pos:end], "little", signed=not unsigned), end

    return make_codec(read, fixed_skip(what, 3), str)


_unpack_float = struct.Struct("<f").unpack_from
_unpack_double = struct.Struct("<d").unpack_from
_float_bytes = struct.Struct("<f").pack
_SMALLEST_NORMAL_FLOAT = 2.0**-126


def float64_text(value: float, what: str = "a value") -> str:
    """Return the shortest digits that parse to the same double; integers without ``.0``.

    -0.0 keeps its point: JSON readers would parse ``-0`` as the integer 0.
    """
    if not math.isfinite(value):
        raise MalformedEventError(
            f"{what} holds {value}, which MySQL cannot store and JSON cannot represent"
        )
    text = repr(value)
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text


def float32_text(value: float, what: str = "a value") -> str:
    """Return the shortest digits that parse to the same float32, formatted as `float64_text`."""
    if not math.isfinite(value):
        raise MalformedEventError(
            f"{what} holds {value}, which MySQL cannot store and JSON cannot represent"
        )
    stored = _float_bytes(value)
    # Any decimal of up to 6 digits survives a normal float32, so %.6g finds a shorter one if it
    # gives this value. Below the normal range that is not true.
    first = 6 if abs(value) >= _SMALLEST_NORMAL_FLOAT else 1
    for digits in range(first, 9):
        short = float(f"{value:.{digits}g}")
        try:
            if _float_bytes(short) == stored:
                return float64_text(short)
        except OverflowError:
            # Rounded up beyond the largest float32; more digits are needed.
            continue
    return float64_text(float(f"{value:.9g}"))


def float32(what: str) -> Codec:
    """FLOAT, 4 bytes. Value: the stored float32 as a float."""

    def read(data: bytes, pos: int) -> tuple[float, int]:
        try:
            return _unpack_float(data, pos)[0], pos + 4
        except struct.error:
            raise cut_short(what, 4, data, pos) from None

    return make_codec(read, fixed_skip(what, 4), lambda value: float32_text(value, what))


def vector(what: str, length_bytes: int) -> Codec:
    """VECTOR (9.0 and later): a length, and float32 values. Value: the stored floats as a list."""
    skip = prefixed_skip(what, length_bytes)

    def read(data: bytes, pos: int) -> tuple[list[float], int]:
        end = skip(data, pos)
        count, rest = divmod(end - pos - length_bytes, 4)
        if rest:
            raise MalformedEventError(
                f"{what} holds {end - pos - length_bytes} bytes, expected a multiple of 4"
            )
        return [*struct.unpack_from(f"<{count}f", data, pos + length_bytes)], end

    def json(values: list[float]) -> str:
        return f"[{','.join(float32_text(value, what) for value in values)}]"

    return make_codec(read, skip, json)


def double(what: str) -> Codec:
    """DOUBLE, 8 bytes. Value: float."""

    def read(data: bytes, pos: int) -> tuple[float, int]:
        try:
            return _unpack_double(data, pos)[0], pos + 8
        except struct.error:
            raise cut_short(what, 8, data, pos) from None

    return make_codec(read, fixed_skip(what, 8), lambda value: float64_text(value, what))


def bit(what: str, bits: int) -> Codec:
    """BIT(bits): (bits + 7) // 8 bytes, big-endian. Value: bool for BIT(1), else int."""
    size = (bits + 7) // 8
    limit = 1 << bits

    def read(data: bytes, pos: int) -> tuple[int | bool, int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        value = int.from_bytes(data[pos:end], "big")
        if value >= limit:
            raise MalformedEventError(f"{what} holds 0x{value:x}, expected at most {bits} bits")
        return (value == 1, end) if bits == 1 else (value, end)

    def json(value: int | bool) -> str:
        return ("true" if value else "false") if bits == 1 else str(value)

    return make_codec(read, fixed_skip(what, size), json)


def year(what: str) -> Codec:
    """YEAR, 1 byte: 0 is 0000, else 1900 + n. Value: int."""

    def read(data: bytes, pos: int) -> tuple[int, int]:
        if pos >= len(data):
            raise cut_short(what, 1, data, pos)
        value = data[pos]
        return (1900 + value if value else 0), pos + 1

    return make_codec(read, fixed_skip(what, 1), str)
