"""The statements that give tables without a key a primary key.

A table can have one AUTO_INCREMENT column. If a table without a key has one, in an index that is
not unique, that column becomes the key. A key of a partitioned table must have the columns that its
partitions are made of, so only its owner can choose one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark_mysqlbinlog.names import Table, fold, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["key_statements", "numbered"]

_AUTO_INCREMENTS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS"
    " WHERE EXTRA LIKE '%%auto_increment%%' AND BINARY TABLE_SCHEMA IN %s"
)
_PARTITIONED = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
    " WHERE CREATE_OPTIONS LIKE '%%partitioned%%' AND BINARY TABLE_SCHEMA IN %s"
)


def key_statements(client: ReplicaClient, keyless: Sequence[TableSchema]) -> dict[Table, str]:
    """Return the statement for each table; partitioned tables have none."""
    if not keyless:
        return {}
    databases = [tuple(sorted({schema.database for schema in keyless}))]
    counted = {
        (str(database), str(table)): str(column)
        for database, table, column in client.query(_AUTO_INCREMENTS, databases)
    }
    partitioned = {(str(each[0]), str(each[1])) for each in client.query(_PARTITIONED, databases)}
    return dict(_statements(keyless, counted, partitioned))


def _statements(
    keyless: Iterable[TableSchema], counted: dict[Table, str], partitioned: set[Table]
) -> Iterator[tuple[Table, str]]:
    for schema in keyless:
        table = schema.database, schema.table
        if table in partitioned:
            continue
        change = (
            f"ADD PRIMARY KEY ({quoted(counted[table])})"
            if table in counted
            else f"ADD COLUMN {quoted(_free_name(schema))}"
            " BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
        )
        yield table, f"ALTER TABLE {quoted(*table)} {change}"


def _free_name(schema: TableSchema) -> str:
    names = {fold(column.name) for column in schema.columns}
    return next(each for each in ("id", "row_id", *numbered("row_id")) if each not in names)


def numbered(name: str) -> Iterable[str]:
    """Return names with a number, more than a table has columns."""
    return (f"{name}{number}" for number in range(2, 4096))
