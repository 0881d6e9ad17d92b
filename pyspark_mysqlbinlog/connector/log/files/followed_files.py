"""Binlog files at a path that grow while they are read: a stream's counterpart of a dump.

Files are added by a copy from the server, or by the server itself. So the newest file may end
inside an event or a transaction, and a file may arrive before an earlier one. Nothing is skipped:

* After a file, only the file with the next number is read. A file is complete if it ends with a
  ROTATE, which names the next one, or with a STOP. A server that crashed leaves neither; then the
  next file was begun by a start of the server, as its FORMAT_DESCRIPTION shows, and the file must
  not grow for a while.
* Everything else that later files show to be wrong (a missing number, a file that is cut short) may
  be a copy in progress. The stream waits for it with a warning, and fails with an error after
  `patience`.
* What was read is verified at each check: the event before the position must still be there. So a
  file that was replaced by a shorter one, or another one, is noticed.

Positions are numbered by the files' names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import NamedTuple

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.dump import LAST_DUMP_START
from pyspark_mysqlbinlog.connector.log.files.file_chain import ChainFile, check_numbered_successor
from pyspark_mysqlbinlog.connector.log.files.file_log import (
    FileLog,
    following_events,
    opened_at,
    verified,
)
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event, at_beginning
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    BinlogPurgedError,
    FormatError,
    MalformedEventError,
    MySQLBinlogError,
    OptionError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name, is_compressed
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC, FileStream, file_ends
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location, is_url, located
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import RELAY_LOG_FLAG, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["FollowedFiles"]

_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_ROTATE = int(EventType.ROTATE_EVENT)
_STOP = int(EventType.STOP_EVENT)
# Seconds between two listings of the path.
_POLL_SECONDS = 0.2
_REMOTE_POLL_SECONDS = 5.0
# Seconds that a file without ROTATE or STOP must not grow before the next file is read.
_SETTLE_SECONDS = 60.0


class _Status(NamedTuple):
    """The path, size and time of a file, which show whether it was changed."""

    path: str
    size: int
    changed: int


class FollowedFiles:
    """The files at a path, from a boundary on.

    Parameters
    ----------
    known : the fingerprint of `start`.
    patience : seconds to wait for a file that should exist, or be complete, by now.
    is_closed : whether the stream is closed.
    is_between : whether the reader is between two transactions.
    on_version : see EventReader.
    on_list : called with the files from the current one on, whenever they are listed.
    on_end : called when there is nothing more to read for now.

    Attributes
    ----------
    compared : the start was found in its file.
    inspected : the end of what was read; of a file that ends inside an event, the file's size.
    """

    def __init__(
        self,
        pattern: str,
        start: Position,
        known: PositionFingerprint,
        *,
        patience: float,
        is_closed: Callable[[], bool],
        is_between: Callable[[], bool],
        on_version: Callable[[str], None],
        on_list: Callable[[FileLog], None],
        on_end: Callable[[], None],
    ) -> None:
        self._pattern = pattern
        self._here = self.inspected = start
        self._known: PositionFingerprint | None = known
        self._patience = patience
        self._is_closed = is_closed
        self._is_between = is_between
        self._on_version = on_version
        self._on_list = on_list
        self._on_end = on_end
        self.compared = False
        # The files from the current one on, as they were listed last.
        self._log = FileLog((), ())
        # The file before the current one, while nothing of the current one is read.
        self._before: ChainFile | None = None
        self._has_stopped = False
        # The status of the current file when it was read to its end, or up to an error. While the
        # status is the same, the file is not read again.
        self._passed: _Status | None = None
        self._error: FormatError | None = None
        # By the clock of `monotonic`: since when the current file has not changed.
        self._unchanged_since = 0.0
        # Files without ROTATE or STOP after which the stream continued, and their sizes then.
        self._left: dict[Location, int] = {}
        # The message of the problem that the stream waits to end, and since when it waits.
        self._problem: tuple[str, float] | None = None

    def follow(self, scanner: LogScanner | None) -> Iterator[Run | Event]:
        """Yield runs and events from the start on; ends when the stream is closed.

        Parameters
        ----------
        scanner : None for single events.

        Raises
        ------
        BinlogReplacedError : the files are not those that contain the start, or were replaced.
        BinlogGapError : a file does not follow the one before it, or stays incomplete.
        BinlogPurgedError : a file that is needed stays missing.
        FormatError : damaged bytes.
        """
        while not self._is_closed():
            number = self._here.number
            try:
                path = self._path()
                status = None if path is None else _status_of(path)
                if path is not None and status is not None and status.size >= len(MAGIC):
                    if status != self._passed:
                        yield from self._pass(path, status, scanner)
                    else:
                        self._at_end(path, status)
            except OSError as error:
                self._passed = None
                reason = error.strerror or str(error) or type(error).__name__
                self._wait_for(OptionError(f"option path: {self._pattern!r}: {reason}"))
            if self._here.number == number:
                self._pause()

    # --- one file

    def _pass(
        self, path: Location, status: _Status, scanner: LogScanner | None
    ) -> Iterator[Run | Event]:
        """Yield everything of the current file after the last position, as far as it goes now."""
        number = self._here.number
        self._passed, self._error, self._unchanged_since = status, None, monotonic()
        try:
            with FileStream(path, may_be_cut=True) as stream:
                walker, first = self._open(stream, path, status)
                if walker.head is not None:
                    if self._before is not None:
                        check_numbered_successor(self._before, ChainFile.read(path))
                        self._before = None
                    self.compared = True
                    yield from self._read(path, stream, walker, first, scanner)
        except UnsupportedEventError:
            raise
        except FormatError as error:
            found = _status_of(path)
            is_rewritten = found is None or found.size < status.size
            if not (is_rewritten or is_compressed(path)):
                raise
            # The copy of the compressed file, or the second copy of any file, may be in progress.
            self._error = error
            return
        self._problem = None
        if self._here.number == number:
            size = file_ends(path).size if is_compressed(path) else status.size
            self.inspected = self._here._replace(pos=max(size, self._here.pos))

    def _open(
        self, stream: FileStream, path: Location, status: _Status
    ) -> tuple[EventReader, Event | None]:
        """Return a reader at the last position, and the file's first event if that is there."""
        here, known = self._here, self._known
        first: Event | None = None
        if known is not None and here.pos > FIRST_EVENT:
            if status.size < here.pos and not is_compressed(path):
                raise log_replaced(
                    f"the file has {status.size} bytes, and was read further before",
                    here.file,
                    here.pos,
                )
            walker = verified(stream, path, here, known, self._on_version)
        else:
            walker, first = opened_at(stream, path, here.pos, self._on_version)
            found = at_beginning(walker.head)
            if None not in (found, known) and found != known:
                raise log_replaced(
                    f"the file was begun by another server, or at another time: expected {known},"
                    f" found {found}",
                    here.file,
                    here.pos,
                )
        if walker.relayed or (first is not None and first.flags & RELAY_LOG_FLAG):
            raise UnsupportedEventError(
                "this is a relay log: a stream reads the binlog of one server; read relay logs in a"
                " batch",
                file=here.file,
            )
        return walker, first

    def _read(
        self,
        path: Location,
        stream: FileStream,
        walker: EventReader,
        first: Event | None,
        scanner: LogScanner | None,
    ) -> Iterator[Run | Event]:
        for found in _all_found(stream, walker, first, scanner):
            if isinstance(found, Event) and found.type == _ROTATE:
                if stream.next_header() is not None:
                    raise MalformedEventError(
                        "the file continues after its ROTATE, which a server writes at the end",
                        file=found.file,
                        position=found.end,
                    )
                before = ChainFile.read(path)
                yield found
                self._begin_next(Rotate.parse(found.body).file, before)
                return
            self._here = self._here._replace(pos=found.end)
            is_head = isinstance(found, Event) and found.type == _FORMAT_DESCRIPTION
            # A flag in the file's first event is cleared when its server closes the file.
            self._known = at_beginning(walker.head) if is_head else after_event(walker.head, found)
            self._has_stopped = isinstance(found, Event) and found.type == _STOP
            yield found

    def _begin_next(self, name: str, before: ChainFile) -> None:
        """Continue with the next file, by its name, after the file `before`."""
        self._before = before
        self._here = self.inspected = Position.of(name, FIRST_EVENT)
        self._known, self._has_stopped, self._passed, self._problem = None, False, None, None

    # --- the end of a file

    def _at_end(self, path: Location, status: _Status) -> None:
        """Continue with the next file if everything in this one is read, and it is complete."""
        if self._error is not None:
            self._wait_for(self._error)
            return
        self._check_left()
        log = self._log
        if log.numbers[-1:] == (self._here.number,):
            self._problem = None
            self._on_end()
        elif len(log.numbers) > 1:
            after = located(log.paths[1])
            if log.numbers[1] != self._here.number + 1:
                self._wait_for(_missing(self._here.number + 1, log.paths[1]))
            elif self._has_stopped or self._is_left(path, status, after):
                self._begin_next(binlog_name(after), ChainFile.read(path))

    def _is_left(self, path: Location, status: _Status, after: Location) -> bool:
        """Whether the server left a file without ROTATE or STOP when it crashed, and began another.

        Otherwise the copy of the file is not complete.
        """
        name, here = binlog_name(path), self._here
        is_begun = _status_of(after)
        following = None
        if is_begun is not None and is_begun.size >= len(MAGIC):
            following = ChainFile.read(after)
        if following is None or following.head is None:
            self._wait_for(
                MalformedEventError("the file has no beginning", file=binlog_name(after))
            )
            return False
        if not following.created:
            self._wait_for(
                BinlogGapError(
                    f"{name} does not end with a ROTATE, and {following.name} was begun by a"
                    " rotation: the copy of the file is not complete; copy it again",
                    file=name,
                    position=here.pos,
                )
            )
            return False
        is_cut = self.inspected.pos > here.pos
        if is_cut or not self._is_between():
            what = "an event" if is_cut else "a transaction"
            self._wait_for(
                MalformedEventError(
                    f"the file ends inside {what}, and {following.name} follows it: the copy of"
                    " the file is not complete, or its server crashed here",
                    file=name,
                    position=here.pos,
                )
            )
            return False
        if monotonic() - self._unchanged_since < min(_SETTLE_SECONDS, self._patience):
            return False
        LOG.warning(
            "%s ends without a ROTATE or STOP, as when a server crashes; the stream continues with"
            " %s, which was begun by a start of the server",
            name,
            following.name,
        )
        self._left[path] = status.size
        return True

    def _check_left(self) -> None:
        """Raise BinlogGapError if a file has grown that was treated as complete."""
        for path, size in self._left.items():
            status = _status_of(path)
            if status is not None and status.size != size:
                raise BinlogGapError(
                    f"the file had {size} bytes when the stream continued with the next one, and"
                    f" has {status.size} now: what was added was not read; start with a new"
                    " checkpoint",
                    file=binlog_name(path),
                    position=size,
                )

    # --- waiting

    def _pause(self) -> None:
        """Wait until the next check, in short steps so that the end of the stream is noticed."""
        until = monotonic() + (_REMOTE_POLL_SECONDS if is_url(self._pattern) else _POLL_SECONDS)
        while (left := until - monotonic()) > 0 and not self._is_closed():
            sleep(min(left, _POLL_SECONDS))

    def _path(self) -> Location | None:
        """Return the path of the current file; None if the stream has to wait for it."""
        here = self._here
        try:
            log = FileLog.numbered(self._pattern, here.number)
        except OptionError as error:
            # Two files may have one number while a copy replaces one of them.
            self._wait_for(error)
            return None
        self._log = log
        self._on_list(log)
        if log.numbers[:1] != (here.number,):
            if log.numbers or here.pos > FIRST_EVENT:
                self._wait_for(_missing(here.number, (*log.paths, "")[0], here))
            else:
                self._on_end()
            return None
        path = located(log.paths[0])
        if binlog_name(path) != here.file:
            self._wait_for(
                BinlogGapError(
                    f"expected {here.file}, found {path.name}: give the files the names that SHOW"
                    " BINARY LOGS has",
                    file=here.file,
                )
            )
            return None
        return path

    def _wait_for(self, error: MySQLBinlogError) -> None:
        """Wait for what may be a copy in progress; raise the error if it takes too long."""
        now = monotonic()
        if self._problem is None or self._problem[0] != error.message:
            self._problem = error.message, now
            LOG.warning("waiting for files, as a copy may be in progress: %s", error)
        elif now - self._problem[1] > self._patience:
            raise error


def _all_found(
    stream: FileStream, walker: EventReader, first: Event | None, scanner: LogScanner | None
) -> Iterator[Run | Event]:
    if first is not None:
        yield first
    if scanner is None:
        yield from following_events(stream, walker)
        return
    scanner.open(stream, walker)
    # A server can't start a dump at a later position.
    while (found := scanner.next(lambda _: LAST_DUMP_START)) is not None:
        yield found


def _status_of(path: Location) -> _Status | None:
    """Return the status of a file; None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Status(str(path), found.st_size, found.st_mtime_ns)


def _missing(number: int, later: str, here: Position | None = None) -> BinlogPurgedError:
    """Return the error for a missing file; `later` is the next existing file, if any."""
    found = f"found {binlog_name(located(later))}" if later else "found no later one"
    return BinlogPurgedError(
        f"the path has no file with the number {number}, {found}: it was deleted before it was"
        " read, or its copy is late; put it there",
        file=None if here is None else here.file,
        position=None if here is None else here.pos,
    )
