"""The state of one Delta table in a checkpoint: its applied position, and whether it is stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from pyspark_mysqlbinlog.connector.delta.rows.packed_position import unpack_position
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch

__all__ = ["AppliedState"]


@dataclass(frozen=True, slots=True)
class AppliedState:
    """State of a Delta table after a batch.

    Attributes
    ----------
    version : of the Delta table.
    log, place : the binlog's identity, and the packed position up to which the table is complete,
        at most the batch's end: changes after that were written by another query. None if nothing
        of this binlog was applied.
    batch : number of the query's last batch in the table; None if there is none.
    stopped : why the table is stopped; None if it is not.
    stopped_in : number of the batch in which it was stopped.
    lacks_chunks : for a change log: whether snapshot rows are missing since the stop.
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
        """Return the state of a Delta table after this batch.

        stopped : why it is stopped in the batch; None if it is not.
        """
        log = str(batch.marker.log)
        place, number = target.txn_version(log), target.txn_version(batch.query)
        return cls(
            target.version(),
            log,
            None if place is None else min(place, batch.marker.position),
            None if number is None else min(number, batch.number),
            stopped,
            None if stopped is None else batch.number,
        )

    @classmethod
    def of_unopened(cls, known: Self | None, batch: Batch, stopped: str) -> Self:
        """Return the state of a Delta table that is stopped in this batch and cannot be opened.

        known : its state before; None if not known.
        """
        known = known or cls(0, str(batch.marker.log), None, None)
        return replace(known, stopped=stopped, stopped_in=batch.number)

    def missing_in(self, target: DeltaTarget, query: str) -> str | None:
        """Return why a Delta table is not the recorded one or a later version; None if it may be.

        query : the query's identifier.
        """
        place, batch = target.txn_version(self.log), target.txn_version(query)
        if place is None and batch is None:
            if self.place is None and self.batch is None:
                return None
            return "the Delta table no longer exists, or was replaced by another one"
        # Delta for Spark may have dropped all but the position: see `metadata_markers`.
        is_batch_known = target.txn_version(f"{self.log}:event") is not None
        is_older = (
            target.version() < self.version
            or _is_less(place, self.place)
            or (is_batch_known and _is_less(batch, self.batch))
        )
        if is_older:
            return (
                "the Delta table lacks what this query wrote to it: it has"
                f" {_described(target.version(), place, batch)}, expected at least"
                f" {_described(self.version, self.place, self.batch)}; it was replaced by an older"
                " copy or by another table"
            )
        return target.damage_since(self.version)

    def is_stopped(self, target: DeltaTarget, query: str) -> bool:
        """Return whether the table was stopped, and had no snapshot since."""
        if self.stopped is None or self.stopped_in is None:
            return False
        return (target.txn_version(query) or 0) <= self.stopped_in


def _is_less(found: int | None, expected: int | None) -> bool:
    return expected is not None and (found is None or found < expected)


def _described(version: int, place: int | None, batch: int | None) -> str:
    position = "no position"
    if place is not None:
        number, pos = unpack_position(place)
        position = f"position {pos} of binlog file number {number}"
    return f"version {version}, {position} and batch {batch}"
