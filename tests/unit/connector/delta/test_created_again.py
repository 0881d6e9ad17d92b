"""A table that is dropped and created again, after its Delta table was removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from helpers.mirrors.table_batches import NAME, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

TABLE = TableSchema(
    *NAME, (ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int")), ("id",)
)
DROPPED = UnknownSchema("DROP TABLE t", is_dropped=True)


@pytest.fixture
def mirrored(tmp_path: Path) -> TableBatches:
    mirrored = TableBatches(tmp_path / "t")
    row = change("c", 110, {"id": 1, "v": 1})
    mirrored.batch(200, row, versions=[(4, TABLE)], load=SnapshotState())
    return mirrored


def test_recreated_table_with_folder_removed_after_drop_is_replicated(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(300, versions=[(4, TABLE), (250, DROPPED)], load=SnapshotState())
    shutil.rmtree(mirrored.folder)
    mirrored.again()
    row = change("c", 360, {"id": 2, "v": 2})
    # A batch has no version of a table that does not exist at its start.
    mirrored.batch(400, row, versions=[(350, TABLE)], load=SnapshotState())
    assert mirrored.rows() == [(2, 2)]


def test_folder_removed_without_a_drop_stops_the_table(mirrored: TableBatches) -> None:
    shutil.rmtree(mirrored.folder)
    mirrored.again()
    with pytest.raises(MirrorError, match="no longer exists"):
        mirrored.batch(300, versions=[(4, TABLE)], load=SnapshotState())
