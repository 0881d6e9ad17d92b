"""Logs to inspect: files, or a server's binlog, each event with its bytes.

Other readers need only the body of an event. Here all bytes are shown, so the events come
from the same readers (`EventReader`, `TransactionPayloadReader`), one level below `Log.events`. A
TRANSACTION_PAYLOAD is returned, and then the events in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from zlib import crc32

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.inspection.columns import Columns
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.files.file_chain import FileChain
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog, opened_at
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.start_point import pack_position
from pyspark_mysqlbinlog.connector.options.values import PlaceInBinlog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    binlog_files,
    current_position,
    explicit_timestamps,
)
from pyspark_mysqlbinlog.errors import BinlogGapError, MalformedEventError, OptionError
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name, is_compressed
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location, located
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER, Event, EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = ["BinlogFiles", "LiveBinlog", "LoggedEvent", "ServerBinlog", "Source"]

_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)


class LoggedEvent(NamedTuple):
    """An event, and its bytes in the binlog.

    Attributes
    ----------
    raw : header, body and checksum; of an event inside a payload, as in the decompressed stream.
    has_checksum : `raw` ends in a CRC32.
    """

    event: Event
    raw: bytes
    has_checksum: bool


class Source(Protocol):
    """A log to inspect.

    Attributes
    ----------
    files : names of its files, in order.
    notes : lines to show about the log after its last event.
    files_after_gaps : names of the files read so far before which changes may be missing, also DDL.
    case_sensitive : whether its server distinguishes names of tables by case.
    """

    @property
    def files(self) -> Sequence[str]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def files_after_gaps(self) -> Collection[str]: ...

    @property
    def case_sensitive(self) -> bool: ...

    def events(self) -> Iterator[LoggedEvent]:
        """Yield the events in log order."""
        ...

    def position(self, file: str, pos: int) -> Position:
        """Return a position in the order of the log."""
        ...

    def columns(self) -> Columns:
        """Return the columns of its tables, as far as they are known; for one pass."""
        ...

    def scanned(self) -> tuple[ScannedLog, Sequence[Position]]:
        """Return the log for the compiled scan, and the position at which each file begins."""
        ...


class BinlogFiles:
    """Binlog files, in the order in which they were given; a folder's or glob's in binlog order.

    Parameters
    ----------
    paths : files, globs or folders, local or in an object store.
    start : position in the first file.
    case_sensitive : see SchemaTracker.
    """

    def __init__(
        self, paths: Sequence[str], start: int = FIRST_EVENT, *, case_sensitive: bool = True
    ) -> None:
        found = [path for each in paths for path in FileLog.find(each).paths]
        names = tuple(binlog_name(located(path)) for path in found)
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise OptionError(f"several files are named {twice}; inspect them one by one")
        self._log = FileLog(tuple(found), tuple(range(1, len(found) + 1)), may_be_cut=True)
        self._start = start
        self.files = names
        self.notes: list[str] = []
        self.files_after_gaps: set[str] = set()
        # The files do not contain it.
        self.case_sensitive = case_sensitive

    def events(self) -> Iterator[LoggedEvent]:
        start = self._start
        chain, before = FileChain(), None
        for path in self._log.paths:
            location = located(path)
            if before is not None:
                self._note_gap(chain, before, location)
            before = location
            # Like a read of `path`: only the last file may be incomplete.
            with FileStream(location, may_be_cut=path == self._log.paths[-1]) as stream:
                if start > FIRST_EVENT:
                    walker, _ = opened_at(stream, location, start)
                else:
                    walker = EventReader(binlog_name(location), FIRST_EVENT, of_file=True)
                file, here = walker.file, walker.pos
                while (raw := stream.next_event()) is not None:
                    event = walker.feed(raw)
                    if event is not None:
                        here = event.end
                        yield from _with_inner(event, raw, walker)
            if not is_compressed(location) and (left := location.stat().st_size - here) > 0:
                self.notes.append(
                    f"{file} ends inside an event: the last {left:,} bytes, from {here} on, are"
                    " not shown"
                )
            start = FIRST_EVENT

    def _note_gap(self, chain: FileChain, before: Location, after: Location) -> None:
        """Record that changes before a file may be missing, if it does not follow the previous."""
        try:
            chain.check(before, after)
        except (BinlogGapError, MalformedEventError) as error:
            name = binlog_name(after)
            self.files_after_gaps.add(name)
            self.notes.append(
                f"{name}: column names from earlier files are not used: {error.message}"
            )

    def position(self, file: str, pos: int) -> Position:
        return self._log.position(file, pos)

    def columns(self) -> Columns:
        # Without an option, a table that may have been altered under another spelling is unknown.
        check = LetterCaseCheck(lambda *_: False) if self.case_sensitive else None
        return Columns(self.position, case_sensitive=self.case_sensitive, letter_case=check)

    def scanned(self) -> tuple[ScannedLog, Sequence[Position]]:
        first, *others = self._log.begins()
        return self._log, [first._replace(pos=self._start), *others]


class ServerBinlog:
    """Files of a server's binlog, up to its current end, read as a replica reads them.

    Parameters
    ----------
    files : names, as SHOW BINARY LOGS lists them; none for the current file.
    start : position in the first file.
    """

    def __init__(
        self, settings: ServerSettings, files: Sequence[str] = (), start: int = FIRST_EVENT
    ) -> None:
        twice = [file for at, file in enumerate(files) if file in files[:at]]
        if twice:
            raise OptionError(f"the file {twice[0]} is named twice; name each file once")
        self._settings = settings
        with ReplicaClient.connect(settings) as client:
            existing = list(binlog_files(client))
            missing = [file for file in files if file not in existing]
            if missing:
                raise OptionError(
                    f"the server has no binlog {missing[0]!r}: expected one from {existing[0]} to"
                    f" {existing[-1]}, as SHOW BINARY LOGS lists them"
                )
            self.files = tuple(files) or (existing[-1],)
            self.start = Position.of(self.files[0], start)
            others = (Position.of(file, FIRST_EVENT) for file in self.files[1:])
            self._begins = (self.start, *others)
            self._log = ServerLog.seen_from(settings, self.start)
            self._known = _KnownColumns.ask(client, self._log, self.start)
        self.notes: list[str] = []
        # The DDL of files that are left out is known, too.
        self.files_after_gaps: set[str] = set()
        self.case_sensitive = self._known.case_sensitive

    def events(self) -> Iterator[LoggedEvent]:
        for start in self._begins:
            with ReplicaClient.connect(self._settings) as client:
                for logged in _of_dump(Dump(client, start, None, blocking=False)):
                    if logged.event.file != start.file:
                        break
                    yield logged

    def position(self, file: str, pos: int) -> Position:
        return self._log.position(file, pos)

    def columns(self) -> Columns:
        return self._known.columns(self.position)

    def scanned(self) -> tuple[ScannedLog, Sequence[Position]]:
        return self._log, self._begins


@dataclass(frozen=True, slots=True)
class _KnownColumns:
    """The columns of a server's tables, from a position on."""

    history: SchemaHistory
    case_sensitive: bool
    explicit_timestamps: bool

    @classmethod
    def ask(cls, client: ReplicaClient, log: ServerLog, start: Position) -> _KnownColumns:
        """Ask for the columns from a position on."""
        facts = ServerFacts.ask(client)
        history, _ = history_of_server(
            client,
            log,
            start,
            lambda *_: True,
            case_sensitive=facts.case_sensitive,
            all_sequences=True,
        )
        return cls(history, facts.case_sensitive, explicit_timestamps(client))

    def columns(self, position: Callable[[str, int], Position]) -> Columns:
        return Columns(
            position,
            self.history,
            case_sensitive=self.case_sensitive,
            explicit_timestamps=self.explicit_timestamps,
        )


class LiveBinlog:
    """A server's binlog from a start point on, without an end: reading waits for new events.

    A lost connection is replaced by another one, which continues with the next event.

    Parameters
    ----------
    retry_timeout : seconds to try to connect again for; then ConnectionFailedError.
    """

    def __init__(
        self, settings: ServerSettings, place: PlaceInBinlog, retry_timeout: float
    ) -> None:
        self._retry_timeout = retry_timeout
        with ReplicaClient.connect(settings) as client:
            here = current_position(client)
            log = ServerLog.seen_from(settings, here)
            self.start = pack_position(client, log, binlog_files(client), place)
            # After a RESET MASTER, another event is before this position.
            before = log.fingerprint_at(self.start)
            self._log = log = ServerLog.seen_from(settings, self.start, before)
            self._followed = ReconnectingLog(
                settings,
                log.known,
                log.order,
                client.server_uuid(),
                blocking=True,
                retry_timeout=retry_timeout,
            )
            self._known = _KnownColumns.ask(client, log, self.start)
        self.files = (self.start.file,)
        self.notes: list[str] = []
        # The DDL of files that are left out is known, too.
        self.files_after_gaps: set[str] = set()
        self.case_sensitive = self._known.case_sensitive

    def events(self) -> Iterator[LoggedEvent]:
        def following(dump: Dump) -> Callable[[], LoggedEvent | None]:
            found = _of_dump(dump)
            return lambda: next(found, None)

        return self._followed.read_on(self.start, following, lambda logged: logged.event)

    def position(self, file: str, pos: int) -> Position:
        # The first position in a new file makes the log query the order of the files.
        return call_with_retry(self._retry_timeout, self._log.position, file, pos)

    def columns(self) -> Columns:
        return self._known.columns(self.position)

    def scanned(self) -> tuple[ScannedLog, Sequence[Position]]:
        return self._log, [self.start]


def _of_dump(dump: Dump) -> Iterator[LoggedEvent]:
    if (first := dump.first()) is not None:
        yield _format_description(first)
    while (raw := dump.stream.next_event()) is not None:
        event = dump.walker.feed(raw)
        if event is not None and not dump.is_before(event):
            yield from _with_inner(event, raw, dump.walker)


def _with_inner(event: Event, raw: bytes, walker: EventReader) -> Iterator[LoggedEvent]:
    has_checksum = walker.has_checksums
    if event.type == _FORMAT_DESCRIPTION:
        # It has a checksum even if the other events have none.
        has_checksum = len(raw) - HEADER.size > len(event.body)
    if event.type == _PAYLOAD:
        yield LoggedEvent(event, raw, has_checksum)
        payload = TransactionPayloadReader(event)
        while (inner := payload.next_event()) is not None:
            yield LoggedEvent(payload.feed(inner), inner, has_checksum=False)
    else:
        yield LoggedEvent(event, raw, has_checksum)


def _format_description(event: Event) -> LoggedEvent:
    """Return the first event of a dump, with its bytes reconstructed from its fields."""
    length = event.end - event.start
    head = HEADER.pack(
        event.timestamp, event.type, event.server_id, length, event.end & 0xFFFFFFFF, event.flags
    )
    raw = head + event.body
    if len(raw) == length:
        return LoggedEvent(event, raw, has_checksum=False)
    # The server computes the checksum without the flag of a file that is in use.
    checksum = crc32(
        raw[: HEADER.size - 2] + bytes([raw[HEADER.size - 2] & ~1]) + raw[HEADER.size - 1 :]
    )
    return LoggedEvent(event, raw + checksum.to_bytes(4, "little"), has_checksum=True)
