"""What a checkpoint notes about one Delta table: how far it has come, and whether it is stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from pyspark_mysqlbinlog.connector.delta.rows.packed_position import unpack_position
from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import repeated_compaction_reason
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch

__all__ = ["AppliedState"]


@dataclass(frozen=True, slots=True)
class AppliedState:
    """What a Delta table had after a batch.

    Attributes
    ----------
    version : of the Delta table.
    log, place : the log, and the place up to which the table has everything of it, but no later
        than the batch's end: where the table has more, another query wrote it. None where the table
        has nothing of the log.
    batch : the number of the query's last batch that the table has; None where it has none.
    stopped : why the table is stopped; None where it is not.
    stopped_in : the number of the batch in which it was stopped.
    lacks_chunks : whether rows of a snapshot are missing since then. Of a change log.
    """

    version: int
    log: str
    place: int | None
    batch: int | None
    stopped: str | None = None
    stopped_in: int | None = None
    lacks_chunks: bool = False

    @classmethod
    def of(cls, target: DeltaTarget, batch: Batch, stopped: str | None = None) -> Self:
        """What a Delta table has after this batch.

        stopped : why it is stopped in the batch; None where it is not.
        """
        log = str(batch.mark.log)
        place, number = target.applied(log), target.applied(batch.query)
        return cls(
            target.version(),
            log,
            None if place is None else min(place, batch.mark.version),
            None if number is None else min(number, batch.number),
            stopped,
            None if stopped is None else batch.number,
        )

    @classmethod
    def of_unopened(cls, known: Self | None, batch: Batch, stopped: str) -> Self:
        """What a Delta table had that is stopped in this batch, and can't be opened to have it.

        known : what it had before; None where that is not known.
        """
        known = known or cls(0, str(batch.mark.log), None, None)
        return replace(known, stopped=stopped, stopped_in=batch.number)

    def missing_in(self, target: DeltaTarget, query: str) -> str | None:
        """Why a Delta table is not what it was, nor what became of it; None where it may be.

        query : the identifier of the query.
        """
        place, batch = target.applied(self.log), target.applied(query)
        if place is None and batch is None:
            if self.place is None and self.batch is None:
                return None
            return "the Delta table is not there any more, or another one is in its place"
        # Delta for Spark may have forgotten all but the place: see `metadata_markers`.
        is_batch_known = target.applied(f"{self.log}:event") is not None
        is_older = (
            target.version() < self.version
            or _is_less(place, self.place)
            or (is_batch_known and _is_less(batch, self.batch))
        )
        if is_older:
            return (
                "the Delta table lacks what this query wrote to it: it has"
                f" {_told(target.version(), place, batch)}, expected at least"
                f" {_told(self.version, self.place, self.batch)}; an older copy, or another table,"
                " is in its place"
            )
        if target.was_restored(self.version):
            return "somebody put back an older version of its rows"
        if (repeated := target.repeated_compaction(self.version)) is not None:
            return repeated_compaction_reason(repeated)
        return None

    def is_stopped(self, target: DeltaTarget, query: str) -> bool:
        """Whether the table was stopped, and has not been loaded since."""
        if self.stopped is None or self.stopped_in is None:
            return False
        return (target.applied(query) or 0) <= self.stopped_in


def _is_less(found: int | None, expected: int | None) -> bool:
    return expected is not None and (found is None or found < expected)


def _told(version: int, place: int | None, batch: int | None) -> str:
    position = "no position"
    if place is not None:
        number, pos = unpack_position(place)
        position = f"position {pos} of binlog file number {number}"
    return f"version {version}, {position} and batch {batch}"
