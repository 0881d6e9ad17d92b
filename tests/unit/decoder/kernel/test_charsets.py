"""The kernel's character sets compared with the Python decoders, code by code."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.value_parity import kernel, long, varchar
from helpers.samples import parts
from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER

CHARSETS = sorted(set(MAX_BYTES_PER_CHARACTER) - {"binary"})
WIDE = ("ucs2", "utf16", "utf16le", "utf32")
ONE_BYTE = [name for name in CHARSETS if MAX_BYTES_PER_CHARACTER[name] == 1]
MANY_BYTES = [name for name in CHARSETS if name not in {*ONE_BYTE, *WIDE, "utf8", "utf8mb4"}]


@pytest.mark.parametrize("charset", CHARSETS)
def test_kernel_decodes_every_byte_of_a_charset_like_python(charset: str) -> None:
    parity = varchar(charset)
    for byte in range(256):
        parity.agree(long(bytes([byte])))
        # Inside ASCII text, where the kernel checks eight bytes at once.
        parity.agree(long(b"abcdefg" + bytes([byte]) + b"hijklmnop"))
    parity.agree(long(bytes(range(128)) * 3))


@pytest.mark.sample(2)
@pytest.mark.parametrize("charset", [name for name in CHARSETS if name not in ONE_BYTE])
def test_kernel_decodes_every_byte_pair_of_a_charset_like_python(charset: str) -> None:
    parity = varchar(charset)
    valid = 0
    for pair in range(0x10000):
        valid += parity.agree(long(pair.to_bytes(2, "big")))
    # A utf32 character has four bytes; the others accept at least as many pairs as ASCII.
    assert valid >= 128 * 128 or charset == "utf32"


@pytest.mark.sample(1)
@pytest.mark.parametrize("charset", ["ujis", "eucjpms"])
def test_kernel_decodes_every_three_byte_code_of_euc_jp_like_python(charset: str) -> None:
    parity = varchar(charset)
    valid = sum(parity.agree(long(b"\x8f" + pair.to_bytes(2, "big"))) for pair in range(0x10000))
    assert valid >= 94 * 94


@pytest.mark.sample(1)
@pytest.mark.parametrize("firsts", parts(range(0x81, 0xFF), 9))
def test_kernel_decodes_every_four_byte_code_of_gb18030_like_python(firsts: Sequence[int]) -> None:
    parity = varchar("gb18030")
    digits = range(0x30, 0x3A)
    for first in firsts:
        for second in digits:
            codes = b"".join(
                bytes([first, second, third, fourth])
                for third in range(0x81, 0xFF)
                for fourth in digits
            )
            assert parity.agree(long(codes))


@given(st.lists(st.sampled_from(b"\x00\x2f\x30\x39\x3a\x80\x81\x84\x85\x90\xe3\xe4\xfe\xff")))
def test_kernel_decodes_random_gb18030_codes_like_python(codes: list[int]) -> None:
    varchar("gb18030").agree(long(bytes(codes)))


def test_kernel_decodes_every_unicode_character_and_rejects_surrogates() -> None:
    for charset, codec in (
        ("utf8mb4", "utf-8"),
        ("utf16", "utf-16-be"),
        ("utf16le", "utf-16-le"),
        ("utf32", "utf-32-be"),
    ):
        parity = varchar(charset)
        for first in range(0, 0x110000, 0x800):
            if first == 0xD800:
                continue
            characters = "".join(map(chr, range(first, first + 0x800)))
            assert parity.agree(long(characters.encode(codec)))
        for surrogate in range(0xD800, 0xE000):
            raw = chr(surrogate).encode(codec, "surrogatepass")
            assert not parity.agree(long(b"ab" + raw if charset == "utf8mb4" else raw))


def test_kernel_decodes_utf8_boundary_bytes_like_python() -> None:
    parity = varchar("utf8mb4")
    limits = b"\x00\x7f\x80\xbf\xc0\xff"
    for first in range(0x80, 0x100):
        for second in b"\x8f\x90\x9f\xa0" + limits:
            for third in limits:
                parity.agree(long(bytes([first, second, third])))
                for fourth in limits:
                    parity.agree(long(bytes([first, second, third, fourth])))


def test_kernel_decodes_every_ucs2_unit_and_rejects_surrogates() -> None:
    parity = varchar("ucs2")
    for unit in range(0x10000):
        assert parity.agree(long(unit.to_bytes(2, "big"))) == (not 0xD800 <= unit <= 0xDFFF)


@given(
    st.sampled_from(CHARSETS),
    st.lists(
        st.sampled_from([b"a", b'"', b"\\", b"\x00", b"\x1f", b"\n", b"plain text "])
        | st.binary(min_size=1, max_size=4)
        | st.text(max_size=3).map(lambda characters: characters.encode("utf-8")),
        max_size=12,
    ).map(b"".join),
)
def test_kernel_decodes_random_bytes_of_any_charset_like_python(charset: str, raw: bytes) -> None:
    parity = varchar(charset)
    parity.agree(long(raw))
    # The same bytes, cut before each of the last four.
    for end in range(max(len(raw) - 4, 0), len(raw)):
        parity.agree(long(raw[:end]))


@given(st.sampled_from(CHARSETS), st.text(max_size=40))
def test_kernel_decodes_encoded_text_of_any_charset_like_python(
    charset: str, characters: str
) -> None:
    codec = {
        "utf8": "utf-8",
        "utf8mb4": "utf-8",
        "utf16": "utf-16-be",
        "utf16le": "utf-16-le",
        "utf32": "utf-32-be",
        "ucs2": "utf-16-be",
        "cp932": "cp932",
        "sjis": "shift_jis",
        "gb18030": "gb18030",
        "gbk": "gbk",
        "ujis": "euc_jp",
        "big5": "big5",
        "koi8r": "koi8-r",
    }.get(charset, "latin-1")
    varchar(charset).agree(long(characters.encode(codec, "ignore")))


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\x00\x1f'))
)
def test_kernel_json_strings_parse_back_to_the_stored_text(characters: str) -> None:
    parity = varchar("utf8mb4")
    raw = long(characters.encode())
    assert parity.agree(raw)
    shown, _ = kernel.json_text(parity.program, raw, 0)
    assert json.loads(shown) == characters
