"""Facts about tables other than their columns: engine, approximate size, existence."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pyspark_mysqlbinlog.connector.server.dictionary import is_missing_table_error, pin_definition
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, ServerError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.session_settings import LONGEST_TIMEOUT, UNCACHED_SELECT

__all__ = [
    "TableSize",
    "engine_of",
    "engines_of",
    "is_dropped",
    "is_innodb",
    "table_sizes",
    "unreadable_tables",
]

_SIZES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES"
    " WHERE TABLE_TYPE = 'BASE TABLE' AND BINARY TABLE_SCHEMA IN %s"
)
_USUAL_ROW_BYTES = 200


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of one table by the server's statistics: never exact, and often far off.

    Attributes
    ----------
    rows : the approximate number of rows.
    row_bytes : the approximate size of a row; at least 1.
    """

    rows: int = 0
    row_bytes: int = _USUAL_ROW_BYTES


def engine_of(client: ReplicaClient, table: Table) -> str | None:
    """Return a base table's storage engine; None if there is no such table."""
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
    """Return the storage engines of those base tables that exist."""
    databases = tuple(sorted({database for database, _ in tables}))
    if not databases:
        return {}
    rows = client.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE ="
        " 'BASE TABLE' AND ENGINE IS NOT NULL AND BINARY TABLE_SCHEMA IN %s",
        [databases],
    )
    return {(row[0], row[1]): str(row[2]) for row in rows if (row[0], row[1]) in tables}


def unreadable_tables(
    client: ReplicaClient, tables: Collection[Table]
) -> Iterator[AccessDeniedError]:
    """Yield an error for each table whose rows the account may not SELECT.

    Another privilege, such as INSERT, shows the columns of a table, too.
    """
    # A table that is being altered is not waited for.
    client.query("SET SESSION lock_wait_timeout = 1")
    for table in sorted(tables):
        name = quoted(*table)
        try:
            client.query(f"{UNCACHED_SELECT} * FROM {name} LIMIT 0")
        except AccessDeniedError:
            yield AccessDeniedError(
                "a snapshot reads the rows of this table, and the account may not: GRANT SELECT ON"
                f" {name} to this account",
                table=".".join(table),
            )
        except LostConnectionError:
            raise
        except ServerError:
            pass  # altered or dropped: the snapshot itself reports what concerns it
    client.query(f"SET SESSION lock_wait_timeout = {LONGEST_TIMEOUT}")


def is_dropped(client: ReplicaClient, table: Table) -> bool:
    """Whether a table that information_schema does not list does not exist.

    information_schema also hides what the account cannot see; that raises AccessDeniedError.
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
    # A view's rows are those of other tables.
    return bool(rows) and "VIEW" in str(rows[0][0])


def table_sizes(client: ReplicaClient, tables: Collection[Table]) -> dict[Table, TableSize]:
    """Return the sizes of those tables that exist."""
    databases = tuple(sorted({database for database, _ in tables}))
    if not databases:
        return {}
    found = {}
    for database, table, rows, row_bytes in client.query(_SIZES, [databases]):
        if (database, table) in tables:
            found[database, table] = TableSize(int(rows or 0), int(row_bytes or _USUAL_ROW_BYTES))
    return found
