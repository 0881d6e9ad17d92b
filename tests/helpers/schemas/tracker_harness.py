"""The schema tracker on a real server's binlog, and the schemas of information_schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import current_position, explicit_timestamps
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import check_fit
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Follower", "with_all_keys"]


@dataclass
class Follower:
    """A tracker that has read one server's binlog up to `here`.

    fitted : number of table maps that were compared with the tracker's schema at their position.
    """

    server: Server
    database: str
    client: ReplicaClient
    log: ServerLog
    tracker: SchemaTracker
    here: Position
    fitted: int = 0

    @classmethod
    @contextmanager
    def of(cls, server: Server, database: str) -> Iterator[Follower]:
        """Yield a follower that begins with a baseline, like a stream; one database is captured."""
        # Without TLS, as there are many connections: see LocalServer.connect.
        settings = server.settings(ssl_mode="DISABLED")
        with ReplicaClient.connect(settings) as client:

            def captures(name: str, table: str) -> bool:
                return name == database

            here = current_position(client)
            log = ServerLog(settings)
            history, _ = history_of_server(
                client, log, here, captures, case_sensitive=True, uncaptured=True
            )
            tracker = SchemaTracker(
                history,
                captures,
                case_sensitive=True,
                complete=lambda _: True,
                explicit_timestamps=explicit_timestamps(client),
            )
            yield cls(server, database, client, log, tracker, here)

    def catch_up(self) -> None:
        """Follow the binlog to its end; each table map must fit the known schema of its table."""
        end = current_position(self.client)
        for event in self.log.events(self.here):
            here = self.log.position(event.file, event.start)
            if here >= end:
                break
            if event.type == EventType.QUERY_EVENT:
                logged = LoggedStatement.read(event.body, self.client.server_version)
                if logged.statement.kind in DDL_KINDS:
                    self.tracker.follow(event, logged, here._replace(pos=event.end))
            elif event.type == EventType.TABLE_MAP_EVENT:
                table_map = TableMap.parse(event.body)
                schema = self.tracker.history.at(here, table_map.database, table_map.table)
                if table_map.database == self.database and schema is not None:
                    check_fit(table_map, schema)
                    self.fitted += 1
        self.here = end

    def now(self, table: str, database: str | None = None) -> TableSchema | str:
        """Return the tracker's schema of a table, or the reason why it is unknown."""
        name = database or self.database, table
        history = self.tracker.history
        return history.at(self.here, *name) or history.unknown_reason(self.here, *name)

    def from_server(self, database: str | None = None) -> dict[str, TableSchema]:
        """Return the schemas of the database's tables from information_schema."""
        captured = database or self.database
        found = read_table_schemas(self.client, lambda name, _: name == captured)
        return {schema.table: schema for schema in found}


def with_all_keys(followed: TableSchema, on_server: TableSchema) -> TableSchema:
    """Return `followed` with the unique keys of `on_server`, if these include all of its own.

    The tracker need not know all of them (see live/schemas/test_unique_keys).
    """
    known, there = ({columns for _, columns in each.unique_keys} for each in (followed, on_server))
    return replace(followed, unique_keys=on_server.unique_keys) if known <= there else followed
