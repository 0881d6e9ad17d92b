"""A stopped change log stays stopped until a snapshot of its table resumes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.logs.log_batches import LogBatches, change_row
from helpers.mirrors.table_batches import NAME
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity

STOP = "the disk of the test"


@pytest.fixture
def logged(tmp_path: Path) -> LogBatches:
    return LogBatches(tmp_path)


def _read(upto: int, *, is_last: bool = False, reload: str = "") -> SnapshotState:
    """Return the state of a snapshot whose batch has the chunk up to a key."""
    after = None if upto == 1 else (str(upto - 1),)
    bound = None if is_last else (str(upto),)
    rest = () if is_last else (TableSnapshotState(NAME, "key", bound),)
    chunk = Chunk(NAME, "key", after, bound)
    return SnapshotState(pending=rest, chunks=(chunk,), reload=reload)


def _pending(reload: str = "") -> SnapshotState:
    return SnapshotState(pending=(TableSnapshotState(NAME),), reload=reload)


def test_change_log_stopped_in_snapshot_stays_stopped_after_restarts(logged: LogBatches) -> None:
    """The batches of the snapshot all end at one position, so it does not distinguish them."""
    logged.batch(100, load=_pending())
    logged.batch(100, change_row("r", 100, 1), load=_read(1))
    logged.batch(100, change_row("r", 100, 2), load=_read(2), fails=True)
    logged.again()
    logged.batch(100, change_row("r", 100, 3), load=_read(3))
    logged.again()
    logged.batch(100, change_row("r", 100, 4), load=_read(4, is_last=True))
    logged.again()
    logged.batch(200, change_row("c", 200, 5))
    assert logged.log.stopped == STOP
    assert logged.target.properties()["mysqlbinlog.stopped"] == STOP
    assert [op for op, _ in logged.ops()] == ["reset", "r"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_reload_resumes_stopped_change_log_with_one_reset(
    logged: LogBatches, is_killed: bool
) -> None:
    """With `is_killed`, the process ends after the Delta commit, and the batch is replayed."""
    logged.batch(100)
    logged.batch(200, change_row("c", 200, 1))
    logged.batch(300, change_row("c", 300, 2), fails=True)
    logged.batch(300, load=_pending("again"))
    begin = (logged.number, logged.start, logged.load)
    logged.batch(
        300, change_row("r", 300, 1), load=_read(1, is_last=True), is_recorded=not is_killed
    )
    if is_killed:
        logged.number, logged.start, logged.load = begin
        logged.again()
        logged.batch(300, change_row("r", 300, 1), load=_read(1, is_last=True))
    logged.again()
    logged.batch(400, change_row("c", 400, 3))
    assert logged.log.stopped is None
    assert [op for op, _ in logged.ops()] == ["c", "reset", "r", "c"]


def _restart_after_older_checkpoint(logged: LogBatches) -> None:
    """Restore a checkpoint that is four batches older than the change log."""
    logged.batch(100)
    kept = (logged.number, logged.start, logged.state)
    for number in range(1, 5):
        logged.batch(100 + number, change_row("c", 100 + number, number))
    logged.number, logged.start, logged.state = kept
    logged.again()


def test_change_log_stopped_under_older_checkpoint_stays_stopped(logged: LogBatches) -> None:
    _restart_after_older_checkpoint(logged)
    logged.batch(150, change_row("c", 104, 4), change_row("c", 150, 5), fails=True)
    logged.again()
    logged.batch(160, change_row("c", 160, 6))
    assert logged.log.stopped == STOP
    assert [op for op, _ in logged.ops()] == ["c"] * 4


def test_reload_under_older_checkpoint_is_appended_to_change_log(logged: LogBatches) -> None:
    """Its batch number and position are already in the change log, but not its snapshot."""
    _restart_after_older_checkpoint(logged)
    logged.batch(101, change_row("c", 101, 1), load=_read(1, is_last=True, reload="again"))
    assert [op for op, _ in logged.ops()].count("reset") == 1


def test_stop_missing_in_delta_table_keeps_change_log_stopped(logged: LogBatches) -> None:
    """The table was replaced by an older copy, or the stop could not be stored in it."""
    logged.batch(100)
    logged.batch(200, change_row("c", 200, 1))
    logged.batch(300, change_row("c", 300, 2), fails=True)
    logged.target.set_properties({"mysqlbinlog.stopped": ""})
    for end in (400, 500):
        logged.again()
        logged.batch(end, change_row("c", end, 3))
        assert logged.log.stopped == STOP
        assert [op for op, _ in logged.ops()] == ["c"]


@pytest.mark.parametrize("is_new_checkpoint", [False, True])
def test_reload_resumes_stopped_change_log_in_a_new_binlog(
    logged: LogBatches, *, is_new_checkpoint: bool
) -> None:
    """It was stopped when the base name changed. `seq` stays ordered: the new epoch is larger."""
    logged.batch(100)
    logged.batch(200, change_row("c", 200, 1))
    logged.batch(300, change_row("c", 300, 2), fails=True)
    if is_new_checkpoint:
        logged.query, logged.state = "other", None
        logged.again()
    logged.batch(4, into=LogIdentity("uuid", 1, "other"))
    logged.batch(50, change_row("c", 50, 3, epoch=1))
    assert str(logged.log.stopped).startswith(STOP)
    logged.batch(50, load=_pending("again"))
    rows = change_row("r", 60, 1, epoch=1), change_row("c", 60, 4, epoch=1)
    logged.batch(60, *rows, load=_read(1, is_last=True, reload="again"))
    logged.again()
    logged.batch(70, change_row("c", 70, 5, epoch=1))
    assert logged.log.stopped is None
    assert [op for op, _ in logged.ops()] == ["c", "reset", "r", "c", "c"]
