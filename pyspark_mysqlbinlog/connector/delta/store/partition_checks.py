"""Values that Delta does not give back where a table is partitioned by their column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["check_partition_values"]


# What stands for NULL in Delta's folders of partitions.
_NULL_PARTITIONS = {"": "an empty", "__HIVE_DEFAULT_PARTITION__": "__HIVE_DEFAULT_PARTITION__ as"}


def check_partition_values(target: DeltaTarget, rows: pa.Table, table: str) -> None:
    """MirrorError where a row would be in a partition that Delta reads as another value."""
    for name in target.partitioned_by():
        column = rows.column(name)
        if pa.types.is_binary(column.type):
            # delta-rs reads them as what stands for them in the log of Delta: 8 bytes for 1.
            raise MirrorError(
                f"{name}, by which the Delta table is partitioned, has bytes, and Delta does not"
                " give back such values: partition the table by another column",
                table=table,
            )
        if pa.types.is_string(column.type):
            for null, said in _NULL_PARTITIONS.items():
                if pc.any(pc.equal(column, null)).as_py():
                    raise MirrorError(
                        f"a row has {said} {name}, by which the Delta table is partitioned, and"
                        " Delta can't tell that from NULL: partition the table by another column",
                        table=table,
                    )
        if (
            _is_instant(column.type)
            and not target.preserves_partition_time_zone
            and len(column.drop_null())
        ):
            raise MirrorError(
                f"{name}, by which the Delta table is partitioned, is a TIMESTAMP, and delta-rs"
                " notes it without its time zone: Spark reads another value, unless its session is"
                " in UTC; partition the table by another column",
                table=table,
            )
        if pa.types.is_decimal(column.type) and _has_negative_part(column):
            # delta-rs writes -0.05 as 0.-5, and nobody can open the table any more.
            raise MirrorError(
                f"{name}, by which the Delta table is partitioned, has a negative value with a"
                " fraction, and Delta does not give back such values: partition the table by"
                " another column",
                table=table,
            )


def _is_instant(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.tz is not None


def _has_negative_part(values: pa.ChunkedArray[Any]) -> bool:
    whole = pc.equal(pc.trunc(values), values)
    return bool(pc.any(pc.and_(pc.less(values, 0), pc.invert(whole))).as_py())
