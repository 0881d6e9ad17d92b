"""Boundaries inside of a range, at which whoever takes its rows may take them in parts."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import Fingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.fingerprints import behind
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["Boundary", "SubBatchBoundaries", "max_snapshot_sub_batches", "max_sub_batches"]

_MOST_STEPS = 8
# Of a load they are larger, and what the log brings meanwhile waits for their end.
_MOST_LOAD_STEPS = 4

# Between two files; behind a crash there is the last alone. The boundary in front of them is the
# beginning of the next file everywhere else.
_BETWEEN_FILES = frozenset(
    {EventType.ROTATE_EVENT, EventType.STOP_EVENT, EventType.FORMAT_DESCRIPTION_EVENT}
)


def max_sub_batches() -> int:
    """How many steps a batch of a mirror may have, about: a step has what a batch may bring.

    Only the kernel reads in steps.
    """
    return 1 if implementation() == "python" else _MOST_STEPS


def max_snapshot_sub_batches() -> int:
    """The same of a batch that loads rows."""
    return 1 if implementation() == "python" else _MOST_LOAD_STEPS


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position between two transactions, and what tells that a log has it."""

    position: Position
    fingerprint: Fingerprint


class SubBatchBoundaries:
    """Boundaries of a range, found as its log is read.

    Whoever reads runs ahead of whoever takes the rows. A boundary is told before any row behind it
    comes.

    Parameters
    ----------
    size : wanted bytes of log from one boundary to the next, at least; more where one transaction
        has more.
    check : is asked at each part that is read, and ends the reading by an error.
    """

    def __init__(self, size: int, check: Callable[[], None] = lambda: None) -> None:
        self._size = size
        self._check = check
        self.begin(None)

    def begin(self, start: Fingerprint | None) -> None:
        """The range is read from its start on, maybe not for the first time.

        start : its fingerprint; None where it is not known. Then its file has no boundaries.
        """
        self._head = None if start is None else FileHead(start.created, start.server_id)
        self._wanted = 0
        # The last boundary, until it is known that its file goes on.
        self._last: Boundary | None = None
        # From one thread to another.
        self._found: deque[Boundary] = deque()

    def passed(self, found: Run | Event, end: Position, wanted: int, *, is_between: bool) -> None:
        """A part of the range was read.

        end : of this part.
        wanted : bytes of it that are wanted.
        is_between : whether it ends between two transactions.
        """
        self._check()
        if isinstance(found, Event) and found.type in _BETWEEN_FILES:
            if self._last is not None:
                # The next transaction's end is told instead.
                self._last, self._wanted = None, self._size
            if found.type == EventType.FORMAT_DESCRIPTION_EVENT:
                self._head = FileHead(found.timestamp, found.server_id)
            return
        if self._last is not None:
            self._found.append(self._last)
            self._last = None
        if isinstance(found, Run) and found.ends:
            self._passed_transactions(found, end)
            return
        self._wanted += wanted
        if is_between and self._wanted >= self._size:
            self._wanted = 0
            known = behind(self._head, found)
            self._last = None if known is None else Boundary(end, known)

    def _passed_transactions(self, run: Run, end: Position) -> None:
        """Whole transactions, of which any may be followed by a boundary."""
        kept, begin = run.kept_until, 0
        while (at := bisect_left(kept, begin + self._size - self._wanted, 1)) < len(kept):
            begin, self._wanted = kept[at], 0
            pos = run.ends[at - 1]
            known = behind(self._head, run, pos)
            if known is None:
                continue
            boundary = Boundary(end._replace(pos=pos), known)
            if pos < run.end:
                self._found.append(boundary)
            else:
                self._last = boundary
        self._wanted += kept[-1] - begin

    def before(self, place: tuple[int, int]) -> Boundary | None:
        """The next boundary at a place, (file number, byte offset), or in front of it.

        Each is given once in each reading of the range.
        """
        if self._found and self._found[0].position.order <= place:
            return self._found.popleft()
        return None
