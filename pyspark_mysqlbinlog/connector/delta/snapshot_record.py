"""What a Delta table records of its snapshot, as JSON in a property of the table.

The record is written by the commit that begins the snapshot and stays until the snapshot is
complete. A process that continues after a kill learns from it what the rows in the table are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.delta.batch import Batch
from pyspark_mysqlbinlog.connector.delta.marks import pack_position, place

__all__ = ["LOADING", "SnapshotRecord"]

# The table property.
LOADING = "mysqlbinlog.snapshotInProgress"


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """One snapshot of one table.

    Attributes
    ----------
    query : the identifier of the query that reads it.
    batch : the number of the batch in which it began, and the place where that batch begins.
    begin : a `seq`. Rows with a smaller one are from before the snapshot.
    had_rows : the Delta table had rows when it began, or when its key went.
    is_limited : some chunk of it was read with a condition (`snapshotWhere`), or may have been.
    waits : the table has no key now, and no change counts until all of its rows are read at once.
    void : why rows of it could not be read; None if all could. A statement that explains them
        starts the snapshot again.
    """

    query: str
    batch: tuple[int, int]
    begin: Mapping[str, int]
    had_rows: bool = False
    is_limited: bool = False
    waits: bool = False
    void: str | None = None

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The record that the property holds; None if no snapshot is in progress."""
        if not text:
            return None
        value = json.loads(text)
        number, start = value.pop("batch")
        return cls(batch=(number, start), **value)

    @classmethod
    def of_batch(cls, batch: Batch, *, had_rows: bool, is_limited: bool) -> Self:
        """The record of a snapshot that begins with a batch."""
        start = batch.number, pack_position(batch.start)
        return cls(batch.query, start, batch.begin, had_rows=had_rows, is_limited=is_limited)

    def text(self) -> str:
        """The property's value."""
        return json.dumps(asdict(self))

    def is_begun_by(self, batch: Batch) -> bool:
        """Whether this batch, or an earlier attempt at it, began the snapshot."""
        return self.query == batch.query and self.batch == (
            batch.number,
            pack_position(batch.start),
        )

    def is_unread_before(self, batch: Batch) -> bool:
        """Whether it began in this batch: its rows are read at the batch's end or later."""
        is_this_log = self.begin["epoch"] == batch.mark.log.epoch
        begin = place(self.begin["file"], self.begin["pos"])
        return is_this_log and begin >= pack_position(batch.start)
