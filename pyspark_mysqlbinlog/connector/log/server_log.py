"""A server's binlog, read through connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.dump import Dump, Limit, ScannedDump
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event, at_beginning
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import (
    FormatError,
    InvalidPositionError,
    LogSequenceError,
    LostConnectionError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["ServerLog", "is_searched"]

Found = TypeVar("Found", bound="Run | Event")

# Up to this position, a start reads the file to find the event before the position.
_MAX_SEARCHED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ServerLog:
    """A server's binlog; every read opens one connection per sequence of files, and closes it.

    Attributes
    ----------
    known : a position and its fingerprint, which reads from that position verify.
    order : of the files. Without it the binlog is one sequence of files, and reading past its end
        raises LogSequenceError.
    """

    settings: ServerSettings
    known: tuple[Position, PositionFingerprint | None] | None = None
    order: FileOrder | None = None

    @classmethod
    def seen_from(
        cls,
        settings: ServerSettings,
        position: Position,
        fingerprint: PositionFingerprint | None = None,
    ) -> ServerLog:
        """Create a log whose order is relative to a position, with that position's fingerprint."""
        order = FileOrder.of_server(settings, position.file)
        return cls(settings, (position, fingerprint), order)

    def events(self, start: Position) -> Iterator[Event]:
        return self._read(start, lambda dump: dump)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        def scanned(dump: Dump) -> Iterator[Run | Event]:
            scan = ScannedDump(dump, scanner)
            while (found := scan.next(limit)) is not None:
                yield found

        return self._read(start, scanned)

    def _read(
        self, start: Position, following: Callable[[Dump], Iterable[Found]]
    ) -> Iterator[Found]:
        here, known = start, self.fingerprint_of(start)
        while True:
            try:
                with ReplicaClient.connect(self.settings) as client:
                    yield from following(Dump(client, here, known, blocking=False))
            except LogSequenceError as end:
                if self.order is None or not end.next_file:
                    raise
                here = Position.of(end.next_file, FIRST_EVENT)
                known = PositionFingerprint(*end.next_head)
            else:
                return

    def position(self, file: str, pos: int) -> Position:
        return Position.of(file, pos) if self.order is None else self.order.position(file, pos)

    def server_version(self, file: str) -> str:
        versions: list[str] = [""]
        begin = Position.of(file, FIRST_EVENT)
        with ReplicaClient.connect(self.settings) as client:
            Dump(client, begin, None, blocking=False, on_version=versions.append)
        return versions[-1]

    def fingerprint_at(self, position: Position) -> PositionFingerprint | None:
        """Read a position's fingerprint; without its event if that would take long.

        Also without it if it is not searched, or the log ends before the position.
        InvalidPositionError if the position is inside an event.
        """
        is_near = is_searched(position)
        begin = position._replace(pos=FIRST_EVENT) if is_near else position
        with ReplicaClient.connect(self.settings) as client:
            dump = Dump(client, begin, None, blocking=False)
            head = dump.head
            if not is_near:
                return at_beginning(head)
            try:
                for found in _found_in(dump, position.pos):
                    if found.file != position.file:
                        break
                    if found.end >= position.pos:
                        _check_end(position, found)
                        return after_event(head, found)
            except LostConnectionError:
                raise
            except (FormatError, LogSequenceError, ServerError):
                pass  # unreadable data before the start is irrelevant
        # A server reports the end of its binlog shortly before it sends it.
        return at_beginning(head)

    def fingerprint_of(self, position: Position) -> PositionFingerprint | None:
        """Return the known fingerprint of a position."""
        return self.known[1] if self.known is not None and self.known[0] == position else None


def is_searched(position: Position) -> bool:
    """Whether `fingerprint_at` searches the event before a position."""
    return 0 < position.pos - FIRST_EVENT <= _MAX_SEARCHED_BYTES


def _found_in(dump: Dump, end: int) -> Iterator[Run | Event]:
    """Yield the events before a position of the dump's first file, and slightly more."""
    if implementation() == "python":
        yield from dump
        return
    scanned = ScannedDump(dump, LogScanner())
    while (found := scanned.next(lambda _: end)) is not None:
        yield found


def _check_end(position: Position, found: Run | Event) -> None:
    """Raise InvalidPositionError unless the last event in the position's file ends there."""
    if found.end != position.pos:
        raise InvalidPositionError(
            f"no event begins at this position: it is inside one that ends at {found.end}; set"
            " one that SHOW BINLOG EVENTS lists",
            file=position.file,
            position=position.pos,
        )
