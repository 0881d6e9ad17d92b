"""The tail: one thread that reads the server's binlog ahead of Spark.

It reads from the last offset on, over one connection, determines what is captured, follows DDL, and
fills the buffer. After a lost connection it resumes at the last boundary. At an event that it must
not pass, it stores the error in the buffer: everything before is delivered first.

It ends with its sequence of files (see `Dump`): another tail continues with the next sequence,
whose positions start a new order.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.dump import LAST_DUMP_START, Dump, ScannedDump
from pyspark_mysqlbinlog.connector.log.replacement import IdleReplacementCheck, explain_dump_error
from pyspark_mysqlbinlog.connector.log.retry import LOG, log_reconnected, reconnect_retry
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard, unknown_among
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker, last_change
from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    check_identity,
    explicit_timestamps,
    server_time,
)
from pyspark_mysqlbinlog.connector.server.statement_routes import StatementRoutes
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog, LagThread
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail, SupersededError
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import (
    ConnectionFailedError,
    LogSequenceError,
    LostConnectionError,
    MySQLBinlogError,
)
from pyspark_mysqlbinlog.names import Table, folding
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["CheckSuccessor", "OnStatement", "Tail"]

# A boundary -> nothing, if another server can continue there; else LostConnectionError.
CheckSuccessor = Callable[[BoundaryState], None]

_MAX_HELD_SECONDS = 5.0  # seconds
OnStatement = Callable[[Event, LoggedStatement, Position, SchemaHistory], None]


class Tail(LogTail):
    """Reads the binlog of one server into a `LogBuffer`.

    Parameters
    ----------
    server_uuid : of the server that the start's file belongs to; empty if unknown.
    start : the boundary to begin at.
    retry_timeout : seconds to retry for without a connection, including the first one: the start
        was resolved by this process or an earlier one.
    watch : verifies the columns of captured tables.
    operations : which of ``truncate`` and ``ddl`` return rows.
    count_rows : report a transaction's captured rows to the buffer.
    check : raises if the server, queried over a new connection, does not log everything captured.
    end : the end of the binlog, if known.
    check_successor : asks whether another server can continue, once this one is lost; None if
        there is no other.
    on_statement : called for each statement that changes tables: with its event, the statement, its
        end, and the history of the tables on both sides of it.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        server_uuid: str,
        start: BoundaryState,
        captures: Callable[[str, str], bool],
        buffer: LogBuffer,
        retry_timeout: float,
        watch: SchemaGuard | None = None,
        operations: frozenset[str] = frozenset({"truncate"}),
        count_rows: bool = False,
        check: Callable[[ReplicaClient], None] = lambda _: None,
        end: EndOfLog | None = None,
        check_successor: CheckSuccessor | None = None,
        on_statement: OnStatement | None = None,
    ) -> None:
        super().__init__(
            start=start,
            captures=captures,
            buffer=buffer,
            heartbeat_interval=settings.heartbeat_interval,
            watch=watch,
            operations=operations,
            count_rows=count_rows,
            end=end,
        )
        self._check_successor = check_successor
        self._lag_thread = LagThread(settings, self.lag, lambda: buffer.closed)
        self._settings = settings
        self._server_uuid = server_uuid
        self._retry_timeout = retry_timeout
        self._check = check
        self._on_statement = on_statement
        # By the clock of `monotonic`: when the connection broke, or the first was requested.
        self._lost_at = 0.0
        self._compared = False
        self._idle: IdleReplacementCheck | None = None
        self._is_retrying = False
        # By the clock of `monotonic`; None without a connection.
        self._connected_at: float | None = None
        self._client: ReplicaClient | None = None

    @property
    def compared(self) -> bool:
        return self._compared

    def is_superseded(self) -> bool:
        return isinstance(self.buffer.error, SupersededError)

    @property
    def next_sequence(self) -> tuple[Position, PositionFingerprint] | None:
        error = self.buffer.error
        if not isinstance(error, LogSequenceError):
            return None
        return Position.of(error.next_file, FIRST_EVENT), PositionFingerprint(*error.next_head)

    @property
    def _mark(self) -> BoundaryState:
        """The last boundary: a new connection resumes there."""
        return self._start if self._walk is None else self._walk.boundary

    def start(self) -> None:
        super().start()
        self._lag_thread.start()

    def stop(self) -> None:
        """Close the connection; the thread then ends on its own."""
        super().stop()
        self._lag_thread.stop()
        client = self._client
        if client is not None:
            client.abort()

    def _follow(self) -> None:
        try:
            while not self.buffer.closed:
                self._run_until_lost()
        except SupersededError:
            raise
        except LogSequenceError:
            if self._walk is not None:
                self._walk.end_sequence()
            raise
        except MySQLBinlogError as error:
            boundary = self._mark
            raise explain_dump_error(
                self._settings, boundary.position, boundary.fingerprint, error
            ) from None

    def _run_until_lost(self) -> None:
        """Connect, with the remaining tries, and read until the connection breaks."""
        for attempt in reconnect_retry(self._retry_timeout):
            with attempt:
                boundary, began = self._mark, monotonic()
                self._connected_at = None
                try:
                    self._follow_log()
                except LostConnectionError as error:
                    # A connection that made progress was no failed try: the next one starts a new
                    # count, with the full timeout.
                    held = self._held_for_a_while() or self._mark is not boundary
                    if not self._is_retrying:
                        self._lost_at = monotonic() if held else began
                        self._is_retrying = True
                    if held and not self.buffer.closed:
                        LOG.warning("lost the connection, connecting again: %s", error)
                    if held or self.buffer.closed:
                        return
                    if self._check_successor is not None:
                        self._check_successor(boundary)
                        raise SupersededError(error.message) from None
                    raise

    def _held_for_a_while(self) -> bool:
        """Whether there was a connection for some time, and not only an attempt."""
        since = self._connected_at
        return since is not None and monotonic() - since > _MAX_HELD_SECONDS

    def _follow_log(self) -> None:
        self.buffer.forget_transaction()
        boundary = self._start = self._mark
        self._walk = None
        with ReplicaClient.connect(self._settings) as client:
            self._client = client
            check_identity(client, self._server_uuid)
            self._check(client)
            case_sensitive = ServerFacts.ask(client).case_sensitive
            search = PreparedXaSearch.of_server(
                self._settings,
                self._server_uuid,
                boundary.position,
                self._captures,
                lambda: self.buffer.closed,
            )
            routes = StatementRoutes(self._settings, self._captures, case_sensitive=case_sensitive)
            filtering = EventFilter(
                self._captures,
                boundary.pending_xa,
                client.server_version,
                operations=self._operations,
                earlier_xa=lambda xid, commit: self._find_prepared(search, xid, commit),
                check_others=lambda _, logged: routes.check(logged),
            )
            schemas = _Schemas(
                client,
                boundary.history,
                self._captures,
                self._watch,
                self.buffer,
                case_sensitive=case_sensitive,
                on_create=self._note_creation,
                on_rename=self._note_rename,
                on_statement=self._on_statement,
                first_needed=self._first_needed,
            )
            self.lag.connected(server_time(client))
            dump = Dump(
                client,
                boundary.position,
                boundary.fingerprint,
                blocking=True,
                on_version=filtering.written_by,
                on_heartbeat=self._heartbeat,
            )
            self._idle = IdleReplacementCheck(self._settings, lambda: self.scanned)
            self._compared = True
            self._walk = walk = TransactionScanner(
                boundary,
                filtering,
                self.buffer,
                schemas=schemas,
                counter=self._counter,
                last_start=LAST_DUMP_START,
                lag=self.lag,
                head=dump.head,
            )
            if self._is_retrying:
                log_reconnected(self._lost_at)
                self.reconnects += 1
                self._is_retrying = False
            self._connected_at = monotonic()
            if self._scans:
                self._scan(dump, walk, filtering)
            else:
                for event in dump:
                    if self.buffer.closed:
                        return
                    walk.take(event)

    def _find_prepared(
        self, search: PreparedXaSearch, xid: str, commit: Event
    ) -> PreparedXa | None:
        try:
            return search.find(xid, commit)
        except ConnectionFailedError as error:
            # The retries of the search are exhausted, but retryTimeout may not be. Count it as a
            # failed try of the tail, however long it took: otherwise tries would never end.
            self._connected_at = None
            raise LostConnectionError(error.message, code=error.code) from None

    def _heartbeat(self) -> None:
        self.lag.heartbeat()
        if self._idle is not None:
            self._idle.heartbeat()

    def _scan(self, dump: Dump, walk: TransactionScanner, filtering: EventFilter) -> None:
        """Read with the compiled scan: what it understands is returned in runs."""
        scanner = LogScanner(filtering, whole_maps=self._watch is not None, pause_at=walk.piece_due)
        scanned = ScannedDump(dump, scanner)
        while not self.buffer.closed:
            found = scanned.next(lambda _: LAST_DUMP_START)
            if found is None:
                return
            self._take(found, walk, scanner)


class _Schemas:
    """Follows the schemas of a server's tables, and verifies those that have changes."""

    def __init__(
        self,
        client: ReplicaClient,
        history: SchemaHistory,
        captures: Callable[[str, str], bool],
        watch: SchemaGuard | None,
        buffer: LogBuffer,
        *,
        case_sensitive: bool,
        on_create: Callable[[Position, Table], None],
        on_rename: Callable[[Position, Table], None],
        on_statement: OnStatement | None,
        first_needed: Callable[[Position], Position],
    ) -> None:
        self._on_statement = on_statement
        self._first_needed = first_needed
        self._captures = captures
        self._fold = folding(case_sensitive)
        self._is_mariadb = client.is_mariadb
        self._watch = watch
        self._buffer = buffer
        self._tracker = SchemaTracker(
            history,
            captures,
            case_sensitive=case_sensitive,
            complete=Grants.ask(client, case_sensitive=case_sensitive).sees_all_of,
            explicit_timestamps=explicit_timestamps(client),
            on_create=on_create,
            on_rename=on_rename,
        )

    @property
    def history(self) -> SchemaHistory:
        return self._tracker.history

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        self._tracker.follow(event, logged, end)
        if self._on_statement is not None:
            self._learn_what_is_loaded(logged, end)
            self._on_statement(event, logged, end, self._tracker.history)
        self._tracker.forget_before(self._first_needed(self._buffer.released_upto))

    def _learn_what_is_loaded(self, logged: LoggedStatement, end: Position) -> None:
        """Query unknown columns of tables after a statement: they may be snapshotted again."""
        named = (map(self._fold, table) for table in logged.statement.tables or ())
        tables = [(database, table) for database, table in named if self._captures(database, table)]
        if self._watch is None:
            return
        if unknown := unknown_among(self.history, tables, end):
            self._tracker.history = self._watch.learn(self.history, unknown, end)
        if keyless := [table for table in tables if self._is_keyless_since(end, table)]:
            self._tracker.history = self._watch.learn_keys(self.history, keyless, end)

    def _is_keyless_since(self, end: Position, table: Table) -> bool:
        """Whether the table has other columns from `end` on, and no known key."""
        schema = self.history.at(end, *table)
        changed = last_change(self.history, table) == end
        return changed and schema is not None and not schema.row_key

    def look_at(self, event: Event, boundary: Position) -> None:
        if self._watch is None:
            return
        tracker = self._tracker
        try:
            tracker.history = self._watch.check_table_map(
                tracker.history, event, boundary, is_mariadb=self._is_mariadb
            )
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None
