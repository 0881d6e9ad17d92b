"""Sub-batch boundaries: positions in a range at which its rows can be taken in parts."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["Boundary", "SubBatchBoundaries", "max_snapshot_sub_batches", "max_sub_batches"]

_MAX_SUB_BATCHES = 8
# Sub-batches of a snapshot are larger, and binlog changes wait for their end.
_MAX_SNAPSHOT_SUB_BATCHES = 4

# Events between two files; after a crash only the last one. Everywhere else the boundary before
# them is the beginning of the next file.
_BETWEEN_FILES = frozenset(
    {EventType.ROTATE_EVENT, EventType.STOP_EVENT, EventType.FORMAT_DESCRIPTION_EVENT}
)


def max_sub_batches() -> int:
    """Return about how many sub-batches a mirror's batch may have, each of one batch's limits.

    Only the kernel reads in sub-batches.
    """
    return 1 if implementation() == "python" else _MAX_SUB_BATCHES


def max_snapshot_sub_batches() -> int:
    """Return the same limit for a batch with snapshot rows."""
    return 1 if implementation() == "python" else _MAX_SNAPSHOT_SUB_BATCHES


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position between two transactions, with the fingerprint that identifies it in a log."""

    position: Position
    fingerprint: PositionFingerprint


class SubBatchBoundaries:
    """The boundaries of a range, found as its log is read.

    The reader runs ahead of the consumer of the rows. A boundary is reported before any row after
    it is returned.

    Parameters
    ----------
    size : minimum captured bytes of binlog between two boundaries; a single transaction may have
        more.
    check : called for each part that is read; may end the reading by an error.
    """

    def __init__(self, size: int, check: Callable[[], None] = lambda: None) -> None:
        self._size = size
        self._check = check
        self.begin(None)

    def begin(self, start: PositionFingerprint | None) -> None:
        """Start reading the range from its start, possibly again.

        start : its fingerprint; None if unknown. Then its file has no boundaries.
        """
        self._head = None if start is None else FileHead(start.created, start.server_id)
        self._captured_bytes = 0
        # The last boundary, until more of its file is read.
        self._last: Boundary | None = None
        # Filled by the reading thread, and emptied by the consumer's.
        self._found: deque[Boundary] = deque()

    def on_read(
        self, found: Run | Event, end: Position, captured_bytes: int, *, is_between: bool
    ) -> None:
        """Record a part of the range that was read.

        end : of this part.
        captured_bytes : its captured bytes.
        is_between : whether it ends between two transactions.
        """
        self._check()
        if isinstance(found, Event) and found.type in _BETWEEN_FILES:
            if self._last is not None:
                # The end of the next transaction is reported instead.
                self._last, self._captured_bytes = None, self._size
            if found.type == EventType.FORMAT_DESCRIPTION_EVENT:
                self._head = FileHead(found.timestamp, found.server_id)
            return
        if self._last is not None:
            self._found.append(self._last)
            self._last = None
        if isinstance(found, Run) and found.ends:
            self._on_transactions(found, end)
            return
        self._captured_bytes += captured_bytes
        if is_between and self._captured_bytes >= self._size:
            self._captured_bytes = 0
            known = after_event(self._head, found)
            self._last = None if known is None else Boundary(end, known)

    def _on_transactions(self, run: Run, end: Position) -> None:
        """Record whole transactions; a boundary may follow any of them."""
        kept, begin = run.kept_until, 0
        while (at := bisect_left(kept, begin + self._size - self._captured_bytes, 1)) < len(kept):
            begin, self._captured_bytes = kept[at], 0
            pos = run.ends[at - 1]
            known = after_event(self._head, run, pos)
            if known is None:
                continue
            boundary = Boundary(end._replace(pos=pos), known)
            if pos < run.end:
                self._found.append(boundary)
            else:
                self._last = boundary
        self._captured_bytes += kept[-1] - begin

    def next_boundary(self, place: tuple[int, int]) -> Boundary | None:
        """Return the next boundary up to a position, (file number, byte offset).

        Each is returned once in each reading of the range.
        """
        if self._found and self._found[0].position.order <= place:
            return self._found.popleft()
        return None
