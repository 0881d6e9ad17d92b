"""One dump of a server's binlog, from a position on.

If a fingerprint of the position is known, the dump begins one event earlier. That event, and the
head of its file, which the server repeats at each start, show whether this is still the binlog of
the position. Both already exist, so the check does not wait.

A dump survives RESET MASTER, and continues at its file's place in the new index. So each file must
be the one that the ROTATE of the previous file names. Only a start of the server begins a file
without a ROTATE before it, and the file's FORMAT_DESCRIPTION shows that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import (
    FIRST_EVENT,
    Position,
    continues_sequence,
)
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    BinlogReplacedError,
    InvalidPositionError,
    LogSequenceError,
    MySQLBinlogError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.event_reader import EventReader, FileHead
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import FormatDescription
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = [
    "LAST_DUMP_START",
    "Dump",
    "Limit",
    "ScannedDump",
    "check_fingerprint",
]

_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)

# COM_BINLOG_DUMP has the position as u32.
LAST_DUMP_START = (1 << 32) - 1

# Fragments of messages of servers from 5.6 on, whose errors may have other causes elsewhere. The
# last one is about bytes that the server takes for a GTID, which the gtid_mode does not allow.
_NOT_SENT = "@@global.gtid_mode = "
_UNREADABLE = ("truncated in the middle", "i/o error reading", "did not pass crc", _NOT_SENT)

# File -> the position in it that no run crosses.
Limit = Callable[[str], int]


class Dump:
    """A dump whose first event, the file's FORMAT_DESCRIPTION, has arrived.

    It ends with its sequence of files. A server sends the files in the order of its index. If the
    next one has another base name, or no greater number, its positions can't be compared with the
    earlier ones. The end is detected when the next file's FORMAT_DESCRIPTION has arrived.

    Parameters
    ----------
    known : the fingerprint of `start`; without one, nothing is compared.
    on_version, on_heartbeat : see EventReader.

    Raises
    ------
    BinlogReplacedError : the binlog is not the one of the fingerprint.
    LogSequenceError : everything up to the end of the sequence was returned; it has the `next_file`
        and that file's head.
    BinlogGapError : the file that the last ROTATE names is missing in the server's index.
    MySQLBinlogError : raised by the beginning of a dump.
    """

    def __init__(
        self,
        client: ReplicaClient,
        start: Position,
        known: PositionFingerprint | None,
        *,
        blocking: bool,
        on_version: Callable[[str], None] | None = None,
        on_heartbeat: Callable[[], None] | None = None,
    ) -> None:
        self._start = start
        self._is_vouched = known is not None
        begin = start.pos - (known.length if known is not None else 0)
        if start.pos > LAST_DUMP_START:
            # A dump cannot begin there: the events before the start are read and skipped.
            begin = FIRST_EVENT
        self.stream = client.dump(start.file, begin, blocking=blocking)
        # The file that the server sends, which may differ from the name in the last file's ROTATE.
        self._file = start.file
        self.walker = EventReader(
            start.file,
            begin,
            self.stream.checksum,
            on_version,
            on_heartbeat,
            on_file=self._check_not_missing,
            on_head=self._check_continues,
        )
        # The file that was read to its end, its end, and the name in its ROTATE.
        self._ended: tuple[str, int, str] | None = None
        # An event that was read ahead and not returned yet.
        self._first: Event | None = None
        # The events of the payload that is being read.
        self._inside: Iterator[Event] = iter(())
        try:
            self._open(known)
        except LogSequenceError:
            if known is None or not known.length:
                raise
            raise self._replaced("it ends before this position") from None
        except (InvalidPositionError, ServerError) as error:
            if known is None or not _is_unreadable(error):
                raise
            raise self._replaced(error.message) from None

    @property
    def head(self) -> FileHead | None:
        """The head of the dump's current file; None if the binlog ended before it."""
        return self.walker.head

    def next(self) -> Event | None:
        """Return the next event; None at the end. A payload is replaced by its events."""
        walker, stream = self.walker, self.stream
        try:
            while (inner := next(self._inside, None)) is None:
                event = self.first()
                if event is None:
                    raw = stream.next_event()
                    if raw is None:
                        return None
                    event = walker.feed(raw)
                    del raw  # may be large, and the event has its own copy
                if event is None or self.is_before(event):
                    continue
                if event.type != _PAYLOAD:
                    return event
                self._inside = iter(TransactionPayloadReader(event))
            return inner
        except MySQLBinlogError as error:
            raise self.explained(error) from None

    def __iter__(self) -> Iterator[Event]:
        while (event := self.next()) is not None:
            yield event

    def first(self) -> Event | None:
        """Return the event that was read ahead, which may be a whole payload; then None."""
        event, self._first = self._first, None
        return event

    def explained(self, error: MySQLBinlogError) -> MySQLBinlogError:
        """Return an error that occurred before the next event, with location and known cause."""
        walker, start = self.walker, self._start
        is_first = (walker.file, walker.pos) == (start.file, start.pos) and start.pos > FIRST_EVENT
        if is_first and not self._is_vouched and _NOT_SENT in error.message.lower():
            return InvalidPositionError(
                f"no event begins at this position, or one that the server does not send:"
                f" {error.message}; set one that SHOW BINLOG EVENTS lists",
                file=start.file,
                position=start.pos,
            )
        # If the server rejects a dump midway, the error belongs to the position reached.
        return error.with_location(walker.file, walker.pos)

    @property
    def is_passing(self) -> bool:
        """Whether the next event may be before the start."""
        return self.walker.file == self._start.file and self.walker.pos < self._start.pos

    def is_before(self, event: Event) -> bool:
        """Whether an event ends at or before the start; InvalidPositionError if it crosses it."""
        start = self._start
        if event.file != start.file or event.start >= start.pos:
            return False
        if event.end > start.pos:
            raise InvalidPositionError(
                f"no event begins at this position: it is inside one that begins at"
                f" {event.start}; set one that SHOW BINLOG EVENTS lists",
                file=start.file,
                position=start.pos,
            )
        return True

    def _open(self, known: PositionFingerprint | None) -> None:
        event: Event | None = None
        while self.walker.head is None:
            raw = self.stream.next_event()
            if raw is None:
                if known is not None:
                    raise self._replaced("it ends before this position")
                return
            event = self.walker.feed(raw)
        if event is not None and not self.is_before(event):
            self._first = event
        if known is None:
            return
        head = self.walker.head
        if head != (known.created, known.server_id):
            raise self._replaced(
                f"the file was begun at {head.created} by the server {head.server_id}, expected"
                f" {known.created} by {known.server_id} (seconds since 1970, server_id)"
            )
        if known.length:
            self._check_event(known)

    def _check_event(self, known: PositionFingerprint) -> None:
        """Read up to the event that ends at the start."""
        start, event = self._start, None
        while event is None or (self.is_before(event) and event.end < start.pos):
            raw = self.stream.next_event()
            if raw is None:
                raise self._replaced("it ends before this position")
            event = self.walker.feed(raw)
            del raw
        if event.file != start.file or event.end != start.pos:
            raise self._replaced("no event ends at this position")
        check_fingerprint(start, after_event(self.walker.head, event), known)

    def _check_not_missing(self, file: str) -> None:
        """Raise BinlogGapError unless a file may follow, by its name; its head is checked later."""
        before, self._file = self._file, file
        if file == before:
            return
        named = self.walker.file
        if named not in (before, file):
            raise BinlogGapError(
                f"{before} ends with a ROTATE to {named}, and the server's index continues with"
                f" {file}: what was logged in {named} is missing; put it back into the index, or"
                " start again with a new checkpoint, and reload the tables",
                file=before,
            )
        self._ended = before, self.walker.pos, named

    def _check_continues(self, head: FileHead, description: FormatDescription) -> None:
        """Raise LogSequenceError or BinlogReplacedError unless a file continues the last one."""
        if self._ended is None:
            return
        (before, end, named), self._ended = self._ended, None
        file = self._file
        if named == before and not description.created:
            raise log_replaced(
                f"no ROTATE leads from {before} to {file}, which was not begun by a start of the"
                " server",
                before,
                end,
            )
        if continues_sequence(before, file):
            return
        error = LogSequenceError(
            f"after {before} the server's index continues with {file}: the binlog has another base"
            " name (log_bin) or its numbers restarted, and positions on both sides can't be"
            f" compared; read up to the end of {before}, and then from {file}:{FIRST_EVENT},"
            " separately",
            file=before,
            position=end,
        )
        error.next_file, error.next_head = file, head
        raise error

    def _replaced(self, found: str) -> BinlogReplacedError:
        return log_replaced(found, self._start.file, self._start.pos)


def _is_unreadable(error: MySQLBinlogError) -> bool:
    """Whether a server may report this error for a position at which no event begins."""
    if isinstance(error, InvalidPositionError):
        return True
    return any(words in error.message.lower() for words in _UNREADABLE)


def check_fingerprint(
    position: Position, found: PositionFingerprint | None, known: PositionFingerprint | None
) -> None:
    """Raise BinlogReplacedError if the event before a position differs from the known one."""
    if found is None or known is None or not known.length or found == known:
        return
    raise log_replaced(
        f"another event is before this position: one of {found.length} bytes with the CRC32"
        f" 0x{found.checksum:08x}, expected {known.length} bytes with 0x{known.checksum:08x}",
        position.file,
        position.pos,
    )


class ScannedDump:
    """A dump read by a scanner; `next` returns a run or an event."""

    def __init__(self, dump: Dump, scanner: LogScanner) -> None:
        self._dump = dump
        self._scanner = scanner
        scanner.open(dump.stream, dump.walker)

    def next(self, limit: Limit) -> Run | Event | None:
        """Return the next run or event; None at the end; see `LogScanner.next`."""
        dump, scanner = self._dump, self._scanner
        found: Run | Event | None = dump.first()
        while True:
            try:
                if found is None:
                    found = scanner.next(limit, runs=not dump.is_passing)
                if isinstance(found, Event):
                    if dump.is_before(found):
                        found = None
                        continue
                    if found.type == _PAYLOAD:
                        scanner.enter(found)
                        found = None
                        continue
            except MySQLBinlogError as error:
                raise dump.explained(error) from None
            return found
