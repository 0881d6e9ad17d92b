"""The end of a run with Trigger.AvailableNow: the end of the binlog when the run began."""

from __future__ import annotations

from collections.abc import Mapping
from time import time

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog

__all__ = ["RunEnd"]


class RunEnd:
    """Where a run ends, if it does: other triggers have no such end.

    Attributes
    ----------
    is_due : the run has an end that is not known yet, because the server did not answer at first,
        or because it has to be determined again.
    """

    def __init__(self) -> None:
        self.is_due = False
        # The position, and the server's files with their sizes at that time, oldest first.
        self._end: tuple[Position, Mapping[str, int]] | None = None
        # By the clock of `time`.
        self._noted_at = 0.0

    def note(self, position: Position, sizes: Mapping[str, int]) -> None:
        """Record the end, and the sizes of the server's files, oldest first."""
        self._end = position, sizes
        self.is_due, self._noted_at = False, time()

    def forget(self) -> None:
        """Determine the end again if there is one: it was another server's, or may be lost."""
        if self._end is not None:
            self._end, self.is_due = None, True

    def seen_from(self, position: Position, *, is_resolved_here: bool) -> Position | None:
        """Return the end, as the file of a position orders it; None if the run has no end.

        is_resolved_here : the query's start was resolved in this run.
        """
        if self._end is None:
            return None
        end, sizes = self._end
        if is_resolved_here and position.file not in sizes:
            # The start was resolved after the run's end was recorded.
            return end if end.file == position.file else BEGINNING
        return FileOrder(lambda: sizes, position.file, sizes).position(end.file, end.pos)

    def observed(self, end: Position) -> EndOfLog:
        """Return the end, as seen from some position, as an observation of the binlog's end."""
        return EndOfLog(end, self._noted_at)
