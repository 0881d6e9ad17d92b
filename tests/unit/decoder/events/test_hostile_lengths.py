"""Excessive lengths and counts are rejected before memory is allocated for them."""

from __future__ import annotations

import pytest

from helpers.parity.decoding import (
    decoder,
    make_event,
    rows_of,
    simple_schema,
    table_map_body_for,
)
from helpers.snapshots.bounded_memory import bounded_memory
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.errors import FormatError
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import ColumnSchema as C

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

HUGE = b"\xfe" + (1 << 62).to_bytes(8, "little")
TABLE = simple_schema(
    C("id", "int", nullable=False),
    C("b", "longblob"),
    C("t", "longtext", charset="utf8mb4"),
    C("j", "json"),
    key=("id",),
)
HEAD = bytes.fromhex("2a0000000000 0100 0200 04 0f")
ID = bytes.fromhex("01000000")
LENGTH = b"\xff\xff\xff\x7f"


def json(document: str) -> bytes:
    raw = bytes.fromhex(document)
    return b"\x06" + ID + len(raw).to_bytes(4, "little") + raw


ROWS = [
    ("columns", bytes.fromhex("2a0000000000 0100 0200") + HUGE + b"\x01"),
    ("extra data", bytes.fromhex("2a0000000000 0100 ffff 04 0f")),
    ("a blob", HEAD + b"\x0c" + ID + LENGTH + b"x"),
    ("a text", HEAD + b"\x0a" + ID + LENGTH + b"x"),
    ("a document", HEAD + b"\x06" + ID + LENGTH + b"\x00"),
    ("an object", HEAD + json("01 ffffff7f ffffffff 00000000")),
    ("an array", HEAD + json("03 ffffff7f ffffffff 00000000")),
    ("a small array", HEAD + json("02 ffff ffff 040000")),
    ("a string in it", HEAD + json("0c ffffffff07 61")),
    ("an opaque value in it", HEAD + json("0f fc ffffffff07 61")),
    ("an endless length in it", HEAD + json("0c ffffffffffff 61")),
    ("elements in themselves", HEAD + json("02 0100 0700 02 0000 00")),
]


@pytest.mark.parametrize("body", [each[1] for each in ROWS], ids=[each[0] for each in ROWS])
def test_excessive_lengths_in_a_rows_event_are_rejected_in_bounded_memory(body: bytes) -> None:
    reader = decoder([TABLE])
    first = make_event(EventType.TABLE_MAP_EVENT, table_map_body_for(TABLE), 300)
    event = make_event(EventType.WRITE_ROWS_EVENT, body)
    with bounded_memory(256 << 20), pytest.raises(FormatError):
        list(rows_of(reader.decode([first, event])))


MAPS = [
    ("columns", HUGE + b"\x03"),
    ("metadata", b"\x01\x0f" + HUGE),
    ("null bitmap", b"\xfd\xff\xff\xff" + b"\x03" * 3),
]


@pytest.mark.parametrize("body", [each[1] for each in MAPS], ids=[each[0] for each in MAPS])
def test_excessive_lengths_in_a_table_map_are_rejected_in_bounded_memory(body: bytes) -> None:
    head = bytes.fromhex("2a0000000000 0100 01 6400 01 7400")
    with bounded_memory(64 << 20), pytest.raises(FormatError):
        TableMap.parse(head + body)
