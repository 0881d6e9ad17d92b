"""SQL for datafusion, the SQL engine of delta-rs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

__all__ = ["has_duplicates", "has_rows", "quoted", "rows_where"]


def quoted(name: str) -> str:
    """Quote a column's name."""
    return '"' + name.replace('"', '""') + '"'


def rows_where(table: DeltaTable, names: Sequence[str], condition: str) -> pa.Table:
    """Return these columns of the rows that meet an SQL condition.

    condition : made only of column names and numbers by this package.
    """
    columns = ", ".join(map(quoted, names))
    held = QueryBuilder().register("t", table)
    found = held.execute(f"SELECT {columns} FROM t WHERE {condition}")  # noqa: S608 (see `condition`)
    return pa.table(found.read_all())


def has_rows(table: DeltaTable, condition: str) -> bool:
    """Return whether a row of a table meets an SQL condition.

    condition : made only of column names and numbers by this package.
    """
    held = QueryBuilder().register("t", table)
    found = held.execute(f"SELECT 1 FROM t WHERE {condition} LIMIT 1")  # noqa: S608 (see `condition`)
    return bool(pa.table(found.read_all()).num_rows)


def has_duplicates(table: DeltaTable, names: Sequence[str]) -> bool:
    """Return whether two rows of a table have the same values in some columns."""
    columns = ", ".join(map(quoted, names))
    held = QueryBuilder().register("t", table)
    query = f"SELECT 1 FROM t GROUP BY {columns} HAVING COUNT(*) > 1 LIMIT 1"  # noqa: S608 (quoted names)
    return bool(pa.table(held.execute(query).read_all()).num_rows)
