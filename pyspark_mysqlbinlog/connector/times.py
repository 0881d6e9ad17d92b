"""Finding a time in a log: the first transaction whose first event is not older."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log import Log
from pyspark_mysqlbinlog.decoder.statements import StatementKind, classify
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query, mariadb_gtid_begins

__all__ = ["first_since"]

_GTIDS = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)
_ENDS = (EventType.XID_EVENT, EventType.XA_PREPARE_LOG_EVENT)
_FILE_EVENTS = frozenset(
    {
        EventType.FORMAT_DESCRIPTION_EVENT,
        EventType.PREVIOUS_GTIDS_LOG_EVENT,
        EventType.ROTATE_EVENT,
        EventType.STOP_EVENT,
        EventType.MARIADB_GTID_LIST_EVENT,
        EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
    }
)


def first_since(log: Log, begins: Sequence[Position], seconds: float) -> Position | None:
    """The boundary in front of the first transaction that begins at `seconds` or later.

    Parameters
    ----------
    begins : boundaries in log order to start looking from; all but the last that is older than
        `seconds` are skipped by the time of their first event.
    seconds : since 1970 UTC; events have whole seconds.
    """
    start = begins[0]
    for begin in begins[1:]:
        first = next(iter(log.events(begin)), None)
        if first is None or first.timestamp >= seconds:
            break
        start = begin
    groups = _Groups()
    boundary = start
    for event in log.events(start):
        if event.type in _FILE_EVENTS:
            if event.type == EventType.FORMAT_DESCRIPTION_EVENT:
                boundary = log.position(event.file, event.start)
            continue
        if groups.begins(event) and event.timestamp >= seconds:
            return boundary
        if groups.between:
            boundary = log.position(event.file, event.end)
    return None


class _Groups:
    """Tells the first event of each transaction, and where one has ended."""

    def __init__(self) -> None:
        self.between = True
        self._in_group = False

    def begins(self, event: Event) -> bool:
        was_between = self.between
        kind = event.type
        if kind in _GTIDS:
            self.between = False
        elif kind == EventType.MARIADB_GTID_EVENT:
            self.between, self._in_group = False, mariadb_gtid_begins(event.body)
        elif kind in _ENDS:
            self.between, self._in_group = True, False
        elif kind == EventType.QUERY_EVENT:
            query = Query.parse(event.body)
            statement = classify(query.sql, query.database).kind
            if statement in (StatementKind.BEGIN, StatementKind.XA_START):
                self.between, self._in_group = False, True
            elif not self._in_group or statement in (StatementKind.COMMIT, StatementKind.ROLLBACK):
                self.between, self._in_group = True, False
        return was_between
