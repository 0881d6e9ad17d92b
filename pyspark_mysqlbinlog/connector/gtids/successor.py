"""Another server that continues a binlog where a stream left it.

It is proven by GTID sets, not assumed: the server has executed everything that was delivered, and
still has everything else in its binlog. Then there is a position before which exactly the delivered
transactions are logged: the stream continues there. The server finds it: a dump by GTIDs begins
with the first transaction that is not in the set.

Appliers that commit in another order than their source (several workers, without
replica_preserve_commit_order) may log delivered transactions after others. Then no such position
exists, until a later file begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.gtids.executed import executed_at, has_gtids
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import (
    check_settings,
    current_position,
    server_uuid,
)
from pyspark_mysqlbinlog.errors import FailoverError, LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import ARTIFICIAL_FLAG, EventHeader, EventType

__all__ = ["Successor", "find_successor", "position_after"]

_GTIDS = (int(EventType.GTID_LOG_EVENT), int(EventType.GTID_TAGGED_LOG_EVENT))


@dataclass(frozen=True, slots=True)
class Successor:
    """A server, and the position in its binlog where it continues another one's.

    settings : with its address alone.
    """

    settings: ServerSettings
    server_uuid: str
    position: Position
    fingerprint: PositionFingerprint | None


def find_successor(settings: ServerSettings, executed: GtidSet | None) -> Successor:
    """Return the first of the servers that can continue after a set.

    Parameters
    ----------
    settings : with all addresses, and the uuid of the server that was read.
    executed : what was delivered; None if unknown.

    Raises
    ------
    LostConnectionError : none is proven; what each lacks is in the message. It may catch up.
    """
    refused: list[str] = []
    for one in settings.each():
        try:
            with ReplicaClient.connect(one) as client:
                uuid = server_uuid(client)
                if uuid == settings.server_uuid:
                    refused.append(f"{one.address} is the server that was lost")
                    continue
                return _successor(client, one, uuid, executed)
        except MySQLBinlogError as error:
            refused.append(f"{one.address}: {error.message}")
    raise LostConnectionError(
        f"no server can continue for {settings.server_uuid}: {'; '.join(refused)}"
    )


def _successor(
    client: ReplicaClient, settings: ServerSettings, uuid: str, executed: GtidSet | None
) -> Successor:
    if executed is None:
        raise FailoverError(
            "the checkpoint has no executed GTIDs, so nothing shows where another server continues;"
            " set gtid_mode=ON on all servers"
        )
    check_settings(client)
    if not has_gtids(client):
        raise FailoverError("gtid_mode is not ON")
    position = position_after(client, settings, executed)
    fingerprint = ServerLog(settings).fingerprint_at(position)
    return Successor(settings, uuid, position, fingerprint)


def position_after(client: ReplicaClient, settings: ServerSettings, executed: GtidSet) -> Position:
    """Return the position before which exactly the transactions of a set are logged.

    Raises
    ------
    FailoverError : the server lacks some of them, has purged others, or logged them in an order in
        which no such position exists.
    """
    missing = executed.difference(_global(client, "gtid_executed"))
    if missing:
        raise FailoverError(f"it has not executed {missing}, which was delivered")
    purged = _global(client, "gtid_purged")
    lost = purged.difference(executed)
    if lost:
        raise FailoverError(f"it has purged {lost}, which was not delivered")
    log = ServerLog(settings)
    # Its end, if everything in its binlog was delivered.
    position = current_position(client)
    before = executed_at(log, position)
    if before is not None and not before.is_subset(executed):
        position = _first_after(settings, executed)
        before = executed_at(log, position)
    if before is None:
        raise FailoverError(f"transactions without a GTID are before {position}")
    later = executed.difference(before).difference(purged)
    if later or not before.is_subset(executed):
        raise FailoverError(
            f"it has logged {later}, which was delivered, after transactions that were not: its"
            " appliers commit in another order (replica_preserve_commit_order is OFF)"
        )
    return position


def _global(client: ReplicaClient, name: str) -> GtidSet:
    return GtidSet.parse(str(client.query(f"SELECT @@GLOBAL.{name}")[0][0]))


def _first_after(settings: ServerSettings, executed: GtidSet) -> Position:
    """Return where the first transaction that is not in a set begins."""
    with ReplicaClient.connect(settings) as client:
        stream = client.dump_after([*executed.intervals()])
        reader = EventReader("", FIRST_EVENT, stream.checksum)
        while (raw := stream.next_event()) is not None:
            header = EventHeader.parse(raw)
            if header.log_pos and not header.flags & ARTIFICIAL_FLAG:
                # The server has skipped what is before it.
                reader.seek(header.log_pos - header.length)
            event = reader.feed(raw)
            if event is not None and event.type in _GTIDS:
                return Position.of(event.file, event.start)
    raise FailoverError("its binlog has no transaction that was not delivered, as it had before")
