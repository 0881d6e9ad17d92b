"""Character sets as tables of UTF-8 for the kernel, made from the Python decoders.

A table's entry is a character's UTF-8 bytes, the first one lowest; 0 is an invalid code (see
kernel/cpp/values/charsets.hpp). The decoder is called code by code, so that both implementations
have the same characters. Sets of one byte take no time, the large ones some tenths of a second. The
caller copies and keeps the tables: nothing is cached here.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER
from pyspark_mysqlbinlog.decoder.values.charsets import decoder_of

__all__ = ["CharsetSpec", "charset_spec"]

_FORMS = {
    "utf8": "Utf8",
    "utf8mb4": "Utf8",
    "utf16": "Utf16",
    "utf16le": "Utf16le",
    "utf32": "Utf32",
    "ucs2": "Ucs2",
}


def _no_table() -> array[int]:
    return array("I")


@dataclass(frozen=True, slots=True)
class CharsetSpec:
    """A character set; `CharsetTable` in kernel/cpp/values/charsets.hpp describes the fields."""

    form: str
    is_ascii: bool = True
    one: array[int] = field(default_factory=_no_table)
    two: array[int] = field(default_factory=_no_table)
    three: array[int] = field(default_factory=_no_table)
    four: array[int] = field(default_factory=_no_table)


def charset_spec(charset: str) -> CharsetSpec:
    """Return the tables of a character set by its canonical name; KeyError if unknown."""
    if charset in _FORMS:
        return CharsetSpec(_FORMS[charset])
    decode = decoder_of(charset)
    if decode is None:
        raise KeyError(charset)
    one = _table(decode, (bytes([byte]) for byte in range(256)))
    is_ascii = one[:0x80] == array("I", range(0x80))
    if MAX_BYTES_PER_CHARACTER[charset] == 1:
        return CharsetSpec("OneByte", is_ascii, one)
    # No code begins with a complete shorter code, so the bytes after one are not part of it.
    two = _table(
        decode,
        (b"" if one[first] else bytes([first, second]) for first in _BYTES for second in _BYTES),
    )
    # The table also has 0 for U+0000.
    two[:0x100] = array("I", [0]) * 0x100
    three = four = _no_table()
    if charset in ("ujis", "eucjpms"):
        three = _table(
            decode,
            (
                bytes([0x8F, second, third]) if second > 0x7F and third > 0x7F else b""
                for second in _BYTES
                for third in _BYTES
            ),
        )
    if charset == "gb18030":
        # Codes of the first four bytes; later ones are numbered consecutively.
        digits = range(0x30, 0x3A)
        four = _table(
            decode,
            (
                bytes([first, second, third, fourth])
                for first in range(0x81, 0x85)
                for second in digits
                for third in range(0x81, 0xFF)
                for fourth in digits
            ),
        )
    return CharsetSpec("ManyBytes", is_ascii, one, two, three, four)


_BYTES = range(256)


def _table(decode: Callable[[bytes], str], codes: Iterable[bytes]) -> array[int]:
    """Return the entry of each code; 0 for b""."""
    entries = array("I")
    assert entries.itemsize == 4
    for code in codes:
        entry = 0
        if code:
            try:
                entry = int.from_bytes(decode(code).encode(), "little")
            except UnicodeError:
                entry = 0
        entries.append(entry)
    return entries
