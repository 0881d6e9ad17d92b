"""Rows that a snapshot condition excludes: their queries, and when they are unreadable."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change, changes_table
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.sync.constants import SNAPSHOT_IN_PROGRESS
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import conditions_of
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

KEY = ColumnSchema("id", "int", nullable=False)
BEFORE = TableSchema(*NAME, (KEY, ColumnSchema("v", "int")), ("id",))
AFTER = TableSchema(*NAME, (*BEFORE.columns, ColumnSchema("w", "int")), ("id",))
UNREAD, READ = (
    SnapshotState(pending=(TableSnapshotState(NAME),)),
    SnapshotState(chunks=(Chunk(NAME, "key"),)),
)
DONE = SnapshotState()


@pytest.fixture
def mirrored(tmp_path: Path) -> TableBatches:
    """Return a table with a pending snapshot and a binlog row that the snapshot does not read."""
    mirrored = TableBatches(tmp_path)
    versions = [(4, BEFORE)]
    mirrored.batch(150, change("c", 120, {"id": 1, "v": 1}), versions=versions, load=DONE)
    mirrored.batch(200, versions=versions, load=UNREAD)
    return mirrored


def row(pos: int, **image: int) -> Change:
    return change("r", pos, image, row=-1)


def answers(mirrored: TableBatches, *rows: Change) -> list[str]:
    """Answer each query for excluded rows with `rows`; return the list of its conditions."""
    asked: list[str] = []

    def rows_where(condition: str) -> tuple[pa.Table, ImageStore]:
        asked.append(condition)
        return changes_table(*rows), ImageStore()

    mirrored.rows_where, mirrored.is_limited = rows_where, True
    return asked


def test_excluded_rows_are_read_when_the_snapshot_ends(mirrored: TableBatches) -> None:
    asked = answers(mirrored, row(300, id=1, v=7))
    mirrored.batch(300, row(300, id=100, v=5), versions=[(4, BEFORE)], load=READ)
    assert asked == ["(`id` = 1)"]
    assert mirrored.rows() == [(1, 7), (100, 5)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]


def test_excluded_row_missing_on_server_is_deleted(mirrored: TableBatches) -> None:
    answers(mirrored)
    mirrored.batch(300, row(300, id=100, v=5), versions=[(4, BEFORE)], load=READ)
    assert mirrored.rows() == [(100, 5)]


def test_excluded_rows_with_newer_columns_are_applied_after_the_alter(
    mirrored: TableBatches,
) -> None:
    answers(mirrored, row(350, id=1, v=7, w=8))
    mirrored.batch(300, row(300, id=100, v=5), versions=[(4, BEFORE)], load=READ)
    assert mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]
    mirrored.again()
    mirrored.batch(340, versions=[(4, BEFORE)], load=DONE)
    assert mirrored.rows() == [(1, 1), (100, 5)]
    mirrored.batch(400, versions=[(4, BEFORE), (345, AFTER)], load=DONE)
    assert mirrored.rows() == [(1, 7, 8), (100, 5, None)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]


def test_excluded_row_that_does_not_fit_its_columns_stops_the_table(mirrored: TableBatches) -> None:
    answers(mirrored, row(300, id=1, v=7, w=8))
    with pytest.raises(MirrorError, match="no statement changed them"):
        mirrored.batch(300, row(300, id=100, v=5), versions=[(4, BEFORE)], load=READ)


def test_conditions_of_excluded_rows_are_split_by_count_and_length() -> None:
    schema = TableSchema(*NAME, (KEY,), ("id",))
    pieces = [*conditions_of(schema, pa.table({"id": [*range(2500)]}))]
    assert [piece.count("=") for piece in pieces] == [1000, 1000, 500]
    text = ColumnSchema("id", "varchar", 60_000, charset="latin1", nullable=False)
    long = pa.table({"id": ["x" * 60_000] * 7})
    pieces = [*conditions_of(TableSchema(*NAME, (text,), ("id",)), long)]
    assert [piece.count("=") for piece in pieces] == [3, 3, 1]


def test_timestamp_key_in_condition_is_utc() -> None:
    schema = TableSchema(*NAME, (ColumnSchema("at", "timestamp", nullable=False),), ("at",))
    here = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    found = [
        [*conditions_of(schema, pa.table({"at": pa.array([here], kind)}))]
        for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us", "+05:00"))
    ]
    text = here.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    assert found == [[f"(`at` = _utf8mb4 X'{text.encode().hex()}')"]] * 2
