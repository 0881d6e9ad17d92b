"""The order in which servers that replicate one another are tried: replicas before the primary."""

from __future__ import annotations

from dataclasses import replace

from pyspark_mysqlbinlog.connector.server.statements import REPLICA_STATUS
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["preferred"]

# The older and the newer name of a column.
_APPLIES = ("Slave_SQL_Running", "Replica_SQL_Running")


def preferred(settings: ServerSettings) -> ServerSettings:
    """Return settings with the addresses of running replicas first, otherwise in their order.

    Each address is queried. One that does not answer is after those that do.
    """
    ordered = sorted(settings.each(), key=_rank)
    (host, port), *others = [(one.host, one.port) for one in ordered]
    return replace(settings, host=host, port=port, others=tuple(others))


def _rank(settings: ServerSettings) -> int:
    try:
        with ReplicaClient.connect(settings) as client:
            sources = REPLICA_STATUS.run(client.records)
    except ServerError:
        return 2
    applies = [source.get(name) == "Yes" for source in sources for name in _APPLIES]
    return 0 if any(applies) else 1
