"""Encoding of trees in MySQL's binary JSON, and strategies for random trees."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from pyspark_mysqlbinlog.decoder.values.decimals import decimal_size
from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonDate,
    JsonDateTime,
    JsonOpaque,
    JsonTime,
)

__all__ = [
    "ALL_TREES",
    "TREES",
    "encode",
    "encode_document",
    "every_flip",
    "mutations",
    "packed_decimal",
]

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def encode_document(tree: Any, large: Callable[[], bool] = lambda: False) -> bytes:
    """Return a whole document; `large` decides for each container whether it is large."""
    code, raw = encode(tree, large)
    return bytes([code]) + raw


def encode(tree: Any, large: Callable[[], bool]) -> tuple[int, bytes]:
    """Return type and bytes of a tree; `large` decides for each container whether it is large."""
    if tree is None or isinstance(tree, bool):
        return 4, bytes([0 if tree is None else 2 - tree])
    if isinstance(tree, int):
        for code, layout in enumerate("hHiIqQ", 5):
            try:
                return code, struct.pack(f"<{layout}", tree)
            except struct.error:
                continue
    if isinstance(tree, float):
        return 11, struct.pack("<d", tree)
    if isinstance(tree, str):
        raw = tree.encode()
        return 12, _length(len(raw)) + raw
    if isinstance(tree, (dict, list)):
        return _container(tree, large)
    field_type, raw = _opaque(tree)
    return 15, bytes([field_type]) + _length(len(raw)) + raw


def _length(length: int) -> bytes:
    """Return a length in 7 bits per byte, the low bits first."""
    prefix = b""
    while length >= 0x80:
        prefix += bytes([length & 0x7F | 0x80])
        length >>= 7
    return prefix + bytes([length])


def _container(tree: dict[str, Any] | list[Any], large: Callable[[], bool]) -> tuple[int, bytes]:
    is_large = large()
    width, layout = (4, "I") if is_large else (2, "H")
    keys = [key.encode() for key in tree] if isinstance(tree, dict) else []
    elements = list(tree.values()) if isinstance(tree, dict) else tree
    at = 2 * width + len(keys) * (width + 2) + len(elements) * (width + 1)
    head, tail = bytearray(), bytearray()
    for key in keys:
        head += struct.pack(f"<{layout}H", at + len(tail), len(key))
        tail += key
    for element in elements:
        code, raw = encode(element, large)
        if code in (4, 5, 6) or (is_large and code in (7, 8)):
            sign = b"\xff" if code in (5, 7) and raw[-1] >= 0x80 else b"\x00"
            head += bytes([code]) + raw.ljust(width, sign)
        else:
            head += struct.pack(f"<B{layout}", code, at + len(tail))
            tail += raw
    size = 2 * width + len(head) + len(tail)
    code = (0 if isinstance(tree, dict) else 2) + is_large
    return code, struct.pack(f"<{layout}{layout}", len(elements), size) + head + tail


def _opaque(value: Any) -> tuple[int, bytes]:
    """Return column type and bytes of a value that JSON text cannot represent."""
    if isinstance(value, JsonOpaque):
        return value.field_type, value.data
    if isinstance(value, Decimal):
        return 246, _decimal(value)
    if isinstance(value, JsonTime):
        packed = _clock(abs(value.micros))
        return 11, struct.pack("<q", -packed if value.micros < 0 else packed)
    date = value.date if isinstance(value, JsonDateTime) else value
    packed = ((date.year * 13 + date.month) << 5 | date.day) << 41
    if isinstance(value, JsonDateTime):
        return 12, struct.pack("<q", packed | _clock(value.micros))
    return 10, struct.pack("<q", packed)


def _clock(micros: int) -> int:
    """Return hours, minutes, seconds and 24 bits of microseconds in one integer."""
    seconds, fraction = divmod(micros, 1_000_000)
    return (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 24 | fraction


def _decimal(value: Decimal) -> bytes:
    """Return precision u8 | scale u8 | the digits."""
    whole, _, fraction = f"{abs(value):f}".partition(".")
    digits = (whole.lstrip("0") + fraction) or "0"
    return bytes([len(digits), len(fraction)]) + packed_decimal(digits, len(fraction), value < 0)


def packed_decimal(digits: str, scale: int, negative: bool) -> bytes:
    """Return a stored DECIMAL(len(digits), scale): see values/decimals.py."""
    point = len(digits) - scale
    ends = [point % 9, *range(point % 9 + 9, point + 1, 9)] if point else [0]
    ends += [*range(point + 9, len(digits), 9), len(digits)]
    raw = bytearray()
    for start, end in pairwise([0, *ends]):
        raw += int(digits[start:end] or "0").to_bytes(_BYTES_OF_DIGITS[end - start], "big")
    assert len(raw) == decimal_size(len(digits), scale)
    if negative:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


def _trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> Any:
    return st.recursive(
        leaves,
        lambda children: (
            st.lists(children, max_size=6) | st.dictionaries(keys, children, max_size=6)
        ),
        max_leaves=30,
    )


_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=200)
# Trees that JSON text can represent.
TREES = _trees(_PLAIN | st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9))

_DATES = st.builds(JsonDate, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))
_HOUR = 3_600_000_000


@st.composite
def _decimals(draw: st.DrawFn) -> Decimal:
    """Draw a DECIMAL of up to 81 digits."""
    digits = draw(st.text("0123456789", min_size=1, max_size=draw(st.sampled_from((9, 39, 81)))))
    scale = draw(st.integers(0, len(digits)))
    sign = draw(st.sampled_from(("", "-")))
    return Decimal(f"{sign}{digits[: len(digits) - scale] or '0'}.{digits[len(digits) - scale :]}")


# Also all other values that MySQL can store in a document, and documents that it does not write:
# keys that sort differently in UTF-8 and in UTF-16, keys in any order, numbers that are not finite.
ALL_TREES = _trees(
    _PLAIN
    | st.integers(-300, 300)
    | st.floats()
    | _decimals()
    | _DATES
    | st.builds(JsonTime, st.integers(-839 * _HOUR + 1, 839 * _HOUR - 1))
    | st.builds(JsonDateTime, _DATES, st.integers(0, 24 * _HOUR - 1))
    | st.builds(
        JsonOpaque,
        st.sampled_from((1, 16, 247, 252, 253, 254, 255)),
        st.binary(max_size=10) | st.binary(min_size=50, max_size=300),
    ),
    st.text('abC"\n\x7fé\ud7ff\ue000\uffff\U00010000\U0010ffff', max_size=4)
    | st.text(max_size=40)
    | st.sampled_from(("id", "name", "value")),
)


def mutations(document: bytes) -> st.SearchStrategy[bytes]:
    """Return a strategy for the document with some bytes changed, its end cut off, or both."""
    return st.builds(_mutated, st.just(document), _CHANGES, st.none() | st.integers(0, 40))


_CHANGES = st.lists(
    st.tuples(
        st.integers(0, 1 << 16),
        st.sampled_from((0, 1, 2, 3, 4, 12, 15, 0x7F, 0x80, 0xFF)) | st.integers(0, 255),
    ),
    max_size=4,
)


def _mutated(document: bytes, changes: list[tuple[int, int]], cut: int | None) -> bytes:
    broken = bytearray(document)
    for at, byte in changes:
        broken[at % len(broken)] = byte
    return bytes(broken if cut is None else broken[: max(len(broken) - cut, 0)])


def every_flip(document: bytes) -> Iterator[bytes]:
    """Yield the document with each of its bits flipped, one at a time."""
    for at in range(len(document)):
        for bit in range(8):
            yield document[:at] + bytes([document[at] ^ 1 << bit]) + document[at + 1 :]
