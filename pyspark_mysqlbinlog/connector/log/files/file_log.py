"""Binlog files on disk as a log: which they are, in what order, and their events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import (
    FIRST_EVENT,
    Position,
    base_name,
    file_number,
)
from pyspark_mysqlbinlog.connector.log.dump import Limit, check_fingerprint
from pyspark_mysqlbinlog.connector.log.files.file_chain import check_chain
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event, at_beginning
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    FormatError,
    InvalidPositionError,
    OptionError,
)
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name, is_compressed
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC, FileStream, file_ends, is_binlog
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location, files_at, located
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, RELAY_LOG_FLAG, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import parse_server_version
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = ["FileLog", "following_events", "opened_at", "verified"]

_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
# The second event of a file that contains another server's events (see relayed_positions).
_OF_OTHER_SERVER = (EventType.ROTATE_EVENT, EventType.FORMAT_DESCRIPTION_EVENT)
# Events of a relay log before the first transaction, ROTATEs included.
_BEFORE_TRANSACTIONS = frozenset(
    {
        EventType.FORMAT_DESCRIPTION_EVENT,
        EventType.PREVIOUS_GTIDS_LOG_EVENT,
        EventType.IGNORABLE_LOG_EVENT,
        EventType.MARIADB_GTID_LIST_EVENT,
        EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
    }
)


@dataclass(frozen=True)
class FileLog:
    """Files on disk, in binlog order.

    Attributes
    ----------
    paths : in binlog order.
    numbers : of each; those in the names if all are different, else 1, 2, … or, if that could be
        the number in a name, from a later number on.
    may_be_cut : the last file may end inside an event, if it was copied while its server wrote it;
        then the log ends before that event.
    pattern : of a stream: the path, by which files before these are found.
    """

    paths: tuple[str, ...]
    numbers: tuple[int, ...]
    may_be_cut: bool = False
    pattern: str = ""

    @classmethod
    def open(cls, pattern: str, *, is_numbered: bool = False) -> FileLog:
        """Find a log to read from its beginning; BinlogGapError if files are missing.

        is_numbered : for a stream; see `numbered`.
        """
        log = cls.numbered(pattern) if is_numbered else cls.find(pattern)
        if is_numbered and log.paths and not is_binlog(located(log.paths[-1])):
            # The copy of the file has just begun.
            log = replace(log, paths=log.paths[:-1], numbers=log.numbers[:-1])
        if not log.paths:
            raise _no_files(pattern, "path with no file whose name ends in a number")
        log.check_chain()
        return replace(log, may_be_cut=True)

    @classmethod
    def find(cls, pattern: str) -> FileLog:
        """Find the binlogs at a path: one file, a glob, or the files in a folder."""
        found, what = files_at(pattern)
        if what != "file":
            # A glob of other files only keeps them: their reader reports the error.
            found = _binlogs_among(found) or ([] if what == "folder" else found)
        if not found:
            is_folder = what == "folder"
            what = "folder without binlog files" if is_folder else "path with no file at it"
            raise _no_files(pattern, what)
        names = {binlog_name(child) for child in found}
        if len(names) != len(found):
            raise OptionError(
                f"option path: {pattern!r} matches files of one name in several folders, or"
                " compressed and not; read each folder separately, and each file once"
            )
        for name in names:
            try:
                # Every row and every offset contains the name as text.
                name.encode()
            except UnicodeEncodeError:
                raise OptionError(
                    f"option path: the file name {name!r} is not UTF-8; rename the file"
                ) from None
        numbers = {child: file_number(binlog_name(child)) for child in found}
        if None not in numbers.values() and len(set(numbers.values())) == len(found):
            found.sort(key=lambda child: numbers[child] or 0)
            ordinals = tuple(numbers[child] or 0 for child in found)
        else:
            found.sort(key=lambda child: _natural(binlog_name(child)))
            ordinals = _ordinals([binlog_name(child) for child in found])
        return cls(tuple(str(child) for child in found), ordinals)

    @classmethod
    def numbered(cls, pattern: str, since: int = 0) -> FileLog:
        """List the files of one server at a path, from a number on, without opening any.

        Only names that end in numbers count: others may be copies that are not complete.

        Raises OptionError for files of two names, or of one number.
        """
        found: dict[int, Location] = {}
        bases: dict[str, str] = {}
        for child in files_at(pattern)[0]:
            name = binlog_name(child)
            number = file_number(name)
            if number is None or number < since:
                continue
            bases.setdefault(base_name(name), name)
            if len(bases) > 1:
                raise OptionError(
                    f"option path: {pattern!r} matches files of two names,"
                    f" {' and '.join(bases.values())}; a stream reads those of one server: set a"
                    " folder or a glob for one of them"
                )
            if number in found:
                raise OptionError(
                    f"option path: {pattern!r} has the file {name} twice, as {found[number].name}"
                    f" and {child.name}; remove one of them"
                )
            found[number] = child
        numbers = sorted(found)
        return cls(tuple(str(found[number]) for number in numbers), tuple(numbers), pattern=pattern)

    def between(self, first: Position, last: Position) -> FileLog:
        """Return the files between two positions of a stream, both included.

        BinlogPurgedError if one of them is missing.
        """
        chosen = [n for n, each in enumerate(self.numbers) if first.number <= each <= last.number]
        numbers = tuple(self.numbers[n] for n in chosen)
        for position in (first, last):
            if position.number not in numbers:
                raise BinlogPurgedError(
                    "this file is not at the path, and a batch that was planned needs it: it was"
                    " deleted before it was read; put it back",
                    file=position.file,
                    position=position.pos,
                )
        return replace(self, paths=tuple(self.paths[n] for n in chosen), numbers=numbers)

    def with_file(self, file: str) -> FileLog:
        """Return a log that contains a file, for a stream's rows from before the range."""
        if file in self._number_of or not self.pattern:
            return self
        return replace(FileLog.numbered(self.pattern), pattern="")

    def check_chain(self, *, is_whole: bool = True) -> None:
        """Raise BinlogGapError unless each file follows the previous one.

        is_whole : these are all the files at the path.
        """
        check_chain(self.paths, is_whole=is_whole)

    def events(self, start: Position) -> Iterator[Event]:
        for path, number in zip(self.paths, self.numbers, strict=True):
            if number >= start.number:
                pos = start.pos if number == start.number else FIRST_EVENT
                with self._stream(path) as stream:
                    yield from _file_events(stream, located(path), pos)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        for path, number in zip(self.paths, self.numbers, strict=True):
            if number >= start.number:
                pos = start.pos if number == start.number else FIRST_EVENT
                with self._stream(path) as stream:
                    yield from _scanned_file(stream, located(path), pos, scanner, limit)

    def _stream(self, path: str) -> FileStream:
        return FileStream(located(path), may_be_cut=self.may_be_cut and path == self.paths[-1])

    def position(self, file: str, pos: int) -> Position:
        number = self._number_of.get(file)
        if number is None and self.pattern:
            # The file has rows that XA prepared before the range.
            return Position.of(file, pos)
        if number is None:
            raise InvalidPositionError(f"no file {file!r} at the path", file=file, position=pos)
        return Position(number, pos, file)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """The number of each file, by its name; cached, because there are many events."""
        names = (binlog_name(located(path)) for path in self.paths)
        return dict(zip(names, self.numbers, strict=True))

    def server_version(self, file: str) -> str:
        log = self.with_file(file)
        if log is not self:
            return log.server_version(file)
        number = self.position(file, FIRST_EVENT).number
        path = self.paths[self.numbers.index(number)]
        version = ""
        with self._stream(path) as stream:
            for event in _file_events(stream, located(path), FIRST_EVENT):
                if event.type == _FORMAT_DESCRIPTION:
                    version = parse_server_version(event.body)
                    if not event.flags & RELAY_LOG_FLAG:
                        break
                elif event.type not in _BEFORE_TRANSACTIONS:
                    break
        return version

    def begins(self) -> list[Position]:
        """Return the beginning of each file."""
        return [
            Position(number, FIRST_EVENT, binlog_name(located(path)))
            for path, number in zip(self.paths, self.numbers, strict=True)
        ]

    def end(self) -> Position:
        last = located(self.paths[-1])
        return Position(self.numbers[-1], file_ends(last).size, binlog_name(last))

    def fingerprint_at(self, position: Position) -> PositionFingerprint | None:
        """Return a position's fingerprint; InvalidPositionError if it is inside an event."""
        path = located(self.paths[self.numbers.index(position.number)])
        with self._stream(str(path)) as stream:
            walker, event = opened_at(stream, path, FIRST_EVENT)
            if position.pos == FIRST_EVENT or event is None:
                return at_beginning(walker.head)
            while walker.pos < position.pos and (raw := stream.next_event()) is not None:
                event = walker.feed(raw) or event
            if walker.file == position.file and walker.pos != position.pos:
                raise InvalidPositionError(
                    "no event begins at this position; set one at which an event of the file"
                    " begins",
                    file=position.file,
                    position=position.pos,
                )
            return after_event(walker.head, event)

    def verify(self, position: Position, known: PositionFingerprint) -> None:
        """Raise BinlogReplacedError unless a position has this fingerprint."""
        path = located(self.paths[self.numbers.index(position.number)])
        with self._stream(str(path)) as stream:
            verified(stream, path, position, known)

    def sizes(self) -> dict[str, int]:
        """Return the size of each file, by its name; of the content of compressed ones."""
        paths = [located(path) for path in self.paths]
        return {binlog_name(path): file_ends(path).size for path in paths}


def _binlogs_among(files: Sequence[Location]) -> list[Location]:
    """Return the files that begin like a binlog, and damaged ones that are numbered like these.

    A damaged binlog is an error for its reader, and must not be skipped like an index file. An
    empty one is a copy that has just begun.
    """
    begun = {child for child in files if is_binlog(child)}
    bases = {base_name(binlog_name(child)) for child in begun}

    def is_damaged(child: Location) -> bool:
        name = binlog_name(child)
        is_alike = file_number(name) is not None and base_name(name) in bases
        return is_alike and child.stat().st_size >= len(MAGIC)

    return [child for child in files if child in begun or is_damaged(child)]


def _no_files(pattern: str, what: str) -> OptionError:
    return OptionError(
        f"option path: {pattern!r} is a {what}; set a binlog file, a glob or a folder that"
        " the driver and the executors can read"
    )


def verified(
    stream: FileStream,
    path: Location,
    position: Position,
    known: PositionFingerprint,
    on_version: Callable[[str], None] | None = None,
) -> EventReader:
    """Return a reader of a file from a position on; BinlogReplacedError if it is another file.

    known : the fingerprint of the position, whose event is read again.
    """
    try:
        walker, event = opened_at(stream, path, position.pos - known.length, on_version)
        if walker.head is not None and known.length and event is None:
            raw = stream.next_event()
            event = None if raw is None else walker.feed(raw)
    except (InvalidPositionError, FormatError) as error:
        if is_compressed(path):
            raise  # it may be cut short
        raise log_replaced(error.message, position.file, position.pos) from None
    head = walker.head
    if head != (known.created, known.server_id):
        was = "none" if head is None else f"{head.created} by {head.server_id}"
        raise log_replaced(
            f"expected a file begun at {known.created} by {known.server_id} (seconds since 1970,"
            f" server_id), found {was}",
            position.file,
            position.pos,
        )
    if known.length:
        if event is None or walker.pos != position.pos:
            raise log_replaced("no event ends at this position", position.file, position.pos)
        check_fingerprint(position, after_event(head, event), known)
    return walker


def _file_events(stream: FileStream, path: Location, pos: int) -> Iterator[Event]:
    """Yield one file's events, including its closing ROTATE; the list determines the next file."""
    walker, first = opened_at(stream, path, pos)
    if first is not None:
        yield first
        del first
    yield from following_events(stream, walker)


def following_events(stream: FileStream, walker: EventReader) -> Iterator[Event]:
    """Yield the events after those that a reader has read."""
    while (raw := stream.next_event()) is not None:
        event = walker.feed(raw)
        del raw
        if event is None:
            continue
        if event.type == _PAYLOAD:
            yield from TransactionPayloadReader(event)
        else:
            yield event


def _scanned_file(
    stream: FileStream, path: Location, pos: int, scanner: LogScanner, limit: Limit
) -> Iterator[Run | Event]:
    """Yield a file's runs and events from a scanner."""
    walker, first = opened_at(stream, path, pos)
    if first is not None:
        yield first
    scanner.open(stream, walker)
    while (found := scanner.next(limit)) is not None:
        yield found


def opened_at(
    stream: FileStream,
    path: Location,
    pos: int,
    on_version: Callable[[str], None] | None = None,
) -> tuple[EventReader, Event | None]:
    """Return a reader of a file from `pos` on, and the file's first event if there is one.

    Without the FORMAT_DESCRIPTION at the file's beginning, nothing of it can be read.
    """
    _check_inside(path, pos)
    walker = EventReader(binlog_name(path), FIRST_EVENT, on_version=on_version, of_file=True)
    first: Event | None = None
    while not walker.has_format:
        raw = stream.next_event()
        if raw is None:
            return walker, None
        first = walker.feed(raw)
        _check_not_inside_first(walker, path, pos)
    if walker.pos < pos:
        following = stream.next_header()
        if walker.relayed or (following is not None and following.type in _OF_OTHER_SERVER):
            _skip_events(stream, walker, path, pos)
        else:
            stream.seek(pos)
        walker.seek(pos)
    return walker, first if pos <= FIRST_EVENT else None


def _skip_events(stream: FileStream, walker: EventReader, path: Location, pos: int) -> None:
    """Skip the events before `pos`, which determine how those after it are read."""
    while walker.pos < pos:
        header = stream.next_header()
        if (
            header is not None
            and header.length >= HEADER_LENGTH
            and header.type != _FORMAT_DESCRIPTION
            and walker.relayed is not None
        ):
            walker.skip(header)
            stream.skip(header.length)
            continue
        raw = stream.next_event()
        if raw is None:
            break
        walker.feed(raw)
    if walker.pos != pos:
        raise InvalidPositionError(
            "no event begins at this position; set one at which an event of the file begins",
            file=binlog_name(path),
            position=pos,
        )


def _check_inside(path: Location, pos: int) -> None:
    if is_compressed(path):
        return  # its size is not known; the caller has compared the position with the log's end
    size = path.stat().st_size
    if pos > max(size, FIRST_EVENT):
        raise InvalidPositionError(
            f"the position is past the end of its file, which has {size} bytes; set one that SHOW"
            " BINLOG EVENTS lists",
            file=binlog_name(path),
            position=pos,
        )


def _check_not_inside_first(walker: EventReader, path: Location, pos: int) -> None:
    if FIRST_EVENT < pos < walker.pos:
        raise InvalidPositionError(
            "the position is inside the file's first event; set one that SHOW BINLOG EVENTS lists",
            file=binlog_name(path),
            position=pos,
        )


def _ordinals(names: Sequence[str]) -> tuple[int, ...]:
    """Return consecutive numbers of which none is the number in its file's name.

    Otherwise the name in a file's ROTATE would be taken for the number of the next file.
    """
    in_names = [file_number(name) for name in names]
    first = next(
        first for first in count(1) if all(first + n != each for n, each in enumerate(in_names))
    )
    return tuple(range(first, first + len(names)))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key for text order in which runs of digits compare as numbers."""
    key: list[tuple[int, int, str]] = []
    digits = text = ""
    for character in [*name, ""]:
        if character.isdigit() and character.isascii():
            if text:
                key.append((1, 0, text))
                text = ""
            digits += character
        else:
            if digits:
                key.append((0, int(digits), ""))
                digits = ""
            text += character
    if text:
        key.append((1, 0, text))
    return key
