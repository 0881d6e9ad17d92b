"""The table maps of a log: which tables have rows, and which metadata their columns have."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT, ScannedLog
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import usable_schema
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["described_tables", "table_maps"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)


def table_maps(log: ScannedLog, start: Position, databases: Collection[str]) -> Iterator[Event]:
    """Yield the table maps of some databases, in order; others may be among them.

    A map that equals an earlier one may be skipped if only row changes are between them, and all
    may be yielded a second time. Raises the errors of reading the log.
    """
    if implementation() == "c":
        try:
            yield from _scanned_maps(log, start, databases)
        except MySQLBinlogError:
            # The filter rejects what a reader of rows cannot follow, such as a statement that
            # changes a table. Here only the maps count, those after it, too.
            pass
        else:
            return
    yield from (event for event in log.events(start) if event.type == _TABLE_MAP)


def _scanned_maps(log: ScannedLog, start: Position, databases: Collection[str]) -> Iterator[Event]:
    filtering = EventFilter(lambda database, _: database in databases)
    scanner = LogScanner(filtering, whole_maps=True)
    for found in log.scan(start, scanner, lambda _: NO_LIMIT):
        if not isinstance(found, Event):
            continue
        filtering.feed(found)
        if found.type == _TABLE_MAP:
            scanner.learn(found)
            yield found
        else:
            # After DDL, or a start of the server, which begins its ids again, an equal map may be
            # of another table.
            scanner.forget_maps()


def described_tables(
    log: ScannedLog, start: Position, tables: Collection[Table]
) -> dict[Table, TableSchema]:
    """Return those of the tables that complete metadata describes, as the last table map does."""
    found: dict[Table, TableSchema] = {}
    if not tables:
        return found
    is_mariadb: dict[str, bool] = {}
    for event in table_maps(log, start, {database for database, _ in tables}):
        try:
            table_map = TableMap.parse(event.body)
            name = (table_map.database, table_map.table)
            if name not in tables:
                continue
            if event.file not in is_mariadb:
                is_mariadb[event.file] = "mariadb" in log.server_version(event.file).lower()
            schema = usable_schema(table_map, None, is_mariadb=is_mariadb[event.file])
        except MySQLBinlogError:
            continue  # the reader of the rows reports it
        if schema is not None:
            found[name] = schema
    return found
