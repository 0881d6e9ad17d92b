"""Where a log is in its transactions, and what their rows are told of them.

A transaction is GTID? (or ANONYMOUS_GTID; none in 5.5), QUERY BEGIN or XA START, for each statement
ROWS_QUERY? (if the server logs them), table maps and rows events, and XID, QUERY COMMIT or
XA_PREPARE. DDL is GTID? and one QUERY. MariaDB's GTID event stands for BEGIN as well, unless it
stands alone, and names no thread.

`TransactionState` follows this for all who must know it: the event filter, the decoder, the search
for a time. kernel/transactions.hpp is its compiled twin, for the scan and the decode loop. It takes
the events as they come and refuses nothing (see decoder/filtering/unsafe_events.py).
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import Statement, StatementKind
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Gtid, MariadbGtid, Query, parse_rows_query

__all__ = ["TransactionContext", "TransactionState", "valid_text"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_GTID = int(EventType.GTID_LOG_EVENT)
_MARIADB_GTID = int(EventType.MARIADB_GTID_EVENT)
_ROWS_QUERY = int(EventType.ROWS_QUERY_LOG_EVENT)
_ENDS = frozenset({int(EventType.XID_EVENT), int(EventType.XA_PREPARE_LOG_EVENT)})
_GTIDS = frozenset({_GTID, int(EventType.ANONYMOUS_GTID_LOG_EVENT)})
_STATEMENT_TEXTS = frozenset({_ROWS_QUERY, int(EventType.MARIADB_ANNOTATE_ROWS_EVENT)})

_KIND = StatementKind
_BEGIN_STATEMENTS = frozenset({_KIND.BEGIN, _KIND.XA_START})
# XA COMMIT and XA ROLLBACK stand behind the XA_PREPARE that ended their transaction's events, by
# themselves.
_END_STATEMENTS = frozenset({_KIND.COMMIT, _KIND.ROLLBACK, _KIND.XA_COMMIT, _KIND.XA_ROLLBACK})
_PART_STATEMENTS = frozenset({_KIND.SAVEPOINT, _KIND.ROLLBACK_TO})


class TransactionState:
    """Follows the events of a log, beginning at a boundary.

    `follow` takes whatever comes; who knows already what an event is does what `follow` would.

    Attributes
    ----------
    named : the transaction has a GTID event.
    in_group : it has begun: rows may come.
    begun_by_gtid : by MariaDB's GTID event; XA START may still follow.
    rows_seen : its statement has rows already: the next table map begins another one.
    ended : the last event ended a transaction; all of the above says what there is behind it.
    xid : of the XA transaction, as XA START has it.
    savepoints : those that it has set, each with what `savepoint` was told.
    """

    __slots__ = (
        "begun_by_gtid",
        "ended",
        "in_group",
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
        """Whether a transaction has begun that has not ended yet."""
        return self.in_group or self.named

    def follow(self, event: Event, statement: Statement | None = None) -> None:
        """Take one event into account.

        Parameters
        ----------
        statement : what a QUERY says.
        """
        kind = event.type
        self.ended = False
        if kind in OPERATIONS:
            self.rows()
        elif kind == _TABLE_MAP:
            self.table_map()
        elif kind in _STATEMENT_TEXTS:
            self.text()
        elif kind in _GTIDS:
            self.gtid()
        elif kind == _MARIADB_GTID:
            self.gtid(begins=MariadbGtid.parse(event.body).begins)
        elif kind in _ENDS:
            self.end()
        elif statement is not None:
            self.query(statement)

    def gtid(self, *, begins: bool = False) -> None:
        """GTID or ANONYMOUS_GTID; MariaDB's, which `begins` the transaction as well."""
        self._forget()
        self.named = True
        self.in_group = self.begun_by_gtid = begins

    def begin(self, xid: str | None = None) -> None:
        """BEGIN, or XA START of an xid."""
        self.in_group = True
        self.begun_by_gtid = False
        self.xid = xid

    def text(self) -> None:
        """A statement's text: another statement begins."""
        self.rows_seen = False

    def table_map(self) -> bool:
        """A table map. Whether it begins another statement.

        All maps of a statement stand before its rows; and if the server had logged the text of the
        next one, that would have come in between.
        """
        begins = self.rows_seen
        self.rows_seen = False
        return begins

    def rows(self) -> None:
        self.rows_seen = True

    def savepoint(self, name: str, mark: int = 0) -> None:
        """SAVEPOINT. mark : what the caller wants to find in `savepoints` again."""
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
        """Whether a statement is a transaction by itself, as DDL is."""
        return not (self.in_group or kind in _PART_STATEMENTS)

    def _forget(self) -> None:
        self.named = self.in_group = self.begun_by_gtid = self.rows_seen = False
        self.xid = None
        if self.savepoints:
            self.savepoints = {}


class TransactionContext:
    """What the rows of a log are told of their transaction and their statement.

    Attributes
    ----------
    state : where in the transaction the events are.
    tx_pos : start of the GTID event, or of BEGIN where there is none.
    gtid : ``uuid:number`` (MariaDB: ``domain-server-number``); None for an anonymous one.
    thread_id : the connection that wrote it, from BEGIN or the DDL; None where not logged.
    query : the statement whose rows follow, where the server logs it; for DDL the DDL.

    They hold behind a transaction's last event as well, which may be the DDL.
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
        """Take one event into account, before its rows are read.

        Parameters
        ----------
        query, statement : what a QUERY says.
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
            if kind in _GTIDS:
                self._begin(event.start, str(Gtid.parse(event.body)) if kind == _GTID else None)
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


def valid_text(sql: str) -> str:
    """Statements in other charsets than UTF-8 keep their bytes, visibly, as ``\\xe9``."""
    return sql.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
