"""The server facts that reading depends on, queried from a server that was available before."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["server_facts"]


def server_facts(options: Options) -> ServerFacts:
    """Query over a separate connection, with retries for `retryTimeout`."""

    def ask() -> ServerFacts:
        with ReplicaClient.connect(options.server_settings()) as client:
            return ServerFacts.ask(client)

    return call_with_retry(options.retry_timeout, ask)
