"""What is said to datafusion, the SQL engine inside of delta-rs."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

__all__ = ["has_rows", "quoted"]


def quoted(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'


def has_rows(table: DeltaTable, condition: str) -> bool:
    """Whether a table has a row of which an SQL condition is true.

    condition : of names and numbers of our own.
    """
    held = QueryBuilder().register("t", table)
    found = held.execute(f"SELECT 1 FROM t WHERE {condition} LIMIT 1")  # noqa: S608 (see above)
    return bool(pa.table(found.read_all()).num_rows)
