"""Look up a time in a log: the first transaction, in log order, whose first event is not older.

A log has its own order, and times may decrease in it: the clock was set, a session set its own
time, or a statement took long, because its events have the time of its start. Bisection finds the
file to search, because on a server each check costs a connection and a dump. Then the previous file
is searched as well, and earlier ones while the time is found in them. So a file may begin with an
older time than the previous one ends with. Only if several files are between may something be
missed: an older log that was replayed with its times, a clock set back by hours. From there on
every transaction is checked, and nothing is assumed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import Log
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    TRANSACTION_GTID_TYPES,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["first_since", "last_boundary"]

# Seconds that a clock may have been set back.
_MAX_SET_BACK_SECONDS = 60

_FILE_EVENTS = frozenset(
    {
        EventType.FORMAT_DESCRIPTION_EVENT,
        EventType.PREVIOUS_GTIDS_LOG_EVENT,
        EventType.ROTATE_EVENT,
        EventType.STOP_EVENT,
        EventType.MARIADB_GTID_LIST_EVENT,
        EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
        EventType.IGNORABLE_LOG_EVENT,
    }
)


def first_since(log: Log, begins: Sequence[Position], seconds: float) -> Position | None:
    """Return the boundary before the first transaction that begins at `seconds` or later.

    Parameters
    ----------
    begins : boundaries in log order; nothing before the first is searched. The others are
        beginnings of files, whose times direct the search.
    seconds : since 1970 UTC; events have integer seconds.

    Raises the errors of reading the log. None if all transactions are older.
    """
    at = _last_before(log, begins, seconds - _MAX_SET_BACK_SECONDS)
    # The previous file may end later than this one begins, and so may the one before it.
    at = max(at - 1, 0)
    while True:
        found = _walk(log, begins[at], seconds)
        if at == 0 or found is None or found.number != begins[at].number:
            return found
        at -= 1


def last_boundary(log: FileLog) -> Position:
    """Return the last boundary in files, of which the last one may end inside a transaction."""
    boundary = log.begins()[-1]
    transaction = TransactionState()
    for event in log.events(boundary):
        if event.type in _FILE_EVENTS:
            continue
        _follow(transaction, event)
        if not transaction.in_progress:
            boundary = log.position(event.file, event.end)
    return boundary


def _follow(transaction: TransactionState, event: Event) -> None:
    statement = None
    if event.type == EventType.QUERY_EVENT:
        query = Query.parse(event.body)
        statement = classify(query.sql, query.database)
    transaction.follow(event, statement)


def _walk(log: Log, start: Position, seconds: float) -> Position | None:
    """Search from one boundary on, transaction by transaction."""
    boundary = start
    # Not `statement_events`, which omits the first and last events of transactions.
    transaction = TransactionState()
    for event in log.events(start):
        if event.type in _FILE_EVENTS:
            is_format = event.type == EventType.FORMAT_DESCRIPTION_EVENT
            if is_format and not event.flags & ARTIFICIAL_FLAG:
                boundary = log.position(event.file, event.start)
                # A transaction that a crash of the server cut off has no end.
                transaction = TransactionState()
            continue
        if event.type in TRANSACTION_GTID_TYPES and transaction.in_progress:
            # An INCIDENT does not end the transaction that its GTID began.
            transaction = TransactionState()
            boundary = log.position(event.file, event.start)
        if not transaction.in_progress and event.timestamp >= seconds:
            return boundary
        _follow(transaction, event)
        if not transaction.in_progress:
            boundary = log.position(event.file, event.end)
    return None


def _last_before(log: Log, begins: Sequence[Position], seconds: float) -> int:
    """Return the index of the last of `begins` whose log is older; 0 if there is none."""

    def is_late(begin: Position) -> bool:
        time = _time_at(log, begin)
        return time is None or time >= seconds

    return bisect_left(begins, True, lo=1, key=is_late) - 1


def _time_at(log: Log, begin: Position) -> int | None:
    """Return the time at a file's beginning; None if no transaction follows.

    The later of its head's and its first transaction's: an event may have no time (0), and both
    may have that of a statement that began long before.
    """
    latest = 0
    for event in log.events(begin):
        latest = max(latest, event.timestamp)
        if event.type not in _FILE_EVENTS:
            return latest
    return None
