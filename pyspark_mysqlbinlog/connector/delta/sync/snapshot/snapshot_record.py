"""The record of a Delta table's snapshot, as JSON in a property of the table.

The record is written by the commit that begins the snapshot and stays until the snapshot is
complete. A process that continues after a kill reads from it which rows are from before the
snapshot. When the snapshot is complete, the record moves to another property. There it shows which
batches may be replayed from an older checkpoint: their chunks have nothing that the table lacks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, pack_position
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.names import Table

__all__ = ["SnapshotRecord"]


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """One snapshot of one table.

    Attributes
    ----------
    query : identifier of the query that reads it.
    batch : number of the batch in which it began, and the packed position of that batch's start.
    begin : a `seq`. Rows with a smaller one are from before the snapshot.
    had_rows : the Delta table had rows when it began, or when its key was dropped.
    is_limited : some chunk of it was read with a condition (`snapshotWhere`), or may have been.
    waits : the table has no key now, and no change is applied until all rows are read at once.
    void : why some of its rows could not be read; None if all could. The statement that altered
        the table's columns restarts the snapshot.
    reload : ID of the query's last `reload` when it began.
    completed_in : number of the batch that completed it; None until then.
    is_passed : a query with an older checkpoint still reads it, although the table is complete.
    """

    query: str
    batch: tuple[int, int]
    begin: Mapping[str, int]
    had_rows: bool = False
    is_limited: bool = False
    waits: bool = False
    void: str | None = None
    reload: str = ""
    completed_in: int | None = None
    is_passed: bool = False

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Parse a property; None if it is empty."""
        if not text:
            return None
        value = json.loads(text)
        number, start = value.pop("batch")
        return cls(batch=(number, start), **value)

    @classmethod
    def of_batch(cls, batch: Batch, *, had_rows: bool, is_limited: bool) -> Self:
        """Return the record of a snapshot that begins with a batch."""
        return cls(
            batch.query,
            (batch.number, pack_position(batch.start)),
            batch.begin,
            had_rows=had_rows,
            is_limited=is_limited,
            reload=batch.reload,
        )

    def text(self) -> str:
        """Return the property's value."""
        return json.dumps(asdict(self))

    def is_begun_by(self, batch: Batch) -> bool:
        """Return whether this batch, or an earlier attempt at it, began the snapshot."""
        this = batch.query, (batch.number, pack_position(batch.start)), batch.reload
        return (self.query, self.batch, self.reload) == this

    def is_ahead_of(self, batch: Batch) -> bool:
        """Return whether a later batch of the query, which will be replayed, began it."""
        return self.query == batch.query and self.batch[0] > batch.number

    def has_completed(self, batch: Batch, table: Table) -> bool:
        """Return whether the batch's chunks of the table are a part of it, and it is complete."""
        if self.completed_in is None or not batch.snapshots(table):
            return False
        if batch.starts_snapshot(table):
            return self.is_begun_by(batch)
        if self.query != batch.query:
            return False
        return self.is_passed or (
            batch.number <= self.completed_in and not batch.has_read_none(table)
        )

    def passed_by(self, batch: Batch, table: Table) -> Self:
        """Return the record after a batch for which `has_completed` is true."""
        if not batch.completes_snapshot(table):
            return replace(self, is_passed=True)
        completed_in = max(batch.number, self.completed_in or 0)
        return replace(self, is_passed=False, completed_in=completed_in)

    def is_unread_before(self, batch: Batch) -> bool:
        """Return whether it began in this batch: its rows are read at the batch's end or later."""
        is_this_log = self.begin["epoch"] == batch.marker.log.epoch
        begin = pack(self.begin["file"], self.begin["pos"])
        return is_this_log and begin >= pack_position(batch.start)
