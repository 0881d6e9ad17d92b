"""Rows events byte by byte: golden events, partial images, both versions, and broken events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.decoding import (
    decoder,
    make_event,
    rows_of,
    simple_schema,
    table_map_body,
    table_map_body_for,
)
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.rows import RowsHead
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    MySQLBinlogError,
    SchemaMismatchError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event, EventHeader, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

# From MySQL 5.7.13, test.testnull2 (int, varchar of 60 bytes, varchar of 60 bytes): the body of a
# table map, and two whole rows events without their checksums.
GOLDEN_SCHEMA = TableSchema(
    "test",
    "testnull2",
    (C("a", "int"), C("b", "varchar", 60, charset="latin1"), C("c", "varchar", 20, charset="utf8")),
)
GOLDEN_MAP = bytes.fromhex(
    "d20000000000 0100 04 7465737400 09 746573746e756c6c3200"
    "03 030f0f 04 3c003c00 07"
)  # fmt: skip
GOLDEN_UPDATE = bytes.fromhex(
    "240ea1581fe56b010034000000b9010000 0000"
    "d2000000000001000200 03 ff ff fd 0474657374 fa 02000000 0474657374"
)  # fmt: skip
GOLDEN_DELETE = bytes.fromhex(
    "2a0ea15820e56b01002d000000c8020000 0000"
    "d2000000000001000200 03 ff fa 02000000 0474657374"
)  # fmt: skip


def golden_event(raw: bytes) -> Event:
    header = EventHeader.parse(raw)
    assert header.length == len(raw) + 4
    start = header.log_pos - header.length
    return Event(
        "mysql-bin.000001",
        start,
        header.log_pos,
        header.timestamp,
        header.type,
        header.server_id,
        header.flags,
        raw[HEADER_LENGTH:],
    )


def decode(
    schema: TableSchema, table_map: bytes, *events: Event, **options: Any
) -> list[Mapping[str, Any]]:
    """Return the rows of events that follow a table map in the same file."""
    first = make_event(EventType.TABLE_MAP_EVENT, table_map, 300, events[0].file)
    return list(rows_of(decoder([schema], **options).decode([first, *events])))


def test_golden_update_and_delete_events_decode_to_known_rows() -> None:
    update, delete = decode(
        GOLDEN_SCHEMA, GOLDEN_MAP, golden_event(GOLDEN_UPDATE), golden_event(GOLDEN_DELETE)
    )
    assert (update["op"], update["seq"]["pos"]) == ("u", 389)
    assert update["before"] == '{"a":null,"b":"test","c":null}'
    assert update["after"] == '{"a":2,"b":null,"c":"test"}'
    assert (delete["op"], delete["seq"]["pos"]) == ("d", 667)
    assert delete["before"] == '{"a":2,"b":null,"c":"test"}'
    assert delete["after"] is None
    assert update["source"]["server_id"] == 0x016BE5
    assert update["ts"].isoformat() == "2017-02-13T01:38:44+00:00"
    assert update["seq"] == {"epoch": 0, "file": 1, "pos": 389, "row": 0}


def test_golden_null_bitmap_decodes_to_the_null_columns() -> None:
    # The row (1, NULL, NULL, 15, 'ssss'); its null bitmap 0xe6 is 1110 0110.
    integers = [C(name, "int") for name in "abcd"]
    schema = simple_schema(*integers, C("e", "varchar", 9, charset="latin1"))
    body = bytes.fromhex("0700000000000100020005ffe6") + bytes.fromhex("010000000f0000000473737373")
    rows = decode(schema, table_map_body_for(schema), make_event(EventType.WRITE_ROWS_EVENT, body))
    assert rows[0]["after"] == '{"a":1,"b":null,"c":null,"d":15,"e":"ssss"}'


NINE = simple_schema(*(C(f"c{at}", "tinyint") for at in range(9)))
HEAD = bytes.fromhex("0700000000000100")


@pytest.mark.parametrize(
    ("kind", "body", "before", "after", "missing"),
    [
        # Only c0 and c8 of the nine columns are present: the null bitmap is one byte.
        ("WRITE_ROWS_EVENT", "0200 09 01ff fc 05 06", None, {"c0": 5, "c8": 6}, "after 1-7"),
        ("WRITE_ROWS_EVENT", "0200 09 01ff fd 06", None, {"c0": None, "c8": 6}, "after 1-7"),
        ("DELETE_ROWS_EVENT", "0200 09 01fe fe 05", {"c0": 5}, None, "before 1-8"),
        (
            "UPDATE_ROWS_EVENT",
            "0200 09 01fe 00ff fe 05 fe 07",
            {"c0": 5},
            {"c8": 7},
            "before 1-8 after 0-7",
        ),
        # The image without columns takes no bytes; the other image has columns.
        ("UPDATE_ROWS_EVENT", "0200 09 01fe 00fe fe 05", {"c0": 5}, {}, "before 1-8 after 0-8"),
        # Version 1 has no extra data; version 2 can have some.
        ("WRITE_ROWS_EVENT_V1", "09 01fe fe 05", None, {"c0": 5}, "after 1-8"),
        ("DELETE_ROWS_EVENT_V1", "09 01fe fe 05", {"c0": 5}, None, "before 1-8"),
        (
            "UPDATE_ROWS_EVENT_V1",
            "09 01fe 01fe fe 05 fe 06",
            {"c0": 5},
            {"c0": 6},
            "before 1-8 after 1-8",
        ),
        ("WRITE_ROWS_EVENT", "0500 aabbcc 09 01fe fe 05", None, {"c0": 5}, "after 1-8"),
    ],
)  # fmt: skip
def test_partial_images_of_both_event_versions_list_missing_columns(
    kind: str,
    body: str,
    before: dict[str, int] | None,
    after: dict[str, int] | None,
    missing: str,
) -> None:
    event = make_event(EventType[kind], HEAD + bytes.fromhex(body))
    (row,) = decode(NINE, table_map_body_for(NINE), event)
    assert (row["before"] and json.loads(row["before"])) == before
    assert (row["after"] and json.loads(row["after"])) == after
    words = missing.split()
    expected = []
    for side, span in zip(words[::2], words[1::2], strict=True):
        first, last = map(int, span.split("-"))
        expected += [f"{side}.c{at}" for at in range(first, last + 1)]
    assert row["source"]["missing"] == expected


def test_rows_are_numbered_within_their_event() -> None:
    body = HEAD + bytes.fromhex("0200 09 01fe" + "fe05" * 5)
    events = [make_event(EventType.WRITE_ROWS_EVENT, body, pos) for pos in (1000, 2000)]
    rows = decode(NINE, table_map_body_for(NINE), *events)
    assert [(row["seq"]["pos"], row["seq"]["row"]) for row in rows] == [
        (pos, row) for pos in (1000, 2000) for row in range(5)
    ]
    assert all(row["source"]["row"] == row["seq"]["row"] for row in rows)


BROKEN: list[tuple[str, type[MySQLBinlogError], str]] = [
    ("0200 08 ff fe 05", MalformedEventError, "8 columns, expected the 9"),
    ("0200 09 01fe", MalformedEventError, "cut short in its null bitmap"),
    ("0200 09 01fe fe 05 00", MalformedEventError, "cut short in column `c0`"),
    ("0200 09 00fe", UnsupportedEventError, "row images without columns"),
    ("0200 09 00fe 00", UnsupportedEventError, "row images without columns"),
    ("0100 09 01fe fe 05", MalformedEventError, "1 bytes of extra data"),
    ("ff00 09 01fe fe 05", MalformedEventError, "cut short"),
    ("0200 fb 01fe fe 05", MalformedEventError, "length-encoded"),
]


@pytest.mark.parametrize(("body", "error", "words"), BROKEN)
def test_broken_rows_event_raises_error_with_its_position(
    body: str, error: type[MySQLBinlogError], words: str
) -> None:
    event = make_event(EventType.WRITE_ROWS_EVENT, HEAD + bytes.fromhex(body))
    with pytest.raises(error, match=words) as caught:
        decode(NINE, table_map_body_for(NINE), event)
    assert (caught.value.file, caught.value.position) == ("mysql-bin.000003", 1000)


# One column of each kind of value.
MANY = simple_schema(
    C("i", "int", nullable=False),
    C("m", "mediumint"),
    C("f", "float"),
    C("n", "decimal", 12, 3),
    C("b", "bit", 12),
    C("v", "varchar", 10, charset="utf8mb4"),
    C("t", "text", charset="latin1"),
    C("x", "binary", 3),
    C("e", "enum", labels=("a", "b"), charset="utf8mb4"),
    C("s", "set", labels=("a", "b"), charset="utf8mb4"),
    C("y", "year"),
    C("d", "date"),
    C("tm", "time", 3),
    C("dt", "datetime", 6),
    C("ts", "timestamp", 1),
    key=("i",),
)
MANY_IMAGE = bytes.fromhex(
    "0080 01000000 ffffff 0000803f 80000001 01f4 0fff 03e6bca2 0100e9 0141"
    "02 03 70 21b70f 7ffffeec78 99bb68a000 0f423f 5a1c1eb6 32"
)  # fmt: skip
MANY_BODY = HEAD + bytes.fromhex("0200 0f ffff ffff") + MANY_IMAGE + MANY_IMAGE


def test_row_with_every_kind_of_value_decodes_to_json() -> None:
    event = make_event(EventType.UPDATE_ROWS_EVENT, MANY_BODY)
    (row,) = decode(MANY, table_map_body_for(MANY), event)
    assert row["before"] == row["after"]
    assert row["after"] == (
        '{"i":1,"m":-1,"f":1,"n":1.500,"b":4095,"v":"漢","t":"é","x":"QQAA","e":"b","s":"a,b",'
        '"y":2012,"d":"2011-09-01","tm":"-00:00:01.500","dt":"2026-11-20T10:00:00.999999",'
        '"ts":"2017-11-27T14:18:30.5Z"}'
    )
    assert row["source"]["key"] == ["i"]


@pytest.mark.parametrize("length", range(len(MANY_BODY)))
def test_rows_event_truncated_at_any_byte_is_rejected(length: int) -> None:
    event = make_event(EventType.UPDATE_ROWS_EVENT, MANY_BODY[:length])
    with pytest.raises(MalformedEventError):
        decode(MANY, table_map_body_for(MANY), event)


@pytest.mark.parametrize("tail", range(1, 5))
def test_extra_bytes_after_the_last_row_are_rejected(tail: int) -> None:
    event = make_event(EventType.UPDATE_ROWS_EVENT, MANY_BODY + bytes(tail))
    with pytest.raises(MalformedEventError, match="cut short"):
        decode(MANY, table_map_body_for(MANY), event)


@given(st.integers(0, len(MANY_BODY) - 1), st.binary(min_size=1, max_size=6))
def test_damaged_rows_event_gives_valid_json_or_a_typed_error(at: int, damage: bytes) -> None:
    body = MANY_BODY[:at] + damage + MANY_BODY[at + len(damage) :]
    try:
        rows = decode(MANY, table_map_body_for(MANY), make_event(EventType.UPDATE_ROWS_EVENT, body))
    except (MalformedEventError, SchemaMismatchError, UnsupportedEventError):
        return
    for row in rows:
        json.loads(row["before"])
        json.loads(row["after"])


def test_rows_head_parses_table_id_operation_and_image_bitmaps() -> None:
    head = RowsHead.parse(EventType.UPDATE_ROWS_EVENT, MANY_BODY)
    assert (head.table_id, head.flags, head.op, head.column_count) == (7, 1, "u", 15)
    assert (head.before, head.after, head.rows_start) == (b"\xff\xff", b"\xff\xff", 15)


def test_excluded_json_and_geometry_columns_are_skipped_and_not_listed_as_missing() -> None:
    schema = simple_schema(C("a", "int"), C("j", "json"), C("g", "point"), C("z", "int"))
    fields: list[tuple[int, int]] = [(F.LONG, 0), (F.JSON, 4), (F.GEOMETRY, 4), (F.LONG, 0)]
    table_map = table_map_body(fields, [True] * 4)
    image = bytes.fromhex("f001000000020000000000010000000002000000")
    body = HEAD + bytes.fromhex("0200 04 ff") + image
    event = make_event(EventType.WRITE_ROWS_EVENT, body)

    def excluded(database: str, table: str, column: str) -> bool:
        return (database, table) == ("d", "t") and column in {"j", "g"}

    (row,) = decode(schema, table_map, event, excluded=excluded)
    assert row["after"] == '{"a":1,"z":2}'
    assert row["source"]["missing"] is None
