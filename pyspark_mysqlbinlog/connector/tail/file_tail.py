"""The tail of a stream from files: the same as that of a server, with files instead of a dump.

There is no server to query, so columns are known only from the history of the start and the DDL in
the files.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic, time

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidInterval, GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.dump import LAST_DUMP_START
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.files.followed_files import FollowedFiles
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    BinlogReplacedError,
    MySQLBinlogError,
)
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name
from pyspark_mysqlbinlog.protocol.binlog_files.locations import is_url, located
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.gtid_sets import parse_gtid_set

__all__ = ["FileTail"]

_PREVIOUS_GTIDS = int(EventType.PREVIOUS_GTIDS_LOG_EVENT)
# Seconds between two measurements of the lag.
_MEASURE_SECONDS = 5.0


class FileTail(LogTail):
    """Reads the files at a path into a `LogBuffer`.

    Parameters
    ----------
    case_sensitive, letter_case : see SchemaTracker.
    patience : seconds to wait for a file that should be complete, or there, by now.
    Others : see LogTail.
    """

    def __init__(
        self,
        pattern: str,
        *,
        start: BoundaryState,
        captures: Callable[[str, str], bool],
        case_sensitive: bool = True,
        letter_case: LetterCaseCheck | None = None,
        buffer: LogBuffer,
        patience: float,
        watch: SchemaGuard | None = None,
        operations: frozenset[str] = frozenset({"truncate"}),
        count_rows: bool = False,
        end: EndOfLog | None = None,
    ) -> None:
        super().__init__(
            start=start,
            captures=captures,
            buffer=buffer,
            heartbeat_interval=0.0,
            watch=watch,
            operations=operations,
            count_rows=count_rows,
            end=end,
        )
        self._pattern = pattern
        self._case_sensitive = case_sensitive
        self._letter_case = letter_case
        self._patience = patience
        self._files: FollowedFiles | None = None
        # By the clock of `monotonic`.
        self._measured_at: float | None = None

    @property
    def compared(self) -> bool:
        return self._files is not None and self._files.compared

    @property
    def scanned(self) -> Position:
        """The end of the last event, or of a file that ends inside an event."""
        files = self._files
        read = super().scanned
        return read if files is None else max(read, files.inspected)

    def _follow(self) -> None:
        boundary = self._start
        known = boundary.fingerprint
        if known is None:
            raise BinlogReplacedError(
                "the checkpoint does not contain which event is before this position, so that no"
                " file is proven to be that of the position; continue on the server (option host)",
                file=boundary.position.file,
                position=boundary.position.pos,
            )
        filtering = EventFilter(
            self._captures,
            boundary.pending_xa,
            "",
            operations=self._operations,
            earlier_xa=self._find_prepared,
            check_others=lambda event, logged: schemas.check_names(
                event, logged, walk.boundary.position
            ),
        )
        schemas = _Schemas(
            boundary.history,
            self._captures,
            self._watch,
            self.buffer,
            case_sensitive=self._case_sensitive,
            letter_case=self._letter_case,
            on_create=self._note_creation,
            on_rename=self._note_rename,
            first_needed=self._first_needed,
        )

        def written_by(version: str) -> None:
            filtering.written_by(version)
            schemas.is_mariadb = "mariadb" in version.lower()

        walk = TransactionScanner(
            boundary,
            filtering,
            self.buffer,
            schemas=schemas,
            counter=self._counter,
            # So that the stream can continue on the server.
            last_start=LAST_DUMP_START,
            lag=self.lag,
            head=FileHead(known.created, known.server_id),
        )
        files = FollowedFiles(
            self._pattern,
            boundary.position,
            known,
            patience=self._patience,
            is_closed=lambda: self.buffer.closed,
            is_between=lambda: not filtering.in_transaction,
            on_version=written_by,
            on_list=self._measure,
            on_end=self.lag.heartbeat,
        )
        self._walk, self._files = walk, files
        self.lag.connected(int(time()))
        scanner = None
        if self._scans:
            scanner = LogScanner(
                filtering, whole_maps=self._watch is not None, pause_at=walk.piece_due
            )
        for found in files.follow(scanner):
            if self.buffer.closed:
                return
            if isinstance(found, Event) and found.type == _PREVIOUS_GTIDS:
                _check_previous(walk, found)
            self._take(found, walk, scanner)

    def _find_prepared(self, xid: str, commit: Event) -> PreparedXa | None:
        log = FileLog.numbered(self._pattern)
        return PreparedXaSearch.of_files(log, self._start.position, self._captures).find(
            xid, commit
        )

    def _measure(self, log: FileLog) -> None:
        """Record the end of the last file; not in a store, where each size is a request."""
        now = monotonic()
        is_due = self._measured_at is None or now - self._measured_at >= _MEASURE_SECONDS
        if not log.paths or not is_due or is_url(self._pattern):
            return
        self._measured_at = now
        with suppress(OSError):
            paths = [located(path) for path in log.paths]
            # The content of a compressed file is known only after it was read.
            sizes = {
                Position.of(path.name, FIRST_EVENT): path.stat().st_size
                for path in paths
                if binlog_name(path) == path.name
            }
            end = max(sizes, default=None)
            if end is not None and end.number == log.numbers[-1]:
                self.lag.on_server_status(end._replace(pos=sizes[end]), sizes, int(time()))


def _check_previous(walk: TransactionScanner, event: Event) -> None:
    """Raise BinlogGapError if the files before this one had transactions that were not read."""
    # MySQL 5.6 and 5.7 have SET GLOBAL gtid_purged only while nothing is executed.
    if not walk.executed:
        return
    before = GtidSet.of(GtidInterval(*each) for each in parse_gtid_set(event.body))
    if missing := before.difference(walk.executed):
        raise BinlogGapError(
            f"the files before this one contained the transactions {missing}, which were not at"
            f" the path when they were read, up to {walk.scanned}: a file was copied before"
            " it was complete; start with a new checkpoint, or from an earlier one",
            file=event.file,
            position=event.start,
        )


class _Schemas:
    """Follows the schemas of the tables, and verifies those that have changes."""

    def __init__(
        self,
        history: SchemaHistory,
        captures: Callable[[str, str], bool],
        watch: SchemaGuard | None,
        buffer: LogBuffer,
        *,
        case_sensitive: bool,
        letter_case: LetterCaseCheck | None,
        on_create: Callable[[Position, Table], None],
        on_rename: Callable[[Position, Table], None],
        first_needed: Callable[[Position], Position],
    ) -> None:
        self._watch = watch
        self._buffer = buffer
        self._first_needed = first_needed
        self._letter_case = letter_case
        self.is_mariadb = False
        self._tracker = SchemaTracker(
            history,
            captures,
            case_sensitive=case_sensitive,
            letter_case=letter_case,
            on_create=on_create,
            on_rename=on_rename,
        )

    @property
    def history(self) -> SchemaHistory:
        return self._tracker.history

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        self._tracker.follow(event, logged, end)
        self._tracker.forget_before(self._first_needed(self._buffer.released_upto))

    def check_names(self, event: Event, logged: LoggedStatement, boundary: Position) -> None:
        if self._letter_case is not None:
            self._letter_case.check_names(self.history, boundary, event, logged)

    def look_at(self, event: Event, boundary: Position) -> None:
        if self._watch is None:
            return
        try:
            self._tracker.history = self._watch.check_table_map(
                self._tracker.history, event, boundary, is_mariadb=self.is_mariadb
            )
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None
