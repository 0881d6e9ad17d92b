"""MySQL's character sets: maximum bytes per character, and bytes to str.

The characters are those that SELECT shows: MySQL's own tables, which are Python's codecs except for
the differences in `charset_tables` (swept from live servers, every code of every set). A code
without a character in the set's table becomes ``?``, as in SELECT; bytes that no column of the
set can hold are an error.

The server does not convert utf8mb4 and utf8, so invalid bytes in them are an error. ucs2 has no
characters beyond U+FFFF: a surrogate in it is an error.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER, canonical_charset
from pyspark_mysqlbinlog.decoder.values.charset_tables import DIFFERENCES
from pyspark_mysqlbinlog.errors import MalformedEventError, SchemaError

__all__ = [
    "PYTHON_CODECS",
    "ambiguous_characters",
    "bytes_per_character",
    "can_hold",
    "decoder_of",
    "text_decoder",
]

Decode = Callable[[bytes], str]

# The closest of Python's codecs; `charset_tables` contains the differences.
PYTHON_CODECS = {
    "armscii8": "ascii",
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "dec8": "latin-1",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "geostd8": "ascii",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "hp8": "hp-roman8",
    "keybcs2": "cp852",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "macce": "mac-latin2",
    "macroman": "mac-roman",
    "sjis": "shift_jis",
    "swe7": "ascii",
    "tis620": "tis-620",
    "ujis": "euc_jp",
}

# Codes of more than one byte that columns of the set can hold, with or without a character.
_SHIFT_JIS = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]"
_EUC_JP = rb"\x8f[\xa1-\xfe][\xa1-\xfe]|\x8e[\xa0-\xdf]|[\xa1-\xfe][\xa1-\xfe]"
_CODES = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": _SHIFT_JIS,
    "eucjpms": _EUC_JP,
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "gb18030": rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]|"
    rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "sjis": _SHIFT_JIS,
    "ujis": _EUC_JP,
}
_WIDE = {"utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}


def bytes_per_character(charset: str | None) -> int | None:
    """Return mbmaxlen; None for a set that 5.7 does not have."""
    return 1 if charset is None else MAX_BYTES_PER_CHARACTER.get(canonical_charset(charset))


def _decode_utf8(raw: bytes) -> str:
    return raw.decode("utf-8")


def _wide(codec: str) -> Decode:
    def decode(raw: bytes) -> str:
        return raw.decode(codec)

    return decode


def _decode_ucs2(raw: bytes) -> str:
    text = raw.decode("utf-16-be")
    if 2 * len(text) != len(raw):
        at = next(index for index, character in enumerate(text) if character > "\uffff")
        raise UnicodeDecodeError("ucs2", raw, 2 * at, 2 * at + 2, "surrogate")
    return text


def _character(code: bytes, codec: str) -> str:
    try:
        return code.decode(codec)
    except UnicodeDecodeError:
        return "?"


def _differences(charset: str) -> dict[bytes, str]:
    return {
        code.to_bytes((code.bit_length() + 7) // 8 or 1, "big"): character
        for first, text in DIFFERENCES.get(charset, ())
        for code, character in enumerate(text, first)
    }


def _single_byte(charset: str) -> Decode:
    """Decode by a table of 256 characters. Below 0x80 only swe7 differs from ASCII."""
    different = _differences(charset)
    codec = PYTHON_CODECS[charset]
    codes = [bytes([byte]) for byte in range(256)]
    table = "".join(different.get(code) or _character(code, codec) for code in codes)
    is_ascii = table[:128] == "".join(map(chr, range(128)))

    def decode(raw: bytes) -> str:
        if is_ascii and raw.isascii():
            return raw.decode("ascii")
        return codecs.charmap_decode(raw, "strict", table)[0]

    return decode


class _Characters(dict[bytes, str]):
    """The characters of codes; each is decoded by Python's codec on first use."""

    def __init__(self, charset: str) -> None:
        super().__init__(_differences(charset))
        self._codec = PYTHON_CODECS[charset]
        if _CODES[charset] is _EUC_JP:
            # MySQL stores this invalid code, and shows its bytes one by one.
            self[b"\x8e\xa0"] = "??"

    def __missing__(self, code: bytes) -> str:
        if code.isascii():
            return code.decode("ascii")
        character = _character(code, self._codec)
        if len(self) < 0x10000:
            self[code] = character
        return character


def _multi_byte(charset: str) -> Decode:
    """Split into codes, then look up each, so that halves of two codes are never combined."""
    is_valid = re.compile(rb"(?:[\x00-\x7f]|" + _CODES[charset] + rb")*+")
    split = re.compile(rb"[\x00-\x7f]+|" + _CODES[charset]).findall
    characters = _Characters(charset)

    def decode(raw: bytes) -> str:
        if raw.isascii():
            return raw.decode("ascii")
        valid = is_valid.match(raw)
        end = valid.end() if valid is not None else 0
        if end != len(raw):
            raise UnicodeDecodeError(charset, raw, end, end + 1, "no code of the set")
        return "".join([characters[code] for code in split(raw)])

    return decode


@cache
def decoder_of(charset: str) -> Decode | None:
    """Return bytes -> str for a charset by its canonical name; it raises UnicodeDecodeError.

    None if MySQL 5.7 has no such charset.
    """
    if charset in ("utf8", "utf8mb4"):
        return _decode_utf8
    if charset == "ucs2":
        return _decode_ucs2
    if charset in _WIDE:
        return _wide(_WIDE[charset])
    if charset in _CODES:
        return _multi_byte(charset)
    return _single_byte(charset) if charset in PYTHON_CODECS else None


@cache
def _known_characters(charset: str) -> frozenset[str]:
    """Return the characters that Python's codec may lack; all of them for sets of one byte."""
    if charset in _CODES:
        return frozenset("".join(text for _, text in DIFFERENCES.get(charset, ())))
    decode = decoder_of(charset)
    assert decode is not None
    return frozenset(decode(bytes(range(256))))


def can_hold(charset: str, text: str) -> bool:
    """Whether a character set certainly contains all characters of a text."""
    if text.isascii() and charset not in ("swe7", "binary"):
        return True
    if charset in ("utf8mb4", "utf16", "utf16le", "utf32"):
        return True
    if charset in ("utf8", "ucs2"):
        return max(text, default="") <= "\uffff"
    if charset not in PYTHON_CODECS:
        return False
    return all(
        character in _known_characters(charset) or _encodes(character, charset)
        for character in text
    )


def _encodes(character: str, charset: str) -> bool:
    try:
        decode = decoder_of(charset)
        raw = character.encode(PYTHON_CODECS[charset])
        return charset in _CODES and decode is not None and decode(raw) == character
    except UnicodeError:
        return False


def text_decoder(what: str, charset: str | None) -> Decode:
    """Return bytes -> str for a charset by MySQL's name; MalformedEventError on invalid bytes.

    SchemaError if MySQL 5.7 has no such charset.
    """
    decode = decoder_of(canonical_charset(charset or ""))
    if decode is None:
        raise SchemaError(
            f"{what} has the character set {charset}, which MySQL 5.7 does not support; exclude the"
            " column"
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


@cache
def ambiguous_characters(charset: str) -> frozenset[str]:
    """Return the characters that are stored by more than one code.

    They include ``?``, which stands for every code without a character.

    charset : by its canonical name.
    """
    if charset == "gb18030":
        # Each of its 1,611,668 codes with a character has a character of its own.
        return frozenset("?")
    decode = decoder_of(charset)
    if decode is None or charset not in PYTHON_CODECS:
        return frozenset()
    counts = Counter(map(decode, _codes(charset)))
    return frozenset(character for character, count in counts.items() if count > 1)


def _codes(charset: str) -> Iterator[bytes]:
    """Yield every code that a column of the set can hold."""
    single = [bytes([byte]) for byte in range(256)]
    if charset not in _CODES:
        yield from single
        return
    is_code = re.compile(rb"[\x00-\x7f]|" + _CODES[charset]).fullmatch
    pairs = (bytes(pair) for pair in product(range(256), repeat=2))
    # Only the EUC sets have codes of three bytes.
    triples = (b"\x8f" + bytes(pair) for pair in product(range(0xA1, 0xFF), repeat=2))
    for codes in (single, pairs, triples):
        yield from filter(is_code, codes)
