"""Binary JSON documents: whole, cut, and invalid ones."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.values.json_documents import TREES, encode
from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonDate,
    JsonDateTime,
    JsonOpaque,
    JsonTime,
    json_text,
    parse_json,
)
from pyspark_mysqlbinlog.errors import MalformedEventError

# Documents built by hand after json_binary.h: (bytes in hexadecimal, tree, JSON text).
DOCUMENTS: list[tuple[str, Any, str]] = [
    ("", None, "null"),
    ("04 00", None, "null"),
    ("04 01", True, "true"),
    ("04 02", False, "false"),
    ("05 0080", -32768, "-32768"),
    ("06 ffff", 65535, "65535"),
    ("07 00000080", -2147483648, "-2147483648"),
    ("08 ffffffff", 4294967295, "4294967295"),
    ("09 0000000000000080", -9223372036854775808, "-9223372036854775808"),
    ("0a ffffffffffffffff", 18446744073709551615, "18446744073709551615"),
    ("0b 9a9999999999b93f", 0.1, "0.1"),
    ("0b 0000000000000080", -0.0, "-0.0"),
    ("0b 9c7500883ce4377e", 1e300, "1e+300"),
    ("0c 00", "", '""'),
    ("0c 03 c3a922", 'é"', r'"é\""'),
    ("0c 8101" + "78" * 129, "x" * 129, '"' + "x" * 129 + '"'),
    ("00 0000 0400", {}, "{}"),
    ("02 0000 0400", [], "[]"),
    ("01 00000000 08000000", {}, "{}"),
    (
        # Two key entries at 4, two value entries at 12, the keys at 18, "x" at 20.
        "00 0200 1600  1200 0100  1300 0100  05 0100  0c 1400  61 62  01 78",
        {"a": 1, "b": "x"},
        '{"a":1,"b":"x"}',
    ),
    ("02 0200 1100  04 0000  02 0a00  0100 0700 04 0100", [None, [True]], "[null,[true]]"),
    # In a large array, an int32 is inline in its entry.
    ("03 01000000 0d000000  07 80969800", [10_000_000], "[10000000]"),
    ("0f f6 04 0302 8132", Decimal("1.50"), "1.50"),
    ("0f f6 04 0302 7ecd", Decimal("-1.50"), "-1.50"),
    ("0f 10 01 05", JsonOpaque(16, b"\x05"), '"base64:type16:BQ=="'),
    ("0f fc 00", JsonOpaque(252, b""), '"base64:type252:"'),
]


def _packed(field_type: int, high: int, micros: int, negative: bool = False) -> bytes:
    number = high << 24 | micros
    return struct.pack("<BBBq", 0x0F, field_type, 8, -number if negative else number)


def _datetime(year: int, month: int, day: int, *clock: int) -> int:
    hour, minute, second = clock
    return ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second


NOON = (12 * 3600 + 34 * 60 + 56) * 1_000_000
# (document, tree, the string that SELECT shows)
TEMPORALS = [
    (_packed(10, _datetime(2024, 2, 29, 0, 0, 0), 0), JsonDate(2024, 2, 29), "2024-02-29"),
    (_packed(10, 0, 0), JsonDate(0, 0, 0), "0000-00-00"),
    (_packed(11, 12 << 12 | 34 << 6 | 56, 789_000), JsonTime(NOON + 789_000), "12:34:56.789000"),
    (_packed(11, 12 << 12 | 34 << 6 | 56, 1, True), JsonTime(-NOON - 1), "-12:34:56.000001"),
    (
        _packed(12, _datetime(2015, 1, 15, 23, 24, 25), 0),
        JsonDateTime(JsonDate(2015, 1, 15), 84_265_000_000),
        "2015-01-15 23:24:25.000000",
    ),
    (
        _packed(7, _datetime(2024, 2, 29, 12, 34, 56), 789_012),
        JsonDateTime(JsonDate(2024, 2, 29), NOON + 789_012),
        "2024-02-29 12:34:56.789012",
    ),
]


@pytest.mark.parametrize(("raw", "tree", "text"), DOCUMENTS)
def test_binary_json_document_parses_to_its_tree_and_text(raw: str, tree: Any, text: str) -> None:
    found = parse_json(bytes.fromhex(raw))
    assert repr(found) == repr(tree)  # 1, True, 1.0 and Decimal(1) are equal, but have other types
    assert json_text(found) == text


@pytest.mark.parametrize(("raw", "tree", "text"), TEMPORALS)
def test_temporal_values_in_json_are_strings_as_shown_by_select(
    raw: bytes, tree: Any, text: str
) -> None:
    assert parse_json(raw) == tree
    assert json_text(tree) == f'"{text}"'


@pytest.mark.parametrize(("raw", "tree", "text"), DOCUMENTS)
def test_binary_json_document_cut_at_any_byte_is_rejected(raw: str, tree: Any, text: str) -> None:
    data = bytes.fromhex(raw)
    for length in range(1, len(data)):
        with pytest.raises(MalformedEventError, match="column `j` holds JSON that is cut short"):
            parse_json(data[:length], "column `j`")


# Documents that no server writes: each must be an error, not an endless loop or a wrong value.
BAD_DOCUMENTS: list[tuple[str, str]] = [
    ("0d 00", "a value of type 0x0d"),
    ("04 03", "the literal 0x03"),
    ("0c 01 ff", "a text that is not UTF-8"),
    ("0c 8080808080 00", "a length of more than 5 bytes"),
    ("02 0100 0600  04 0000", "1 elements in 6 bytes"),
    # An array that is its own element; an entry that points into the entries.
    ("02 0100 0700  02 0000", "the offset 0"),
    ("02 0100 0700  02 0400", "the offset 4"),
    ("00 0100 0b00  0400 0100  04 0000", "the key offset 4"),
    ("00 0200 1400  1200 0100  1300 0100  04 0000  04 0000  61 61", "the key 'a' twice"),
    ("0f f6 04 0003 8132", r"a DECIMAL\(0,3\)"),
    ("0f f6 03 0302 81", r"a DECIMAL\(3,2\) of 3 bytes"),
    ("0f f6 00", r"a DECIMAL\(0,0\)"),
    ("0f 0c 02 0000", "a date or time of 2 bytes"),
    (_packed(12, _datetime(2024, 1, 1, 24, 0, 0), 0).hex(), "the date 2024-1-1 24h"),
    (_packed(12, _datetime(2024, 1, 1, 0, 60, 0), 0).hex(), "the time 60:0"),
    (_packed(11, 839 << 12, 0).hex(), "a TIME of 839 hours"),
    (_packed(12, _datetime(2024, 1, 1, 0, 0, 0), 0, True).hex(), "the date 2024-1-1"),
]


@pytest.mark.parametrize(("raw", "message"), BAD_DOCUMENTS)
def test_invalid_binary_json_document_is_rejected(raw: str, message: str) -> None:
    with pytest.raises(MalformedEventError, match=f"column `j`.*{message}"):
        parse_json(bytes.fromhex(raw), "column `j`")


@given(TREES, st.randoms(use_true_random=False))
def test_encoded_json_tree_parses_back_unchanged(tree: Any, random: Any) -> None:
    code, raw = encode(tree, lambda: random.random() < 0.5)
    found = parse_json(bytes([code]) + raw)
    assert repr(found) == repr(tree)
    assert json.loads(json_text(found)) == tree


@given(TREES, st.data())
def test_damaged_json_document_gives_a_bounded_tree_or_malformed_event_error(
    tree: Any, data: st.DataObject
) -> None:
    code, raw = encode(tree, lambda: False)
    broken = bytearray([code]) + raw
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse_json(bytes(broken))
    except MalformedEventError:
        return
    # The size of the document limits the size of the tree.
    assert len(repr(found)) <= 30 * len(broken) + 100


@pytest.mark.parametrize("entries", [2, 10])
def test_json_document_with_overlapping_values_is_rejected(entries: int) -> None:
    """All entries of a level point to the same next level: read as a tree, entries ** 50 values."""
    head = 4 + 3 * entries
    levels = 50
    parts = [
        struct.pack("<HH", entries, (levels - at) * head) + struct.pack("<BH", 2, head) * entries
        for at in range(levels - 1)
    ]
    parts.append(struct.pack("<HH", entries, head) + b"\x04\x00\x00" * entries)
    with pytest.raises(MalformedEventError, match="values that overlap"):
        parse_json(b"\x02" + b"".join(parts))


@pytest.mark.parametrize("kind", ["array", "object"])
def test_json_document_deeper_than_100_levels_is_rejected(kind: str) -> None:
    """Servers allow 100 levels."""

    def nested(levels: int) -> bytes:
        tree: Any = [] if kind == "array" else {}
        for _ in range(levels - 1):
            tree = [tree] if kind == "array" else {"k": tree}
        code, raw = encode(tree, lambda: False)
        return bytes([code]) + raw

    text = json_text(parse_json(nested(100)))
    assert max(text.count("["), text.count("{")) == 100
    with pytest.raises(MalformedEventError, match="more than 100 levels"):
        parse_json(nested(101))


def test_opaque_json_value_breaks_base64_lines_after_76_characters() -> None:
    """5.7 encodes the value with its TO_BASE64, which breaks lines after 76 characters."""
    text = JsonOpaque(252, bytes(120)).text
    assert text.split("\n") == ["base64:type252:" + "A" * 76, "A" * 76, "A" * 8]
    assert "\n" not in JsonOpaque(252, bytes(57)).text
