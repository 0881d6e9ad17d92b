"""Snapshots with a condition, during which the key changes or the condition is removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change, changes_table
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.sync.constants import SNAPSHOT_IN_PROGRESS
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

KEY, V = ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int")
BIG = ColumnSchema("id", "bigint", nullable=False)
BEFORE = TableSchema(*NAME, (KEY, V), ("id",))
WIDER = TableSchema(*NAME, (BIG, V, ColumnSchema("w", "int")), ("id",))
KEYLESS = TableSchema(*NAME, (KEY, V))
DONE = SnapshotState()
ALTER = "ALTER TABLE t ADD COLUMN w INT DEFAULT 7, MODIFY id BIGINT NOT NULL"


def pending(lost: int) -> SnapshotState:
    return SnapshotState(pending=(TableSnapshotState(NAME),), invalidated_at={NAME: (1, lost)})


def row(pos: int, **image: int) -> Change:
    return change("r", pos, image, row=-1)


def chunk(after: str | None = None, upto: str | None = None) -> SnapshotState:
    """Return the state after one chunk; the snapshot continues if the chunk has an end."""
    begin, end = ((each,) if each else None for each in (after, upto))
    rest = (TableSnapshotState(NAME, "key", end),) if end else ()
    return SnapshotState(pending=rest, chunks=(Chunk(NAME, "key", begin, end),))


def answers(mirrored: TableBatches, *rows: Change) -> list[str]:
    """Answer each query for excluded rows with `rows`; return the list of its conditions."""
    asked: list[str] = []

    def rows_where(condition: str) -> tuple[pa.Table, ImageStore]:
        asked.append(condition)
        return changes_table(*rows), ImageStore()

    mirrored.rows_where, mirrored.is_limited = rows_where, True
    return asked


@pytest.fixture
def mirrored(tmp_path: Path) -> TableBatches:
    """Return a table with a snapshot condition and a binlog row that the condition excludes."""
    mirrored = TableBatches(tmp_path)
    answers(mirrored)
    brought = change("c", 120, {"id": 2, "v": 2})
    mirrored.batch(140, brought, versions=[(4, BEFORE)], load=DONE)
    return mirrored


def test_key_change_with_rows_outside_snapshot_condition_stops_the_table(
    mirrored: TableBatches,
) -> None:
    statement = change("ddl", 150, query=ALTER)
    versions = [(4, BEFORE), (160, WIDER)]
    with pytest.raises(MirrorError, match="remove the table from snapshotWhere"):
        mirrored.batch(170, statement, versions=versions, load=pending(160))
    assert mirrored.rows() == [(2, 2)]


def test_added_key_with_rows_outside_snapshot_condition_stops_the_table(tmp_path: Path) -> None:
    mirrored = TableBatches(tmp_path)
    answers(mirrored)
    brought = change("c", 120, {"id": 2, "v": 2})
    mirrored.batch(140, brought, versions=[(4, KEYLESS)], load=DONE)
    statement = change("ddl", 150, query="ALTER TABLE t DROP PARTITION p")
    mirrored.batch(170, statement, versions=[(4, KEYLESS)], load=pending(160))
    with pytest.raises(MirrorError, match="remove the table from snapshotWhere"):
        mirrored.batch(200, versions=[(4, KEYLESS), (180, BEFORE)], load=pending(160))
    assert mirrored.rows() == [(2, 2)]


def test_reload_of_stopped_table_with_changed_key_keeps_rows_outside_condition(
    mirrored: TableBatches,
) -> None:
    mirrored.table.stop(MirrorError("for a test"), mirrored.last)
    mirrored.batch(170, versions=[(4, BEFORE), (160, WIDER)], load=DONE)
    with pytest.raises(MirrorError, match="remove the table from snapshotWhere"):
        mirrored.batch(300, row(300, id=100, v=5, w=7), versions=[(4, WIDER)], load=chunk())
    assert mirrored.rows() == [(2, 2)]


def test_key_change_without_earlier_rows_is_allowed_under_snapshot_condition(
    tmp_path: Path,
) -> None:
    mirrored = TableBatches(tmp_path)
    answers(mirrored)
    mirrored.batch(140, versions=[(4, BEFORE)], load=SnapshotState(pending=pending(1).pending))
    statement = change("ddl", 150, query=ALTER)
    mirrored.batch(170, statement, versions=[(4, BEFORE), (160, WIDER)], load=pending(160))
    mirrored.batch(300, row(300, id=100, v=5, w=7), versions=[(4, WIDER)], load=chunk())
    assert mirrored.rows() == [(100, 5, 7)]


@pytest.mark.parametrize("limited", [1, 2])
def test_rows_excluded_by_condition_on_one_chunk_are_read_at_snapshot_end(
    mirrored: TableBatches, limited: int
) -> None:
    """Only one of the two chunks was read by a process with a condition."""
    asked = answers(mirrored, row(400, id=2, v=77))
    rows_where = mirrored.rows_where
    versions = [(4, BEFORE)]
    mirrored.is_limited = limited == 1
    mirrored.batch(200, row(200, id=0, v=5), versions=versions, load=chunk(None, "1"))
    mirrored.again()
    mirrored.is_limited = limited == 2
    mirrored.rows_where = rows_where
    mirrored.batch(300, row(300, id=100, v=5), versions=versions, load=chunk("1"))
    assert asked == ["(`id` = 2)"]
    assert mirrored.rows() == [(0, 5), (2, 77), (100, 5)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]


def test_snapshot_without_condition_reads_no_excluded_rows(mirrored: TableBatches) -> None:
    asked = answers(mirrored)
    mirrored.is_limited = False
    mirrored.batch(300, row(300, id=100, v=5), versions=[(4, BEFORE)], load=chunk())
    assert asked == []
    assert mirrored.rows() == [(100, 5)]
