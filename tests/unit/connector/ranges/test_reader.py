"""Reading of ranges: inline or fetched, whole or split, they give the same rows."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.events import LogBuilder
from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import ARROW_SCHEMA, CAPTURED, rows_of, simple_schema
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.reader import SchemasAt, events_between, read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import InvalidPositionError, UnknownSchemaError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

# Run each test with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

INT = ColumnSchema("id", "int")
ROTATIONS = str(CAPTURED / "rotations.*.binlog")


def test_events_between_two_positions_are_exactly_those_of_the_log() -> None:
    log = FileLog.find(ROTATIONS)
    everything = list(log.events(log.begins()[0]))
    places = [log.position(event.file, event.start) for event in everything]
    for at, start in enumerate(places[:40]):
        for to, end in enumerate(places[at : at + 60], at):
            assert list(events_between(log, start, end)) == everything[at:to]


def test_range_to_the_end_of_the_log_gives_all_events() -> None:
    log = FileLog.find(ROTATIONS)
    everything = list(log.events(log.begins()[0]))
    assert list(events_between(log, log.begins()[0], log.end())) == everything


def test_range_end_past_the_end_of_the_log_is_rejected() -> None:
    """The end is after the last event, or in a file that does not exist."""
    log = FileLog.find(ROTATIONS)
    end = log.end()
    for lost in (end._replace(pos=end.pos + 100), Position(6, 500, "rotations.006.binlog")):
        with pytest.raises(InvalidPositionError, match="the binlog ends at") as caught:
            list(events_between(log, log.begins()[0], lost))
        assert (caught.value.file, caught.value.position) == (lost.file, lost.pos)


def test_range_end_inside_an_event_is_rejected() -> None:
    log = FileLog.find(str(CAPTURED / "transactions.001.binlog"))
    end = log.position("transactions.001.binlog", 1210)
    with pytest.raises(InvalidPositionError, match=r"inside an event that begins at .*:1205"):
        list(events_between(log, log.begins()[0], end))


# --- ranges


class Scenario:
    """A recorded scenario with its boundaries, and its schemas, which are valid from the start."""

    def __init__(self, name: str) -> None:
        path = str(CAPTURED / f"{name}.*.binlog")
        self.options = parse_options({"path": path, "tables": "*.*", "payload": "json"})
        self.log = FileLog.find(path)
        history = SchemaHistory()
        for schema in captured_schemas(describe(name)):
            history = history.with_table(self.log.begins()[0], schema)
        self.schemas = history.pack()
        filtering = EventFilter(lambda database, table: True)
        self.boundaries = self.log.begins()[:1]
        for event in self.log.events(self.boundaries[0]):
            filtering.feed(event)
            if filtering.ended:
                self.boundaries.append(self.log.position(event.file, event.end))
        self.boundaries.append(self.log.end())

    def rows(
        self, start: Position, end: Position, blocks: tuple[EventBlock, ...] | None = None
    ) -> list[dict[str, Any]]:
        partition = RangePartition(start, end, self.schemas, (), True, blocks, log=self.log)
        return [dict(row) for row in rows_of(read_range(self.options, partition, ARROW_SCHEMA))]

    def kept(self, start: Position, end: Position) -> tuple[EventBlock, ...]:
        filtering = EventFilter(lambda database, table: True)
        events = events_between(self.log, start, end)
        return tuple(pack_events(kept for event in events for kept in filtering.feed(event)))


@pytest.mark.parametrize("name", ["rotations", "gtid_no_checksum", "numbers", "temporals"])
def test_ranges_split_at_any_boundary_give_the_same_rows(name: str) -> None:
    """Rows are compared with their `source` and `seq`."""
    scenario = Scenario(name)
    first, last = scenario.boundaries[0], scenario.boundaries[-1]
    whole = scenario.rows(first, last)
    assert whole
    parts = [scenario.rows(start, end) for start, end in pairwise(scenario.boundaries)]
    assert [row for part in parts for row in part] == whole
    for middle in scenario.boundaries:
        assert scenario.rows(first, middle) + scenario.rows(middle, last) == whole


@pytest.mark.parametrize("name", ["numbers", "temporals", "strings"])
def test_inline_range_gives_the_rows_of_a_fetched_range(name: str, tmp_path: Path) -> None:
    """Only ranges of a server are inline, so the file gets a name as on a server."""
    (tmp_path / "b.000007").write_bytes((CAPTURED / f"{name}.001.binlog").read_bytes())
    scenario = Scenario(name)
    scenario.options = parse_options(
        {"path": str(tmp_path / "b.000007"), "tables": "*.*", "payload": "json"}
    )
    scenario.log = FileLog.find(str(tmp_path / "b.000007"))
    history = SchemaHistory.unpack(scenario.schemas)
    moved = SchemaHistory()
    for table in history.tables():
        schema = history.versions(*table)[0][1]
        assert isinstance(schema, TableSchema)
        moved = moved.with_table(scenario.log.begins()[0], schema)
    scenario.schemas = moved.pack()
    first, last = scenario.log.begins()[0], scenario.log.end()
    pulled = scenario.rows(first, last)
    assert pulled
    assert {row["seq"]["file"] for row in pulled} == {7}
    assert scenario.rows(first, last, scenario.kept(first, last)) == pulled


def test_range_read_twice_gives_the_same_batches() -> None:
    scenario = Scenario("rotations")
    first, last = scenario.boundaries[0], scenario.boundaries[-1]
    partition = RangePartition(first, last, scenario.schemas, (), True, None, log=scenario.log)
    one, two = (list(read_range(scenario.options, partition, ARROW_SCHEMA)) for _ in range(2))
    assert one == two


def one_range(log: LogBuilder, folder: Path, start: Position) -> tuple[RangePartition, Options]:
    """Return the range of a log from `start` on, and options that capture d.t."""
    path = str(log.write(folder))
    options = parse_options({"path": path, "tables": "d.t", "payload": "json"})
    files = FileLog.find(path)
    return RangePartition(start, log.position(), "", (), True, None, log=files), options


def test_range_end_inside_a_transaction_is_rejected(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    start = log.position()
    log.begin().rows(1, "x", 1)
    partition, options = one_range(log, tmp_path, start)
    with pytest.raises(InvalidPositionError, match="the end is inside a transaction"):
        list(read_range(options, partition, ARROW_SCHEMA))


def test_truncate_of_a_captured_table_gives_one_row_with_the_key(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    log.query("TRUNCATE TABLE t").query("TRUNCATE TABLE other")
    partition, options = one_range(log, tmp_path, log.position(4))
    history = SchemaHistory().with_table(partition.start, simple_schema(INT, key=("id",)))
    partition.schemas = history.pack()
    rows = list(rows_of(read_range(options, partition, ARROW_SCHEMA)))
    assert [(row["op"], row["database"], row["table"]) for row in rows] == [("t", "d", "t")]
    assert rows[0]["source"]["key"] == ["id"]


def test_failed_range_read_leaves_no_fetch_thread(tmp_path: Path) -> None:
    """Not even while the caller holds the error: a thread would keep its server connection."""
    log = LogBuilder().format_description()
    start = log.position()
    # More than is prefetched.
    for _ in range(40):
        log.begin().rows(1, "t", *range(40_000)).xid()
    partition, options = one_range(log, tmp_path, start)
    with pytest.raises(UnknownSchemaError) as error:
        list(read_range(options, partition, ARROW_SCHEMA))
    assert error.value.__traceback__ is not None
    assert not any(thread.name == "mysqlbinlog-fetch" for thread in threading.enumerate())


def test_unknown_schema_has_a_reason() -> None:
    history = SchemaHistory().without(Position.of("b.000001", 100), "d", "t", "it was altered")
    schemas = SchemasAt(history, lambda file: 1)
    assert schemas.at("b.000001", 100, "d", "t") is None
    assert schemas.reason("b.000001", 100, "d", "t") == "it was altered"
    assert schemas.at("b.000001", 50, "d", "t") is None
    assert schemas.reason("b.000001", 50, "d", "t").startswith("the binlog had no CREATE TABLE")
