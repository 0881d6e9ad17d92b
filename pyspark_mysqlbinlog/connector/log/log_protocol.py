"""Logs to read events from: a server's, or files on disk.

Both return the same `Event`s from a position on, with positions in the same form, so their users
are independent of the kind. If the compiled kernel is loaded, `scan` returns the same in runs (see
`decoder/kernel/log_scanner.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Limit
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["NO_LIMIT", "Log", "ScannedLog", "statement_events"]

NO_LIMIT = (1 << 63) - 1


class Log(Protocol):
    """A source of events in an order."""

    def events(self, start: Position) -> Iterator[Event]:
        """Yield the events from `start` to the current end."""
        ...

    def position(self, file: str, pos: int) -> Position:
        """Return the position of a byte in one of the log's files."""
        ...


class ScannedLog(Log, Protocol):
    """A log that the compiled scan can read."""

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        """Yield `events` in runs where possible; each is valid until the next one is requested."""
        ...

    def server_version(self, file: str) -> str:
        """Return the version of the server that wrote a file, from its first event; else empty.

        Needed to parse statements: a server may be newer than its older files.
        """
        ...


def statement_events(
    log: ScannedLog, start: Position, end: Position | None = None
) -> Iterator[Event]:
    """Yield the log's events from `start` on, possibly without row changes before `end`."""
    if implementation() == "python":
        return log.events(start)
    return _without_rows(log, start, end)


def _without_rows(log: ScannedLog, start: Position, end: Position | None) -> Iterator[Event]:
    def limit(file: str) -> int:
        return end.pos if end is not None and file == end.file else NO_LIMIT

    for found in log.scan(start, LogScanner(), limit):
        if isinstance(found, Event):
            yield found
