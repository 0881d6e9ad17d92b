"""Chunk bounds of a table, as values of its key.

Only the server compares keys: the order depends on collations, label numbers or signs, and differs
from any order in Python. So the server finds a bound, reading only the index. It is kept as SQL
literals, each of which is exactly the value in the index:

- texts in hexadecimal, with the column's own character set and collation: the literal compares as
  the column's values do, whatever the connection, the table and the database are set to;
- FLOAT as the exact double; SELECT would show six digits of it;
- ENUM, SET and BIT by number, as they are ordered; compared with a text, an ENUM is a text;
- times as texts, possibly with dates like 0000-00-00 and 2026-02-31. They need a session that
  allows invalid dates, and for TIMESTAMP the time zone +00:00, where no hour is repeated: see
  `protocol/server/session_settings.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_mysqlbinlog.checkpoints.snapshot_state import Bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.conditions import (
    gaps_after,
    range_condition,
    upper_bound,
)
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey, KeyColumn
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.session_settings import UNCACHED_SELECT
from pyspark_mysqlbinlog.tables import INTEGER_TYPES

__all__ = ["last_bound", "next_bound", "range_condition"]


def next_bound(
    client: ReplicaClient,
    table: Table,
    key: ChunkKey,
    after: Bound | None,
    last: Bound,
    *,
    rows: int,
) -> tuple[Bound | None, int]:
    """Return the end of the chunk of `rows` rows that begins after `after`, and its row count.

    The bound is `last` if fewer rows are left, and None if there are none.

    Parameters
    ----------
    after : the bound of the previous chunk; None at the table's beginning.
    last : the result of `last_bound` when the snapshot of the table began.
    """
    if rows < 1:
        raise ValueError(f"expected a chunk of 1 or more rows, found {rows}")
    # Evaluated for the row that is found: a condition would split one interval into several.
    is_within = upper_bound(key, last)
    left = rows
    for condition, order in gaps_after(key, after):
        rows_of = _from(table, key, condition)
        fetched = _fetched(key, is_within)
        found = client.query(f"{fetched} {rows_of} {_ordered(order)} LIMIT {left - 1}, 1")
        if found:
            *values, row_is_within = found[0]
            if row_is_within:
                return _bound(key, values), rows
            break
        counted = _count(client, rows_of)
        # Rows may have been added since: always ask for at least one.
        left -= min(counted, left - 1)
    left = _count(client, _from(table, key, range_condition(key, after, last)))
    return (last, left) if left else (None, 0)


def _count(client: ReplicaClient, rows_of: str) -> int:
    ((count,),) = client.query(f"{UNCACHED_SELECT} COUNT(*) {rows_of}")
    return int(count)


def last_bound(client: ReplicaClient, table: Table, key: ChunkKey) -> Bound | None:
    """Return the greatest key of a table; None if it has no rows.

    Rows after it are left to the binlog. So call this only when everything logged before the
    start is proven to be visible: a row that is in the binlog but not yet visible in the engine
    would be missing from both.
    """
    rows_of = _from(table, key, "TRUE")
    order = _ordered(key.columns, "DESC")
    found = client.query(f"{_fetched(key)} {rows_of} {order} LIMIT 1")
    return _bound(key, found[0]) if found else None


def _fetched(key: ChunkKey, *more: str) -> str:
    """Return a SELECT of the key's values and more expressions."""
    return f"{UNCACHED_SELECT} " + ", ".join([*map(_whole, key.columns), *more])


def _ordered(columns: Sequence[KeyColumn], direction: str = "ASC") -> str:
    """Return ORDER BY for the key's columns, except those that are the same in all rows."""
    # With the table's name, because ORDER BY prefers the fetched columns otherwise.
    order = ", ".join(f"t.{quoted(column.name)} {direction}" for column in columns)
    return f"ORDER BY {order}" if order else ""


def _from(table: Table, key: ChunkKey, condition: str) -> str:
    return f"FROM {quoted(*table)} AS t FORCE INDEX ({quoted(key.name)}) WHERE {condition}"


def _whole(column: KeyColumn) -> str:
    """Return the expression that fetches a column's value unconverted by the connection."""
    name = quoted(column.name)
    match column.type:
        case "char" | "varchar" | "binary" | "varbinary":
            return f"HEX({name})"
        case "bit" | "enum" | "set":
            return f"CAST({name} AS UNSIGNED)"
        case "float" | "double":
            return f"{name} + 0e0"
        case "decimal" | "date" | "time" | "datetime" | "timestamp":
            return f"CAST({name} AS CHAR)"
        case _:
            return name


def _bound(key: ChunkKey, row: Sequence[object]) -> Bound:
    return tuple(map(_literal, key.columns, row))


def _literal(column: KeyColumn, value: object) -> str:
    """Return a fetched value as the literal that compares with the column as the value does."""
    text = value.decode("ascii") if isinstance(value, bytes) else str(value)
    match column.type:
        case "char" | "varchar":
            return f"_{column.charset} X'{text}' COLLATE {column.collation}"
        case "binary" | "varbinary":
            return f"_binary X'{text}'"
        case "float" | "double":
            number = repr(float(text))
            # Without an exponent the literal would be a DECIMAL.
            return number if "e" in number else f"{number}e0"
        case "date" | "time" | "datetime" | "timestamp":
            return f"'{text}'"
        case "decimal":
            return text
        case _:
            assert column.type in INTEGER_TYPES | {"year", "bit", "enum", "set"}
            return str(int(text))
