"""Characters with several codes in a charset, compared with a count of all codes."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER
from pyspark_mysqlbinlog.decoder.values.charsets import ambiguous_characters, decoder_of

_UNICODE = {"binary", "utf8", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"}
_ONE_EACH = {
    *("cp850", "cp852", "cp866", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5"),
    *("latin7", "macce", "macroman"),
}


@pytest.mark.parametrize("charset", sorted(_UNICODE | _ONE_EACH))
def test_charsets_with_one_code_per_character_have_no_ambiguous_characters(charset: str) -> None:
    assert ambiguous_characters(charset) == frozenset()


@pytest.mark.parametrize("charset", sorted({*MAX_BYTES_PER_CHARACTER} - _UNICODE - {"gb18030"}))
def test_characters_with_several_one_or_two_byte_codes_are_ambiguous(charset: str) -> None:
    decode = decoder_of(charset)
    assert decode is not None
    counts: Counter[str] = Counter()
    for size in (1, 2)[: MAX_BYTES_PER_CHARACTER[charset]]:
        for code in product(range(256), repeat=size):
            try:
                text = decode(bytes(code))
            except UnicodeDecodeError:
                continue
            if len(text) == 1:
                counts[text] += 1
    several = {character for character, count in counts.items() if count > 1}
    assert several <= ambiguous_characters(charset)
    if MAX_BYTES_PER_CHARACTER[charset] <= 2:
        assert several == ambiguous_characters(charset)


def test_only_the_question_mark_is_ambiguous_in_gb18030() -> None:
    decode = decoder_of("gb18030")
    assert decode is not None
    counts: Counter[str] = Counter(map(chr, range(128)))
    pairs = product(range(0x81, 0xFF), [*range(0x40, 0x7F), *range(0x80, 0xFF)])
    # Decoded in one call: each code gives one character, as the total below shows.
    counts.update(decode(b"".join(map(bytes, pairs))))
    fours = product(range(0x81, 0xFF), range(0x30, 0x3A), range(0x81, 0xFF), range(0x30, 0x3A))
    counts.update(decode(b"".join(map(bytes, fours))))
    assert counts.total() == 1_611_668
    assert {character for character, count in counts.items() if count > 1} == {"?"}
    assert ambiguous_characters("gb18030") == {"?"}
