"""A JSON document's text, as SELECT shows it, to MySQL's binary form.

The layout is drawn in `values/json_binary.py`. Keys come in the order in which they are stored.
Dates and opaque values are strings in the text, and what the decoder makes of the stored ones are
the same strings. Only numbers can have been of another type than they look.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.values.decimals import BYTES_OF_DIGITS, digit_groups
from pyspark_mysqlbinlog.errors import MalformedResultError

__all__ = ["binary_json"]

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0x00, 0x01, 0x02, 0x03
_LITERAL, _INT16, _INT32, _INT64, _UINT64 = 0x04, 0x05, 0x07, 0x09, 0x0A
_DOUBLE, _STRING, _OPAQUE = 0x0B, 0x0C, 0x0F
_LARGEST_SMALL = 0xFFFF
_LITERALS = {None: b"\x00", True: b"\x01", False: b"\x02"}
# (Type, bytes) of a value.
_Value = tuple[int, bytes]


class _Number(str):
    """A number, as its text."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """The members of an object, in order."""


def binary_json(text: bytes, what: str) -> bytes:
    """The binary document. MalformedResultError, which names `what`, for a text that is no JSON."""
    try:
        # Not strict: 5.7 breaks the base64 of opaque values into lines and leaves them raw.
        tree = json.loads(
            text.decode("utf-8"),
            strict=False,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constant,
            object_pairs_hook=_Object,
        )
        code, value = _encoded(tree)
    except (ValueError, OverflowError) as error:
        raise MalformedResultError(
            f"{what} holds {len(text)} bytes that can't be read as JSON ({error}), expected a"
            " document as MySQL shows it"
        ) from None
    return bytes((code,)) + value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _encoded(tree: Any) -> _Value:
    if isinstance(tree, _Number):
        return _number(tree)
    if isinstance(tree, str):
        raw = tree.encode("utf-8")
        return _STRING, _length(len(raw)) + raw
    if isinstance(tree, _Object):
        keys = [key.encode("utf-8") for key, _ in tree]
        return _container(_SMALL_OBJECT, keys, [_encoded(value) for _, value in tree])
    if isinstance(tree, list):
        return _container(_SMALL_ARRAY, None, [_encoded(value) for value in tree])
    return _LITERAL, _LITERALS[tree]


def _length(size: int) -> bytes:
    """Seven bits a byte, the low ones first; 0x80: more come."""
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def _container(small: int, keys: Sequence[bytes] | None, values: Sequence[_Value]) -> _Value:
    """An object, or an array where there are no keys: in two-byte numbers if they reach."""
    content = _laid_out(2, keys, values)
    if content is not None:
        return small, content
    content = _laid_out(4, keys, values)
    if content is None:
        raise ValueError("more than 4 GiB")
    return small + 1, content


def _laid_out(width: int, keys: Sequence[bytes] | None, values: Sequence[_Value]) -> bytes | None:
    """None where an offset needs more than `width` bytes."""
    inlined = (_LITERAL, _INT16) if width == 2 else (_LITERAL, _INT16, _INT32)
    place = 2 * width + len(values) * (width + 1)
    heads: list[bytes] = []
    behind: list[bytes] = []
    longest = (1 << 8 * width) - 1
    if keys is not None:
        place += len(keys) * (width + 2)
        for key in keys:
            if place > longest:
                return None
            heads.append(place.to_bytes(width, "little") + len(key).to_bytes(2, "little"))
            behind.append(key)
            place += len(key)
    for code, value in values:
        if code in inlined:
            heads.append(bytes((code,)) + _widened(code, value, width))
            continue
        if place > longest:
            return None
        heads.append(bytes((code,)) + place.to_bytes(width, "little"))
        behind.append(value)
        place += len(value)
    if place > longest:
        return None
    head = len(values).to_bytes(width, "little") + place.to_bytes(width, "little")
    return b"".join((head, *heads, *behind))


def _widened(code: int, value: bytes, width: int) -> bytes:
    signed = code != _LITERAL
    return int.from_bytes(value, "little", signed=signed).to_bytes(width, "little", signed=signed)


def _number(text: str) -> _Value:
    if "e" in text or "E" in text or text == "-0":
        return _DOUBLE, struct.pack("<d", float(text))
    if "." in text:
        # A double has no zero at its end, and 17 digits at most.
        if text.endswith("0") or len(text.lstrip("-0.").replace(".", "")) > 17:
            return _decimal(text)
        return _DOUBLE, struct.pack("<d", float(text))
    value = int(text)
    for code, size in ((_INT16, 2), (_INT32, 4), (_INT64, 8)):
        if -1 << 8 * size - 1 <= value < 1 << 8 * size - 1:
            return code, value.to_bytes(size, "little", signed=True)
    if 0 <= value < 1 << 64:
        return _UINT64, value.to_bytes(8, "little")
    return _decimal(text)


def _decimal(text: str) -> _Value:
    """An opaque value: precision u8 | scale u8 | digits as in a DECIMAL column."""
    sign, digits = text.startswith("-"), text.removeprefix("-")
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0") or ("" if fraction else "0")
    precision, scale = len(whole) + len(fraction), len(fraction)
    left, right = digit_groups(precision, scale)
    packed, size, at, both = 0, 0, 0, whole + fraction
    for count in left + right:
        width = BYTES_OF_DIGITS[count]
        packed = packed << 8 * width | int(both[at : at + count])
        at, size = at + count, size + width
    if sign and packed:
        packed ^= (1 << 8 * size) - 1
    raw = bytes((precision, scale)) + (packed ^ 1 << 8 * size - 1).to_bytes(size, "big")
    return _OPAQUE, bytes((FieldType.NEWDECIMAL,)) + _length(len(raw)) + raw
