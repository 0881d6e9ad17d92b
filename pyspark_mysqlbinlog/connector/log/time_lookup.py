"""Finding a time in a log: the first transaction, in log order, whose first event is not older.

A log has its own order, and times may go backwards in it: the clock was set, a session set its own
time, or a statement took long, for its events have the time at which it began. Which file to look
in is found by bisection, for on a server each look costs a connection and a dump; then the file
before it is looked through as well, and further ones while the time is found in them. So a file may
begin with an older time than the one before it ends with. Only where several files lie between may
something be passed over: an older log that was replayed with its times, a clock set back by hours.
From there on every transaction is looked at, and nothing is assumed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.logs import Log
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["first_since"]

# Seconds that a clock may have been set back.
_SET_BACK = 60

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
    begins : boundaries in log order; what lies before the first is not looked at. The others are
        files' beginnings, and where to look is found by their times.
    seconds : since 1970 UTC; events have whole seconds.

    Raises what reading the log raises. None when all transactions are older.
    """
    at = _last_before(log, begins, seconds - _SET_BACK)
    # The file before it may end later than this one begins, and the one before that.
    at = max(at - 1, 0)
    while True:
        found = _walk(log, begins[at], seconds)
        if at == 0 or found is None or found.number != begins[at].number:
            return found
        at -= 1


def _walk(log: Log, start: Position, seconds: float) -> Position | None:
    """The same from one boundary on, transaction by transaction."""
    boundary = start
    # Not `statement_events`, which leave out what transactions begin and end with.
    transaction = TransactionState()
    for event in log.events(start):
        if event.type in _FILE_EVENTS:
            if event.type == EventType.FORMAT_DESCRIPTION_EVENT:
                boundary = log.position(event.file, event.start)
            continue
        if not transaction.in_progress and event.timestamp >= seconds:
            return boundary
        statement = None
        if event.type == EventType.QUERY_EVENT:
            query = Query.parse(event.body)
            statement = classify(query.sql, query.database)
        transaction.follow(event, statement)
        if not transaction.in_progress:
            boundary = log.position(event.file, event.end)
    return None


def _last_before(log: Log, begins: Sequence[Position], seconds: float) -> int:
    """The place of the last of `begins` whose log is older; of the first, where no other's is."""

    def is_late(begin: Position) -> bool:
        time = _time_at(log, begin)
        return time is None or time >= seconds

    return bisect_left(begins, True, lo=1, key=is_late) - 1


def _time_at(log: Log, begin: Position) -> int | None:
    """The time at a file's beginning; None where no transaction follows.

    The latest of its head and of its first transaction: an event may have no time (0), and both may
    have that of a statement that began long before.
    """
    latest = 0
    for event in log.events(begin):
        latest = max(latest, event.timestamp)
        if event.type not in _FILE_EVENTS:
            return latest
    return None
