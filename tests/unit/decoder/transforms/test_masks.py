"""Masks: their syntax and the masked values."""

from __future__ import annotations

import pytest

from helpers.values.masked_rows import SECRET, hashed
from pyspark_mysqlbinlog.decoder.transforms.masks import (
    Mask,
    Masking,
    masked_codec,
    masked_column,
    parse_mask,
)
from pyspark_mysqlbinlog.decoder.values.codec import Codec
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.decoder.values.strings import binary, text
from pyspark_mysqlbinlog.tables import ColumnSchema

TEXT = ColumnSchema("c", "varchar", 80, charset="utf8mb4")


def read(value: bytes, mask: str, column: ColumnSchema = TEXT) -> tuple[str, str]:
    """Return the masked value and its JSON; check that each read ends at the value's end."""
    codec: Codec = (
        text("c", 1, bytes.decode) if column.type == "varchar" else binary("c", 1, column.length)
    )
    made = masked_codec(codec, Masking(parse_mask(mask), column, SECRET.encode()))
    data = b"\xff" + bytes([len(value)]) + value + b"\xff"
    shown, end = made.read(data, 1)
    assert end == len(data) - 1
    assert made.skip(data, 1) == end
    json, end = made.read_json(data, 1)
    assert end == len(data) - 1
    return shown, json


@pytest.mark.parametrize(
    ("form", "mask"),
    [
        ("hash", Mask("hash")),
        (" Redact ", Mask("redact")),
        ("truncate(3)", Mask("truncate", 3)),
        ("keeplast ( 4 )", Mask("keepLast", 4)),
    ],
)
def test_mask_is_parsed_in_any_case_and_spacing(form: str, mask: Mask) -> None:
    assert parse_mask(form) == mask
    assert parse_mask(str(mask)) == mask


@pytest.mark.parametrize(
    "form",
    ["", "hash(3)", "truncate", "truncate(0)", "keepLast(-1)", "truncate(3", "last 4"],
)
def test_malformed_mask_raises_value_error(form: str) -> None:
    with pytest.raises(ValueError, match="expected hash, redact, truncate"):
        parse_mask(form)


@pytest.mark.parametrize(
    ("value", "mask", "shown"),
    [
        ("ann@x.org", "hash", hashed("ann@x.org")),
        ("", "hash", hashed("")),
        ("漢😀", "hash", hashed("漢😀")),
        ("ann", "redact", "***"),
        ("漢😀x", "truncate(2)", "漢😀"),
        ("a", "truncate(2)", "a"),
        ("1234567", "keepLast(4)", "***4567"),
        ("1234", "keepLast(4)", "***"),
        ("", "keepLast(4)", "***"),
        ('a"b', "truncate(2)", 'a"'),
    ],
)
def test_text_is_masked_by_hash_redact_truncate_or_keep_last(
    value: str, mask: str, shown: str
) -> None:
    found, json = read(value.encode(), mask)
    assert found == shown
    assert json == '"' + shown.replace('"', '\\"') + '"'


def test_binary_value_is_padded_and_hashed_as_raw_bytes() -> None:
    column = ColumnSchema("c", "binary", 4)
    assert read(b"\x01\xff", "hash", column)[0] == hashed(b"\x01\xff\x00\x00")


def test_masked_column_keeps_unreliable_before_image_but_no_labels() -> None:
    generated = ColumnSchema("c", "text", charset="latin1", virtual=True)
    assert masked_column(generated).before_image_unreliable
    assert not masked_column(ColumnSchema("c", "enum", labels=("a",))).labels


def test_integer_is_masked_by_its_decimal_text() -> None:
    column = ColumnSchema("c", "bigint", unsigned=True)
    made = masked_codec(codec_for(8, 0, column), Masking(Mask("keepLast", 3), column, b""))
    assert made.read((491701234567).to_bytes(8, "little"), 0) == ("***567", 8)
