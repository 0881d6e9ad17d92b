"""What is said to datafusion, the SQL engine inside of delta-rs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyarrow import compute

__all__ = ["integer_bounds", "quoted"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute


def quoted(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'


def integer_bounds(rows: pa.Table, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of those columns that are whole numbers and never NULL."""
    bounds = {}
    for name in names:
        column = rows.column(name)
        if pa.types.is_integer(column.type) and len(column) and not column.null_count:
            found = pc.min_max(column).as_py()
            bounds[name] = (found["min"], found["max"])
    return bounds
