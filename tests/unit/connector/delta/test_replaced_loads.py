"""Snapshots of a table whose key changes before all rows are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.sync.constants import SNAPSHOT_IN_PROGRESS
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

COLUMNS = (ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int", nullable=False))
BY_ID, KEYLESS = (TableSchema(*NAME, COLUMNS, key) for key in (("id",), ()))
TEXT = (COLUMNS[0], ColumnSchema("v", "varchar", 9, charset="latin1", nullable=False))
TEXT_BY_ID, TEXT_BY_V = (TableSchema(*NAME, TEXT, key) for key in (("id",), ("v",)))
DONE = SnapshotState()


@pytest.fixture
def mirrored(tmp_path: Path) -> TableBatches:
    return TableBatches(tmp_path)


def pending(lost: int) -> SnapshotState:
    return SnapshotState(pending=(TableSnapshotState(NAME),), invalidated_at={NAME: (1, lost)})


def read(lost: int, key: str = "key") -> SnapshotState:
    return SnapshotState(chunks=(Chunk(NAME, key),), invalidated_at={NAME: (1, lost)})


def loaded(pos: int, number: int, v: int | str) -> Change:
    return change("r", pos, {"id": number, "v": v}, row=-1)


def created(pos: int, number: int, v: int | str) -> Change:
    return change("c", pos, {"id": number, "v": v})


def test_key_change_during_snapshot_removes_rows_that_collide_in_new_key(
    mirrored: TableBatches,
) -> None:
    """The statement at 150 removed row 1, which the binlog does not show."""
    rows = created(110, 1, "a"), created(120, 2, "a")
    mirrored.batch(140, *rows, versions=[(4, TEXT_BY_ID)], load=DONE)
    gone = change("ddl", 150, query="ALTER TABLE t DROP PARTITION p")
    mirrored.batch(160, gone, versions=[(4, TEXT_BY_ID)], load=pending(160))
    versions = [(4, TEXT_BY_ID), (170, TEXT_BY_V)]
    mirrored.batch(200, versions=versions, load=pending(160))
    mirrored.batch(300, loaded(300, 2, "a"), versions=[(4, TEXT_BY_V)], load=read(160))
    assert mirrored.rows() == [(2, "a")]


def test_key_added_while_keyless_snapshot_is_pending_completes_snapshot_by_key(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(140, created(110, 1, 1), created(120, 1, 1), versions=[(4, KEYLESS)], load=DONE)
    statement = change("ddl", 150, query="ALTER TABLE t DROP PARTITION p")
    mirrored.batch(160, statement, versions=[(4, KEYLESS)], load=pending(160))
    changes = change("d", 165, {"id": 1, "v": 1}), created(175, 7, 7)
    mirrored.batch(200, *changes, versions=[(4, KEYLESS), (170, BY_ID)], load=pending(160))
    assert mirrored.rows() == [(7, 7)]
    mirrored.again()
    rows = loaded(300, 1, 1), loaded(300, 7, 7)
    mirrored.batch(300, *rows, versions=[(4, BY_ID)], load=read(160))
    assert mirrored.rows() == [(1, 1), (7, 7)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]


def test_snapshot_by_key_ahead_of_the_binlog_completes_once_key_is_reached(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(140, created(110, 1, 1), versions=[(4, KEYLESS)], load=DONE)
    statement = change("ddl", 150, query="ALTER TABLE t DROP PARTITION p")
    mirrored.batch(160, statement, versions=[(4, KEYLESS)], load=pending(160))
    mirrored.batch(170, loaded(300, 1, 1), versions=[(4, KEYLESS)], load=read(160))
    mirrored.again()
    mirrored.batch(200, versions=[(4, KEYLESS), (180, BY_ID)], load=pending(180))
    mirrored.batch(300, loaded(300, 1, 1), versions=[(4, BY_ID)], load=read(180))
    assert mirrored.rows() == [(1, 1)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]


def test_snapshot_by_key_without_a_later_key_in_the_binlog_stops_the_table(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(140, created(110, 1, 1), versions=[(4, KEYLESS)], load=DONE)
    statement = change("ddl", 150, query="ALTER TABLE t DROP PARTITION p")
    mirrored.batch(160, statement, versions=[(4, KEYLESS)], load=pending(160))
    mirrored.batch(170, loaded(170, 1, 1), versions=[(4, KEYLESS)], load=read(160))
    with pytest.raises(MirrorError, match="read by a key"):
        mirrored.batch(200, versions=[(4, KEYLESS)], load=DONE)
