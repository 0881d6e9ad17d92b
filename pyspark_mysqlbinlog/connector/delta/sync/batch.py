"""One batch of a mirror's query, as its tables see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import unpack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity, Mark
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import RowsWhere
from pyspark_mysqlbinlog.names import Table

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of the query, or a step of one: a part of it that is brought in by itself.

    Attributes
    ----------
    query, number : the query's identifier in Delta, and Spark's number of the batch.
    start : where it begins, and the batch or the step before it ends. All steps with loaded rows
        begin where their batch does.
    mark : of its end. Its batch is the one before, where more of this batch is to come.
    log_before : the log in which it begins, where it leads into another one, and brings nothing.
    load : how far a first load has come at its end; None where there is none.
    load_before : the same where it begins.
    reloads : tables whose rows nobody knows are loaded again, by themselves.
    images : the typed images that changes refer to.
    prepared : what the changes of tables leave, as far as that was made ahead.
    is_first_step : no step of its batch comes before it.
    has_more : it is a step, and others of its batch come after it.
    limited : tells whether chunks of a table are read with a condition (`snapshotWhere`).
    rows_where : reads rows that a condition left out; None if nothing can.
    """

    query: str
    number: int
    start: Position
    mark: Mark
    load: SnapshotState | None = None
    reloads: bool = False
    images: ImageStore = field(default_factory=ImageStore)
    load_before: SnapshotState | None = None
    prepared: Mapping[Table, PrecomputedStates] = field(default_factory=dict)
    is_first_step: bool = True
    has_more: bool = False
    log_before: LogIdentity | None = None
    limited: Callable[[Table], bool] = lambda _: False
    rows_where: RowsWhere | None = None

    @property
    def is_first(self) -> bool:
        """Whether it is the first of its checkpoint: it has no changes."""
        return self.number == 0

    def loads(self, table: Table) -> bool:
        """Whether rows of a table are still to be loaded, or are in this batch, if it has any."""
        return self.load is not None and (
            any(each.table == table for each in self.load.pending)
            or any(chunk.table == table for chunk in self.load.chunks)
            or table in self.load.empty
        )

    def completes_snapshot(self, table: Table) -> bool:
        """Whether all rows of a table are loaded with this batch, or this step of it."""
        if self.load is None or (self.has_more and self.load.chunks):
            return False
        return all(each.table != table for each in self.load.pending)

    def has_keyed_chunk(self, table: Table) -> bool:
        """Whether rows of a table are in this batch that were read by a key."""
        chunks = () if self.load is None else self.load.chunks
        return any(chunk.table == table and chunk.key for chunk in chunks)

    def has_chunk(self, table: Table) -> bool:
        """Whether rows of a table may be in this batch that were read from it."""
        chunks = () if self.load is None else self.load.chunks
        return any(chunk.table == table for chunk in chunks)

    def without_snapshot(self, table: Table) -> Batch:
        """The batch as if no rows of a table were loaded."""
        load = self.load
        if load is None:
            return self
        pending = tuple(each for each in load.pending if each.table != table)
        chunks = tuple(chunk for chunk in load.chunks if chunk.table != table)
        return replace(
            self, load=replace(load, pending=pending, chunks=chunks, empty=load.empty - {table})
        )

    def may_read_ahead(self, table: Table) -> bool:
        """Whether rows of a table were read that may show what the log has not come to yet."""
        if self.load is None:
            return False
        until = self.load.high_watermarks.get(table, (0, 0))
        is_ahead = until > unpack_position(self.mark.version)
        return is_ahead or any(each.table == table for each in self.load.chunks)

    def starts_snapshot(self, table: Table) -> bool:
        """Whether a load of a table begins in this batch, with its first chunk or without.

        So it does whatever became of a load before it. In a checkpoint's first batch all loads do.
        """
        if self.load is None:
            return False
        if self.is_first:
            return self.loads(table)
        has_first = table in self.load.empty or any(
            chunk.table == table and chunk.after is None for chunk in self.load.chunks
        )
        is_new = has_first or _is_to_begin(self.load, table)
        return is_new and not _is_to_begin(self.load_before, table)

    def has_read_none(self, table: Table) -> bool:
        """Whether a load of a table began before this batch, and nothing of the table was read.

        Then the load may as well begin with this batch: all rows of the table are still to come.
        """
        return _is_to_begin(self.load_before, table)

    @property
    def reload(self) -> str:
        """The name of the last `reload` that was begun."""
        return "" if self.load is None else self.load.reload

    @property
    def begins_reload(self) -> bool:
        """Whether tables are loaded again from here on by the option `reload`."""
        before = "" if self.load_before is None else self.load_before.reload
        return self.load is not None and self.load.reload != before

    @property
    def begin(self) -> dict[str, int]:
        """The place at which it begins, as a `seq` in front of all that happens there."""
        return {
            "epoch": self.mark.log.epoch,
            "file": self.start.number,
            "pos": self.start.pos,
            "row": ROW_BEFORE_ALL,
        }


def _is_to_begin(load: SnapshotState | None, table: Table) -> bool:
    """Whether a table is to be loaded, and nothing of it is read."""
    pending = () if load is None else load.pending
    return any(each.table == table and each.after is None for each in pending)
