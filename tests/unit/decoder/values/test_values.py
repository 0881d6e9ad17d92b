"""Column values: the bytes in a row image, and the JSON text that they decode to."""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.values.value_bytes import BAD_VALUES, S64, VALUES, column, field_of, text
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.field_types import real_string
from pyspark_mysqlbinlog.decoder.values.codec import Codec
from pyspark_mysqlbinlog.decoder.values.decimals import decimal_size
from pyspark_mysqlbinlog.decoder.values.numbers import float32_text, float64_text
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for, skip_for
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    MySQLBinlogError,
    SchemaError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.tables import ColumnSchema


def codec_of(described: ColumnSchema, old: int = 0) -> Codec:
    return codec_for(*field_of(described, old), described)


@pytest.mark.parametrize(("described", "old", "raw", "expected"), VALUES)
def test_stored_value_decodes_to_its_json_text(
    described: ColumnSchema, old: int, raw: str, expected: str
) -> None:
    data = bytes.fromhex(raw)
    codec = codec_of(described, old)
    # With bytes before and after: the value is read from the given position to its own end.
    padded = b"\x99" * 3 + data + b"\x99" * 3
    end = 3 + len(data)
    value, pos = codec.read(padded, 3)
    assert (codec.json(value), pos) == (expected, end)
    assert codec.read_json(padded, 3) == (expected, end)
    assert codec.skip(padded, 3) == end
    assert skip_for(*field_of(described, old), "c")(padded, 3) == end
    json.loads(expected)


@pytest.mark.parametrize(("described", "old", "raw", "expected"), VALUES)
def test_value_cut_at_any_byte_is_rejected(
    described: ColumnSchema, old: int, raw: str, expected: str
) -> None:
    del expected
    data = bytes.fromhex(raw)
    codec = codec_of(described, old)
    for length in range(len(data)):
        for verb in (codec.read, codec.read_json, codec.skip):
            with pytest.raises(MalformedEventError, match="cut short in column `c`"):
                verb(data[:length], 0)


@pytest.mark.parametrize(("described", "old", "raw", "error"), BAD_VALUES)
def test_impossible_stored_value_is_rejected(
    described: ColumnSchema, old: int, raw: str, error: type[MySQLBinlogError]
) -> None:
    with pytest.raises(error):
        codec_of(described, old).read_json(bytes.fromhex(raw), 0)


def test_value_of_unknown_charset_is_rejected_but_can_be_skipped() -> None:
    described = text("varchar", 10, "klingon")
    with pytest.raises(SchemaError, match="the character set klingon"):
        codec_for(F.VARCHAR, 40, described)
    assert skip_for(F.VARCHAR, 40, "c")(b"\x02ab", 0) == 3


@pytest.mark.parametrize(
    ("code", "metadata", "error"),
    [
        (F.BLOB, 0, "c has BLOB with lengths of 0 bytes"),
        (F.JSON, 9, r"c has JSON with lengths of 9 bytes \(expected: 1 to 4\)"),
        (F.NEWDECIMAL, 0x0307, r"c has DECIMAL\(3,7\), whose scale is more than its precision"),
    ],
)
def test_metadata_that_no_server_writes_is_rejected(code: int, metadata: int, error: str) -> None:
    with pytest.raises(UnsupportedEventError, match=error):
        skip_for(code, metadata, "c")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (0xFE28, (F.STRING, 40)),
        (0xFEFF, (F.STRING, 255)),
        (0xEEFC, (F.STRING, 508)),
        (0xDEFC, (F.STRING, 764)),
        (0xCEFC, (F.STRING, 1020)),
        (0xF702, (F.ENUM, 2)),
        (0xF808, (F.SET, 8)),
    ],
)
def test_string_metadata_gives_the_real_type_and_length(
    metadata: int, expected: tuple[int, int]
) -> None:
    assert real_string(metadata) == expected


@pytest.mark.parametrize(
    ("members", "size"),
    [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3), (24, 3), (25, 4), (32, 4), (33, 8), (64, 8)],
)
def test_size_of_a_set_value_depends_on_its_number_of_members(members: int, size: int) -> None:
    described = column("set", labels=S64[:members], charset="utf8mb4")
    assert codec_of(described).skip(bytes(8), 0) == size


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_text_reads_back_and_is_shortest(value: float) -> None:
    shown = float32_text(value)
    assert struct.pack("<f", float(shown)) == struct.pack("<f", value)
    digits = len(Decimal(shown).normalize().as_tuple().digits)
    for fewer in range(1, digits):
        shorter = float(f"{value:.{fewer}g}")
        if abs(shorter) < 3.4028235e38:
            assert struct.pack("<f", shorter) != struct.pack("<f", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float64_text_reads_back(value: float) -> None:
    read = json.loads(float64_text(value))
    assert read == value
    assert math.copysign(1, read) == math.copysign(1, value)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, str]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    digits = draw(st.text("0123456789", min_size=precision, max_size=precision))
    whole = digits[: precision - scale].lstrip("0") or "0"
    sign = "-" if draw(st.booleans()) and digits.strip("0") else ""
    return precision, scale, sign + whole + ("." + digits[precision - scale :] if scale else "")


def pack_decimal(precision: int, scale: int, shown: str) -> bytes:
    """Encode a DECIMAL as described for MySQL's decimal2bin, the reverse of the decoder."""
    whole, _, fraction = shown.lstrip("-").partition(".")
    whole = whole.rjust(precision - scale, "0")[-(precision - scale) :] if precision > scale else ""
    head = len(whole) % 9
    groups = [whole[:head]] + [whole[at : at + 9] for at in range(head, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    packed = b"".join(
        int(group).to_bytes((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[len(group)], "big")
        for group in groups
        if group
    )
    if shown.startswith("-"):
        packed = bytes(byte ^ 0xFF for byte in packed)
    return bytes([packed[0] ^ 0x80]) + packed[1:]


@given(decimals())
def test_stored_decimal_decodes_to_its_exact_text(value: tuple[int, int, str]) -> None:
    precision, scale, shown = value
    packed = pack_decimal(precision, scale, shown)
    assert len(packed) == decimal_size(precision, scale)
    assert codec_of(column("decimal", precision, scale)).read(packed, 0) == (shown, len(packed))


@given(st.integers(-3_020_399_999_999, 3_020_399_999_999))
def test_stored_time_6_decodes_to_exact_microseconds(micros: int) -> None:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    packed = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 24 | fraction
    raw = ((-packed if micros < 0 else packed) + (1 << 47)).to_bytes(6, "big")
    assert codec_of(column("time", 6)).read(raw, 0) == (micros, 6)
