"""How much of the server's retention is left for the oldest binlog file that a stream needs.

A server purges a file when it was last written longer ago than its retention, and checks that when
it begins a file. It decides by the file's modification time, not by the times of its events
(measured on MySQL 5.6.24, 5.7.41 and 9.7.4, and on MariaDB 10.11 and 11.8). No statement shows that
time. But a file is last written when the next one begins, and that one's first event has the time.

The stream needs everything from its last offset on, and the rows of XA transactions that are
prepared there. The file that the server writes is never purged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.server.settings import binlog_files, server_time
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["RetentionWatch", "begun_at", "retention_seconds"]

POLL_SECONDS = 60.0
_SECONDS_OF_DAY = 86_400


def retention_seconds(client: ReplicaClient) -> float | None:
    """Return after how many seconds the server purges a file; None if it never does on its own."""
    # MySQL 8.0.29 and later.
    if client.variable("binlog_expire_logs_auto_purge") in ("OFF", "0"):
        return None
    # MySQL 8.0 and MariaDB 10.6 and later. In MySQL only one of the two may be set; in MariaDB they
    # are one setting.
    seconds = float(client.variable("binlog_expire_logs_seconds") or 0)
    days = float(client.variable("expire_logs_days") or 0)
    return seconds or days * _SECONDS_OF_DAY or None


def begun_at(settings: ServerSettings, file: str) -> int | None:
    """Return when a binlog file was begun, by the server's clock; None if it has no event yet.

    Raises what the beginning of a dump raises.
    """
    with ReplicaClient.connect(settings) as client:
        head = Dump(client, Position.of(file, FIRST_EVENT), None, blocking=False).head
    return None if head is None else head.created


class RetentionWatch:
    """Queries the server at each connection of the tail and once a minute, and warns.

    Parameters
    ----------
    warn_below : the part of the retention, from 0 to 1, below which it warns; 0 never warns.
    needed : returns the first position that the stream needs.

    Attributes
    ----------
    left : the part of the retention that is left; None if nothing will be purged, or it is unknown.
    seconds_left : the same in seconds.
    """

    def __init__(
        self, settings: ServerSettings, *, warn_below: float, needed: Callable[[], Position]
    ) -> None:
        self._settings = settings
        self._warn_below = warn_below
        self._needed = needed
        self.left: float | None = None
        self.seconds_left: float | None = None
        self._is_low = False
        # A file, and when it was begun.
        self._begun: tuple[str, int] | None = None
        # The tail's thread may call `ask` at the same time.
        self._lock = Lock()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="mysqlbinlog-retention", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            with suppress(MySQLBinlogError), ReplicaClient.connect(self._settings) as client:
                self.ask(client)

    def ask(self, client: ReplicaClient) -> None:
        """Query the server; warn when the part that is left falls below `warn_below`."""
        with self._lock:
            self._ask(client, self._needed())

    def _ask(self, client: ReplicaClient, position: Position) -> None:
        retention = retention_seconds(client)
        files = [*binlog_files(client)]
        now = server_time(client)
        if retention is None or position.file in files[-1:]:
            self.left, self.seconds_left, self._is_low = None, None, False
            return
        if position.file not in files:
            # The tail reports the missing file.
            self.left = self.seconds_left = 0.0
            return
        closed = self._time_of(files[files.index(position.file) + 1])
        if closed is None:
            return
        self.left = min(1.0, max(0.0, 1 - (now - closed) / retention))
        self.seconds_left = self.left * retention
        was_low, self._is_low = self._is_low, self.left < self._warn_below
        if self._is_low and not was_low:
            LOG.warning(
                "the server may soon purge %s, which the stream still needs: %d %% of its retention"
                " of %d s is left; let the query catch up, or raise the retention"
                " (binlog_expire_logs_seconds, before 8.0 expire_logs_days)",
                position.file,
                self.left * 100,
                retention,
            )

    def _time_of(self, file: str) -> int | None:
        """Return when a file was begun, by the server's clock; None if it has no event yet."""
        if self._begun is None or self._begun[0] != file:
            begun = begun_at(self._settings, file)
            if begun is None:
                return None
            self._begun = file, begun
        return self._begun[1]
