"""Checks for partition values that Delta would read as other values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["check_partition_values"]


# Values that mean NULL in Delta's partition folders.
_NULL_PARTITIONS = {"": "an empty", "__HIVE_DEFAULT_PARTITION__": "__HIVE_DEFAULT_PARTITION__ as"}


def check_partition_values(
    target: DeltaTarget, rows: pa.Table, table: str, key: Collection[str] = ()
) -> None:
    """MirrorError if Delta would read a row's partition value as another value.

    key : the columns by which rows are merged; empty if they are counted.
    """
    for name in target.partitioned_by():
        column = rows.column(name)
        if pa.types.is_binary(column.type):
            # delta-rs returns such values as the Delta log spells them: 8 bytes for 1 byte.
            raise MirrorError(
                f"the partition column {name} of the Delta table has bytes, which Delta does not"
                " read back: partition the table by another column",
                table=table,
            )
        if pa.types.is_floating(column.type) and name in key:
            raise MirrorError(
                f"the partition column {name} of the Delta table is a FLOAT or DOUBLE of the key,"
                " and Delta's partitions distinguish 0 from -0, which are one key: partition the"
                " table by another column",
                table=table,
            )
        if pa.types.is_string(column.type):
            for null, said in _NULL_PARTITIONS.items():
                if pc.any(pc.equal(column, null)).as_py():
                    raise MirrorError(
                        f"a row has {said} {name}, a partition column of the Delta table, and Delta"
                        " reads that as NULL: partition the table by another column",
                        table=table,
                    )
        if (
            _is_instant(column.type)
            and not target.preserves_partition_time_zone
            and len(column.drop_null())
        ):
            raise MirrorError(
                f"the partition column {name} of the Delta table is a TIMESTAMP, which delta-rs"
                " stores without its time zone: Spark reads another value, unless its session is"
                " in UTC; partition the table by another column",
                table=table,
            )
        if pa.types.is_decimal(column.type) and _has_negative_part(column):
            # delta-rs writes -0.05 as 0.-5, and then the table cannot be opened any more.
            raise MirrorError(
                f"the partition column {name} of the Delta table has a negative value with a"
                " fraction, which Delta does not read back: partition the table by another"
                " column",
                table=table,
            )


def _is_instant(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.tz is not None


def _has_negative_part(values: pa.ChunkedArray[Any]) -> bool:
    whole = pc.equal(pc.trunc(values), values)
    return bool(pc.any(pc.and_(pc.less(values, 0), pc.invert(whole))).as_py())
