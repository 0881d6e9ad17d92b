"""Optional metadata built by hand in the layout of MySQL 8.0 (tests/live has MariaDB's)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.parity.decoding import table_map_body
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import described_schema
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import check_fit
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    SchemaMismatchError,
    UnknownSchemaError,
)
from pyspark_mysqlbinlog.protocol.wire import lenenc_int
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

# CREATE TABLE t (id BIGINT UNSIGNED, y YEAR, n INT, g POINT, v VARCHAR(10), b VARBINARY(9),
#   e ENUM('é','b') CHARACTER SET latin1, x TEXT CHARACTER SET gbk, f TINYINT(1),
#   PRIMARY KEY (v(3), id)) CHARACTER SET utf8mb4
COLUMNS = [
    (F.LONGLONG, 0, "id"),
    (F.YEAR, 0, "y"),
    (F.LONG, 0, "n"),
    (F.GEOMETRY, 4, "g"),
    (F.VARCHAR, 40, "v"),
    (F.VARCHAR, 9, "b"),
    (F.STRING, 0xF701, "e"),
    (F.BLOB, 2, "x"),
    (F.TINY, 0, "f"),
]
UTF8MB4, BINARY, LATIN1, GBK = 45, 63, 8, 28


def field(code: int, value: bytes) -> bytes:
    return bytes([code]) + lenenc_int(len(value)) + value


def strings(*texts: bytes) -> bytes:
    return b"".join(lenenc_int(len(text)) + text for text in texts)


# YEAR is not counted as numeric, as before 8.0.23, and POINT is not counted as character.
FIELDS = {
    1: bytes([0b1000_0000]),
    2: bytes([UTF8MB4, 1, BINARY, 2, GBK]),
    4: strings(*(name.encode() for _, _, name in COLUMNS)),
    6: b"\x02" + strings(b"\xe9", b"b"),
    7: b"\x01",
    9: bytes([4, 3, 0, 0]),
    10: bytes([LATIN1]),
    12: b"\xff\x80",
}
EXPECTED = TableSchema(
    "d",
    "t",
    (
        C("id", "bigint", unsigned=True),
        C("y", "year"),
        C("n", "int"),
        # The metadata does not contain whether these two are virtual.
        C("g", "point", virtual=None),
        C("v", "varchar", 10, charset="utf8mb4"),
        C("b", "varbinary", 9),
        C("e", "enum", charset="latin1", labels=("é", "b")),
        C("x", "text", charset="gbk", virtual=None),
        C("f", "tinyint"),
    ),
    primary_key=("v", "id"),
)


def table_map(fields: dict[int, bytes]) -> TableMap:
    body = table_map_body([(code, metadata) for code, metadata, _ in COLUMNS], [True] * 9)
    return TableMap.parse(body + b"".join(field(*pair) for pair in fields.items()))


def test_full_optional_metadata_gives_the_whole_schema() -> None:
    assert described_schema(table_map(FIELDS)) == EXPECTED


def test_charsets_listed_per_column_give_the_same_schema() -> None:
    fields = {code: value for code, value in FIELDS.items() if code not in (2, 10)}
    fields |= {3: bytes([UTF8MB4, BINARY, GBK]), 11: bytes([LATIN1])}
    assert described_schema(table_map(fields)) == EXPECTED


def test_simple_and_absent_primary_keys_are_read_from_metadata() -> None:
    fields = {code: value for code, value in FIELDS.items() if code != 9}
    assert described_schema(table_map(fields)) == replace(EXPECTED, primary_key=())
    fields[8] = bytes([2, 0])
    assert described_schema(table_map(fields)) == replace(EXPECTED, primary_key=("n", "id"))


def test_mariadb_metadata_counts_year_as_numeric_and_point_as_character() -> None:
    fields = {**FIELDS, 1: bytes([0b1100_0000]), 2: bytes([UTF8MB4, 0, BINARY, 2, BINARY, 3, GBK])}
    columns = tuple(replace(column, virtual=False) for column in EXPECTED.columns)
    described = described_schema(table_map(fields), is_mariadb=True)
    assert described == replace(EXPECTED, columns=columns)


@pytest.mark.parametrize("missing", [1, 2, 4, 6, 10])
def test_incomplete_optional_metadata_gives_no_schema(missing: int) -> None:
    """With MINIMAL metadata, the names are missing; no missing field is guessed."""
    fields = {code: value for code, value in FIELDS.items() if code != missing}
    assert described_schema(table_map(fields)) is None
    assert described_schema(table_map({})) is None


def test_generated_flag_is_taken_from_the_known_column() -> None:
    columns = tuple(replace(column, generated=True) for column in EXPECTED.columns)
    known = replace(EXPECTED, columns=columns)
    found = described_schema(table_map(FIELDS), known)
    assert found is not None
    assert found.columns[0].generated


def test_tinyint_width_is_taken_only_from_a_known_tinyint_of_the_same_name() -> None:
    columns = list(EXPECTED.columns)
    columns[8] = C("f", "tinyint", 1)
    known = replace(EXPECTED, columns=tuple(columns), charset="utf8mb4")
    assert described_schema(table_map(FIELDS), known) == known
    columns[8] = C("f", "char", 1, charset="utf8mb4")
    other = replace(EXPECTED, columns=tuple(columns))
    assert described_schema(table_map(FIELDS), other) == EXPECTED


@pytest.mark.parametrize("virtual", [True, False])
def test_virtual_flag_is_taken_only_from_a_known_column_of_the_same_type(virtual: bool) -> None:
    columns = list(EXPECTED.columns)
    columns[7] = replace(columns[7], virtual=virtual)
    known = replace(EXPECTED, columns=tuple(columns))
    assert described_schema(table_map(FIELDS), known) == known
    columns[7] = replace(columns[7], type="mediumtext")
    other = replace(EXPECTED, columns=tuple(columns))
    assert described_schema(table_map(FIELDS), other) == EXPECTED


@pytest.mark.parametrize("kind", ["uuid", "inet4", "inet6"])
def test_known_uuid_and_inet_types_replace_binary_and_fail_the_table_map_check(kind: str) -> None:
    """The metadata shows only BINARY; the known type is kept, so that the error names it."""
    columns: list[tuple[int, int]] = [(F.STRING, 0xFE10)]
    fields = {2: bytes([BINARY]), 4: strings(b"u")}
    body = table_map_body(columns, [True])
    table_map = TableMap.parse(body + b"".join(field(*pair) for pair in fields.items()))
    assert described_schema(table_map, is_mariadb=True) == TableSchema(
        "d", "t", (C("u", "binary", 16),)
    )
    known = TableSchema("d", "t", (C("u", kind),))
    described = described_schema(table_map, known, is_mariadb=True)
    assert described == known
    with pytest.raises(SchemaMismatchError, match=f"column `u` has the unknown type {kind}"):
        check_fit(table_map, described)
    other = TableSchema("d", "t", (C("v", kind),))
    assert described_schema(table_map, other, is_mariadb=True) == described_schema(table_map)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (1, b""),
        (1, b"\x80\x00"),
        (2, bytes([UTF8MB4, 3, GBK])),
        (2, bytes([UTF8MB4, 1])),
        (3, bytes([UTF8MB4])),
        (3, bytes([UTF8MB4] * 4)),
        (4, strings(b"id")),
        (4, strings(*[b"\xff"] * 9)),
        (6, b"\x03" + strings(b"a", b"b")),
        (7, b"\x08"),
        (7, b"\x01\x01"),
        (9, bytes([9, 0])),
        (9, bytes([4])),
    ],
)
def test_optional_metadata_that_does_not_fit_its_columns_is_rejected(
    code: int, value: bytes
) -> None:
    with pytest.raises(MalformedEventError):
        described_schema(table_map({**FIELDS, code: value}))


def test_unknown_collation_raises_unknown_schema_error() -> None:
    with pytest.raises(UnknownSchemaError, match="collation 999"):
        described_schema(table_map({**FIELDS, 10: lenenc_int(999)}))


def test_truncated_optional_metadata_never_gives_wrong_columns() -> None:
    whole = table_map(FIELDS)
    for length in range(1, len(whole.optional)):
        try:
            found = described_schema(replace(whole, optional=whole.optional[:length]))
        except MalformedEventError:
            continue
        # Cut between two fields: the columns are complete, or there is no schema. Without the last
        # field there is no primary key, as in the map of a table without one.
        if found is not None:
            assert found.columns == EXPECTED.columns
            assert found.primary_key in {(), EXPECTED.primary_key}


@pytest.mark.parametrize(
    ("bits", "visibility", "unsigned"),
    [
        # The bits of id, y, n and f; the bit of a YEAR is always set.
        (0b1100_0000, True, {"id"}),
        (0b1000_0000, True, {"id"}),
        (0b1110_0000, True, {"id", "n"}),
        (0b0000_0000, True, set()),
        (0b0100_0000, True, set()),
        # Without visibility there are four bits, or three without y; the last case is ambiguous.
        (0b1000_0000, False, {"id"}),
        (0b1010_0000, False, {"id", "f"}),
        (0b1101_0000, False, {"id", "f"}),
        (0b1100_0000, False, None),
    ],
)
def test_signedness_is_read_with_and_without_bits_for_year_columns(
    bits: int, visibility: bool, unsigned: set[str] | None
) -> None:
    fields = FIELDS | {1: bytes([bits])}
    if not visibility:
        del fields[12]
    schema = described_schema(table_map(fields))
    if unsigned is None:
        assert schema is None
    else:
        assert schema is not None
        assert {column.name for column in schema.columns if column.unsigned} == unsigned


@pytest.mark.parametrize("bits", [b"", b"\xc0\x00", b"\x08", b"\xff"])
def test_signedness_bits_that_fit_no_columns_are_rejected(bits: bytes) -> None:
    with pytest.raises(MalformedEventError, match="for 4 numeric columns"):
        described_schema(table_map(FIELDS | {1: bits}))
