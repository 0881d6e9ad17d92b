"""Snapshots of which the Delta table is newer than the restored checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.delta.sync.constants import SNAPSHOT_IN_PROGRESS
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

KEY, V = ColumnSchema("id", "int", nullable=False), ColumnSchema("v", "int")
TABLE = TableSchema(*NAME, (KEY, V), ("id",))
LATER = TableSchema(*NAME, (KEY, V, ColumnSchema("w", "int")), ("id",))
KEYLESS = TableSchema(*NAME, (KEY, V))
VERSIONS = [(4, TABLE)]
DONE = SnapshotState()
UNREAD = SnapshotState(pending=(TableSnapshotState(NAME),))


def row(pos: int, number: int, v: int) -> Change:
    return change("r", pos, {"id": number, "v": v}, row=-1)


def created(pos: int, number: int, v: int) -> Change:
    return change("c", pos, {"id": number, "v": v})


def chunk(after: int | None, upto: int | None, reload: str = "") -> SnapshotState:
    """Return the state after one chunk; the snapshot continues if the chunk has an end."""
    begin, end = (None if each is None else (str(each),) for each in (after, upto))
    rest = (TableSnapshotState(NAME, "key", end),) if end else ()
    return SnapshotState(pending=rest, chunks=(Chunk(NAME, "key", begin, end),), reload=reload)


@pytest.fixture
def mirrored(tmp_path: Path) -> TableBatches:
    return TableBatches(tmp_path)


def test_reload_under_older_checkpoint_is_applied_to_newer_table(mirrored: TableBatches) -> None:
    mirrored.batch(200, created(110, 2, 2), versions=VERSIONS, load=DONE)
    copy = mirrored.checkpoint()
    mirrored.batch(300, created(210, 3, 3), versions=VERSIONS, load=DONE)
    mirrored.batch(400, created(310, 4, 4), versions=VERSIONS, load=DONE)
    mirrored.put_back(copy)
    rows = row(400, 2, 77), row(400, 3, 3), row(400, 4, 4)
    mirrored.batch(400, *rows, versions=VERSIONS, load=chunk(None, None, "again"))
    assert mirrored.rows() == [(2, 77), (3, 3), (4, 4)]


def test_different_reload_in_a_replayed_batch_is_applied(mirrored: TableBatches) -> None:
    mirrored.batch(200, created(110, 2, 2), versions=VERSIONS, load=DONE)
    copy = mirrored.checkpoint()
    mirrored.batch(200, row(200, 2, 3), versions=VERSIONS, load=chunk(None, None, "one"))
    mirrored.put_back(copy)
    mirrored.batch(200, row(200, 2, 77), versions=VERSIONS, load=chunk(None, None, "other"))
    assert mirrored.rows() == [(2, 77)]


def test_reload_under_older_checkpoint_resumes_stopped_table(mirrored: TableBatches) -> None:
    mirrored.batch(200, created(110, 2, 2), versions=VERSIONS, load=DONE)
    copy = mirrored.checkpoint()
    mirrored.batch(300, created(210, 3, 3), versions=VERSIONS, load=DONE)
    mirrored.table.stop(MirrorError("for a test"), mirrored.last)
    mirrored.put_back(copy)
    rows = row(300, 2, 2), row(300, 3, 3)
    mirrored.batch(300, *rows, versions=VERSIONS, load=chunk(None, None, "again"))
    assert mirrored.table.stopped is None
    assert mirrored.rows() == [(2, 2), (3, 3)]


@pytest.mark.parametrize("end", [400, 600], ids=["quiet server", "the log grew"])
def test_completed_snapshot_replayed_in_smaller_chunks_gives_correct_rows(
    mirrored: TableBatches, end: int
) -> None:
    mirrored.batch(200, row(200, 1, 1), versions=VERSIONS, load=chunk(None, 1))
    copy = mirrored.checkpoint()
    mirrored.batch(300, row(300, 2, 2), row(300, 3, 3), versions=VERSIONS, load=chunk(1, None))
    gone = change("d", 310, {"id": 2, "v": 2})
    mirrored.batch(400, gone, created(320, 9, 9), versions=VERSIONS, load=DONE)
    mirrored.put_back(copy)
    more = [created(500, 10, 10)] if end > 400 else []
    log = gone, created(320, 9, 9), *more
    # The snapshot is replayed in more and smaller chunks.
    mirrored.batch(end, *log, row(end, 3, 3), versions=VERSIONS, load=chunk(1, 3))
    for number in (4, 5):
        mirrored.again()
        mirrored.batch(end, versions=VERSIONS, load=chunk(number - 1, number))
    mirrored.batch(end, row(end, 9, 9), versions=VERSIONS, load=chunk(5, None))
    mirrored.batch(end + 9, created(end + 5, 11, 11), versions=VERSIONS, load=DONE)
    added = [(10, 10)] if more else []
    assert mirrored.rows() == [(1, 1), (3, 3), (9, 9), *added, (11, 11)]
    # A later batch continues a snapshot that the table does not have.
    with pytest.raises(MirrorError, match="does not have the snapshot"):
        mirrored.batch(end + 20, versions=VERSIONS, load=chunk(5, 6))


@pytest.mark.parametrize("end", [200, 250], ids=["quiet server", "the log grew"])
def test_different_chunks_under_a_known_batch_number_are_applied(
    mirrored: TableBatches, end: int
) -> None:
    mirrored.batch(200, row(200, 1, 1), versions=VERSIONS, load=chunk(None, 1))
    copy = mirrored.checkpoint()
    mirrored.batch(200, row(200, 2, 2), versions=VERSIONS, load=chunk(1, 2))
    mirrored.batch(end, row(end, 3, 3), versions=VERSIONS, load=chunk(2, 3))
    mirrored.put_back(copy)
    rows = [row(end, number, number) for number in (2, 3, 4)]
    mirrored.batch(end, *rows, versions=VERSIONS, load=chunk(1, 4))
    mirrored.batch(end, row(end, 5, 5), versions=VERSIONS, load=chunk(4, None))
    assert mirrored.rows() == [(number, number) for number in range(1, 6)]


def test_snapshot_chunk_older_than_columns_of_delta_table_stops_the_table(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(200, row(200, 1, 1), versions=VERSIONS, load=chunk(None, 1))
    copy = mirrored.checkpoint()
    mirrored.batch(300, versions=[(4, TABLE), (250, LATER)], load=chunk(1, 2))
    image = {"id": 1, "v": 1, "w": 9}
    mirrored.batch(400, change("u", 350, image), versions=[(4, LATER)], load=chunk(2, 3))
    mirrored.put_back(copy)
    with pytest.raises(MirrorError, match="later columns"):
        mirrored.batch(240, row(400, 2, 2), versions=VERSIONS, load=chunk(1, 2))
    assert (1, 1, 9) in mirrored.rows()


def test_snapshot_replaced_by_a_later_one_in_delta_table_stops_the_table(
    mirrored: TableBatches,
) -> None:
    mirrored.batch(200, row(200, 1, 1), versions=VERSIONS, load=chunk(None, 1))
    copy = mirrored.checkpoint()
    mirrored.batch(300, row(300, 2, 2), versions=VERSIONS, load=chunk(1, None))
    mirrored.batch(400, row(400, 1, 1), versions=VERSIONS, load=chunk(None, 1, "again"))
    mirrored.put_back(copy)
    with pytest.raises(MirrorError, match="a later snapshot"):
        mirrored.batch(500, row(500, 2, 2), versions=VERSIONS, load=chunk(1, None))
    assert mirrored.rows() == [(1, 1), (2, 2)]


def test_replayed_keyless_snapshot_is_applied_once(mirrored: TableBatches) -> None:
    begin = change("t", 300, row=-2)
    loaded = change("r", 300, {"id": 1, "v": 1}, row=-1)
    whole = SnapshotState(chunks=(Chunk(NAME),))
    mirrored.batch(200, versions=[(4, KEYLESS)], load=UNREAD)
    copy = mirrored.checkpoint()
    mirrored.batch(290, begin, loaded, versions=[(4, KEYLESS)], load=whole)
    mirrored.put_back(copy)
    mirrored.batch(290, begin, loaded, versions=[(4, KEYLESS)], load=whole)
    mirrored.batch(400, created(310, 1, 1), versions=[(4, KEYLESS)], load=DONE)
    assert mirrored.rows() == [(1, 1), (1, 1)]
    assert not mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]
