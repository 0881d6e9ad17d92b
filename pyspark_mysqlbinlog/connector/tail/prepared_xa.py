"""What an XA transaction holds that was prepared before the place where a reading began.

XA COMMIT stands in the log by itself and names an xid only. When the reading has not seen its XA
PREPARE, that is looked for backwards: file by file, in each for the last that the log says of the
xid. An xid may be used again, so only the nearest counts; and when that is a commit or a rollback,
the transaction is not in the log. 5.6 and MariaDB before 10.5 log a transaction when it commits,
and have nothing to look for.

A file is first gone through for its XA statements, which the compiled scan does without the rows;
then the transaction itself is read. It may take long, once per xid, and needs one connection more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.logs import NO_LIMIT, FileLog, Log, ScannedLog
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.events.table_map import (
    DUMMY_TABLE_IDS,
    parse_table_name,
    table_id_of,
)
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.errors import LostConnectionError, UnsupportedTransactionError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query, XaPrepare

__all__ = ["PreparedXaSearch", "search_before_range"]

_QUERY = int(EventType.QUERY_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_XA_PREPARE = int(EventType.XA_PREPARE_LOG_EVENT)
_DECISIONS = frozenset({StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK})


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An XA PREPARE.

    begin : a boundary before its transaction, in the same file.
    """

    begin: Position
    start: int


@dataclass(frozen=True, slots=True)
class PreparedXaSearch:
    """Looks for XA transactions in front of a boundary.

    Parameters
    ----------
    begins : gives the beginnings of the log's files, oldest first.
    before : the boundary where the reading began.
    wants : whether changes of (database, table) are wanted.
    stopped : nobody wants to know any more.
    """

    log: ScannedLog
    begins: Callable[[], Sequence[Position]]
    before: Position
    wants: Callable[[str, str], bool]
    stopped: Callable[[], bool] = lambda: False

    @classmethod
    def of_files(
        cls, log: FileLog, before: Position, wants: Callable[[str, str], bool]
    ) -> PreparedXaSearch:
        return cls(log, log.begins, before, wants)

    @classmethod
    def of_server(
        cls,
        settings: ServerSettings,
        server_uuid: str,
        before: Position,
        wants: Callable[[str, str], bool],
        stopped: Callable[[], bool] = lambda: False,
    ) -> PreparedXaSearch:
        def ask() -> dict[str, int]:
            with initial_retry()(ReplicaClient.connect, settings) as client:
                return binlog_files(client)

        def begins() -> list[Position]:
            return [*FileOrder(ask, before.file).sizes()]

        return cls(
            ReconnectingLog(settings, server_uuid=server_uuid), begins, before, wants, stopped
        )

    def check_not_captured(self, xid: str) -> None:
        """Look for the transaction that XA COMMIT has just named.

        Raises
        ------
        UnsupportedTransactionError : it has rows of wanted tables, or is not to be found.
        LostConnectionError : or the search was stopped.
        """
        begins = self.begins()
        for begin in reversed(begins):
            if begin.order >= self.before.order:
                continue
            is_told, prepared = self._last_of(begin, xid)
            if prepared is not None:
                self._check_no_rows(prepared, xid)
                return
            if is_told:
                break
        oldest = f", whose files begin with {begins[0].file}" if begins else ""
        raise UnsupportedTransactionError(
            f"XA COMMIT of {xid}, whose XA PREPARE is not in the log before {self.before}{oldest}:"
            " it may have changed wanted tables, and expected was a log that tells; read with the"
            " older files, if a copy of them is there, or compare the tables and start again with a"
            " new checkpoint behind this position"
        )

    def _last_of(self, begin: Position, xid: str) -> tuple[bool, _Prepared | None]:
        """Whether a file tells of the xid, and its XA PREPARE unless it was decided since."""
        is_told = False
        prepared: _Prepared | None = None
        boundary = begin
        for event in self._statements(begin):
            if event.type == _XA_PREPARE:
                prepare = XaPrepare.parse(event.body)
                if prepare.xid == xid:
                    is_told = True
                    prepared = None if prepare.one_phase else _Prepared(boundary, event.start)
                boundary = begin._replace(pos=event.end)
            elif event.type == _QUERY:
                statement = _statement(event)
                if statement.kind in _DECISIONS:
                    if statement.xid == xid:
                        is_told, prepared = True, None
                    boundary = begin._replace(pos=event.end)
        return is_told, prepared

    def _check_no_rows(self, prepared: _Prepared, xid: str) -> None:
        state = TransactionState()
        begin = prepared.begin
        wanted: dict[int, str] = {}
        table = ""
        for event in self._inside(self.log.events(prepared.begin), prepared.begin):
            if not state.in_progress:
                begin = begin._replace(pos=event.start)
                wanted.clear()
                table = ""
            if event.start == prepared.start:
                break
            if event.type == _TABLE_MAP:
                table_id, *name = parse_table_name(event.body)
                is_wanted = name[0] not in SYSTEM_DATABASES and self.wants(*name)
                wanted[table_id] = ".".join(name) if is_wanted else ""
            elif event.type in OPERATIONS:
                table_id = table_id_of(event.body)
                if table_id not in DUMMY_TABLE_IDS or table_id in wanted:
                    table = table or wanted.get(table_id, "a table without table map")
            state.follow(event, _statement(event) if event.type == _QUERY else None)
        if table:
            raise UnsupportedTransactionError(
                f"XA COMMIT of {xid}, which was prepared before the start of this reading"
                f" ({self.before}), with rows of wanted tables; it begins at {begin}, and a start"
                " from there would include it, but two-phase XA is not followed yet: exclude the"
                " table, or start again with a new checkpoint behind this position",
                table=table,
            )

    def _statements(self, begin: Position) -> Iterator[Event]:
        """The events of a file in front of the boundary, all that are no rows among them."""
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
        """Up to where a file is looked through."""
        return self.before.pos if self.before.number == begin.number else NO_LIMIT


def search_before_range(
    log: Log,
    before: Position,
    wants: Callable[[str, str], bool],
    stopped: Callable[[], bool] = lambda: False,
) -> Callable[[str], None] | None:
    """For whoever reads a range of a server's log; of files the planner has looked at all."""
    if not isinstance(log, ReconnectingLog):
        return None
    search = PreparedXaSearch.of_server(log.settings, log.server_uuid, before, wants, stopped)
    return search.check_not_captured


def _statement(event: Event) -> Statement:
    query = Query.parse(event.body)
    return classify(query.sql, query.database)
