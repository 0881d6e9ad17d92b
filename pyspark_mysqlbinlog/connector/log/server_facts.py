"""What reading a log depends on, asked of a server that was there before."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["server_facts"]


def server_facts(options: Options) -> ServerFacts:
    """Ask on a connection of its own; that is tried for `retryTimeout`."""

    def ask() -> ServerFacts:
        with ReplicaClient.connect(options.server_settings()) as client:
            return ServerFacts.ask(client)

    return call_with_retry(options.retry_timeout, ask)
