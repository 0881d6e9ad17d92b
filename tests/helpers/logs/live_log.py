"""Changes in a live server's binlog, decoded without Spark, and the rows that SELECT shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pymysql.cursors import Cursor

from helpers.parity.decoding import decoder, rows_of
from helpers.replay import BINARIES
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import SPATIAL_TYPES, ColumnSchema, TableSchema

__all__ = [
    "client_of",
    "log_events",
    "log_rows",
    "new_database",
    "schemas_of",
    "selected",
    "selected_by",
]


@contextmanager
def new_database(server: Server, name: str) -> Iterator[str]:
    """Yield the name of an empty utf8mb4 database, which is dropped at the end."""
    create = f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4"
    server.execute(f"DROP DATABASE IF EXISTS `{name}`", create)
    try:
        yield name
    finally:
        server.execute(f"DROP DATABASE IF EXISTS `{name}`")


def client_of(server: Server) -> ReplicaClient:
    """Return a client of the administrator account without TLS (see `LocalServer.connect`)."""
    return ReplicaClient.connect(server.settings(ssl_mode="DISABLED"))


def schemas_of(server: Server, database: str) -> list[TableSchema]:
    """Return the schemas of the database's tables as the server describes them."""
    with client_of(server) as client:
        return read_table_schemas(client, lambda name, _: name == database)


def log_events(server: Server, start: tuple[str, int], database: str) -> list[Event]:
    """Return the events that the filter keeps for one database, from `start` to the end."""
    keep = EventFilter(lambda name, _: name == database)
    with ReplicaClient.connect(server.settings()) as client:
        events = Dump(client, Position.of(*start), None, blocking=False)
        return [kept for event in events for kept in keep.feed(event)]


def log_rows(
    server: Server, start: tuple[str, int], database: str, schemas: list[TableSchema]
) -> list[Mapping[str, Any]]:
    """Return the decoded changes of one database from `start` to the end of the binlog."""
    return list(rows_of(decoder(schemas).decode(log_events(server, start, database))))


def selected(server: Server, *schemas: TableSchema) -> list[list[tuple[str | None, ...]]]:
    """Return each table's rows as SELECT shows them, ordered by primary key.

    Binary columns, BIT, VECTOR and geometries are hexadecimal; times are in UTC.
    """
    # Without converters every value is the text that the server sent.
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        return selected_by(cursor, *schemas)


def selected_by(cursor: Cursor, *schemas: TableSchema) -> list[list[tuple[str | None, ...]]]:
    """Return the same rows by the cursor of a session without converters and in UTC."""
    found = []
    for schema in schemas:
        columns = ", ".join(map(_shown, schema.columns))
        key = ", ".join(map(_quoted, schema.primary_key))
        order = f" ORDER BY {key}" if key else ""
        cursor.execute(f"SELECT {columns} FROM `{schema.database}`.`{schema.table}`{order}")
        found.append([tuple(map(_text, row)) for row in cursor.fetchall()])
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _shown(column: ColumnSchema) -> str:
    name = _quoted(column.name)
    is_hex = column.type in BINARIES | SPATIAL_TYPES | {"bit", "vector"}
    return f"HEX({name})" if is_hex else name


def _text(value: Any) -> str | None:
    return value.decode("utf-8") if isinstance(value, bytes) else value
