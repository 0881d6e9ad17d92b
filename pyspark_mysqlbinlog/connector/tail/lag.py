"""The stream's lag behind its server, in bytes of binlog and in seconds, from memory.

Spark requests the lag with every offset, every few milliseconds, so slow work is done in advance.
The tail reports how far it has read, and the times of the captured transactions. The end of the
server's binlog is usually known from the same connection: a heartbeat means that there is nothing
more, and so do events that were logged just now. Only if neither has arrived for some seconds, as
in a backlog, a thread queries it over a connection of its own, and closes it.

Unknown values are None: the end of the binlog, if it was not reported for a while, and the bytes
between two files if the size of one is missing.

Positions are ordered as the tail sees them: the end may be in a later sequence of files (see
connector/log/file_order.py).
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
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["EndOfLog", "Lag", "LagThread"]

# Seconds.
_CURRENT_SECONDS = 2
_ASK_AFTER_SECONDS = 5.0
_POLL_SECONDS = 1.0
STALE_AFTER_SECONDS = 60.0
_MAX_TIMES = 4096


@dataclass(frozen=True, slots=True)
class EndOfLog:
    """The end of a server's binlog, and when it was observed, by the clock of `time`."""

    position: Position
    observed_at: float


class Lag:
    """The tail's position and the end of the binlog, as far as they are known.

    Written by the tail's thread and by queries of the server; read by Spark's calls.

    Parameters
    ----------
    start : where the tail begins, with everything before it delivered.
    heartbeat_interval : seconds.
    end : the end of the binlog, if known.
    """

    def __init__(
        self, start: Position, *, heartbeat_interval: float, end: EndOfLog | None = None
    ) -> None:
        self._lock = Lock()
        self._heartbeat_interval = heartbeat_interval
        # The end of the last event read, and the last position between two transactions.
        self._scanned = self._passed = start
        # When the last event was logged, by the server's clock; 0 if unknown.
        self._time = 0
        self._end = end
        # When the tail was last known to be at the end, and when it began or resumed.
        self._at_end: float | None = None
        self._connected_at = 0.0
        # The server's clock minus the local one.
        self._skew: float | None = None
        # The size of each file except the last, by number.
        self._sizes: dict[int, int] = {}
        # The numbers of all files in the server's last answer, ascending.
        self._numbers: tuple[int, ...] = ()
        # Ends and times of captured transactions.
        self._captured: deque[tuple[Position, int]] = deque()
        self._committed = start

    # --- the tail's side

    def connected(self, server_seconds: int) -> None:
        """Record a new connection, with the server's time."""
        with self._lock:
            self._connected_at = time()
            self._skew = server_seconds - self._connected_at

    def on_scanned(self, scanned: Position, seconds: int, *, between: bool) -> None:
        """Record events up to `scanned`, the last of which was logged at `seconds`.

        between : whether `scanned` is between two transactions.
        """
        with self._lock:
            self._scanned = scanned
            if between:
                self._passed = scanned
            if seconds:
                self._time = seconds

    def on_captured(self, end: Position, seconds: int) -> None:
        """Record a captured transaction that was committed at `seconds` and ends at `end`."""
        with self._lock:
            self._captured.append((end, seconds))
            if len(self._captured) > _MAX_TIMES:
                # The first one is kept, because its time counts. A dropped one is merged into the
                # next one.
                self._captured = deque(list(self._captured)[::2])

    def file_ended(self, number: int, size: int) -> None:
        """Record a file that was read to the end of its ROTATE."""
        with self._lock:
            self._sizes[number] = size

    def heartbeat(self) -> None:
        """Record that the server has nothing more to send."""
        with self._lock:
            self._note_end(EndOfLog(self._scanned, time()))

    # --- queries of the server

    def is_due(self) -> bool:
        """Whether the end of the binlog should be queried."""
        with self._lock:
            now = time()
            self._look_at_the_time(now)
            end = self._end
            if end is None or self._lacks_size(end.position):
                return True
            patience = _ASK_AFTER_SECONDS
            if end.position <= self._scanned:
                # The tail is at the end: the next heartbeat will confirm it.
                patience = max(patience, self._heartbeat_interval + _CURRENT_SECONDS)
            return now - max(end.observed_at, self._connected_at) > patience

    def lacks_size_before(self, end: Position) -> bool:
        """Whether the distance to `end` needs the size of a file that is not known."""
        with self._lock:
            return self._lacks_size(end)

    @property
    def scanned(self) -> Position:
        """The position up to which the tail has read."""
        return self._scanned

    def on_server_status(
        self, end: Position, sizes: Mapping[Position, int], server_seconds: int
    ) -> None:
        """Record the server's answer: the end of its binlog, and optionally its files' sizes.

        sizes : the beginning of each file, in order, and its bytes.
        """
        with self._lock:
            now = time()
            self._skew = server_seconds - now
            if sizes:
                self._numbers = tuple(begin.number for begin in sizes)
            for begin, size in sizes.items():
                # The last file still grows.
                if self._committed.number <= begin.number < end.number:
                    self._sizes[begin.number] = size
            self._note_end(EndOfLog(end, now))

    # --- Spark's side

    def report(self, committed: Position) -> dict[str, Any]:
        """Return the query's progress; the sink has everything before `committed`."""
        with self._lock:
            now = time()
            self._committed = committed
            while self._captured and self._captured[0][0] <= committed:
                self._captured.popleft()
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
                "server": None if end is None else _server_fields(end, self._scanned),
                "bytes_behind": behind,
                "files_behind": None if end is None else self._files_to(end.position, behind),
                "seconds_behind": None if behind is None else self._seconds(now, behind),
            }

    # --- inside, under the lock

    def _note_end(self, end: EndOfLog) -> None:
        self._end = end
        if end.position <= self._scanned:
            self._at_end = end.observed_at

    def _look_at_the_time(self, now: float) -> None:
        """Treat an event that was logged just now as the end of the binlog."""
        if self._skew is None or abs(now + self._skew - self._time) > _CURRENT_SECONDS:
            return
        if self._end is None or self._end.position <= self._scanned:
            self._note_end(EndOfLog(self._scanned, now))

    @property
    def _lacked(self) -> Position:
        """Return where the sink's first missing captured change, or unread binlog, begins."""
        return self._committed if self._captured else max(self._committed, self._passed)

    def _lacks_size(self, end: Position) -> bool:
        end = max(end, self._scanned)
        return any(n not in self._sizes for n in self._files(self._lacked, end))

    def _files(self, begin: Position, end: Position) -> Sequence[int]:
        """Return the numbers of the files from one position's up to the one before another's."""
        numbers = range(begin.number, end.number)
        if begin.is_in_sequence_of(end):
            return numbers
        # Only the server knows the numbers of each sequence.
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

    def _files_to(self, end: Position, behind: int | None) -> int | None:
        """Return how many files begin after the sink's position, up to `end`."""
        if not behind:
            return behind
        return len(self._files(self._lacked, max(end, self._scanned)))

    def _seconds(self, now: float, behind: int) -> int | None:
        """Return the age of the oldest change that the sink lacks."""
        if not behind:
            return 0
        skew = self._skew
        if skew is None:
            return None
        if self._captured:
            since = self._captured[0][1] - skew
        else:
            # The oldest missing change is not read yet. It was logged after the last event, and
            # after the moment when the tail was last at the end.
            known = [self._at_end] if self._at_end is not None else []
            known += [self._time - skew] if self._time else []
            if not known:
                return None
            since = max(known)
        return max(0, int(now - since))


class LagThread:
    """Queries the end of a server's binlog whenever that is due.

    Parameters
    ----------
    is_over : whether the thread is to end.
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
            wait = _POLL_SECONDS
            if self._lag.is_due():
                wait = _ASK_AFTER_SECONDS
                # The tail's own connection reports the error; until the next answer, the last known
                # values age.
                with suppress(MySQLBinlogError):
                    self._ask()
            self._pause.wait(wait)

    def _ask(self) -> None:
        with ReplicaClient.connect(self._settings) as client:
            here = current_position(client)
            order = FileOrder(lambda: binlog_files(client), self._lag.scanned.file)
            # Queried after the end: a file that is complete by then is in the list.
            end = order.position(here.file, here.pos)
            sizes = order.sizes() if self._lag.lacks_size_before(end) else {}
            self._lag.on_server_status(end, sizes, server_time(client))


def _server_fields(end: EndOfLog, scanned: Position) -> dict[str, Any]:
    place = max(end.position, scanned)
    return {"file": place.file, "pos": place.pos, "observed_at": _iso(int(end.observed_at))}


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
