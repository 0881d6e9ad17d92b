"""TABLE_MAP events: layout, optional metadata, broken bodies, and the registry's limits."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.decoding import table_map_body
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.field_types import describe_field
from pyspark_mysqlbinlog.decoder.events.table_map import (
    TableMap,
    TableMapRegistry,
    parse_table_name,
    table_id_of,
)
from pyspark_mysqlbinlog.errors import (
    FormatError,
    MalformedEventError,
    UnsupportedEventError,
)

# gtid_no_checksum.001.binlog at 844: create table t (id int primary key, v varchar(30)), utf8mb4.
CAPTURED = bytes.fromhex(
    "6e0000000000 0100 13" + b"fx_gtid_no_checksum".hex() + "00 01 74 00"
    "02 030f 02 7800 02"
)  # fmt: skip


def test_captured_table_map_parses_to_its_known_fields() -> None:
    table_map = TableMap.parse(CAPTURED)
    assert table_map.table_id == 110
    assert table_map.flags == 1
    assert table_map.full_name == "fx_gtid_no_checksum.t"
    assert table_map.types == bytes([F.LONG, F.VARCHAR])
    assert table_map.metadata == (0, 120)
    assert [table_map.nullable(at) for at in range(2)] == [False, True]
    assert table_map.optional == b""
    assert parse_table_name(CAPTURED) == (110, "fx_gtid_no_checksum", "t")


def test_golden_column_metadata_is_parsed_and_described() -> None:
    fields: list[tuple[int, int]] = [
        (F.NEWDECIMAL, 0x0802),
        (F.BIT, 0x0102),
        (F.VARCHAR, 300),
        (F.STRING, 0xCEFC),
        (F.FLOAT, 4),
        (F.TIME2, 6),
        (F.YEAR, 0),
    ]
    body = table_map_body(fields, [True, False, True, False, False, False, False])
    block = bytes.fromhex("080202012c01cefc0406")
    assert bytes([len(block)]) + block in body
    table_map = TableMap.parse(body)
    assert table_map.metadata == (0x0802, 0x0102, 300, 0xCEFC, 4, 6, 0)
    assert [describe_field(*field) for field in fields] == [
        "NEWDECIMAL(8,2)",
        "BIT(10)",
        "VARCHAR of 300 bytes",
        "CHAR of 1020 bytes",
        "FLOAT(4)",
        "TIME2(6)",
        "YEAR",
    ]


def test_optional_metadata_of_a_table_map_is_kept_as_raw_bytes() -> None:
    # As of 8.0: field 1 (signedness), length 1, bits.
    assert TableMap.parse(CAPTURED + b"\x01\x01\x80").optional == b"\x01\x01\x80"


@pytest.mark.parametrize("length", range(len(CAPTURED)))
def test_table_map_truncated_at_any_byte_is_rejected(length: int) -> None:
    with pytest.raises(MalformedEventError):
        TableMap.parse(CAPTURED[:length])


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (CAPTURED.replace(b"\x02\x78\x00", b"\x03\x78\x00\x00"), MalformedEventError, "left over"),
        (CAPTURED.replace(b"\x03\x0f", b"\x03\xf1"), UnsupportedEventError, "type 241"),
        (CAPTURED.replace(b"t\x00\x02", b"t\x01\x02"), MalformedEventError, "0x00"),
        (CAPTURED.replace(b"t\x00\x02", b"\xff\x00\x02"), MalformedEventError, "not UTF-8"),
    ],
)
def test_broken_table_map_raises_a_format_error(
    body: bytes, error: type[FormatError], words: str
) -> None:
    with pytest.raises(error, match=words):
        TableMap.parse(body)


@given(st.binary(max_size=80))
def test_any_bytes_give_a_table_map_or_a_format_error(tail: bytes) -> None:
    with contextlib.suppress(FormatError):
        TableMap.parse(CAPTURED[:30] + tail)


def body(table_id: int, table: str = "t") -> bytes:
    return table_map_body([(F.LONG, 0)], [True], table, table_id)


def test_table_map_registry_returns_the_same_object_for_equal_bytes() -> None:
    registry = TableMapRegistry()
    first = registry.add("f.1", body(1))
    assert registry.add("f.1", body(1)) is first
    assert registry.get("f.1", 1) is first
    renamed = registry.add("f.1", body(1, "u"))
    assert renamed is not first
    assert registry.get("f.1", 1) is renamed


def test_table_map_registry_is_cleared_at_a_new_file() -> None:
    registry = TableMapRegistry()
    registry.add("f.1", body(1))
    assert registry.get("f.2", 1) is None
    registry.add("f.2", body(2))
    assert registry.get("f.2", 1) is None
    assert len(registry) == 1


def test_table_map_registry_returns_bodies_of_registered_maps_only() -> None:
    registry = TableMapRegistry(capacity=2)
    for table_id in (1, 2, 3):
        registry.add("f.1", body(table_id))
    assert [registry.body("f.1", at) for at in (1, 2, 3)] == [b"", body(2), body(3)]
    assert registry.body("f.2", 3) == b""
    registry.forget(3)
    assert registry.body("f.1", 3) == b""
    assert table_id_of(body(0x0605_0403_0201)) == 0x0605_0403_0201


def test_table_map_registry_is_bounded_and_keeps_recently_used_maps() -> None:
    registry = TableMapRegistry(capacity=10)
    for table_id in range(1, 100):
        registry.add("f.1", body(0))
        registry.add("f.1", body(table_id))
        assert len(registry) <= 10
    assert registry.get("f.1", 0) is not None
    assert registry.get("f.1", 99) is not None
    assert registry.get("f.1", 50) is None
