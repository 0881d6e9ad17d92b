"""What information_schema says of tables beside their columns: engine, and about how large."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["TableSize", "engine_of", "is_view", "table_sizes"]

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


def is_view(client: ReplicaClient, table: Table) -> bool:
    """Whether a view has this name; its rows are those of other tables."""
    rows = client.query(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME ="
        " %s",
        table,
    )
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
