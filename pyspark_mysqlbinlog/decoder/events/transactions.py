"""The state of the binlog within its transactions, and the transaction data of rows.

A transaction is GTID? (or ANONYMOUS_GTID; none in 5.5), QUERY BEGIN or XA START, for each statement
ROWS_QUERY? (if the server logs it), table maps and rows events, and XID, QUERY COMMIT or
XA_PREPARE. DDL is GTID? and one QUERY. MariaDB's GTID event replaces BEGIN, unless it is flagged as
standalone, and contains no thread id.

`TransactionState` is used by the event filter, the decoder and the search for a time. Its compiled
counterpart for the scan and the decode loop is kernel/cpp/events/transactions.hpp. It accepts any
sequence of events; the checks are in decoder/filtering/unsafe_events.py.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import Statement, StatementKind
from pyspark_mysqlbinlog.protocol.events import MYSQL_GTID_TYPES, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Gtid, MariadbGtid, Query, parse_rows_query

__all__ = ["TransactionContext", "TransactionState", "valid_text"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_GTID = int(EventType.GTID_LOG_EVENT)
_MARIADB_GTID = int(EventType.MARIADB_GTID_EVENT)
_ROWS_QUERY = int(EventType.ROWS_QUERY_LOG_EVENT)
_ENDS = frozenset({int(EventType.XID_EVENT), int(EventType.XA_PREPARE_LOG_EVENT)})
_GTID_TAGGED = int(EventType.GTID_TAGGED_LOG_EVENT)
_STATEMENT_TEXTS = frozenset({_ROWS_QUERY, int(EventType.MARIADB_ANNOTATE_ROWS_EVENT)})

_KIND = StatementKind
_BEGIN_STATEMENTS = frozenset({_KIND.BEGIN, _KIND.XA_START})
# XA COMMIT and XA ROLLBACK are standalone, after the XA_PREPARE that ended their transaction's
# events.
_END_STATEMENTS = frozenset({_KIND.COMMIT, _KIND.ROLLBACK, _KIND.XA_COMMIT, _KIND.XA_ROLLBACK})
_PART_STATEMENTS = frozenset({_KIND.SAVEPOINT, _KIND.ROLLBACK_TO})


class TransactionState:
    """Tracks the transaction state over the events of a binlog, beginning at a boundary.

    `follow` accepts any event; a caller that knows the event's type can call its method directly.

    Attributes
    ----------
    named : the transaction has a GTID event.
    in_group : it has begun, so that rows can come.
    is_statement : it is a single statement of MySQL 5.1 without BEGIN and COMMIT.
    begun_by_gtid : MariaDB's GTID event began it; XA START may still follow.
    rows_seen : its statement already has rows: the next table map begins another statement.
    ended : the last event ended a transaction; the other attributes are those after it.
    xid : of the XA transaction, from XA START.
    savepoints : those that it has set, each with the `mark` that `savepoint` was given.
    """

    __slots__ = (
        "begun_by_gtid",
        "ended",
        "in_group",
        "is_statement",
        "named",
        "rows_seen",
        "savepoints",
        "xid",
    )

    def __init__(self) -> None:
        self.ended = False
        self.xid: str | None = None
        self.savepoints: dict[str, int] = {}
        self._forget()

    @property
    def in_progress(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self.in_group or self.named

    def follow(self, event: Event, statement: Statement | None = None) -> None:
        """Update the state for one event.

        Parameters
        ----------
        statement : of a QUERY.
        """
        kind = event.type
        self.ended = False
        if kind in OPERATIONS:
            self.rows()
        elif kind == _TABLE_MAP:
            self.table_map()
        elif kind in _STATEMENT_TEXTS:
            self.text()
        elif kind in MYSQL_GTID_TYPES:
            self.gtid()
        elif kind == _MARIADB_GTID:
            self.gtid(begins=MariadbGtid.parse(event.body).begins)
        elif kind in _ENDS:
            self.end()
        elif statement is not None:
            self.query(statement)

    def gtid(self, *, begins: bool = False) -> None:
        """GTID of any kind; MariaDB's, if it also `begins` the transaction."""
        self._forget()
        self.named = True
        self.in_group = self.begun_by_gtid = begins

    def begin(self, xid: str | None = None) -> None:
        """BEGIN, or XA START of an xid."""
        self.in_group = True
        self.begun_by_gtid = False
        self.xid = xid

    def begin_statement(self) -> None:
        """Table map of a statement of MySQL 5.1 that is a transaction of its own."""
        self.in_group = self.is_statement = True

    def text(self) -> None:
        """Text of a statement: another statement begins."""
        self.rows_seen = False

    def table_map(self) -> bool:
        """Table map; return whether it begins another statement.

        All maps of a statement come before its rows. If the server had logged the text of the next
        statement, that text would have come in between.
        """
        begins = self.rows_seen
        self.rows_seen = False
        return begins

    def rows(self) -> None:
        self.rows_seen = True

    def savepoint(self, name: str, mark: int = 0) -> None:
        """SAVEPOINT. mark : a value of the caller, stored in `savepoints`."""
        self.savepoints[name] = mark

    def end(self) -> None:
        """XID, XA_PREPARE, or a QUERY that ends a transaction."""
        self._forget()
        self.ended = True

    def query(self, statement: Statement) -> None:
        kind = statement.kind
        if kind in _BEGIN_STATEMENTS:
            self.begin(statement.xid)
        elif kind is _KIND.SAVEPOINT:
            self.savepoint(statement.savepoint or "")
        elif kind in _END_STATEMENTS or self.is_standalone(kind):
            self.end()

    def is_standalone(self, kind: StatementKind) -> bool:
        """Whether a statement is a transaction of its own, as DDL is."""
        return not (self.in_group or kind in _PART_STATEMENTS)

    def _forget(self) -> None:
        self.named = self.in_group = self.begun_by_gtid = self.rows_seen = False
        self.is_statement = False
        self.xid = None
        if self.savepoints:
            self.savepoints = {}


class TransactionContext:
    """Transaction and statement data for the rows of the current event.

    Attributes
    ----------
    state : state of the transaction at the current event.
    tx_pos : start of the GTID event, or of BEGIN if there is none.
    gtid : ``uuid:number`` or ``uuid:tag:number`` (MariaDB: ``domain-server-number``); None for an
        anonymous transaction.
    thread_id : the connection that wrote it, from BEGIN or the DDL; None if not logged.
    query : the statement whose rows follow, if the server logs it; for DDL, the DDL itself.

    The values remain valid after a transaction's last event, which may be the DDL.
    """

    __slots__ = ("gtid", "query", "state", "thread_id", "tx_pos")

    tx_pos: int | None
    gtid: str | None
    thread_id: int | None
    query: str | None

    def __init__(self) -> None:
        self.state = TransactionState()
        self._begin(None, None)

    def _begin(self, tx_pos: int | None, gtid: str | None) -> None:
        self.tx_pos = tx_pos
        self.gtid = gtid
        self.thread_id = None
        self.query = None

    def follow(
        self, event: Event, query: Query | None = None, statement: Statement | None = None
    ) -> None:
        """Update the values for one event, before its rows are read.

        Parameters
        ----------
        query, statement : of a QUERY.
        """
        kind = event.type
        state = self.state
        if state.ended:
            self._begin(None, None)
            state.ended = False
        if kind in OPERATIONS:
            state.rows()
        elif kind == _TABLE_MAP:
            if state.table_map():
                self.query = None
        elif kind in _STATEMENT_TEXTS:
            if kind == _ROWS_QUERY:
                sql = parse_rows_query(event.body)
            else:
                sql = event.body.decode("utf-8", "surrogateescape")
            self.query = valid_text(sql)
            state.text()
        elif query is not None and statement is not None:
            self._query(event, query, statement)
        else:
            if kind in MYSQL_GTID_TYPES:
                self._begin(event.start, _gtid_text(kind, event.body))
            elif kind == _MARIADB_GTID:
                gtid = MariadbGtid.parse(event.body)
                self._begin(event.start, f"{gtid.domain}-{event.server_id}-{gtid.number}")
            state.follow(event)

    def _query(self, event: Event, query: Query, statement: Statement) -> None:
        state = self.state
        if statement.kind in _BEGIN_STATEMENTS:
            if self.tx_pos is None or (state.in_group and not state.begun_by_gtid):
                self._begin(event.start, None)
            self.thread_id = query.thread_id
        elif statement.kind not in _END_STATEMENTS and state.is_standalone(statement.kind):
            if self.tx_pos is None:
                self.tx_pos = event.start
            self.thread_id = query.thread_id
            self.query = valid_text(query.sql)
        state.query(statement)


def _gtid_text(kind: int, body: bytes) -> str | None:
    if kind == _GTID:
        return str(Gtid.parse(body))
    return str(Gtid.parse_tagged(body)) if kind == _GTID_TAGGED else None


def valid_text(sql: str) -> str:
    """Return text in which invalid UTF-8 bytes of other charsets are visible, as ``\\xe9``."""
    return sql.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
