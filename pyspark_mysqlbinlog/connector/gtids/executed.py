"""The GTIDs that are executed at a position: from its file's beginning, and its transactions."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.gtids.tracker import GtidTracker
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["executed_at", "executed_before", "global_gtids", "has_gtids"]

# Events before the first transaction of a file that has GTIDs.
_FILE_HEAD = (
    int(EventType.FORMAT_DESCRIPTION_EVENT),
    int(EventType.PREVIOUS_GTIDS_LOG_EVENT),
    int(EventType.MARIADB_GTID_LIST_EVENT),
)


def has_gtids(client: ReplicaClient) -> bool:
    """Whether each transaction that a server logs now has a GTID."""
    return client.is_mariadb or client.variable("gtid_mode") == "ON"


def global_gtids(client: ReplicaClient, name: str) -> GtidSet:
    """Return the GTID set in a global variable."""
    return GtidSet.parse(str(client.query(f"SELECT @@GLOBAL.{name}")[0][0]))


def executed_at(log: ScannedLog, position: Position) -> GtidSet | None:
    """Return the set at a boundary; None if a transaction before it in its file has no GTID.

    The file is read up to there, by the compiled scan without looking at rows.
    """
    tracker = GtidTracker(None)
    for found in _read(log, position):
        if found.file != position.file:
            break
        if found.start >= position.pos and not _is_head(found):
            break
        tracker.take_skipped(found)
    return tracker.executed


def executed_before(client: ReplicaClient, log: ScannedLog, position: Position) -> GtidSet | None:
    """Return the set at a boundary, including what a server has purged; None if it is unknown."""
    executed = executed_at(log, position)
    if client.is_mariadb:
        # The head of a file has the last GTID of every source that was ever logged.
        return executed
    # What was purged is before every position; a set that was given to the server by
    # SET GLOBAL gtid_purged is in none of its files (measured on 9.7.4).
    return None if executed is None else executed.union(global_gtids(client, "gtid_purged"))


def _read(log: ScannedLog, position: Position) -> Iterator[Run | Event]:
    begin = position._replace(pos=FIRST_EVENT)
    if implementation() == "python":
        return log.events(begin)
    return log.scan(begin, LogScanner(), lambda _: position.pos)


def _is_head(found: Run | Event) -> bool:
    return isinstance(found, Event) and found.type in _FILE_HEAD
