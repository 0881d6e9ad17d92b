"""Search for an XA transaction that was prepared before the position where reading began.

In the binlog an XA COMMIT is separate and contains only an xid. If its XA PREPARE was not read, it
is searched backwards: file by file, in each for the last statement about the xid. An xid may be
reused, so only the nearest statement counts; if that is a commit or a rollback, the transaction is
not in the binlog. 5.6 and MariaDB before 10.5 log a transaction when it commits, and need no
search.

A file is first searched for its XA statements, which the compiled scan does without the rows; then
the transaction itself is read. It may take long, once per xid, and needs one more connection.

The schemas of its tables are those at its rows, and these are only known from the start of the
reading on. The server keeps the tables of a prepared transaction from being altered, but may forget
to do so when it is restarted (5.7). So the statements up to the XA COMMIT must not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import (
    NO_LIMIT,
    Log,
    ScannedLog,
    statement_events,
)
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.log.retry import LOG, initial_retry
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS, Statement, StatementKind
from pyspark_mysqlbinlog.decoder.events.table_map import (
    DUMMY_TABLE_IDS,
    parse_table_name,
    table_id_of,
)
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.errors import LostConnectionError, UnsupportedTransactionError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query, XaPrepare
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["PreparedXaSearch", "search_before_range"]

_QUERY = int(EventType.QUERY_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_XA_PREPARE = int(EventType.XA_PREPARE_LOG_EVENT)
_DECISIONS = frozenset({StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK})


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An XA PREPARE.

    begin : a boundary before its transaction, in the same file.
    start, end : of its event.
    """

    begin: Position
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PreparedXaSearch:
    """Searches XA transactions before a boundary.

    Parameters
    ----------
    begins : returns the beginnings of the binlog files, oldest first.
    before : the boundary where reading began.
    captures : whether changes of (database, table) are captured.
    stopped : whether to abort the search.
    """

    log: ScannedLog
    begins: Callable[[], Sequence[Position]]
    before: Position
    captures: Callable[[str, str], bool]
    stopped: Callable[[], bool] = lambda: False

    @classmethod
    def of_files(
        cls, log: FileLog, before: Position, captures: Callable[[str, str], bool]
    ) -> PreparedXaSearch:
        return cls(log, log.begins, before, captures)

    @classmethod
    def of_server(
        cls,
        settings: ServerSettings,
        server_uuid: str,
        before: Position,
        captures: Callable[[str, str], bool],
        stopped: Callable[[], bool] = lambda: False,
    ) -> PreparedXaSearch:
        def ask() -> dict[str, int]:
            with initial_retry()(ReplicaClient.connect, settings) as client:
                return binlog_files(client)

        def begins() -> list[Position]:
            return [*FileOrder(ask, before.file).sizes()]

        return cls(
            ReconnectingLog(settings, server_uuid=server_uuid), begins, before, captures, stopped
        )

    def find(self, xid: str, commit: Event) -> PreparedXa | None:
        """Search the transaction of an XA COMMIT; None if it has no rows of captured tables.

        Raises
        ------
        UnsupportedTransactionError : it is not found, or its tables were changed since then.
        LostConnectionError : also if the search was stopped.
        """
        begins = self.begins()
        LOG.info(
            "searching the binlog before %s for the XA transaction %s, which is committed at %s:%d;"
            " this reads up to %d files, once",
            self.before,
            xid,
            commit.file,
            commit.start,
            sum(begin.order < self.before.order for begin in begins),
        )
        for begin in reversed(begins):
            if begin.order >= self.before.order:
                continue
            is_found, prepared = self._last_of(begin, xid)
            if prepared is not None:
                found, tables = self._captured(prepared, xid)
                if found is not None:
                    self._check_unchanged(found, tables, commit)
                return found
            if is_found:
                break
        oldest = f", whose files begin with {begins[0].file}" if begins else ""
        error = UnsupportedTransactionError(
            f"XA COMMIT of {xid}: its XA PREPARE is not in the binlog before {self.before}{oldest};"
            " it may have changed captured tables; read with the older files, if there is a copy of"
            " them, or compare the tables and start again with a new checkpoint after this"
            " position"
        )
        error.lost_before = commit.file, commit.end
        raise error

    def _last_of(self, begin: Position, xid: str) -> tuple[bool, _Prepared | None]:
        """Return whether a file mentions the xid, and its XA PREPARE if still pending."""
        is_found = False
        prepared: _Prepared | None = None
        boundary = begin
        for event in self._statements(begin):
            if event.type == _XA_PREPARE:
                prepare = XaPrepare.parse(event.body)
                if prepare.xid == xid:
                    is_found = True
                    prepared = _Prepared(boundary, event.start, event.end)
                    if prepare.one_phase:
                        prepared = None
                boundary = begin._replace(pos=event.end)
            elif event.type == _QUERY:
                statement = _statement(event)
                if statement.kind in _DECISIONS:
                    if statement.xid == xid:
                        is_found, prepared = True, None
                    boundary = begin._replace(pos=event.end)
        return is_found, prepared

    def _captured(
        self, prepared: _Prepared, xid: str
    ) -> tuple[PreparedXa | None, frozenset[Table]]:
        """Return the transaction if it has captured rows, and their tables."""
        state = TransactionState()
        begin = prepared.begin
        captured: dict[int, Table | None] = {}
        tables: set[Table] = set()
        for event in self._inside(self.log.events(prepared.begin), prepared.begin):
            if not state.in_progress:
                begin = begin._replace(pos=event.start)
                captured.clear()
                tables.clear()
            # The events of a payload all begin with it.
            if event.type == _XA_PREPARE and event.start == prepared.start:
                break
            if event.type == _TABLE_MAP:
                table_id, database, table = parse_table_name(event.body)
                is_captured = database not in SYSTEM_DATABASES and self.captures(database, table)
                captured[table_id] = (database, table) if is_captured else None
            elif event.type in OPERATIONS:
                table_id = table_id_of(event.body)
                if table_id not in DUMMY_TABLE_IDS or table_id in captured:
                    # If the table map is missing, reading the rows reports it.
                    name = captured.get(table_id, ("", ""))
                    tables |= set() if name is None else {name}
            state.follow(event, _statement(event) if event.type == _QUERY else None)
        if not tables:
            return None, frozenset()
        return PreparedXa(xid, begin.file, begin.pos, prepared.end), frozenset(tables)

    def _check_unchanged(self, xa: PreparedXa, tables: frozenset[Table], commit: Event) -> None:
        """Raise if a statement up to the XA COMMIT may change the columns of the tables."""
        names = {(database.lower(), table.lower()) for database, table in tables}
        end = self.log.position(commit.file, commit.start)
        for event in statement_events(self.log, self.log.position(xa.file, xa.end), end):
            if self.stopped():
                raise LostConnectionError("the search for an XA transaction was stopped")
            if self.log.position(event.file, event.start).order >= end.order:
                return
            if event.type == _QUERY and _may_change(_statement(event), names):
                table = min(tables)
                raise UnsupportedTransactionError(
                    f"XA COMMIT of {xa.xid}, which was prepared at {xa.file}:{xa.begin}, before the"
                    f" start of this reading ({self.before}); the statement at {event.file}:"
                    f"{event.start} may have changed the columns of its tables since then, so that"
                    " its rows can't be read; start again with a new checkpoint before its XA"
                    " START, or exclude the table",
                    table=".".join(table),
                )

    def _statements(self, begin: Position) -> Iterator[Event]:
        """Yield a file's events before the boundary; the compiled scan may omit rows events."""
        if implementation() == "python":
            yield from self._inside(self.log.events(begin), begin)
            return
        limit = self._end(begin)
        found = self.log.scan(begin, LogScanner(), lambda _: limit)
        yield from self._inside(found, begin)

    def _inside(self, found: Iterator[Run | Event], begin: Position) -> Iterator[Event]:
        end = self._end(begin)
        for each in found:
            if self.stopped():
                raise LostConnectionError("the search for an XA transaction was stopped")
            if each.file != begin.file or each.start >= end:
                return
            if isinstance(each, Event):
                yield each

    def _end(self, begin: Position) -> int:
        """Return where the search in a file ends."""
        return self.before.pos if self.before.number == begin.number else NO_LIMIT


def search_before_range(
    log: Log,
    before: Position,
    captures: Callable[[str, str], bool],
    stopped: Callable[[], bool] = lambda: False,
) -> Callable[[str, Event], PreparedXa | None] | None:
    """Return the search for a range; None in a batch read of files: the planner has searched."""
    if isinstance(log, FileLog) and log.pattern:
        pattern = log.pattern

        def find(xid: str, commit: Event) -> PreparedXa | None:
            earlier = FileLog.numbered(pattern)
            return PreparedXaSearch.of_files(earlier, before, captures).find(xid, commit)

        return find
    if not isinstance(log, ReconnectingLog):
        return None
    search = PreparedXaSearch.of_server(log.settings, log.server_uuid, before, captures, stopped)
    return search.find


def _may_change(statement: Statement, names: set[Table]) -> bool:
    if statement.kind not in DDL_KINDS and statement.kind is not StatementKind.UNKNOWN:
        return False
    if statement.database is not None:
        return statement.database.lower() in {database for database, _ in names}
    if statement.tables is None:
        return True
    return any((database.lower(), table.lower()) in names for database, table in statement.tables)


def _statement(event: Event) -> Statement:
    query = Query.parse(event.body)
    return classify(query.sql, query.database)
