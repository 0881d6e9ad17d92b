"""A table that is stopped in a sub-batch stays stopped in the next ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.mirrors.table_batches import NAME, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

COLUMNS = (ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int"))
VERSIONS = [(4, TableSchema(*NAME, COLUMNS, ("id",)))]
RELOAD = SnapshotState(chunks=(Chunk(NAME, "key"),), reload="again")


@pytest.mark.parametrize("is_new", [False, True], ids=["same process", "new process"])
def test_table_stopped_in_a_sub_batch_is_reloaded_only_by_replay_of_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    mirrored = TableBatches(tmp_path)
    rows = [change("c", 100 + n, {"id": n, "v": n}) for n in (1, 2)]
    mirrored.batch(200, *rows, versions=VERSIONS, load=SnapshotState())
    copy = mirrored.checkpoint()
    loaded = [change("r", 300, {"id": n, "v": 7}, row=-1) for n in (1, 2, 3)]

    def fails(*_: Any) -> bool:
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(mirrored.target, "has_since", fails)
        with pytest.raises(OSError):
            mirrored.batch(300, *loaded[:2], versions=VERSIONS, load=RELOAD, has_more=True)
    mirrored.table.stop(MirrorError("for a test"), mirrored.last)
    if is_new:
        # The batch is replayed from its first sub-batch.
        mirrored.put_back((*copy[:3], {mirrored.query: mirrored.table.state}))
        mirrored.batch(300, *loaded[:2], versions=VERSIONS, load=RELOAD, has_more=True)
    mirrored.batch(300, loaded[2], versions=VERSIONS, load=RELOAD)
    if is_new:
        assert mirrored.rows() == [(1, 7), (2, 7), (3, 7)]
    else:
        assert mirrored.table.stopped
        assert mirrored.rows() == [(1, 1), (2, 2)]
