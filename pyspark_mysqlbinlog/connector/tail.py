"""The tail: one thread that walks the server's log ahead of Spark.

It reads from the last offset on, over one connection, decides what is wanted, follows DDL, and
fills the buffer. A broken connection is made again from the last boundary. When it meets something
that it must not pass, it leaves the error in the buffer: everything before is delivered first.

It is a daemon: Spark ends its process without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.buffer import LogBuffer, Mark, Piece
from pyspark_mysqlbinlog.connector.grants import sees_all_of
from pyspark_mysqlbinlog.connector.log import LAST_DUMP_START, ScannedDump, dump_events
from pyspark_mysqlbinlog.connector.retry import first_connection, lost_connection
from pyspark_mysqlbinlog.connector.schema_tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.schema_watch import SchemaWatch
from pyspark_mysqlbinlog.connector.server import (
    ServerFacts,
    check_identity,
    explicit_timestamps,
)
from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.implementation import implementation
from pyspark_mysqlbinlog.decoder.row_counter import RowCounter
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, ROWS_EVENT_TYPES, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server_errors import LostConnectionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.log_scanner import LogScanner, Run

__all__ = ["Tail"]

_ROTATE = int(EventType.ROTATE_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_HELD_FOR_A_WHILE = 5.0  # seconds
# Log bytes between two places where a long transaction may be cut, and how many of them to keep.
_PIECE_BYTES = 4 << 20
_MOST_PIECES = 512
_LARGEST_PRELUDE = 64 << 10


class Tail:
    """Walks the log of one server into a `LogBuffer`.

    Parameters
    ----------
    server_uuid : of the server that the start's file belongs to; empty when not known.
    start : the boundary to begin at.
    retry_timeout : seconds to try for when the connection breaks.
    watch : makes sure of the columns of wanted tables.
    ddl : keep the DDL of wanted tables as well.
    count_rows : tell the buffer how many wanted rows a transaction has.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        server_uuid: str,
        start: Mark,
        wants: Callable[[str, str], bool],
        buffer: LogBuffer,
        retry_timeout: float,
        watch: SchemaWatch | None = None,
        ddl: bool = False,
        count_rows: bool = False,
    ) -> None:
        self.buffer = buffer
        # The end of the last event that was walked: at or behind the buffer's tip.
        self.scanned = start.position
        self._settings = settings
        self._server_uuid = server_uuid
        self._wants = wants
        self._mark = start
        self._retry_timeout = retry_timeout
        self._watch = watch
        self._keeps_ddl = ddl
        self._is_mariadb = False
        # A boundary that no dump can start from, until the next file gives it another spelling.
        self._late: Mark | None = None
        self._begin_transaction()
        self._ever_connected = False
        self._client: ReplicaClient | None = None
        self._thread = Thread(target=self._run, name="mysqlbinlog-tail", daemon=True)
        self._counter = RowCounter() if count_rows else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let go of the connection; the thread ends by itself."""
        self.buffer.close()
        client = self._client
        if client is not None:
            client.abort()

    def _run(self) -> None:
        try:
            while not self.buffer.closed:
                self._run_until_lost()
        except MySQLBinlogError as error:
            self.buffer.fail(error)
        except BaseException as error:
            # Whatever it is, the query must end with it and not wait for a thread that is gone.
            self.buffer.fail(MySQLBinlogError(f"the tail failed: {type(error).__name__}: {error}"))
            raise

    def _run_until_lost(self) -> None:
        """Connect, with as many tries as are due, and walk until the connection breaks."""
        is_first = not self._ever_connected
        retrying = first_connection() if is_first else lost_connection(self._retry_timeout)
        for attempt in retrying:
            with attempt:
                started, mark = monotonic(), self._mark
                try:
                    self._walk()
                except LostConnectionError:
                    # A connection that was good for something was no failed try: the next one
                    # starts a new count, with all of its time.
                    held = monotonic() - started > _HELD_FOR_A_WHILE or self._mark is not mark
                    if self.buffer.closed or held or (is_first and self._ever_connected):
                        return
                    raise

    def _walk(self) -> None:
        self.buffer.forget_transaction()
        mark = self._mark
        start = mark.position
        self.scanned = start
        self._begin_transaction()
        with ReplicaClient.connect(self._settings) as client:
            filtering = EventFilter(
                self._wants, mark.pending_xa, client.server_version, ddl=self._keeps_ddl
            )
            self._client = client
            self._is_mariadb = "mariadb" in client.server_version.lower()
            check_identity(client, self._server_uuid)
            case_sensitive = ServerFacts.ask(client).case_sensitive
            tracker = SchemaTracker(
                mark.history,
                self._wants,
                case_sensitive=case_sensitive,
                complete=sees_all_of(client, case_sensitive=case_sensitive),
                explicit_timestamps=explicit_timestamps(client),
            )
            self._ever_connected = True
            # Rows are counted event by event.
            if implementation() == "c" and self._counter is None:
                self._scan(client, start, filtering, tracker)
            else:
                for event in dump_events(client, start, blocking=True):
                    if self.buffer.closed:
                        return
                    self._take(event, filtering, tracker)
        if not self.buffer.closed:
            raise LostConnectionError("the server ended a dump that should have gone on for ever")

    def _scan(
        self,
        client: ReplicaClient,
        start: Position,
        filtering: EventFilter,
        tracker: SchemaTracker,
    ) -> None:
        """The same by the compiled scan: what it understands comes in runs."""
        from pyspark_mysqlbinlog.decoder.log_scanner import LogScanner, Run  # noqa: PLC0415

        scanner = LogScanner(filtering, whole_maps=self._watch is not None)
        dump = ScannedDump(client, start, scanner, blocking=True)
        while not self.buffer.closed:
            found = dump.next(lambda _: LAST_DUMP_START, self._piece_due())
            if found is None:
                return
            if isinstance(found, Run):
                self._take_run(found, filtering, tracker)
            else:
                self._take_for(scanner, found, filtering, tracker)

    def _take_for(
        self, scanner: LogScanner, event: Event, filtering: EventFilter, tracker: SchemaTracker
    ) -> None:
        """Take an event; the scanner may pass what is like it from now on."""
        history = tracker.history
        self._take(event, filtering, tracker)
        if tracker.history is not history:
            # The watch looks at each table map under a new history.
            scanner.forget_maps()
        scanner.learn(event)

    def _take_run(self, run: Run, filtering: EventFilter, tracker: SchemaTracker) -> None:
        end = Position.of(run.file, run.end)
        if run.ends:
            number = end.number

            def mark_at(pos: int) -> Mark:
                return Mark(Position(number, pos, run.file), tracker.history, filtering.pending_xa)

            self._mark = mark_at(run.end)
            self.buffer.transactions(run, self._log_bytes, mark_at)
            if run.kept_bytes:
                self.buffer.wait_for_room()
            self._begin_transaction()
        else:
            self._log_bytes += run.end - run.start
            if run.kept_bytes:
                self._kept_any = True
                self.buffer.append_run(run)
            if run.rows_end:
                self._maybe_piece(end, filtering)
        self.scanned = end

    def _piece_due(self) -> int:
        """The position behind which a long transaction gets its next place to be cut."""
        last = self._pieces[-1].log_bytes if self._pieces else 0
        return self.scanned.pos + self._piece_bytes - (self._log_bytes - last)

    def _take(self, event: Event, filtering: EventFilter, tracker: SchemaTracker) -> None:
        kept = filtering.feed(event)
        end = Position.of(event.file, event.end)
        self._log_bytes += event.end - event.start
        if filtering.statement is not None:
            tracker.follow(event, filtering.statement, filtering.context, end)
            tracker.forget_before(self.buffer.released)
        if kept:
            if event.type == _TABLE_MAP and self._watch is not None:
                self._look_at(event, tracker, self._watch)
            self._kept_any = True
            self.buffer.append(kept)
            if self._counter is not None:
                self._rows += sum(self._counter.rows(each) for each in kept)
        if event.type in ROWS_EVENT_TYPES:
            self._maybe_piece(end, filtering)
        if filtering.ended:
            mark = Mark(end, tracker.history, filtering.pending_xa)
            self._boundary(mark)
        elif event.type == _ROTATE:
            rotate = Rotate.parse(event.body)
            self._next_file(Position.of(rotate.file, FIRST_EVENT))
        elif event.type == _FORMAT_DESCRIPTION:
            # After a crash there is no ROTATE: the next file just begins.
            self._next_file(Position.of(event.file, FIRST_EVENT))
        self.scanned = end

    def _look_at(self, event: Event, tracker: SchemaTracker, watch: SchemaWatch) -> None:
        try:
            tracker.history = watch.pass_map(
                tracker.history, event, self._mark.position, is_mariadb=self._is_mariadb
            )
        except MySQLBinlogError as error:
            raise error.at(event.file, event.start) from None

    def _boundary(self, mark: Mark) -> None:
        # A file outgrows what a dump may start at in its last transaction only: a boundary behind
        # that is told as the next file's beginning, as soon as there is one.
        if mark.position.pos > LAST_DUMP_START:
            self._late = mark
            return
        self._mark, self._late = mark, None
        self.buffer.boundary(
            mark, self._log_bytes, wanted=self._kept_any, rows=self._rows, pieces=self._pieces
        )
        if self._kept_any:
            self.buffer.wait_for_room()
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        self._late = None
        self._log_bytes, self._rows, self._kept_any = 0, 0, False
        self._pieces: list[Piece] = []
        self._piece_bytes = _PIECE_BYTES

    def _maybe_piece(self, end: Position, filtering: EventFilter) -> None:
        """A long transaction is cut behind some of its rows events, so that many can read it."""
        last = self._pieces[-1].log_bytes if self._pieces else 0
        if self._log_bytes - last < self._piece_bytes or end.pos > LAST_DUMP_START:
            return
        events = filtering.prelude()
        if sum(HEADER_LENGTH + len(event.body) for event in events) > _LARGEST_PRELUDE:
            return  # a statement whose own text is huge: not even packed, at each rows event
        prelude = tuple(pack_events(events))
        self._pieces.append(Piece(end, self._log_bytes, prelude, filtering.pending_xa))
        if len(self._pieces) > _MOST_PIECES:
            del self._pieces[::2]
            self._piece_bytes *= 2

    def _next_file(self, begin: Position) -> None:
        """The boundary at the end of a file is spelled as the beginning of the next."""
        if self._late is not None:
            self._boundary(replace(self._late, position=begin))
        elif begin != self._mark.position:
            self._mark = replace(self._mark, position=begin)
            self.buffer.moved(self._mark)
