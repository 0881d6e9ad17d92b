"""How far the stream is behind its server, in bytes of log and in seconds, from memory.

Spark asks with every offset, every few milliseconds, so whatever takes time is known before. The
walk tells how far it has read, and the times of the wanted transactions that it met. Where the
server's log ends is mostly known by the same connection: a heartbeat says that there is nothing
more, and so do events that were logged just now. Only where neither has come for some seconds, as
in a backlog, a thread asks on a connection of its own and closes it.

What is not known is None: where the log ends, when nobody has said so for a while, and the bytes
between two files when the size of one is missing.

Positions are ordered as those of the walk see them: the log's end may lie in a later sequence of
files (see connector/log/file_order.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from time import time
from typing import Any

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.server.settings import (
    binlog_files,
    current_position,
    server_time,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings

__all__ = ["EndOfLog", "Lag", "LagThread"]

# Seconds.
_JUST_NOW = 2
_ASK_AFTER = 5.0
_LOOK_EVERY = 1.0
STALE_AFTER_SECONDS = 60.0
_MOST_TIMES = 4096


@dataclass(frozen=True, slots=True)
class EndOfLog:
    """Where a server's log ended, and when that was, by the clock of `time`."""

    position: Position
    observed_at: float


class Lag:
    """What is known of the walk and of the log's end.

    The tail's thread tells it, and whoever has asked the server; Spark's calls read it.

    Parameters
    ----------
    start : where the walk begins, with everything before it delivered.
    heartbeat_interval : seconds.
    end : where the log ended, as far as that is known.
    """

    def __init__(
        self, start: Position, *, heartbeat_interval: float, end: EndOfLog | None = None
    ) -> None:
        self._lock = Lock()
        self._heartbeat_interval = heartbeat_interval
        # The end of the last event walked, and the last place between two transactions.
        self._scanned = self._passed = start
        # When the last event was logged, by the server's clock; 0 when not known.
        self._time = 0
        self._end = end
        # When the walk was last known to be at the log's end, and when it began or went on.
        self._at_end: float | None = None
        self._connected_at = 0.0
        # The server's clock less our own.
        self._skew: float | None = None
        # Of each file that is not the last, by number.
        self._sizes: dict[int, int] = {}
        # The numbers of all files that the server had when it was asked last, ascending.
        self._numbers: tuple[int, ...] = ()
        # Ends and times of wanted transactions.
        self._wanted: deque[tuple[Position, int]] = deque()
        self._committed = start

    # --- the tail's side

    def connected(self, server_seconds: int) -> None:
        """A connection is there, on which the server has told its time."""
        with self._lock:
            self._connected_at = time()
            self._skew = server_seconds - self._connected_at

    def walked(self, scanned: Position, seconds: int, *, between: bool) -> None:
        """Events up to `scanned`, the last logged at `seconds`; `between` two transactions?"""
        with self._lock:
            self._scanned = scanned
            if between:
                self._passed = scanned
            if seconds:
                self._time = seconds

    def wanted(self, end: Position, seconds: int) -> None:
        """A transaction with something wanted was committed at `seconds` and ends at `end`."""
        with self._lock:
            self._wanted.append((end, seconds))
            if len(self._wanted) > _MOST_TIMES:
                # The first one counts; between two that are left, the later one's time holds.
                self._wanted = deque(list(self._wanted)[::2])

    def file_ended(self, number: int, size: int) -> None:
        """A file was walked to the end of its ROTATE."""
        with self._lock:
            self._sizes[number] = size

    def heartbeat(self) -> None:
        """The server has nothing more to send."""
        with self._lock:
            self._note_end(EndOfLog(self._scanned, time()))

    # --- who asks the server

    def is_due(self) -> bool:
        """Whether somebody should ask where the log ends."""
        with self._lock:
            now = time()
            self._look_at_the_time(now)
            end = self._end
            if end is None or self._lacks_size(end.position):
                return True
            patience = _ASK_AFTER
            if end.position <= self._scanned:
                # It was walked to its end: the next heartbeat says so again.
                patience = max(patience, self._heartbeat_interval + _JUST_NOW)
            return now - max(end.observed_at, self._connected_at) > patience

    def lacks_size_before(self, end: Position) -> bool:
        """Whether the distance to `end` takes the size of a file that is not known."""
        with self._lock:
            return self._lacks_size(end)

    @property
    def scanned(self) -> Position:
        """How far the walk is."""
        return self._scanned

    def asked(self, end: Position, sizes: Mapping[Position, int], server_seconds: int) -> None:
        """The server has said where its log ends, and maybe how large its files are.

        sizes : the beginning of each file, in order, and its bytes.
        """
        with self._lock:
            now = time()
            self._skew = server_seconds - now
            if sizes:
                self._numbers = tuple(begin.number for begin in sizes)
            for begin, size in sizes.items():
                # The last one still grows.
                if self._committed.number <= begin.number < end.number:
                    self._sizes[begin.number] = size
            self._note_end(EndOfLog(end, now))

    # --- Spark's side

    def report(self, committed: Position) -> dict[str, Any]:
        """What the query's progress tells, `committed` being where the sink has everything."""
        with self._lock:
            now = time()
            self._committed = committed
            while self._wanted and self._wanted[0][0] <= committed:
                self._wanted.popleft()
            for number in [number for number in self._sizes if number < committed.number]:
                del self._sizes[number]
            self._look_at_the_time(now)
            end = self._end
            if (
                end is not None
                and now - end.observed_at > STALE_AFTER_SECONDS + self._heartbeat_interval
            ):
                end = None
            behind = None if end is None else self._bytes_to(end.position)
            return {
                "last_event_time": _iso(self._time) if self._time else None,
                "delivered": {"file": committed.file, "pos": committed.pos},
                "server": None if end is None else _told(end, self._scanned),
                "bytes_behind": behind,
                "seconds_behind": None if behind is None else self._seconds(now, behind),
            }

    # --- inside, under the lock

    def _note_end(self, end: EndOfLog) -> None:
        self._end = end
        if end.position <= self._scanned:
            self._at_end = end.observed_at

    def _look_at_the_time(self, now: float) -> None:
        """What was logged just now is as good as the end."""
        if self._skew is None or abs(now + self._skew - self._time) > _JUST_NOW:
            return
        if self._end is None or self._end.position <= self._scanned:
            self._note_end(EndOfLog(self._scanned, now))

    @property
    def _lacked(self) -> Position:
        """Up to here the sink lacks nothing: before the first wanted change, or what is unread."""
        return self._committed if self._wanted else max(self._committed, self._passed)

    def _lacks_size(self, end: Position) -> bool:
        end = max(end, self._scanned)
        return any(n not in self._sizes for n in self._files(self._lacked, end))

    def _files(self, begin: Position, end: Position) -> Sequence[int]:
        """The numbers of the files from the one of a position up to the one before another's."""
        numbers = range(begin.number, end.number)
        if begin.is_in_sequence_of(end):
            return numbers
        # How far the numbers go in each sequence, only the server tells.
        if not {begin.number, end.number} <= {*self._numbers}:
            return [end.number]  # which has no size yet
        return [number for number in self._numbers if number in numbers]

    def _bytes_to(self, end: Position) -> int | None:
        begin, end = self._lacked, max(end, self._scanned)
        if begin >= end:
            return 0
        if self._lacks_size(end):
            return None
        between = sum(self._sizes[number] for number in self._files(begin, end))
        return between + end.pos - begin.pos

    def _seconds(self, now: float, behind: int) -> int | None:
        """The age of the oldest change that the sink lacks."""
        if not behind:
            return 0
        skew = self._skew
        if skew is None:
            return None
        if self._wanted:
            since = self._wanted[0][1] - skew
        else:
            # Nobody has read it yet: it came behind the last event, and behind the moment when
            # there was nothing more.
            known = [self._at_end] if self._at_end is not None else []
            known += [self._time - skew] if self._time else []
            if not known:
                return None
            since = max(known)
        return max(0, int(now - since))


class LagThread:
    """Asks a server where its log ends, whenever that is due.

    Parameters
    ----------
    is_over : whether nobody wants to know any more.
    """

    def __init__(self, settings: ServerSettings, lag: Lag, is_over: Callable[[], bool]) -> None:
        self._settings = settings
        self._lag = lag
        self._is_over = is_over
        self._pause = Event()
        self._thread = Thread(target=self._run, name="mysqlbinlog-lag", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._pause.set()

    def _run(self) -> None:
        while not self._pause.is_set() and not self._is_over():
            wait = _LOOK_EVERY
            if self._lag.is_due():
                wait = _ASK_AFTER
                # The tail's own connection tells what is the matter; until somebody knows again,
                # what was known grows old.
                with suppress(MySQLBinlogError):
                    self._ask()
            self._pause.wait(wait)

    def _ask(self) -> None:
        with ReplicaClient.connect(self._settings) as client:
            here = current_position(client)
            order = FileOrder(lambda: binlog_files(client), self._lag.scanned.file)
            # Asked for behind the end: a file that is full by then is in the list.
            end = order.position(here.file, here.pos)
            sizes = order.sizes() if self._lag.lacks_size_before(end) else {}
            self._lag.asked(end, sizes, server_time(client))


def _told(end: EndOfLog, scanned: Position) -> dict[str, Any]:
    place = max(end.position, scanned)
    return {"file": place.file, "pos": place.pos, "observed_at": _iso(int(end.observed_at))}


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
