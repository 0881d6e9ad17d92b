"""What reading a log depends on, asked of a server that was there before."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.log.retry import known_server
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["server_facts"]


def server_facts(options: Options) -> ServerFacts:
    """Ask on a connection of its own, which is tried for `retryTimeout`."""
    settings = options.server_settings()
    with known_server(options.retry_timeout, ReplicaClient.connect, settings) as client:
        return ServerFacts.ask(client)
