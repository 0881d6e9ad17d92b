"""Queries of a stream's server for single facts, which wait until the server answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.log.server_facts import server_facts
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.initial_history import history_for_other_tables
from pyspark_mysqlbinlog.connector.schemas.schema_guard import learned
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    binlog_files,
    check_identity,
    current_position,
)
from pyspark_mysqlbinlog.connector.source.start_offset import ResolvedStart, start_of_server
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["StreamServer", "end_and_files"]

T = TypeVar("T")
_SHORT_RETRY_SECONDS = 1.0


class StreamServer:
    """A server that a checkpoint or a start has named."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._facts: ServerFacts | None = None

    def note_facts(self, facts: ServerFacts) -> None:
        """Record the facts that are known of the server already."""
        self._facts = facts

    def facts(self, _: Offset | None = None) -> ServerFacts:
        """Return the server's facts."""
        if self._facts is None:
            self._facts = server_facts(self._options)
        return self._facts

    def is_case_sensitive(self) -> bool:
        """Return whether the server distinguishes names by case."""
        return self.facts().case_sensitive

    def start(self) -> ResolvedStart:
        """Resolve the start of a query without a checkpoint."""
        return start_of_server(self._options, streaming=True)

    def range_log(self, _first: Offset, _last: Offset) -> FileLog | None:
        """Return None: a batch is read from the server, not from files."""
        return None

    def history_for_other_tables(
        self, history: SchemaHistory, position: Position, fingerprint: PositionFingerprint | None
    ) -> SchemaHistory:
        """Return a checkpoint's history for a query that captures other tables than its writer."""
        return history_for_other_tables(self._options, history, position, fingerprint)

    def learned(
        self, history: SchemaHistory, tables: Collection[Table], since: Position
    ) -> SchemaHistory:
        """Return the history, including the columns that these tables have from a boundary on."""

        def ask(client: ReplicaClient) -> SchemaHistory:
            return learned(
                client,
                self._options.server_settings(),
                history,
                tables,
                since,
                case_sensitive=self.is_case_sensitive(),
            )

        return self.ask(ask)

    def end(self) -> tuple[Position, Mapping[str, int]]:
        """Return the end of the binlog, and the files with their sizes, oldest first."""
        return self.ask(end_and_files)

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

        # If there are other servers, one of them may continue.
        is_only = not self._options.can_fail_over
        return call_with_retry(
            self._options.retry_timeout if is_only else _SHORT_RETRY_SECONDS, connect_and_ask
        )

    def __str__(self) -> str:
        return f"{self._options.server_settings().address} (version {self.facts().version})"


def end_and_files(client: ReplicaClient) -> tuple[Position, Mapping[str, int]]:
    """Return the end of a server's binlog, and its files with their sizes, oldest first."""
    # Queried after the end: the list contains its file.
    return current_position(client), binlog_files(client)
