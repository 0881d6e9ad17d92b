"""Another server that continues a binlog where a stream left it.

It is proven by GTID sets, not assumed: the server has executed everything that was delivered, and
still has everything else in its binlog. The stream continues at the position before which exactly
the delivered transactions are logged (see `lookup`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.gtids.executed import has_gtids
from pyspark_mysqlbinlog.connector.gtids.lookup import position_after
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import check_settings, server_uuid
from pyspark_mysqlbinlog.errors import FailoverError, LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings

__all__ = ["Successor", "find_successor"]


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
        f"no server can continue for {settings.server_uuid} after {executed}: {'; '.join(refused)}"
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
