"""Another server that continues a binlog where a stream left it.

GTID sets prove that a server can continue: it has executed everything that was delivered, and still
has everything else in its binlog. The stream continues at the position before which exactly
the delivered transactions are logged (see `lookup`).

Sets show transactions, not what is in them. A replica that applies or logs only a part of them has
their GTIDs nevertheless, so such a server is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.gtids.executed import has_gtids
from pyspark_mysqlbinlog.connector.gtids.lookup import position_after
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.binlog_filters import check_log_contents
from pyspark_mysqlbinlog.connector.server.replicas import preferred
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts, check_settings
from pyspark_mysqlbinlog.connector.server.statements import REPLICA_STATUS
from pyspark_mysqlbinlog.errors import FailoverError, LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["Successor", "find_successor", "successor_on"]

# Columns of SHOW SLAVE STATUS, after Replicate_.
_FILTERS = ("Do_DB", "Ignore_DB", "Do_Table", "Ignore_Table", "Wild_Do_Table", "Wild_Ignore_Table")


@dataclass(frozen=True, slots=True)
class Successor:
    """A server, and the position in its binlog where it continues another one's.

    settings : for connections to this server alone.
    """

    settings: ServerSettings
    server_uuid: str
    position: Position
    fingerprint: PositionFingerprint | None


def find_successor(
    options: Options, lost: str, executed: GtidSet | None, history: SchemaHistory
) -> Successor:
    """Return the first of the servers that can continue after a set.

    Parameters
    ----------
    options : of the query, with all addresses.
    lost : uuid of the server that was read.
    executed : what was delivered; None if unknown.
    history : of the captured tables.

    Raises
    ------
    LostConnectionError : none is proven; what each lacks is in the message. It may catch up.
    """
    refused: list[str] = []
    settings = options.server_settings()
    if options.prefer_replica:
        settings = preferred(settings)
    for one in settings.each():
        try:
            with ReplicaClient.connect(one) as client:
                uuid = client.server_uuid()
                if uuid == lost:
                    refused.append(f"{one.address} is the server that was lost")
                    continue
                _check_logs_all(client, options, history)
                # Another server may answer at this address the next time.
                bound = replace(one, server_uuid=uuid, others=((one.host, one.port),))
                return successor_on(bound, uuid, executed)
        except MySQLBinlogError as error:
            refused.append(f"{one.address}: {error.message}")
    after = "an unknown GTID set" if executed is None else executed
    raise LostConnectionError(
        f"no server can continue for {lost} after {after}: {'; '.join(refused)}"
    )


def successor_on(settings: ServerSettings, uuid: str, executed: GtidSet | None) -> Successor:
    """Return where one server continues after a set; FailoverError if that is not proven."""
    if executed is None:
        raise FailoverError(
            "the checkpoint has no executed GTIDs, so nothing shows where another server continues;"
            " set gtid_mode=ON on all servers"
        )
    with ReplicaClient.connect(settings) as client:
        check_settings(client)
        if not has_gtids(client):
            raise FailoverError("gtid_mode is not ON")
        position = position_after(client, settings, executed)
    return Successor(settings, uuid, position, ServerLog(settings).fingerprint_at(position))


def _check_logs_all(client: ReplicaClient, options: Options, history: SchemaHistory) -> None:
    """Raise unless the server has all changes of the captured tables, under the same names."""
    case_sensitive = ServerFacts.ask(client).case_sensitive
    names = {name for table in history.tables() for name in table}
    if not case_sensitive and any(name != name.lower() for name in names):
        raise FailoverError("its lower_case_table_names would change the names of tables")
    check_log_contents(client, options.table_filter(case_sensitive))
    for source in REPLICA_STATUS.run(client.records):
        found = [name for name in _FILTERS if source.get(f"Replicate_{name}")]
        if found:
            raise FailoverError(
                f"it applies only a part of its source's changes (Replicate_{found[0]})"
            )
