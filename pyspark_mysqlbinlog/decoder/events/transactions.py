"""Which transaction and which statement the rows belong to.

A transaction's group in the log is GTID (or ANONYMOUS_GTID; none in 5.5), QUERY BEGIN, for each
statement ROWS_QUERY (if the server logs them), table maps and rows events, and XID or QUERY COMMIT.
DDL is GTID and one QUERY. MariaDB's GTID event stands for BEGIN as well and names no thread.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Gtid, MariadbGtid, Query, parse_rows_query

__all__ = ["TransactionContext", "valid_text"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_XID = int(EventType.XID_EVENT)
_XA_PREPARE = int(EventType.XA_PREPARE_LOG_EVENT)
_GTID = int(EventType.GTID_LOG_EVENT)
_ANONYMOUS_GTID = int(EventType.ANONYMOUS_GTID_LOG_EVENT)
_ROWS_QUERY = int(EventType.ROWS_QUERY_LOG_EVENT)
_MARIADB_GTID = int(EventType.MARIADB_GTID_EVENT)
_MARIADB_ANNOTATE_ROWS = int(EventType.MARIADB_ANNOTATE_ROWS_EVENT)
_LONGEST_VERB = len("START TRANSACTION")


class TransactionContext:
    """Follows the events of whole transactions.

    Attributes
    ----------
    tx_pos : start of the GTID event, or of BEGIN where there is none.
    gtid : ``uuid:number`` (MariaDB: ``domain-server-number``); None for an anonymous one.
    thread_id : the connection that wrote it, from BEGIN or the DDL; None where not logged.
    query : the statement whose rows follow, where the server logs it; for DDL the DDL.
    in_group, rows_seen, ended : where in it the events are: behind BEGIN, behind rows of a
        statement, behind the last one.
    """

    __slots__ = ("ended", "gtid", "in_group", "query", "rows_seen", "thread_id", "tx_pos")

    tx_pos: int | None
    gtid: str | None
    thread_id: int | None
    query: str | None
    in_group: bool
    rows_seen: bool
    ended: bool

    def __init__(self) -> None:
        self._begin(None, None)

    def _begin(self, tx_pos: int | None, gtid: str | None) -> None:
        self.tx_pos = tx_pos
        self.gtid = gtid
        self.thread_id = None
        self.query = None
        self.in_group = False
        self.rows_seen = False
        self.ended = False

    def follow(self, event: Event) -> None:
        """Take one event into account, before its rows are read."""
        kind = event.type
        if self.ended:
            self._begin(None, None)
        if kind in OPERATIONS:
            self.rows_seen = True
        elif kind == _TABLE_MAP:
            # All maps of a statement precede its rows: this is the next statement, and if the
            # server had logged its text, that would have come in between.
            if self.rows_seen:
                self.query = None
                self.rows_seen = False
        elif kind == _QUERY:
            self._query(event)
        elif kind in (_XID, _XA_PREPARE):
            self.ended = True
        elif kind == _GTID:
            self._begin(event.start, str(Gtid.parse(event.body)))
        elif kind == _ANONYMOUS_GTID:
            self._begin(event.start, None)
        elif kind == _ROWS_QUERY:
            self._statement(parse_rows_query(event.body))
        elif kind == _MARIADB_ANNOTATE_ROWS:
            self._statement(event.body.decode("utf-8", "surrogateescape"))
        elif kind == _MARIADB_GTID:
            gtid = MariadbGtid.parse(event.body)
            self._begin(event.start, f"{gtid.domain}-{event.server_id}-{gtid.number}")
            self.in_group = gtid.begins

    def _statement(self, sql: str) -> None:
        self.query = valid_text(sql)
        self.rows_seen = False

    def _query(self, event: Event) -> None:
        query = Query.parse(event.body)
        # These stand in the log in the server's own words.
        verb = query.sql[:_LONGEST_VERB].upper().strip()
        if verb == "BEGIN" or verb.startswith(("XA START", "START TRANSACTION")):
            if self.in_group or self.tx_pos is None:
                self._begin(event.start, None)
            self.thread_id = query.thread_id
            self.in_group = True
        elif verb in ("COMMIT", "ROLLBACK"):
            self.ended = True
        elif not self.in_group:
            if self.tx_pos is None:
                self.tx_pos = event.start
            self.thread_id = query.thread_id
            self.query = valid_text(query.sql)
            self.ended = True


def valid_text(sql: str) -> str:
    """Statements in other charsets than UTF-8 keep their bytes, visibly, as ``\\xe9``."""
    return sql.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
