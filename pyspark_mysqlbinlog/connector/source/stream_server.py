"""The server of a stream, asked for single facts: waits until it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.log.server_facts import server_facts
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    binlog_files,
    check_identity,
    current_position,
)
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["StreamServer"]

T = TypeVar("T")
_SHORT_RETRY_SECONDS = 1.0


class StreamServer:
    """A server that a checkpoint or a start has named."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._facts: ServerFacts | None = None

    def note_facts(self, facts: ServerFacts) -> None:
        """Record what is known of the server already."""
        self._facts = facts

    def facts(self) -> ServerFacts:
        """Return the server's facts."""
        if self._facts is None:
            self._facts = server_facts(self._options)
        return self._facts

    def is_case_sensitive(self) -> bool:
        """Return whether the server distinguishes names by case."""
        return self.facts().case_sensitive

    def end_of_log(self, offset: Offset) -> Position:
        """Return the end of the binlog, as the file of an offset orders it."""

        def ask(client: ReplicaClient) -> Position:
            end = current_position(client)
            order = FileOrder(lambda: binlog_files(client), offset.position.file)
            return order.position(end.file, end.pos)

        return self.ask(ask)

    def check_identity(self, offset: Offset) -> None:
        """Raise if it is another server than that of an offset."""
        self.ask(lambda client: check_identity(client, offset.server_uuid))

    def ask(self, ask: Callable[[ReplicaClient], T]) -> T:
        """Return the result of a query, in a connection of its own."""

        def connect_and_ask() -> T:
            with ReplicaClient.connect(self._options.server_settings()) as client:
                return ask(client)

        # If there are others, one of them may continue.
        is_only = not self._options.can_fail_over
        return call_with_retry(
            self._options.retry_timeout if is_only else _SHORT_RETRY_SECONDS, connect_and_ask
        )
