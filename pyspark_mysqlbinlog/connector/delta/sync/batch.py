"""One batch of a mirror's query, as needed to apply it to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import unpack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import RowsWhere
from pyspark_mysqlbinlog.names import Table

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of the query, or one sub-batch: a part that is applied on its own.

    Attributes
    ----------
    query, number : the query's identifier in Delta, and Spark's number of the batch.
    start : the end of the previous batch or sub-batch. Sub-batches with snapshot rows start where
        their batch does.
    end : where it ends.
    marker : commit marker of the end. Before the last sub-batch it has the previous batch's number.
    log_before : the binlog in which it starts, if it leads into another one. Such a batch has no
        changes.
    read_again : tables that are read again after a failover to another server, because their
        snapshot rows may include changes that the other server lacks.
    is_gap : a part of the binlog is lost right before it. Such a batch has no changes, and all
        tables that exist are snapshotted from there on.
    snapshot : state of the snapshot at the end; None without a snapshot.
    snapshot_before : state of the snapshot at the start.
    reloads : whether tables whose rows became unknown are reloaded automatically.
    images : the typed images that changes refer to.
    precomputed : the tables' final states, as far as they were precomputed.
    is_first_sub_batch : no sub-batch of its batch precedes it.
    has_next_sub_batch : it is a sub-batch, and others of its batch follow.
    is_replay : it is read from another server than the one that its positions belong to.
    limited : returns whether chunks of a table are read with a condition (`snapshotWhere`).
    rows_where : reads rows that a condition excluded; None if that is not possible.
    """

    query: str
    number: int
    start: Position
    end: Position
    marker: CommitMarker
    snapshot: SnapshotState | None = None
    reloads: bool = False
    images: ImageStore = field(default_factory=ImageStore)
    snapshot_before: SnapshotState | None = None
    precomputed: Mapping[Table, PrecomputedStates] = field(default_factory=dict)
    is_first_sub_batch: bool = True
    has_next_sub_batch: bool = False
    log_before: LogIdentity | None = None
    is_replay: bool = False
    is_gap: bool = False
    read_again: frozenset[Table] = frozenset()
    limited: Callable[[Table], bool] = lambda _: False
    rows_where: RowsWhere | None = None

    @property
    def is_first(self) -> bool:
        """Whether it is the first of its checkpoint, which has no changes."""
        return self.number == 0

    def snapshots(self, table: Table) -> bool:
        """Return whether snapshot rows of a table (if it has any) are pending or in this batch."""
        return self.snapshot is not None and (
            any(each.table == table for each in self.snapshot.pending)
            or any(chunk.table == table for chunk in self.snapshot.chunks)
            or table in self.snapshot.empty
        )

    def completes_snapshot(self, table: Table) -> bool:
        """Return whether a table's snapshot is complete with this batch or sub-batch."""
        if self.snapshot is None or (self.has_next_sub_batch and self.snapshot.chunks):
            return False
        return all(each.table != table for each in self.snapshot.pending)

    def has_keyed_chunk(self, table: Table) -> bool:
        """Return whether the batch has rows of a table that were read by a key."""
        chunks = () if self.snapshot is None else self.snapshot.chunks
        return any(chunk.table == table and chunk.key for chunk in chunks)

    def has_chunk(self, table: Table) -> bool:
        """Return whether the batch may have snapshot rows of a table."""
        chunks = () if self.snapshot is None else self.snapshot.chunks
        return any(chunk.table == table for chunk in chunks)

    def without_snapshot(self, table: Table) -> Batch:
        """Return the batch without the snapshot of one table."""
        load = self.snapshot
        if load is None:
            return self
        pending = tuple(each for each in load.pending if each.table != table)
        chunks = tuple(chunk for chunk in load.chunks if chunk.table != table)
        return replace(
            self, snapshot=replace(load, pending=pending, chunks=chunks, empty=load.empty - {table})
        )

    def of_table(self, table: Table) -> Batch:
        """Return the batch as it concerns a table: after a gap, if the table is read again."""
        return replace(self, start=self.end, is_gap=True) if table in self.read_again else self

    def may_read_ahead(self, table: Table) -> bool:
        """Return whether snapshot rows of a table may be newer than the stream's position."""
        if self.snapshot is None:
            return False
        until = self.snapshot.high_watermarks.get(table, (0, 0))
        is_ahead = until > unpack_position(self.marker.position)
        return is_ahead or any(each.table == table for each in self.snapshot.chunks)

    def starts_snapshot(self, table: Table) -> bool:
        """Return whether a snapshot of a table begins in this batch, even without a chunk.

        An earlier snapshot of the table is ignored. In a checkpoint's first batch, all begin.
        """
        if self.snapshot is None:
            return False
        if self.is_first or self.is_gap:
            return self.snapshots(table)
        has_first = table in self.snapshot.empty or any(
            chunk.table == table and chunk.after is None for chunk in self.snapshot.chunks
        )
        is_new = has_first or _is_to_begin(self.snapshot, table)
        return is_new and not _is_to_begin(self.snapshot_before, table)

    def has_read_none(self, table: Table) -> bool:
        """Return whether a table's snapshot began before this batch, but nothing was read yet.

        Then the snapshot may as well begin with this batch: all rows of the table are pending.
        """
        return _is_to_begin(self.snapshot_before, table)

    @property
    def reload(self) -> str:
        """ID of the last `reload` that was begun."""
        return "" if self.snapshot is None else self.snapshot.reload

    @property
    def begins_reload(self) -> bool:
        """Whether the option `reload` begins to reload tables in this batch."""
        before = "" if self.snapshot_before is None else self.snapshot_before.reload
        return self.snapshot is not None and self.snapshot.reload != before

    @property
    def begin(self) -> dict[str, int]:
        """The start position, as a `seq` before everything that happens there."""
        return {
            "epoch": self.marker.log.epoch,
            "file": self.start.number,
            "pos": self.start.pos,
            "row": ROW_BEFORE_ALL,
        }


def _is_to_begin(load: SnapshotState | None, table: Table) -> bool:
    """Return whether a table's snapshot is pending and nothing of it was read."""
    return load is not None and load.is_to_begin(table)
