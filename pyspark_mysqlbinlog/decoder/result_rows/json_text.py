"""Encode a JSON document's text, as SELECT shows it, in MySQL's binary form.

`values/json_binary.py` describes the layout. Keys come in stored order. Dates and opaque values are
strings in the text; the decoder makes the same strings of the stored values. Only the types of
numbers are not always clear from the text (measured on 5.7.41 and 9.7.4)::

    5, 5000000000         an integer, a DECIMAL without a fraction, or on 5.7 a DOUBLE
    5.0                   a DECIMAL, or on 9.7 a DOUBLE
    1.5                   a DOUBLE or a DECIMAL
    1.50                  a DECIMAL: a DOUBLE has no zeros at its end
    1e300, -0, -0.0       a DOUBLE

In the text of a payload the three have the same digits, except for a DOUBLE below 0.0001, which has
an exponent there but none in the server's text, and for a DOUBLE shown as 5.0, which is 5
there: these types matter in every payload. From 16 digits on, a DOUBLE cannot represent the
digits of every DECIMAL, but a DECIMAL can represent every DOUBLE's, so DECIMAL is assumed. In a
VARIANT the three are different types. A type that matters and is unknown must be selected (see
`json_types`): JSON_TYPE of the number's path.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.values.decimals import BYTES_OF_DIGITS, digit_groups
from pyspark_mysqlbinlog.errors import MalformedResultError

__all__ = ["JsonPath", "Numbers", "binary_json"]

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0x00, 0x01, 0x02, 0x03
_LITERAL, _INT16, _UINT16, _INT32, _UINT32 = 0x04, 0x05, 0x06, 0x07, 0x08
_INT64, _UINT64 = 0x09, 0x0A
_DOUBLE, _STRING, _OPAQUE = 0x0B, 0x0C, 0x0F
_LARGEST_SMALL = 0xFFFF
_LITERALS = {None: b"\x00", True: b"\x01", False: b"\x02"}
# The narrowest first.
_SIGNED = ((_INT16, Struct("<h")), (_INT32, Struct("<i")), (_INT64, Struct("<q")))
_UNSIGNED = ((_UINT16, Struct("<H")), (_UINT32, Struct("<I")), (_UINT64, Struct("<Q")))
# Types that are stored in the value entry, by an offset's bytes.
_INLINED = {
    2: frozenset({_LITERAL, _INT16, _UINT16}),
    4: frozenset({_LITERAL, _INT16, _UINT16, _INT32, _UINT32}),
}
# (Type, bytes) of a value.
_Value = tuple[int, bytes]
# Results of JSON_TYPE for a number.
_IS_INTEGER, _IS_UNSIGNED, _IS_DOUBLE, _IS_DECIMAL = (
    "INTEGER",
    "UNSIGNED INTEGER",
    "DOUBLE",
    "DECIMAL",
)

# Maximum digits shown for a DOUBLE, and digits up to which each DECIMAL has a DOUBLE of its own.
_MOST_OF_DOUBLES, _MOST_OF_ALL_DECIMALS = 17, 15

# The keys and indexes that lead to a value.
JsonPath: TypeAlias = tuple[str | int, ...]


class _Number(str):
    """A number, as its text."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """The members of an object, in order."""


@dataclass(frozen=True, slots=True)
class _Leg:
    """The last leg of a path in a document: a key or an index, after the previous legs."""

    parent: _Leg | None
    step: str | int

    def steps(self) -> tuple[str | int, ...]:
        """The whole path."""
        found: list[str | int] = []
        leg: _Leg | None = self
        while leg is not None:
            found.append(leg.step)
            leg = leg.parent
        return tuple(reversed(found))


class Numbers:
    """The types of a document's numbers.

    Parameters
    ----------
    all_matter : whether a number's type is visible in the payload.
    known : path -> result of JSON_TYPE.
    unsigned : integers of unknown type are from unsigned columns.
    doubles_have_points : a DOUBLE without a fraction is shown as 5.0: from MySQL 8.0 on, of which
        9.7.4 was measured. If an 8.0 shows it as 5, the types that are selected are right as well.

    Attributes
    ----------
    untyped : the paths of the numbers whose types matter and are unknown.
    as_they_look : every known number has the likeliest type.
    """

    __slots__ = (
        "_all_matter",
        "_doubles_have_points",
        "_known",
        "_likely_integer",
        "as_they_look",
        "untyped",
    )

    def __init__(
        self,
        all_matter: bool,
        known: Mapping[JsonPath, str] = MappingProxyType({}),
        *,
        unsigned: bool = False,
        doubles_have_points: bool = False,
    ) -> None:
        self._all_matter = all_matter
        self._doubles_have_points = doubles_have_points
        self._known = known
        self._likely_integer = _IS_UNSIGNED if unsigned else _IS_INTEGER
        self.untyped: list[JsonPath] = []
        self.as_they_look = True

    def type_of(self, text: str, leg: _Leg | None) -> str:
        """Return the JSON_TYPE of a number; if unknown, the likeliest one."""
        shown_whole = self._doubles_have_points and text.endswith(".0")
        if "e" in text or "E" in text or text == "-0" or (shown_whole and text == "-0.0"):
            return _IS_DOUBLE
        has_point = "." in text
        matters = self._all_matter or shown_whole or text.lstrip("-").startswith("0.0000")
        most = _MOST_OF_DOUBLES if matters else _MOST_OF_ALL_DECIMALS
        digits = sum(map(str.isdigit, text.lstrip("-0.")))
        if has_point and not shown_whole and (text[-1] == "0" or digits > most):
            return _IS_DECIMAL
        if not has_point and not -1 << 63 <= int(text) < 1 << 64:
            return _IS_DECIMAL
        likely = _IS_DOUBLE if has_point else self._likely_integer
        if not matters:
            return likely
        path = () if leg is None else leg.steps()
        known = self._known.get(path)
        if known is None:
            self.untyped.append(path)
            return likely
        self.as_they_look &= known == _IS_DOUBLE if has_point else known.endswith(_IS_INTEGER)
        return known


def binary_json(text: bytes, what: str, numbers: Numbers) -> bytes:
    """Return the binary document.

    Raises MalformedResultError that names `what`, for a text that is not JSON, or whose numbers do
    not have the known types.
    """
    try:
        # Not strict: 5.7 breaks the base64 of opaque values by unescaped newlines.
        tree = json.loads(
            text.decode("utf-8"),
            strict=False,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constant,
            object_pairs_hook=_Object,
        )
        code, value = _encoded(tree, None, numbers)
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedResultError(
            f"{what} holds {len(text)} bytes that cannot be parsed as JSON ({error}), expected a"
            " document as MySQL shows it"
        ) from None
    return bytes((code,)) + value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _encoded(tree: Any, leg: _Leg | None, numbers: Numbers) -> _Value:
    if isinstance(tree, _Number):
        return _number(tree, numbers.type_of(tree, leg))
    if isinstance(tree, str):
        raw = tree.encode("utf-8")
        return _STRING, _length(len(raw)) + raw
    if isinstance(tree, _Object):
        keys = [key.encode("utf-8") for key, _ in tree]
        values = [_encoded(value, _Leg(leg, key), numbers) for key, value in tree]
        return _container(_SMALL_OBJECT, keys, values)
    if isinstance(tree, list):
        values = [_encoded(value, _Leg(leg, at), numbers) for at, value in enumerate(tree)]
        return _container(_SMALL_ARRAY, None, values)
    return _LITERAL, _LITERALS[tree]


def _length(size: int) -> bytes:
    """Encode a length: seven bits per byte, the low ones first; 0x80: more follow."""
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def _container(small: int, keys: Sequence[bytes] | None, values: Sequence[_Value]) -> _Value:
    """Encode an object, or an array if there are no keys: with two-byte numbers if they suffice."""
    content = _laid_out(2, keys, values)
    if content is not None:
        return small, content
    content = _laid_out(4, keys, values)
    if content is None:
        raise ValueError("more than 4 GiB")
    return small + 1, content


def _laid_out(width: int, keys: Sequence[bytes] | None, values: Sequence[_Value]) -> bytes | None:
    """Encode a container; None if an offset needs more than `width` bytes."""
    inlined = _INLINED[width]
    place = 2 * width + len(values) * (width + 1)
    heads: list[bytes] = []
    stored: list[bytes] = []
    longest = (1 << 8 * width) - 1
    if keys is not None:
        place += len(keys) * (width + 2)
        for key in keys:
            if place > longest:
                return None
            heads.append(place.to_bytes(width, "little") + len(key).to_bytes(2, "little"))
            stored.append(key)
            place += len(key)
    for code, value in values:
        if code in inlined:
            heads.append(bytes((code,)) + _widened(code, value, width))
            continue
        if place > longest:
            return None
        heads.append(bytes((code,)) + place.to_bytes(width, "little"))
        stored.append(value)
        place += len(value)
    if place > longest:
        return None
    head = len(values).to_bytes(width, "little") + place.to_bytes(width, "little")
    return b"".join((head, *heads, *stored))


def _widened(code: int, value: bytes, width: int) -> bytes:
    signed = code in (_INT16, _INT32)
    return int.from_bytes(value, "little", signed=signed).to_bytes(width, "little", signed=signed)


def _number(text: str, kind: str) -> _Value:
    if kind == _IS_DOUBLE:
        return _DOUBLE, struct.pack("<d", float(text))
    if kind == _IS_DECIMAL:
        return _decimal(text)
    value = int(text)
    if kind == _IS_UNSIGNED and value >= 0:
        codes = _UNSIGNED
    elif kind in (_IS_INTEGER, _IS_UNSIGNED):
        codes = _SIGNED
    else:
        raise ValueError(f"JSON_TYPE of the number {text[:40]} is {kind[:40]!r}")
    for code, number in codes:
        try:
            return code, number.pack(value)
        except struct.error:
            continue
    return _UINT64, value.to_bytes(8, "little")


def _decimal(text: str) -> _Value:
    """Encode an opaque value: precision u8 | scale u8 | digits as in a DECIMAL column."""
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
