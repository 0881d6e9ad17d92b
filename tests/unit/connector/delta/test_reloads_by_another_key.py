"""A stopped table that is reloaded after its key has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.mirrors.table_batches import NAME, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.store.deltars import fast_writes
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

ID, V = ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int", nullable=False)
BY_ID = TableSchema(*NAME, (ID, V), ("id",))
BY_V = TableSchema(*NAME, (ID, V), ("v",))
DONE = SnapshotState()
FIRST, SECOND = (
    SnapshotState(
        pending=(TableSnapshotState(NAME, "key", ("5",)),) if upto else (),
        chunks=(Chunk(NAME, "key", after, upto),),
        reload="again",
    )
    for after, upto in ((None, ("5",)), (("5",), None))
)


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableBatches:
    """Return a stopped table whose two rows have the same value of `v`."""
    # Force a merge: a write of few keys would replace several rows of one key by one row.
    monkeypatch.setattr(fast_writes, "MAX_REPLACED_KEYS", 0)
    mirrored = TableBatches(tmp_path)
    rows = (change("c", 120 + n, {"id": n, "v": 5}) for n in (1, 2))
    mirrored.batch(140, *rows, versions=[(4, BY_ID)], load=DONE)
    mirrored.table.stop(MirrorError("of the test"), mirrored.last)
    mirrored.states[mirrored.query] = mirrored.table.state
    return mirrored


@pytest.mark.parametrize("is_restarted", [False, True])
def test_reload_by_changed_key_leaves_one_row_per_new_key_value(
    mirrored: TableBatches, *, is_restarted: bool
) -> None:
    gone = change("d", 150, {"id": 2, "v": 5})
    statement = change("ddl", 160, query="ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    mirrored.batch(200, gone, statement, versions=[(4, BY_ID), (170, BY_V)], load=DONE)
    if is_restarted:
        mirrored.again()
    loaded = change("r", 250, {"id": 1, "v": 5}, row=-1)
    mirrored.batch(300, loaded, versions=[(170, BY_V)], load=FIRST)
    assert mirrored.table.stopped is None
    assert mirrored.rows() == [(1, 5)]
    mirrored.batch(350, versions=[(170, BY_V)], load=SECOND)
    assert mirrored.rows() == [(1, 5)]


def test_rows_stay_until_reload_by_unchanged_key_is_complete(mirrored: TableBatches) -> None:
    loaded = change("r", 250, {"id": 1, "v": 6}, row=-1)
    mirrored.batch(300, loaded, versions=[(4, BY_ID)], load=FIRST)
    assert mirrored.rows() == [(1, 6), (2, 5)]
    mirrored.batch(350, versions=[(4, BY_ID)], load=SECOND)
    assert mirrored.rows() == [(1, 6)]
