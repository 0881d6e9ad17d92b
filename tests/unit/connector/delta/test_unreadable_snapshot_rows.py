"""Snapshot rows that do not fit the table's columns, with or without an ALTER that follows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import (
    Bound,
    Chunk,
    SnapshotState,
    TableSnapshotState,
)
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.delta.sync.constants import SNAPSHOT_IN_PROGRESS, STOPPED
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

KEY = ColumnSchema("id", "int", nullable=False)
BEFORE = TableSchema(*NAME, (KEY, ColumnSchema("v", "int")), ("id",))
BEHIND = TableSchema(*NAME, (KEY, ColumnSchema("v", "varchar", 9, charset="utf8mb4")), ("id",))
DROPPED = UnknownSchema("it was dropped", is_dropped=True)
UNKNOWN = UnknownSchema("nobody knows")
ALTER = change("ddl", 340, query="ALTER TABLE t MODIFY v VARCHAR(9)")


def state(
    left: str | None = None,
    chunk: tuple[str, ...] | None = None,
    high_watermarks: int | None = None,
    lost: int | None = None,
) -> SnapshotState:
    """Return the state of a snapshot.

    left : the key after which rows are still to be read; "" for all rows, None for no rows.
    chunk : the key after which the batch's chunk begins; () is the beginning of the table.
    """
    after: Bound | None = (left,) if left else None
    return SnapshotState(
        pending=() if left is None else (TableSnapshotState(NAME, "key", after),),
        chunks=() if chunk is None else (Chunk(NAME, "key", chunk or None, None),),
        high_watermarks={} if high_watermarks is None else {NAME: (1, high_watermarks)},
        invalidated_at={} if lost is None else {NAME: (1, lost)},
    )


class Mirrored(TableBatches):
    def batch(
        self,
        end: int,
        *changes: Change,
        load: SnapshotState | None = None,
        versions: Sequence[tuple[int, TableSchema | UnknownSchema]] = ((4, BEFORE),),
        reloads: bool = True,
        has_more: bool = False,
    ) -> None:
        load = load or state()
        super().batch(
            end, *changes, versions=versions, load=load, reloads=reloads, has_more=has_more
        )

    @property
    def in_snapshot(self) -> bool:
        return bool(self.target.properties().get(SNAPSHOT_IN_PROGRESS))


def loaded(pos: int, number: int, v: Any) -> Change:
    return change("r", pos, {"id": number, "v": v}, row=-1)


def _void(folder: Path) -> Mirrored:
    """Return a table in snapshot: a row of the second chunk, not the last, does not fit."""
    mirrored = Mirrored(folder)
    mirrored.batch(120, load=state(""))
    mirrored.batch(200, loaded(200, 1, 1), load=state("1", ()))
    mirrored.batch(300, loaded(350, 2, "two"), load=state("2", ("1",)))
    return mirrored


@pytest.fixture(params=["as it is", "in a new process", "as it was kept before"])
def mirrored(request: pytest.FixtureRequest, tmp_path: Path) -> Mirrored:
    mirrored = _void(tmp_path)
    if request.param == "as it was kept before":
        kept = json.loads(mirrored.target.properties()[SNAPSHOT_IN_PROGRESS]) | {"void": True}
        mirrored.target.set_properties({SNAPSHOT_IN_PROGRESS: json.dumps(kept)})
    if request.param != "as it is":
        mirrored.again()
    return mirrored


def test_table_with_unreadable_row_is_snapshotted_again_after_its_alter(mirrored: Mirrored) -> None:
    # The last chunk, whose high watermark is not known yet.
    mirrored.batch(310, loaded(350, 3, 3), load=state(None, ("2",)))
    mirrored.batch(330, load=state(high_watermarks=350))
    assert mirrored.in_snapshot
    versions = ((4, BEFORE), (340, BEHIND))
    mirrored.batch(400, ALTER, versions=versions, load=state("", lost=340))
    rows = [loaded(500, number, text) for number, text in ((1, "1"), (2, "two"))]
    mirrored.batch(500, *rows, versions=((4, BEHIND),), load=state(None, (), lost=340))
    assert mirrored.rows() == [(1, "1"), (2, "two")]
    assert not mirrored.in_snapshot


def test_unreadable_row_without_later_alter_stops_the_table(mirrored: Mirrored) -> None:
    mirrored.batch(310, loaded(310, 3, 3), load=state(None, ("2",)))
    mirrored.batch(349, load=state(high_watermarks=350))
    assert [number for number, _ in mirrored.rows()] == [1, 3]
    message = r"does not fit the table's columns .* no statement changed them"
    with pytest.raises(MirrorError, match=message):
        mirrored.batch(350, load=state(high_watermarks=350))


def test_replay_after_unreadable_row_stops_the_table_again(mirrored: Mirrored) -> None:
    mirrored.batch(310, load=state(None, ("2",)))
    for _ in range(2):
        with pytest.raises(MirrorError, match="no statement changed them"):
            mirrored.batch(360, change("c", 355, {"id": 9, "v": 9}))
        mirrored.again()
        mirrored.number -= 1


def test_unreadable_row_without_reload_after_ddl_stops_the_table(mirrored: Mirrored) -> None:
    mirrored.batch(310, load=state(None, ("2",)))
    with pytest.raises(MirrorError, match="it was altered during its snapshot"):
        mirrored.batch(320, reloads=False)


def test_stopped_table_with_removed_folder_ignores_rest_of_snapshot(mirrored: Mirrored) -> None:
    shutil.rmtree(mirrored.folder)
    mirrored.table.stop(MirrorError("it is gone", table="d.t"), mirrored.last)
    mirrored.again()
    assert mirrored.table.stopped == "it is gone"
    # The rest of the snapshot does not recreate the table.
    mirrored.batch(310, loaded(310, 3, 3), load=state(None, ("2",)))
    assert mirrored.table.stopped
    assert mirrored.target.is_empty()


@pytest.mark.parametrize("has_been_away", [False, True])
def test_new_snapshot_of_stopped_table_replaces_all_rows(
    mirrored: Mirrored, has_been_away: bool
) -> None:
    """A new snapshot follows a RENAME, or a time when the table was not captured."""
    mirrored.table.stop(MirrorError("for another reason", table="d.t"), mirrored.last)
    if has_been_away:
        mirrored.start, mirrored.load = 380, state()
    mirrored.batch(400, load=state(""))
    assert not mirrored.target.properties().get(STOPPED)
    mirrored.batch(500, loaded(500, 2, 2), load=state(None, ()))
    # Row 1 was deleted while the table was stopped.
    assert mirrored.rows() == [(2, 2)]
    assert not mirrored.in_snapshot


@pytest.mark.parametrize("comes_back", [None, "in the same batch", "in the next batch"])
def test_drop_of_table_with_unreadable_row_ends_its_snapshot(
    mirrored: Mirrored, comes_back: str | None
) -> None:
    row = change("c", 380, {"id": 3, "v": 3})
    if comes_back == "in the same batch":
        mirrored.batch(400, row, versions=((4, BEFORE), (360, DROPPED), (370, BEFORE)))
    else:
        mirrored.batch(365, versions=((4, BEFORE), (360, DROPPED)))
        assert not mirrored.in_snapshot
        if comes_back:
            mirrored.batch(400, row, versions=((4, DROPPED), (370, BEFORE)))
    assert not mirrored.in_snapshot
    if comes_back:
        assert mirrored.rows() == [(3, 3)]


def test_unknown_columns_after_unreadable_row_keep_snapshot_in_progress(mirrored: Mirrored) -> None:
    mirrored.batch(310, load=state(None, ("2",)))
    mirrored.batch(400, versions=((4, BEFORE), (360, UNKNOWN)))
    assert mirrored.in_snapshot
