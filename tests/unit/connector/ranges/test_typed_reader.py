"""Typed ranges give the values that a mirror reads from their JSON.

Each recorded log is read as a whole and transaction by transaction, through packed rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.events import LogBuilder
from helpers.logs.recorded_logs import describe
from helpers.mirrors.restored_tables import ALL_SCENARIOS
from helpers.parity.decoding import CAPTURED, simple_schema
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import by_table, collected
from pyspark_mysqlbinlog.connector.delta.rows.image_store import IMAGE, ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.connector.delta.rows.states import sorted_by_seq
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges import typed_reader
from pyspark_mysqlbinlog.connector.ranges.reader import read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_range
from pyspark_mysqlbinlog.connector.source.arrow_ipc import SLIM_IPC_ROWS, packets
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import UnknownSchemaError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

# Run each test with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

CONTENT = arrow_schema(output_schema(StringType()))
# Logs that contain the DDL of their tables.
WITH_DDL = {"ddl_history", "conversions", "virtual_columns"}
ID = ColumnSchema("id", "int")


class Frame:
    """A stand-in for the DataFrame of a Spark batch with these rows, packed."""

    schema = SLIM_IPC_ROWS

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        schema = arrow_schema(SLIM_IPC_ROWS)
        self._table = pa.Table.from_batches([*packets(iter(batches), SLIM_IPC_ROWS)], schema)

    # The name of the method in PySpark.
    def toArrow(self) -> pa.Table:  # noqa: N802
        return self._table


def tables_of(batches: Iterable[pa.RecordBatch]) -> tuple[dict[Table, pa.Table], ImageStore]:
    frame: Any = Frame(batches)
    changes, images = collected(frame, with_source=False)
    return {name: sorted_by_seq(part) for name, part in by_table(changes).items()}, images


def options_of(path: str) -> Options:
    return parse_options({"path": path, "payload": "json", "jsonType": "text"})


def whole_range(scenario: str) -> tuple[RangePartition, Options]:
    options = options_of(str(CAPTURED / f"{scenario}.*.binlog"))
    if scenario in WITH_DDL or scenario.startswith("random_ddl"):
        reader = MySQLBinlogReader(options, output_schema(StringType()))
        first, *more = reader.partitions()
        assert isinstance(first, RangePartition)
        for last in more:
            assert isinstance(last, RangePartition)
            first = replace(first, end=last.end, end_fingerprint=last.end_fingerprint)
        return first, options
    log = FileLog.find(str(CAPTURED / f"{scenario}.*.binlog"))
    history = SchemaHistory()
    for schema in captured_schemas(describe(scenario)):
        history = history.with_table(log.begins()[0], schema)
    return RangePartition(
        log.begins()[0], log.end(), history.pack(), (), True, None, log=log
    ), options


def transactions(partition: RangePartition) -> Iterator[RangePartition]:
    """Yield the whole range, and a sample of its transactions."""
    yield partition
    assert partition.log is not None
    filtering = EventFilter(lambda database, table: True, (), partition.server_version)
    ends = [(partition.start, filtering.pending_xa)]
    for event in partition.log.events(partition.start):
        filtering.feed(event)
        if filtering.ended:
            end = partition.log.position(event.file, event.end)
            ends.append((end, filtering.pending_xa))
    pairs = [*pairwise(ends)]
    for (start, pending_xa), (end, _) in pairs[:: max(len(pairs) // 60, 1)]:
        part = replace(partition, start=start, end=end, end_fingerprint=None)
        yield replace(part, pending_xa=pending_xa)


def schema_at(partition: RangePartition, table: Table, change: dict[str, Any]) -> TableSchema:
    assert partition.log is not None
    at = partition.start._replace(number=change["file"], pos=change["pos"])
    found = SchemaHistory.unpack(partition.schemas).at(at, *table)
    assert found is not None
    return found


def assert_same(options: Options, partition: RangePartition) -> int:
    """Check that the typed range equals its JSON; return the number of typed images."""
    expected, texts = tables_of(read_range(options, partition, CONTENT))
    found, images = tables_of(read_typed_range(options, partition, CONTENT))
    assert found.keys() == expected.keys()
    typed = 0
    for name, changes in expected.items():
        here = found[name]
        plain = [
            column for column in changes.column_names if column not in {"before", "after", IMAGE}
        ]
        assert here.select(plain).equals(changes.select(plain)), name
        for side in ("before", "after"):
            assert here.column(side).is_null().equals(changes.column(side).is_null())
            there, its = (each.filter(each.column(side).is_valid()) for each in (changes, here))
            if not its.column(IMAGE).drop_null():
                assert its.column(side).equals(there.column(side))
                continue
            typed += its.num_rows
            assert its.column(IMAGE).null_count == 0
            schema = schema_at(partition, name, there.column("seq")[0].as_py())
            rows = RowImageReader(schema.columns, schema.full_name)
            adopted, read = images.read(its, side, rows), texts.read(there, side, rows)
            assert adopted.schema == read.schema
            # By repr, because NaN is not equal to NaN, and -0.0 is equal to 0.0.
            assert repr(adopted.to_pylist()) == repr(read.to_pylist()), name
    return typed


# Scenarios that end with an error, however they are read.
REFUSED = {"statements"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("scenario", [name for name in ALL_SCENARIOS if name not in REFUSED])
def test_typed_range_of_recorded_logs_equals_its_json(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_reader, "_MAX_COLUMNS", 10_000)
    partition, options = whole_range(scenario)
    typed = [assert_same(options, part) for part in transactions(partition)]
    assert any(typed[1:]), scenario


# --- built logs

OTHER = TableSchema("d", "u", (ID,), ("id",))


def made_range(
    log: LogBuilder, folder: Path, *schemas: TableSchema
) -> tuple[RangePartition, Options]:
    options = options_of(str(log.write(folder)))
    files = FileLog.find(str(folder / log.file))
    history = SchemaHistory()
    for schema in schemas:
        history = history.with_table(files.begins()[0], schema)
    start, end = files.begins()[0], files.end()
    return RangePartition(start, end, history.pack(), (), True, None, log=files), options


def test_interleaved_tables_give_typed_batches_of_one_table_each(tmp_path: Path) -> None:
    log = LogBuilder().format_description().begin()
    for number in range(50):
        log.rows(1, "t", number, number + 1).rows(2, "u", -number)
    log.xid().query("TRUNCATE TABLE t").begin().rows(1, "t", 99).rows(2, "u", 7).xid()
    partition, options = made_range(log, tmp_path, simple_schema(ID, key=("id",)), OTHER)
    batches = [*read_typed_range(options, partition, CONTENT)]
    assert batches[-1].column("op").to_pylist() == ["t"]
    for batch in batches:
        assert len({*batch.column("table").to_pylist()}) == 1
    assert sum(batch.num_rows for batch in batches) == 153
    assert assert_same(options, partition) == 152


def test_table_altered_inside_a_range_is_read_as_json(tmp_path: Path) -> None:
    log = LogBuilder().format_description().begin().rows(1, "t", 1).xid()
    changed = log.position()
    log.begin().rows(1, "t", 2).xid()
    partition, options = made_range(log, tmp_path, simple_schema(ID, key=("id",)))
    history = SchemaHistory.unpack(partition.schemas).with_table(
        at_pos(partition, changed.pos), simple_schema(replace(ID, name="n"), key=("n",))
    )
    whole = replace(partition, schemas=history.pack())
    assert assert_same(options, whole) == 0
    for start, end in ((None, changed.pos), (changed.pos, None)):
        part = replace(
            whole,
            start=at_pos(whole, start) if start else whole.start,
            end=at_pos(whole, end) if end else whole.end,
        )
        assert assert_same(options, part) == 1


def at_pos(partition: RangePartition, pos: int) -> Position:
    return partition.start._replace(pos=pos)


def point(srid: int) -> bytes:
    body = pack("<IBIdd", srid, 1, 1, 1.0, 2.0)
    return pack("<I", len(body)) + body


def add_points(log: LogBuilder, count: int, srid: int) -> None:
    """Add a statement's rows of d.p, a table with one POINT column."""
    name = b"\x01d\x00\x01p\x00"
    table = (9).to_bytes(6, "little") + b"\x01\x00" + name + b"\x01\xff\x01\x04\x01"
    head = (9).to_bytes(6, "little") + pack("<HH", 1, 2) + b"\x01\xff"
    log.add(EventType.TABLE_MAP_EVENT, table)
    log.add(EventType.WRITE_ROWS_EVENT, head + (b"\xfe" + point(srid)) * count)


def test_value_that_no_struct_holds_switches_to_json_without_losing_rows(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    for _ in range(12):
        log.begin()
        add_points(log, 3_000, srid=4326)
        log.rows(2, "u", 1, 2, 3).xid()
    log.begin()
    add_points(log, 10, srid=2**31)
    log.xid()
    points = TableSchema("d", "p", (ColumnSchema("at", "point"),))
    partition, options = made_range(log, tmp_path, points, OTHER)
    batches = [*read_typed_range(options, partition, CONTENT)]
    kinds = [pa.types.is_struct(batch.schema.field("after").type) for batch in batches]
    assert kinds[0]
    assert not kinds[-1]
    expected = [*read_range(options, partition, CONTENT)]
    for table in ("p", "u"):
        found, there = (
            [
                seq
                for batch in each
                for name, seq in zip(
                    batch.column("table").to_pylist(), batch.column("seq").to_pylist(), strict=True
                )
                if name == table
            ]
            for each in (batches, expected)
        )
        assert found == there
    texts = pa.Table.from_batches(batches[kinds.index(False) :])
    assert texts.num_rows < 36_000
    assert '"srid":2147483648' in str(texts.column("after")[-1])


def test_unknown_table_raises_unknown_schema_error_after_earlier_rows(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    for number in range(40):
        log.begin().rows(2, "u", *range(1000 * number, 1000 * number + 1000)).xid()
    log.begin().rows(1, "t", 1).xid()
    partition, options = made_range(log, tmp_path, OTHER)
    seen: list[pa.RecordBatch] = []
    with pytest.raises(UnknownSchemaError, match="d\\.t"):
        seen.extend(read_typed_range(options, partition, CONTENT))
    rows: list[Any] = [seq for batch in seen for seq in batch.column("seq").to_pylist()]
    assert rows == sorted(rows, key=lambda seq: (seq["pos"], seq["row"]))
    assert len({tuple(seq.values()) for seq in rows}) == len(rows) > 1000
