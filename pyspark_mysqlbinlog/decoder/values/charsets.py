"""MySQL's character sets: how wide a character can be, and bytes to str.

Widths (mbmaxlen) are known for all that 5.7 has, since the table map gives lengths in bytes while a
schema gives characters. Decoders exist for the sets that are built; a column in another is refused
when a plan is made for it, not when its first odd byte arrives.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from pyspark_mysqlbinlog.errors import MalformedEventError, SchemaError

__all__ = ["bytes_per_character", "text_decoder"]

_MBMAXLEN = {
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "euckr": 2,
    "gb18030": 4,
    "gb2312": 2,
    "gbk": 2,
    "sjis": 2,
    "ucs2": 2,
    "ujis": 3,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "utf8": 3,
    "utf8mb3": 3,
    "utf8mb4": 4,
}
# fmt: off
_SINGLE_BYTE = frozenset(
    {
        "armscii8", "ascii", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852",
        "cp866", "dec8", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u",
        "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "swe7", "tis620",
    }
)
# fmt: on


def bytes_per_character(charset: str | None) -> int | None:
    """mbmaxlen; None for a set that 5.7 does not have."""
    if charset is None or charset in _SINGLE_BYTE:
        return 1
    return _MBMAXLEN.get(charset)


def _latin1_table() -> str:
    """MySQL's latin1 is cp1252; the five bytes that cp1252 leaves open are C1 controls."""
    return "".join(
        chr(byte) if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else bytes([byte]).decode("cp1252")
        for byte in range(256)
    )


_LATIN1 = _latin1_table()


def _decode_latin1(raw: bytes) -> str:
    if raw.isascii():
        return raw.decode("ascii")
    return codecs.charmap_decode(raw, "strict", _LATIN1)[0]


def _decode_utf8(raw: bytes) -> str:
    return raw.decode("utf-8")


def _decode_ascii(raw: bytes) -> str:
    return raw.decode("ascii")


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "utf8mb4": _decode_utf8,
    "utf8mb3": _decode_utf8,
    "utf8": _decode_utf8,
    "latin1": _decode_latin1,
    "ascii": _decode_ascii,
}


def text_decoder(what: str, charset: str | None) -> Callable[[bytes], str]:
    """bytes -> str for a charset by MySQL's name; raises MalformedEventError on invalid bytes.

    SchemaError when the charset is not built (yet).
    """
    decode = _DECODERS.get(charset or "")
    if decode is None:
        built = ", ".join(sorted(_DECODERS))
        raise SchemaError(
            f"{what} has the character set {charset}, which is not built yet (built are {built});"
            " exclude the column"
        )

    def decode_checked(raw: bytes) -> str:
        try:
            return decode(raw)
        except UnicodeDecodeError as error:
            raise MalformedEventError(
                f"{what} holds bytes that are not {charset} at offset {error.start} of"
                f" {len(raw)}: 0x{raw[error.start : error.start + 4].hex()}; correct the value on"
                " the server or exclude the column"
            ) from None

    return decode_checked
