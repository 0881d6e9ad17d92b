"""Conditions on a Delta table's rows, as SQL for both datafusion and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ

__all__ = ["integer_bounds", "is_before", "pruning_conditions"]


# From this value on, the statistics of a file may be rounded; see `deltars.stats`.
_MIN_INEXACT = 10**15


def is_before(seq: Mapping[str, int]) -> str:
    """Return the condition that a row's `seq` is smaller."""
    said = "FALSE"
    for name, value in reversed(list(seq.items())):
        field = f"{SEQ}['{name}']"
        said = f"({field} < {value} OR ({field} = {value} AND {said}))"
    return said


def integer_bounds(rows: pa.Table, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the minimum and the maximum of the columns that are integers and never NULL.

    This includes decimals without a fraction (a BIGINT UNSIGNED is one in Delta) if minimum and
    maximum have at most 15 digits. Statistics of longer values may be rounded, but rounding never
    moves a value past a shorter one.
    """
    pruning_conditions = {}
    for name in names:
        column = rows.column(name)
        if _is_whole(column.type) and len(column) and not column.null_count:
            found = pc.min_max(column).as_py()
            least, greatest = int(found["min"]), int(found["max"])
            if pa.types.is_integer(column.type) or -_MIN_INEXACT < least <= greatest < _MIN_INEXACT:
                pruning_conditions[name] = (least, greatest)
    return pruning_conditions


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or (isinstance(kind, pa.Decimal128Type) and kind.scale == 0)


def pruning_conditions(
    rows: pa.Table, names: Iterable[str], quoted: Callable[[str], str]
) -> Iterator[str]:
    """Yield conditions on ``t`` that skip files without any of these rows."""
    for name, (least, greatest) in integer_bounds(rows, names).items():
        field = f"t.{quoted(name)}"
        yield from (f"{field} >= {least}", f"{field} <= {greatest}")
