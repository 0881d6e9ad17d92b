"""Binlog files on disk as a log: which they are, in what order, and their events."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position, file_number
from pyspark_mysqlbinlog.connector.log.dump import Limit
from pyspark_mysqlbinlog.connector.log.file_chain import check_chain
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    OptionError,
)
from pyspark_mysqlbinlog.protocol.compressed_files import binlog_name, is_compressed
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, RELAY_LOG_FLAG, Event, EventType
from pyspark_mysqlbinlog.protocol.files import FileStream, file_ends, is_binlog
from pyspark_mysqlbinlog.protocol.messages import parse_server_version
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = ["FileLog"]

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
    numbers : of each; those in the names if all are different, else 1, 2, ….
    may_be_cut : the last file may end inside an event, if it was copied while its server wrote it;
        then the log ends before that event.
    """

    paths: tuple[str, ...]
    numbers: tuple[int, ...]
    may_be_cut: bool = False

    @classmethod
    def open(cls, pattern: str) -> FileLog:
        """Find a log to read from its beginning; BinlogGapError if files are missing."""
        log = cls.find(pattern)
        log.check_chain()
        return replace(log, may_be_cut=True)

    @classmethod
    def find(cls, pattern: str) -> FileLog:
        """Find the binlogs at a path: one file, a glob, or the files in a folder."""
        path = Path(pattern)
        if path.is_dir():
            found = [child for child in path.iterdir() if child.is_file() and is_binlog(child)]
            what = "folder without binlog files"
        elif path.exists():
            found, what = [path], ""
        else:
            paths = glob.glob(pattern)  # noqa: PTH207 - Path.glob refuses an absolute pattern
            found = [path for path in map(Path, paths) if path.is_file()]
            what = "path with no file at it"
        if not found:
            raise OptionError(
                f"option path: {pattern!r} is a {what}; set a binlog file, a glob or a folder that"
                " the driver and the executors can read"
            )
        names = {binlog_name(child) for child in found}
        if len(names) != len(found):
            raise OptionError(
                f"option path: {pattern!r} matches files of one name in several folders, or"
                " compressed and not; read each folder separately, and each file once"
            )
        for name in names:
            try:
                # Every row and every offset contains it as text.
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
            ordinals = tuple(range(1, len(found) + 1))
        return cls(tuple(str(child) for child in found), ordinals)

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
                    yield from _file_events(stream, Path(path), pos)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        for path, number in zip(self.paths, self.numbers, strict=True):
            if number >= start.number:
                pos = start.pos if number == start.number else FIRST_EVENT
                with self._stream(path) as stream:
                    yield from _scanned_file(stream, Path(path), pos, scanner, limit)

    def _stream(self, path: str) -> FileStream:
        return FileStream(Path(path), may_be_cut=self.may_be_cut and path == self.paths[-1])

    def position(self, file: str, pos: int) -> Position:
        number = self._number_of.get(file)
        if number is None:
            raise InvalidPositionError(f"no file {file!r} at the path", file=file, position=pos)
        return Position(number, pos, file)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """The number of each file, by its name; cached, because there are many events."""
        names = (binlog_name(Path(path)) for path in self.paths)
        return dict(zip(names, self.numbers, strict=True))

    def server_version(self, file: str) -> str:
        number = self.position(file, FIRST_EVENT).number
        path = self.paths[self.numbers.index(number)]
        version = ""
        with self._stream(path) as stream:
            for event in _file_events(stream, Path(path), FIRST_EVENT):
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
            Position(number, FIRST_EVENT, binlog_name(Path(path)))
            for path, number in zip(self.paths, self.numbers, strict=True)
        ]

    def end(self) -> Position:
        last = Path(self.paths[-1])
        return Position(self.numbers[-1], file_ends(last).size, binlog_name(last))

    def sizes(self) -> dict[str, int]:
        """Return the size of each file, by its name; of the content of compressed ones."""
        paths = [Path(path) for path in self.paths]
        return {binlog_name(path): file_ends(path).size for path in paths}


def _file_events(stream: FileStream, path: Path, pos: int) -> Iterator[Event]:
    """Yield one file's events, including its closing ROTATE; the list determines the next file."""
    walker, first = _started(stream, path, pos)
    if first is not None:
        yield first
        del first
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
    stream: FileStream, path: Path, pos: int, scanner: LogScanner, limit: Limit
) -> Iterator[Run | Event]:
    """Yield a file's runs and events from a scanner."""
    walker, first = _started(stream, path, pos)
    if first is not None:
        yield first
    scanner.open(stream, walker)
    while (found := scanner.next(limit)) is not None:
        yield found


def _started(stream: FileStream, path: Path, pos: int) -> tuple[EventReader, Event | None]:
    """Return a reader of a file from `pos` on, and the file's first event if there is one.

    Without the FORMAT_DESCRIPTION at the file's beginning, nothing of it can be read.
    """
    _check_inside(path, pos)
    walker = EventReader(binlog_name(path), FIRST_EVENT, of_file=True)
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


def _skip_events(stream: FileStream, walker: EventReader, path: Path, pos: int) -> None:
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


def _check_inside(path: Path, pos: int) -> None:
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


def _check_not_inside_first(walker: EventReader, path: Path, pos: int) -> None:
    if FIRST_EVENT < pos < walker.pos:
        raise InvalidPositionError(
            "the position is inside the file's first event; set one that SHOW BINLOG EVENTS lists",
            file=binlog_name(path),
            position=pos,
        )


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
