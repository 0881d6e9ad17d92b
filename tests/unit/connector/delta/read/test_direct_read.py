"""Which batches a mirror reads directly, and which it leaves to Spark."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState
from pyspark_mysqlbinlog.connector.delta.read import policy
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

FILE = "mysql-bin.000003"


@pytest.fixture
def options() -> Options:
    return parse_options(
        {"host": "db.example", "user": "u", "password": "", "tables": "shop.*", "payload": "json"}
    )


@pytest.fixture
def reading(options: Options, monkeypatch: pytest.MonkeyPatch) -> DirectReader:
    monkeypatch.setattr(policy, "implementation", lambda: "c")
    return DirectReader(options, with_source=False)


def offset(options: Options, pos: int, *, snapshot: str = "") -> Offset:
    return Offset(
        Position.of(FILE, pos),
        schemas=SchemaHistory().pack(),
        tables=options.table_filter_hash,
        snapshot=snapshot,
    )


def test_long_ranges_and_ranges_of_unknown_length_are_read_directly(
    reading: DirectReader, options: Options
) -> None:
    begin = offset(options, 1000)
    for pos in 5_000_000, 1 << 30:
        assert reading.can_read(begin, offset(options, pos))
    # The length of the first file is not known here.
    next_file = replace(begin, position=Position.of("mysql-bin.000004", 4))
    one = SnapshotState(chunks=(Chunk(("shop", "orders"), "PRIMARY"),)).pack()
    for last in next_file, next_file, replace(next_file, snapshot=one):
        assert reading.can_read(begin, last)


def test_consecutive_short_ranges_are_left_to_spark(
    reading: DirectReader, options: Options
) -> None:
    ends = [offset(options, pos) for pos in (1000, 1000, 1100, 1200, 3_601_200, 9_000_000)]
    taken = [reading.can_read(*both) for both in pairwise([*ends, offset(options, 9_000_100)])]
    # An empty range; the first short one; two after a short one; a long one; the backlog's end.
    assert taken == [True, True, False, False, True, True]


def test_short_range_after_an_idle_minute_is_read_directly(
    reading: DirectReader, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now, is_taken in (0.0, True), (59.0, False), (118.0, False), (179.0, True):
        monkeypatch.setattr(policy, "monotonic", lambda now=now: now)
        assert reading.can_read(offset(options, 1000), offset(options, 1100)) == is_taken


def test_range_of_another_epoch_or_table_filter_is_left_to_spark(
    reading: DirectReader, options: Options
) -> None:
    begin, end = offset(options, 1000), offset(options, 5_000_000)
    assert not reading.can_read(begin, replace(end, epoch=1))
    # The offset has schemas and prepared XA of the tables that another query captured.
    assert not reading.can_read(replace(begin, tables="others"), end)
    assert not reading.can_read(begin, replace(end, tables="others"))


def test_snapshot_chunks_by_key_are_read_directly(reading: DirectReader, options: Options) -> None:
    chunk = Chunk(("shop", "orders"), "PRIMARY", upto=("9",))
    one, none = SnapshotState(chunks=(chunk,)).pack(), SnapshotState(rows=1).pack()
    begin = offset(options, 1000, snapshot=none)
    for pos in (1000, 1100, 5_000_000):
        assert reading.can_read(begin, offset(options, pos, snapshot=one))
    # Chunks do not count as a short range before the next one.
    assert reading.can_read(
        offset(options, 1000, snapshot=one), offset(options, 1100, snapshot=none)
    )


def test_snapshot_of_keyless_table_is_left_to_spark(
    reading: DirectReader, options: Options
) -> None:
    chunks = Chunk(("shop", "orders"), "PRIMARY", upto=("9",)), Chunk(("shop", "plain"))
    both, none = SnapshotState(chunks=chunks).pack(), SnapshotState(rows=1).pack()
    begin, end = offset(options, 1000, snapshot=none), offset(options, 5_000_000, snapshot=both)
    assert not reading.can_read(begin, end)
    # The same snapshot at both ends: its chunks belong to an earlier batch.
    assert reading.can_read(replace(begin, snapshot=both), end)
    assert reading.can_read(begin, replace(end, snapshot=SnapshotState(rows=2).pack()))


def test_ranges_are_left_to_spark_without_compiled_kernel(
    reading: DirectReader, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "implementation", lambda: "python")
    assert not reading.can_read(offset(options, 1000), offset(options, 5_000_000))


def _loading(
    reading: DirectReader, options: Options, monkeypatch: pytest.MonkeyPatch, begin: int
) -> list[tuple[int, bool]]:
    """Return (rows, whether it is the last) of each sub-batch of a batch with three chunks.

    begin : position from which the table's version at the end of the batch is valid.
    """
    column = ColumnSchema("id", "int", nullable=False)
    table = TableSchema("shop", "orders", (column,), primary_key=("id",))
    history = SchemaHistory().with_table(Position.of(FILE, begin) if begin else BEGINNING, table)
    chunks = tuple(Chunk(("shop", "orders"), "PRIMARY", upto=(str(n),)) for n in range(3))
    last = replace(
        offset(options, 2000, snapshot=SnapshotState(chunks=chunks).pack()), schemas=history.pack()
    )
    rows = pa.RecordBatch.from_pylist(
        [{"op": "r", "database": "shop", "table": "orders"}] * 2, reading._schema
    )
    monkeypatch.setattr(reading, "_sub_batch_bytes", 1)
    monkeypatch.setattr(reading, "_all_of_log", lambda *_: [])
    monkeypatch.setattr(reading, "_read_chunks", lambda _: (part for part in ([rows], [], [rows])))
    steps = reading.sub_batches(
        offset(options, 1000, snapshot=SnapshotState().pack()), last, lambda *_: {}
    )
    return [
        (sum(part.num_rows for part in step.changes_by_table.values()), step.is_last)
        for step in steps
    ]


def test_snapshot_chunks_are_split_into_sub_batches(
    reading: DirectReader, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _loading(reading, options, monkeypatch, 0) == [(2, False), (2, True)]


def test_snapshot_during_a_schema_change_is_one_sub_batch(
    reading: DirectReader, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _loading(reading, options, monkeypatch, 1500) == [(4, True)]


def test_snapshot_with_change_log_is_one_sub_batch(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "implementation", lambda: "c")
    reading = DirectReader(options, with_source=True)
    assert _loading(reading, options, monkeypatch, 0) == [(4, True)]
