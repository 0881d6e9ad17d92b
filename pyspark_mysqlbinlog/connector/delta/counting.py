"""Whole numbers in a row, made by Arrow: from Python's they take twenty times as long."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import compute

__all__ = ["counted"]

# The stubs do not know `cumulative_sum`'s start.
pc: Any = compute


def counted(first: int, count: int) -> Any:
    """So many numbers from `first` on, as int64."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)
