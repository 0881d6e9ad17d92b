"""The position in a server's binlog before which exactly the transactions of a set are logged.

The server finds it: a dump by GTIDs begins with the first transaction that is not in the set.
Appliers that commit in another order than their source (several workers, without
replica_preserve_commit_order) may log transactions of the set after others. Then no such position
exists, until a later file begins.

On MariaDB the last GTID of each domain stands for all transactions before it in the domain: a
server that was set up from a backup has never logged the earlier ones. Transactions that only this
server has are noticed by their sources, which the set does not contain.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.gtids.executed import executed_at, global_gtids
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import FailoverError
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    IDENTIFYING_GTID_TYPES,
    Event,
    EventHeader,
    EventType,
)
from pyspark_mysqlbinlog.protocol.messages import MariadbGtid
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["check_is_new", "position_after"]


def position_after(
    client: ReplicaClient,
    settings: ServerSettings,
    executed: GtidSet,
    *,
    may_be_position: bool = False,
) -> Position:
    """Return the position before which exactly the transactions of a set are logged.

    may_be_position : on MariaDB the set may contain the last GTID of each domain alone, as
        `gtid_slave_pos` does; all transactions before it are meant.

    Raises
    ------
    FailoverError : the server lacks some of them, has purged others, or logged them in an order in
        which no such position exists.
    ServerError : MariaDB has purged some, or has not logged the last of a domain.
    """
    if client.is_mariadb:
        return _position_on_mariadb(client, settings, executed, may_be_position=may_be_position)
    missing = executed.difference(global_gtids(client, "gtid_executed"))
    if missing:
        raise FailoverError(f"it has not executed {missing}")
    purged = global_gtids(client, "gtid_purged")
    lost = purged.difference(executed)
    if lost:
        raise FailoverError(f"it has purged {lost}, which comes next")
    position, before = _position_and_executed(client, settings, executed)
    later = executed.difference(before).difference(purged)
    if later or not before.is_subset(executed):
        raise FailoverError(
            f"it has logged {later} after transactions that come next: it has transactions of its"
            " own, or its appliers commit in another order (replica_preserve_commit_order is OFF)"
        )
    return position


def _position_on_mariadb(
    client: ReplicaClient, settings: ServerSettings, executed: GtidSet, *, may_be_position: bool
) -> Position:
    last = executed.last_of_domains()
    logged = global_gtids(client, "gtid_binlog_state")
    missing = [f"{source}-{n}" for source, n in last.values() if not logged.has(source, n)]
    if missing:
        raise FailoverError(f"it has not logged {', '.join(missing)}")
    position, before = _position_and_executed(client, settings, executed)
    known = _with_earlier(executed, before) if may_be_position else executed
    own = before.difference(known)
    if own or before.last_of_domains() != last:
        raise FailoverError(
            f"it has logged {own or 'transactions that come next'} before {position}: it has"
            " transactions of its own, or its domains commit in another order"
        )
    return position


def _with_earlier(executed: GtidSet, before: GtidSet) -> GtidSet:
    """Return a set with the added sources of its domains that have only earlier GTIDs."""
    last = executed.last_of_domains()
    earlier = [
        each
        for each in before.intervals()
        if (found := last.get(each.uuid.partition("-")[0])) is not None and each.last < found[1]
    ]
    return executed.union(GtidSet.of(earlier))


def _position_and_executed(
    client: ReplicaClient, settings: ServerSettings, executed: GtidSet
) -> tuple[Position, GtidSet]:
    """Return where the first transaction that is not in a set begins, and what is before it."""
    log = ServerLog(settings)
    # The end of the binlog, if everything in it was delivered.
    position = current_position(client)
    before = executed_at(log, position)
    if before is not None and not before.is_subset(executed):
        position = _first_after(settings, executed)
        before = executed_at(log, position)
    if before is None:
        raise FailoverError(
            f"transactions without a GTID are before {position}, or on MariaDB some whose numbers"
            " do not increase (gtid_strict_mode is OFF)"
        )
    return position, before


def _first_after(settings: ServerSettings, executed: GtidSet) -> Position:
    """Return where the first transaction that is not in a set begins."""
    with ReplicaClient.connect(settings) as client:
        if client.is_mariadb:
            last = executed.last_of_domains().values()
            stream = client.dump_after_mariadb([f"{source}-{number}" for source, number in last])
        else:
            stream = client.dump_after([*executed.intervals()])
        reader = EventReader("", FIRST_EVENT, stream.checksum)
        while (raw := stream.next_event()) is not None:
            header = EventHeader.parse(raw)
            if header.log_pos and not header.flags & ARTIFICIAL_FLAG:
                # The server has skipped the events before this one.
                reader.seek(header.log_pos - header.length)
            event = reader.feed(raw)
            if event is not None and event.type in IDENTIFYING_GTID_TYPES:
                check_is_new(event, executed)
                return Position.of(event.file, event.start)
    raise FailoverError("its binlog has none of the transactions that it had a moment before")


def check_is_new(event: Event, executed: GtidSet) -> None:
    """Raise FailoverError if a MariaDB transaction is executed that follows the last executed one.

    A GTID_LIST does not show the order of a domain's transactions. If their numbers once decreased,
    the greatest one is not the last one (measured on 10.11.18 without gtid_strict_mode).
    """
    if event.type != EventType.MARIADB_GTID_EVENT:
        return
    gtid = MariadbGtid.parse(event.body)
    source = f"{gtid.domain}-{event.server_id}"
    if executed.has(source, gtid.number):
        raise FailoverError(
            f"it has {source}-{gtid.number}, which is executed, where the next transaction would"
            " be: numbers of the domain do not increase (gtid_strict_mode is OFF)"
        )
