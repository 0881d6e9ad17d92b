"""What is asked of tables beside their columns: engine, about how large, whether they are there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.session_settings import UNCACHED_SELECT

__all__ = [
    "TableSize",
    "engine_of",
    "engines_of",
    "is_dropped",
    "is_innodb",
    "is_missing_table_error",
    "pin_definition",
    "table_sizes",
]

_UNKNOWN_DATABASE, _NO_SUCH_TABLE = 1049, 1146


_SIZES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES"
    " WHERE TABLE_TYPE = 'BASE TABLE' AND BINARY TABLE_SCHEMA IN %s"
)
_USUAL_ROW_BYTES = 200


@dataclass(frozen=True, slots=True)
class TableSize:
    """Of one table, by the server's statistics: never exact, and often far off.

    Attributes
    ----------
    rows : how many there are, about.
    row_bytes : of one of them, about; at least 1.
    """

    rows: int = 0
    row_bytes: int = _USUAL_ROW_BYTES


def engine_of(client: ReplicaClient, table: Table) -> str | None:
    """A base table's storage engine; None where the table is not there."""
    rows = client.query(
        "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        " AND TABLE_TYPE = 'BASE TABLE'",
        table,
    )
    return str(rows[0][0]) if rows and rows[0][0] is not None else None


def is_innodb(engine: str) -> bool:
    """Whether an engine, as the server spells it, is InnoDB."""
    return engine.upper() == "INNODB"


def engines_of(client: ReplicaClient, tables: Collection[Table]) -> dict[Table, str]:
    """The storage engines of those base tables that are there."""
    databases = tuple(sorted({database for database, _ in tables}))
    if not databases:
        return {}
    rows = client.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE ="
        " 'BASE TABLE' AND ENGINE IS NOT NULL AND BINARY TABLE_SCHEMA IN %s",
        [databases],
    )
    return {(row[0], row[1]): str(row[2]) for row in rows if (row[0], row[1]) in tables}


def pin_definition(client: ReplicaClient, table: Table) -> None:
    """Inside of a transaction nobody alters the table until it ends.

    Raises
    ------
    ServerError : what `ReplicaClient.query` raises; see `is_missing_table_error`.
    """
    name = quoted(*table)
    client.query(f"{UNCACHED_SELECT} 1 FROM {name} LIMIT 0")


def is_missing_table_error(error: ServerError) -> bool:
    """Whether the server says that there is no such table, or no such database."""
    return error.code in (_NO_SUCH_TABLE, _UNKNOWN_DATABASE)


def is_dropped(client: ReplicaClient, table: Table) -> bool:
    """Whether there is no table of this name, of which information_schema has no description.

    It leaves out what the account may not see, too; that is told by AccessDeniedError.
    """
    try:
        pin_definition(client, table)
    except ServerError as error:
        if is_missing_table_error(error):
            return True
        raise
    rows = client.query(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME ="
        " %s",
        table,
    )
    # The rows of a view are those of other tables.
    return bool(rows) and "VIEW" in str(rows[0][0])


def table_sizes(client: ReplicaClient, tables: Collection[Table]) -> dict[Table, TableSize]:
    """The sizes of those tables that are there."""
    databases = tuple(sorted({database for database, _ in tables}))
    if not databases:
        return {}
    found = {}
    for database, table, rows, row_bytes in client.query(_SIZES, [databases]):
        if (database, table) in tables:
            found[database, table] = TableSize(int(rows or 0), int(row_bytes or _USUAL_ROW_BYTES))
    return found
