"""Virtual TEXT, BLOB, JSON and spatial columns are omitted from before images of updates.

A 5.7 server reuses the memory of their old values before it writes the binlog if the table has a
trigger or, for JSON and spatial columns, an ON UPDATE column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from helpers.logs.recorded_logs import load
from helpers.parity.decode_parity import KINDS, Parity, Payloads
from helpers.parity.decoding import (
    make_event,
    simple_schema,
    table_map_body_for,
)
from helpers.parity.payload_faces import as_json_rows
from helpers.replay import Replay, captured_schemas
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

Row = Mapping[str, Any]
# Virtual columns whose old values may be wrong in the binlog.
DOUBTFUL = ["vt", "vb", "vl", "vj", "vg"]


@pytest.mark.parametrize("kind", KINDS)
def test_before_images_without_unreliable_virtual_columns_equal_select(
    kind: str, by_hand: list[Event]
) -> None:
    described, events = load("virtual_columns")
    schemas = captured_schemas(described)
    found = Parity(schemas, Payloads(kind)).assert_same(events)
    assert found.error is None
    assert by_hand == []
    rows = [row for batch in found.batches for row in batch.to_pylist()]
    replay = Replay(schemas)
    replay.apply(faces(rows, schemas, kind))
    for name, table in described["tables"].items():
        replay.assert_equals(described["database"], name, table["rows"])
    missing = Counter((row["op"], *(row["source"]["missing"] or ())) for row in rows)
    assert set(missing) == {("c",), ("d",), ("u", *(f"before.{name}" for name in DOUBTFUL))}
    assert min(missing.values()) > 10


def test_unreliable_virtual_columns_read_as_stored_give_wrong_values() -> None:
    """The recorded logs contain wrong values: read as stored columns, they differ from SELECT."""
    described, events = load("virtual_columns")
    schemas = [
        replace(schema, columns=tuple(replace(column, virtual=False) for column in schema.columns))
        for schema in captured_schemas(described)
    ]
    errors = {"": "JSON with a value of type", "vj": "not utf8mb4"}
    for excluded, words in errors.items():
        columns = ColumnFilter.parse(f"*.*.{excluded}" if excluded else None)
        found = Parity(schemas, Payloads("json", columns=columns)).assert_same(events)
        assert words in str(found.error)
    columns = ColumnFilter.parse("*.*.vj, *.*.vt, *.*.vl")
    found = Parity(schemas, Payloads("json", columns=columns)).assert_same(events)
    rows = [row for batch in found.batches for row in batch.to_pylist()]
    shown = [
        replace(
            schema, columns=tuple(c for c in schema.columns if c.name not in ("vj", "vt", "vl"))
        )
        for schema in schemas
    ]
    with pytest.raises(AssertionError, match="held, before image"):
        Replay(shown).apply(rows)


SCHEMA = simple_schema(
    C("id", "int", nullable=False),
    C("v", "text", charset="latin1", virtual=True),
    C("j", "json", virtual=None),
    C("s", "text", charset="latin1"),
    C("vv", "varchar", 9, charset="latin1", virtual=True),
    key=("id",),
)
# A JSON document of a type that does not exist, and the valid document `true`.
GARBAGE, TRUE = b"\x02\0\0\0\xc8\x07", b"\x02\0\0\0\x04\x01"


def image(number: int, document: bytes, *, null: bool = False) -> bytes:
    values = b"\x01\0x" + document
    return (
        (b"\x06" if null else b"\0")
        + number.to_bytes(4, "little")
        + (b"" if null else values)
        + b"\x01\0s\x01v"
    )


def log(kind: EventType, *images: bytes, present: bytes = b"\x1f") -> list[Event]:
    sides = 2 if kind == EventType.UPDATE_ROWS_EVENT else 1
    head = (7).to_bytes(6, "little") + b"\x01\0\x02\0\x05" + present * sides
    return [
        make_event(EventType.TABLE_MAP_EVENT, table_map_body_for(SCHEMA), 500),
        make_event(kind, head + b"".join(images)),
    ]


def faces(rows: Sequence[Row], schemas: list[TableSchema], kind: str) -> Sequence[Row]:
    return rows if kind == "json" else list(as_json_rows(rows, schemas, kind))


def decoded(
    kind: str, events: list[Event], exclude: str | None = None
) -> list[tuple[str | None, str | None, list[str] | None]]:
    """Return before, after and missing of each row, if both implementations agree."""
    columns = ColumnFilter.parse(exclude)
    payloads = Payloads(kind, columns=columns)
    found = Parity([SCHEMA], payloads, file_ordinal=lambda _: 3).assert_same(events)
    assert found.error is None
    rows = [row for batch in found.batches for row in batch.to_pylist()]
    shown = [column for column in SCHEMA.columns if not columns.excludes("d", "t", column.name)]
    images = faces(rows, [replace(SCHEMA, columns=tuple(shown))], kind)
    return [
        (image["before"], image["after"], row["source"]["missing"])
        for image, row in zip(images, rows, strict=True)
    ]


FULL = '{"id":2,"v":"x","j":true,"s":"s","vv":"v"}'


@pytest.mark.parametrize("kind", KINDS)
def test_unreliable_columns_of_before_images_are_skipped_and_listed_as_missing(
    kind: str, by_hand: list[Event]
) -> None:
    """A column is treated as virtual if it is not known to be stored."""
    update = log(EventType.UPDATE_ROWS_EVENT, image(1, GARBAGE), image(2, TRUE))
    short = '{"id":1,"s":"s","vv":"v"}'
    assert decoded(kind, update) == [(short, FULL, ["before.v", "before.j"])]
    nulls = log(EventType.UPDATE_ROWS_EVENT, image(1, b"", null=True), image(2, TRUE))
    assert decoded(kind, nulls) == [(short, FULL, ["before.v", "before.j"])]
    assert by_hand == []


@pytest.mark.parametrize("kind", KINDS)
def test_insert_and_delete_images_contain_virtual_columns(kind: str) -> None:
    assert decoded(kind, log(EventType.DELETE_ROWS_EVENT, image(2, TRUE))) == [(FULL, None, None)]
    assert decoded(kind, log(EventType.WRITE_ROWS_EVENT, image(2, TRUE))) == [(None, FULL, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_unreliable_columns_are_missing_in_minimal_images_but_not_if_excluded(kind: str) -> None:
    update = log(EventType.UPDATE_ROWS_EVENT, image(1, GARBAGE), image(2, TRUE))
    assert decoded(kind, update, "d.t.j") == [
        ('{"id":1,"s":"s","vv":"v"}', '{"id":2,"v":"x","s":"s","vv":"v"}', ["before.v"])
    ]
    minimal = log(
        EventType.UPDATE_ROWS_EVENT, b"\0\x01\0\0\0\x01\0x", b"\0\x02\0\0\0\x01\0y", present=b"\x03"
    )
    left = [f"{side}.{name}" for side in ("before", "after") for name in ("v", "j", "s", "vv")]
    left.remove("after.v")
    assert decoded(kind, minimal) == [('{"id":1}', '{"id":2,"v":"y"}', left)]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_value_of_an_unreliable_column_is_rejected(kind: str) -> None:
    update = log(EventType.UPDATE_ROWS_EVENT, image(1, GARBAGE)[:9])
    found = Parity([SCHEMA], Payloads(kind), file_ordinal=lambda _: 3).assert_same(update)
    assert "cut short" in str(found.error)
