"""Table schemas from the server's information_schema.

Three SELECTs for any number of tables: their default collations, their columns, their unique
keys. information_schema opens every table it describes, so a query per table would repeat that
cost. Types come from COLUMN_TYPE, by the parser of DDL: the other columns differ between versions
(5.5 has no DATETIME_PRECISION, 8.0 no display widths).

It shows only what the account can see. A table of which it can see only some columns is rejected,
because the others would be missing without a trace: a missing last column leaves no gap.

One limitation: the texts of information_schema are utf8 with three bytes, so a character beyond
them in an ENUM or SET label reads as ``?``. Such labels are known only from DDL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pyspark_mysqlbinlog.charsets import canonical_charset, charset_of_collation
from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import parse_column_type
from pyspark_mysqlbinlog.decoder.sql.label_charsets import label_of_lost_letters
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.errors import AccessDeniedError, MySQLBinlogError, UnknownSchemaError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, quoted, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema, row_keys

__all__ = ["read_database_charsets", "read_table_schema", "read_table_schemas"]

_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES"
    " WHERE TABLE_TYPE = 'BASE TABLE' AND "
)
_COLUMNS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE,"
    " EXTRA, ORDINAL_POSITION FROM information_schema.COLUMNS WHERE "
)
_KEYS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX FROM"
    " information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND "
)
# The server excludes the system databases too: describing them takes it longest.
_ALL = "BINARY TABLE_SCHEMA NOT IN %s"
_SYSTEM = (tuple(sorted(SYSTEM_DATABASES)),)
# Without BINARY, because with these conditions the server opens only that table.
_ONLY = "TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_DATABASES = "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA"


def read_table_schemas(
    client: ReplicaClient,
    captures: Callable[[str, str], bool],
    *,
    others: bool = False,
    only: Table | None = None,
) -> list[TableSchema]:
    """Read the schemas of the captured base tables, sorted by database and name.

    Parameters
    ----------
    client : of an account that can see the tables; a table that it cannot see does not exist here.
    captures : of (database, table); the server's system databases are excluded before.
    others : include all other tables that can be parsed.
    only : read this table alone, as the server spells it: fast on a server with many tables.

    Raises
    ------
    AccessDeniedError : with the table; the account can see only some columns of a captured one.
    UnknownSchemaError : with the table; a captured one has a column that can't be parsed.
    ServerError : what `ReplicaClient.query` raises.
    """
    those, names = (_ALL, _SYSTEM) if only is None else (_ONLY, only)
    collations = {
        (database, table): collation
        for database, table, collation in _rows(client, _TABLES + those, names)
        if database not in SYSTEM_DATABASES and (others or captures(database, table))
    }
    if not collations:
        return []
    ((version, case),) = _rows(client, "SELECT VERSION(), @@lower_case_table_names")
    grants = Grants.ask(client, case_sensitive=case in (None, 0))
    # Labels in COLUMN_TYPE are escaped with backslashes whatever the session's sql_mode.
    context = SqlContext.of(0, version)
    columns: dict[Table, list[tuple[int, ColumnSchema]]] = {table: [] for table in collations}
    for database, table, *row, ordinal in _rows(client, _COLUMNS + those, names):
        described = columns.get((database, table))
        if described is None:
            continue
        try:
            column = _column((*row,), context)
        except MySQLBinlogError as error:
            if not captures(database, table):
                del columns[database, table]
                continue
            raise UnknownSchemaError(
                f"column {row[0]!r} of type {row[1][:60]!r} can't be read: {_why(row[1], error)}",
                table=f"{database}.{table}",
            ) from None
        described.append((int(ordinal), column))
        if captures(database, table) and (label := label_of_lost_letters(column)) is not None:
            warn_once(
                f"{database}.{table}: the server shows a label of column {row[0]!r} as {label!r},"
                " and a letter beyond U+FFFF, such as an emoji, as ?: unless the binlog after the"
                " start has the statement that defined the column, rows have ? for such letters"
            )
    keys = _keys(_rows(client, _KEYS + those, names))
    found = []
    for table, collation in sorted(collations.items()):
        described = sorted(columns.get(table, ()), key=lambda pair: pair[0])
        if not described:  # dropped between the queries, or not parsed
            continue
        ordinals = [ordinal for ordinal, _ in described]
        described_columns = tuple(column for _, column in described)
        unique_keys = keys.get(table, {})
        key = unique_keys.pop("PRIMARY", ())
        if (
            not grants.shows_columns_of(*table)
            or ordinals != list(range(1, len(ordinals) + 1))
            or not {*key} <= {column.name for column in described_columns}
        ):
            if captures(*table):
                raise _partly_seen(table)
            continue
        found.append(
            TableSchema(
                *table,
                columns=described_columns,
                primary_key=key,
                charset=charset_of_collation(collation) if collation else None,
                unique_keys=row_keys(described_columns, key, unique_keys.items()),
            )
        )
    return found


def _keys(rows: Sequence[tuple[Any, ...]]) -> dict[Table, dict[str, tuple[str, ...]]]:
    """Return each table's unique indexes: name -> columns; without those on expressions."""
    parts: dict[Table, dict[str, list[tuple[int, str | None]]]] = {}
    for database, table, name, column, sequence in rows:
        indexes = parts.setdefault((database, table), {})
        indexes.setdefault(name, []).append((int(sequence), column))
    return {
        table: {
            name: tuple(column for _, column in sorted(columns) if column is not None)
            for name, columns in indexes.items()
            # MySQL 8.0: an expression instead of a column.
            if all(column is not None for _, column in columns)
        }
        for table, indexes in parts.items()
    }


def read_table_schema(
    client: ReplicaClient, table: Table, *, case_sensitive: bool
) -> TableSchema | None:
    """Read one base table's schema; None if the server does not describe it.

    Raises as `read_table_schemas`. Fast on a server with many tables.
    """
    fold = table_folding(case_sensitive)
    found = read_table_schemas(client, lambda *name: fold(name) == fold(table), only=table)
    return found[0] if found else None


def _why(column_type: str, error: MySQLBinlogError) -> str:
    if column_type.startswith(("enum(", "set(")) and not column_type.endswith(")"):
        return "the server truncates it, as it does if a label has bytes that are not valid text"
    return error.message


def _partly_seen(table: Table) -> AccessDeniedError:
    return AccessDeniedError(
        "the account can see only some columns of this table, and the binlog has the values of"
        f" all: GRANT SELECT ON {quoted(*table)} to this account instead of SELECT (columns), or"
        " exclude the table",
        table=".".join(table),
    )


def read_database_charsets(client: ReplicaClient) -> dict[str, str]:
    """Read the default charset of every database, which a CREATE TABLE inherits."""
    return {name: canonical_charset(charset) for name, charset in _rows(client, _DATABASES)}


@lru_cache(maxsize=4096)
def _column(row: tuple[Any, ...], context: SqlContext) -> ColumnSchema:
    # Tables share most of their columns: `id int(11)`, `created_at datetime`.
    name, column_type, charset, nullable, extra = row
    known = canonical_charset(charset) if charset else None
    column = parse_column_type(name, column_type, known, nullable == "YES", context)
    # "VIRTUAL GENERATED", "STORED GENERATED"; possibly with other words, and with DEFAULT_GENERATED
    # for a default.
    words = extra.upper().replace(",", " ").split()
    is_virtual = "VIRTUAL" in words and not context.mariadb
    return replace(column, virtual=is_virtual, generated="GENERATED" in words)


def _rows(
    client: ReplicaClient, query: str, arguments: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Return a query's rows, all texts as str: information_schema returns some as bytes."""
    return [
        tuple(value.decode() if isinstance(value, bytes) else value for value in row)
        for row in client.query(query, arguments)
    ]
