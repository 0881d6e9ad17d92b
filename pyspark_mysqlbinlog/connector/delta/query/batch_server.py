"""The server that a batch comes from, and a mirror's queries to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.settings import check_row_image
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import table_sizes
from pyspark_mysqlbinlog.errors import ConnectionFailedError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["BatchServer"]


class BatchServer:
    """One of the servers that the options name.

    Parameters
    ----------
    options : of the source, as texts.

    Attributes
    ----------
    uuid : of the server whose batch is applied; empty if it has none.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self.uuid = ""

    def settings(self) -> ServerSettings:
        """Return the settings to connect to it."""
        return parse_options(self._options).bound_to(self.uuid).server_settings()

    def fingerprint_at(self, position: Position) -> PositionFingerprint | None:
        """Return the fingerprint of a position in its binlog; see `ServerLog.fingerprint_at`."""
        return ServerLog(self.settings()).fingerprint_at(position)

    def row_counts(self, tables: Collection[Table]) -> Mapping[Table, int]:
        """Return the estimated row counts of tables."""
        with ReplicaClient.connect(self.settings()) as client:
            return {name: size.rows for name, size in table_sizes(client, tables).items()}

    def check_row_image(self) -> None:
        """Raise BinlogSettingsError if most updates of a table would stop it."""
        # A lost server is not checked. Then an update that lacks columns stops its table later.
        with suppress(ConnectionFailedError), ReplicaClient.connect(self.settings()) as client:
            check_row_image(client)
