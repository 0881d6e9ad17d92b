"""The kernel's column values compared with the Python codecs.

Texts, numbers and end positions are equal, and the kernel rejects a value exactly if Python raises.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from helpers.parity.value_parity import Parity, kernel
from helpers.values.value_bytes import BAD_VALUES, L300, S64, VALUES, column, field_of, text
from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.kernel.columns import column_spec
from pyspark_mysqlbinlog.decoder.payloads.positional import positional_plan
from pyspark_mysqlbinlog.decoder.values.decimals import decimal_size
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for, skip_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.tables import ColumnSchema


@pytest.mark.parametrize(("described", "old", "raw", "expected"), VALUES)
def test_kernel_reads_stored_values_like_python_and_rejects_cut_ones(
    described: ColumnSchema, old: int, raw: str, expected: str
) -> None:
    parity = Parity.of(described, old)
    data = bytes.fromhex(raw)
    assert kernel.json_text(parity.program, data, 0) == (expected.encode(), len(data))
    assert parity.agree(b"\x99" * 3 + data + b"\x99" * 3, 3)
    for length in range(len(data)):
        assert not parity.agree(data[:length])
        assert not parity.agree(b"\x99" * 3 + data[:length], 3)
    assert not parity.agree(b"")


@pytest.mark.parametrize(("described", "old", "raw", "error"), BAD_VALUES)
def test_kernel_rejects_impossible_values_like_python(
    described: ColumnSchema, old: int, raw: str, error: type[MySQLBinlogError]
) -> None:
    del error
    parity = Parity.of(described, old)
    assert not parity.agree(bytes.fromhex(raw))
    assert kernel.json_text(parity.program, bytes.fromhex(raw), 0) is None


def all_columns() -> Iterator[tuple[ColumnSchema, int]]:
    """Yield each column type in all its sizes, with 1 for the old layout, else 0."""
    for kind in ("tinyint", "smallint", "mediumint", "int", "bigint"):
        yield column(kind), 0
        yield column(kind, unsigned=True), 0
    for kind in ("float", "double", "year", "date", "json", "geometry"):
        yield column(kind), 0
    yield column("date"), 1
    for precision in range(1, 66):
        for scale in range(min(precision, 30) + 1):
            yield column("decimal", precision, scale), 0
    for bits in range(1, 65):
        yield column("bit", bits), 0
    for kind in ("time", "datetime", "timestamp"):
        yield column(kind, 0), 1
        for fsp in range(7):
            yield column(kind, fsp), 0
    for length in (0, 1, 5, 255):
        yield column("binary", length), 0
    for length in (0, 1, 255, 256, 65_535):
        yield column("varbinary", length), 0
    for size in ("tiny", "", "medium", "long"):
        yield column(f"{size}blob"), 0
        yield text(f"{size}text"), 0
    for charset in sorted(set(MAX_BYTES_PER_CHARACTER) - {"binary"}):
        for kind, length in (("char", 60), ("char", 255), ("varchar", 3), ("varchar", 300)):
            yield text(kind, length, charset), 0
    for labels in (L300[:1], L300[:255], L300[:256], L300):
        yield column("enum", labels=labels, charset="utf8mb4"), 0
    for members in (1, 8, 9, 16, 17, 24, 25, 32, 33, 63, 64):
        yield column("set", labels=S64[:members], charset="utf8mb4"), 0


COLUMNS = list(all_columns())


def test_every_mysql_column_type_has_a_kernel_program() -> None:
    for described, old in COLUMNS:
        assert kernel.column_program(*field_of(described, old), described) is not None, described


# Boundary values of signs, digit groups, minutes and hours.
LIMITS = b"\x00\x01\x3b\x3c\x63\x64\x7f\x80\x81\x9a\xca\xfe\xff"


@given(
    st.sampled_from(COLUMNS),
    st.binary(max_size=40) | st.lists(st.sampled_from(LIMITS), max_size=40).map(bytes),
    st.integers(0, 3),
)
def test_kernel_reads_random_bytes_of_any_column_like_python(
    described: tuple[ColumnSchema, int], data: bytes, pos: int
) -> None:
    assume(pos <= len(data))
    Parity.of(*described).agree(data, pos)


@given(st.sampled_from(COLUMNS), st.binary(max_size=12))
def test_kernel_reads_length_prefixed_bytes_of_any_column_like_python(
    described: tuple[ColumnSchema, int], raw: bytes
) -> None:
    parity = Parity.of(*described)
    for size in range(1, 5):
        data = len(raw).to_bytes(size, "little") + raw
        for end in range(len(data) + 1):
            parity.agree(data[:end])
        parity.agree(data + b"\x00\xff")


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "year", "mediumint", "date"])
def test_kernel_reads_values_of_small_types_one_by_one_like_python(kind: str) -> None:
    size = {"tinyint": 1, "year": 1, "smallint": 2}.get(kind, 3)
    step = 1 if size < 3 else 101
    for unsigned in (False, True):
        parity = Parity.of(column(kind, unsigned=unsigned))
        for number in (*range(0, 256**size, step), 256**size - 1):
            parity.agree(number.to_bytes(size, "little"))


def group_bytes(draw: st.DrawFn, digits: int) -> bytes:
    """Draw a digit group of a DECIMAL, which is often a boundary value."""
    size = decimal_size(digits, 0)
    limit = 10**digits
    top = 256**size - 1
    number = draw(
        st.integers(0, limit - 1)
        | st.sampled_from([0, 1, limit - 1, min(limit, top), min(limit + 1, top), top])
    )
    return number.to_bytes(size, "big")


@st.composite
def stored_decimals(draw: st.DrawFn) -> tuple[ColumnSchema, bytes]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    before = precision - scale
    groups = [before % 9] * bool(before % 9) + [9] * (before // 9)
    groups += [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    packed = b"".join(group_bytes(draw, digits) for digits in groups)
    if draw(st.booleans()):
        packed = bytes(byte ^ 0xFF for byte in packed)
    return column("decimal", precision, scale), bytes([packed[0] ^ 0x80]) + packed[1:]


@given(stored_decimals())
def test_kernel_reads_random_decimals_like_python(stored: tuple[ColumnSchema, bytes]) -> None:
    described, data = stored
    Parity.of(described).agree(data + b"\x99")


fractions = st.integers(0, 999_999) | st.sampled_from([0, 1, 99, 100, 9_999, 10_000, 1_000_000])
small = st.integers(0, 70)


clocks = st.tuples(small, small, fractions)


@given(st.integers(0, 6), st.booleans(), st.integers(0, 1023), clocks)
def test_kernel_reads_random_times_like_python(
    fsp: int, negative: bool, hour: int, clock: tuple[int, int, int]
) -> None:
    minute, second, fraction = clock
    size = (fsp + 1) // 2
    packed = (hour << 12 | (minute & 63) << 6 | second & 63) << 8 * size
    packed |= fraction & (1 << 8 * size) - 1
    stored = (0x800000 << 8 * size) + (-packed if negative else packed)
    Parity.of(column("time", fsp)).agree(stored.to_bytes(3 + size, "big"))
    old = (hour * 100 + minute) * 100 + second
    raw = (-old if negative else old).to_bytes(4, "little", signed=True)
    Parity.of(column("time", 0), 1).agree(raw[:3])


years = st.integers(0, 10_082) | st.sampled_from([0, 1, 4, 100, 400, 1900, 2000, 9999, 10_000])


@given(
    st.integers(0, 6),
    st.tuples(years, st.integers(0, 13), st.integers(0, 31)),
    st.integers(0, 31),
    clocks,
)
@example(0, (2024, 2, 29), 0, (0, 0, 0))
@example(0, (2023, 2, 29), 0, (0, 0, 0))
@example(0, (1900, 2, 29), 0, (0, 0, 0))
@example(0, (2000, 2, 29), 0, (0, 0, 0))
def test_kernel_reads_random_dates_and_datetimes_like_python(
    fsp: int, date: tuple[int, int, int], hour: int, clock: tuple[int, int, int]
) -> None:
    year, month, day = date
    minute, second, fraction = clock
    size = (fsp + 1) // 2
    hms = hour << 12 | (minute & 63) << 6 | second & 63
    packed = 1 << 39 | (year * 13 + month % 13) << 22 | day << 17 | hms
    tail = (fraction & (1 << 8 * size) - 1).to_bytes(size, "big")
    Parity.of(column("datetime", fsp)).agree(packed.to_bytes(5, "big") + tail)
    old = ((year * 100 + month) * 100 + day) * 1_000_000 + (hour * 100 + minute) * 100 + second
    Parity.of(column("datetime", 0), 1).agree(old.to_bytes(8, "little"))
    plain = year << 9 | month << 5 | day
    for which in (0, 1):
        Parity.of(column("date"), which).agree(plain.to_bytes(3, "little"))


@given(st.integers(0, 6), st.integers(0, 2**32 - 1), fractions)
def test_kernel_reads_random_timestamps_like_python(fsp: int, seconds: int, fraction: int) -> None:
    size = (fsp + 1) // 2
    tail = (fraction & (1 << 8 * size) - 1).to_bytes(size, "big")
    Parity.of(column("timestamp", fsp)).agree(seconds.to_bytes(4, "big") + tail)
    Parity.of(column("timestamp", 0), 1).agree(seconds.to_bytes(4, "little"))


def test_kernel_reads_every_day_of_a_timestamp_like_python() -> None:
    parity = Parity.of(column("timestamp", 0))
    for seconds in range(0, 2**32, 86_400):
        assert parity.agree(seconds.to_bytes(4, "big"))


def test_kernel_reads_every_day_of_selected_years_like_python() -> None:
    parity = Parity.of(column("date"))
    for year in (*range(30), *range(1890, 2110), 9998, 9999, 10_000, 16_383):
        for month in range(16):
            for day in range(32):
                parity.agree((year << 9 | month << 5 | day).to_bytes(3, "little"))


doubles = Parity.of(column("double"))
floats = Parity.of(column("float"))


@given(st.floats())
def test_kernel_reads_random_doubles_like_python(value: float) -> None:
    doubles.agree(struct.pack("<d", value))


@given(st.binary(min_size=8, max_size=8))
def test_kernel_reads_doubles_of_random_bits_like_python(raw: bytes) -> None:
    doubles.agree(raw)


@given(st.integers(-(10**17), 10**17), st.integers(-330, 310))
def test_kernel_reads_doubles_of_random_digits_and_exponent_like_python(
    digits: int, exponent: int
) -> None:
    doubles.agree(struct.pack("<d", float(f"{digits}e{exponent}")))


@given(st.floats(width=32))
def test_kernel_reads_random_floats_like_python(value: float) -> None:
    floats.agree(struct.pack("<f", value))


@given(st.binary(min_size=4, max_size=4))
def test_kernel_reads_floats_of_random_bits_like_python(raw: bytes) -> None:
    floats.agree(raw)


def test_kernel_reads_floats_near_powers_of_two_like_python() -> None:
    # Floats are denser below a power of two than above it, which affects the shortest digits.
    for exponent in range(255):
        for sign in (0, 0x80000000):
            for offset in range(-4, 5):
                bits = (exponent << 23) + offset
                if bits >= 0:
                    assert floats.agree((sign | bits).to_bytes(4, "little"))


def test_kernel_reads_float_with_ambiguous_shortest_digits_like_python() -> None:
    # As a double, 7.038531e-26 is half-way between two float32, and rounds to the wrong one.
    for bits in (0x15AE43FC, 0x15AE43FD, 0x15AE43FE):
        assert floats.agree(bits.to_bytes(4, "little"))


def test_kernel_reads_doubles_near_powers_of_two_like_python() -> None:
    for exponent in range(2047):
        for offset in range(-4, 5):
            bits = (exponent << 52) + offset
            if bits >= 0:
                assert doubles.agree(bits.to_bytes(8, "little"))


def test_kernel_reads_doubles_near_powers_of_ten_like_python() -> None:
    for exponent in range(-324, 309):
        bits = int.from_bytes(struct.pack("<d", float(f"1e{exponent}")), "little")
        for offset in range(-3, 4):
            if bits + offset >= 0:
                assert doubles.agree((bits + offset).to_bytes(8, "little"))


@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=64, unique=True).map(tuple),
    st.integers(0, 2**64 - 1),
)
def test_kernel_reads_enum_and_set_labels_like_python(labels: tuple[str, ...], number: int) -> None:
    assume(all("," not in label for label in labels))
    for kind in ("enum", "set"):
        parity = Parity.of(column(kind, labels=labels, charset="utf8mb4"))
        size = parity.field[1] & 0xFF
        for value in (number, number & (1 << len(labels)) - 1, number % (len(labels) + 2)):
            parity.agree((value & 256**size - 1).to_bytes(size, "little"))


@given(st.integers(0, 2**64 - 1), st.integers(1, 64))
def test_kernel_reads_bit_values_like_python(number: int, bits: int) -> None:
    parity = Parity.of(column("bit", bits))
    size = (bits + 7) // 8
    for value in (number & 256**size - 1, number & (1 << bits) - 1, (1 << bits) - 1):
        parity.agree(value.to_bytes(size, "big"))


ALL_FIELDS = [
    (code, metadata)
    for code in range(256)
    for metadata in (
        *range(10),
        64,
        65,
        255,
        256,
        0x0400,
        0x0A02,
        0x0208,
        0x4100,
        0x4200,
        0x4141,
        *(
            real << 8 | size
            for real in (0xF7, 0xF8, 0xFE, 0xEE)
            for size in (0, 1, 2, 3, 4, 8, 255)
        ),
        65_535,
    )
]


def test_kernel_skips_every_field_type_like_python() -> None:
    lengths = [bytes([1, 0, 0, 0, 7]) + bytes(300), b"\xff" * 9, b"", b"\x02\x00", bytes(70_000)]
    programs = 0
    for code, metadata in ALL_FIELDS:
        program = kernel.column_program(code, metadata, None, excluded=True)
        if program is None:
            continue
        programs += 1
        skip = skip_for(code, metadata, "c")
        for data in lengths:
            assert kernel.skip(program, data, 0) == Parity.refused_as_none(skip, data, 0), (
                code,
                metadata,
            )
    assert programs > 500


def test_kernel_reads_no_column_that_python_rejects() -> None:
    kinds = {described.type: described for described, _ in COLUMNS}
    read = 0
    for code, metadata in ALL_FIELDS:
        for described in kinds.values():
            if code == F.STRING and described.type == "bigint":
                # Without a schema, another codec reads the number of an ENUM or SET label.
                continue
            spec = column_spec(code, metadata, described)
            if spec is not None:
                parity = Parity(described, (code, metadata), codec_for(code, metadata, described))
                for data in (b"\x00" * 40, b"\x03\x00\x00\x00abcdefgh" * 5, b"\xff" * 40):
                    shown = Parity.refused_as_none(parity.codec.read_json, data, 0)
                    expected = None if shown is None else (shown[0].encode(), shown[1])
                    found = kernel.json_text(parity.program, data, 0)
                    assert found == expected, parity.message(data, 0)
                read += 1
    assert read > 500


@pytest.mark.parametrize(
    ("code", "metadata", "described"),
    [
        (F.VARCHAR, 40, text("varchar", 10, "klingon")),
        (F.VARCHAR, 40, text("varchar", 10, "binary")),
        (F.TIME2, 7, column("time", 7)),
        (F.DATETIME2, 200, column("datetime", 200)),
        (F.NEWDECIMAL, 0x0504, column("decimal", 5, 4)),
        (F.NEWDECIMAL, 0x0405, column("decimal", 4, 5)),
        (F.NEWDECIMAL, 0x0000, column("decimal", 0, 0)),
        (F.BIT, 0x0801, column("bit", 65)),
        (F.BIT, 0x0000, column("bit", 0)),
        (F.BLOB, 5, column("blob")),
        (F.NULL, 0, column("int")),
        (F.STRING, 0xF703, column("enum", labels=L300)),
        (F.STRING, 0xF805, column("set", labels=S64)),
        (F.STRING, 0x0101, column("char", 1)),
        (F.LONG, 0, ColumnSchema("lone \udc80", "int")),
        (99, 0, column("int")),
    ],
)
def test_unsupported_columns_have_no_kernel_program(
    code: int, metadata: int, described: ColumnSchema
) -> None:
    expected = (code, metadata) == (F.NEWDECIMAL, 0x0504)
    assert (kernel.column_program(code, metadata, described) is not None) == expected


def test_kernel_reads_columns_without_a_schema_like_python() -> None:
    fields = [field_of(described, old) for described, old in COLUMNS]
    fields += [(F.STRING, real << 8 | size) for real in (F.ENUM, F.SET) for size in (1, 2, 3, 4, 8)]
    fields = list(dict.fromkeys(fields))[:250]
    types = bytes(code for code, _ in fields)
    metadata = tuple(number for _, number in fields)
    nullable = b"\xff" * ((len(fields) + 7) // 8)
    plan = positional_plan(TableMap(1, 0, "d", "t", types, metadata, nullable))
    for planned, field in zip(plan.columns, fields, strict=True):
        assert planned.schema is not None and planned.codec is not None
        parity = Parity(planned.schema, field, planned.codec)
        for data in (b"\x01\x80" + b"\x03" * 80, b"\x80" * 10, b"\x00" * 9, b"\xff" * 70_000):
            parity.agree(data)
