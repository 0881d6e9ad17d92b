"""Small tools for Arrow arrays and tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.rows.columns import TOMBSTONE

__all__ = ["int_range", "pc", "with_tombstone"]

# pyarrow's compute functions. The stubs lack chunked arrays with plain values, the types of the
# results, and the start of `cumulative_sum`.
pc: Any = compute


def int_range(first: int, count: int) -> Any:
    """Return `count` int64 numbers from `first` on; 20 times as fast as from a Python range."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)


def with_tombstone(rows: pa.Table, *, is_tombstone: bool) -> pa.Table:
    """Return rows as states that are all tombstones, or all live."""
    return rows.append_column(TOMBSTONE, pa.repeat(is_tombstone, rows.num_rows))
