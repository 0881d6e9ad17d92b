"""The columns that every read gives, as Spark types; Debezium's names where it has them.

What they mean is in docs/types.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_schema", "check_schema", "envelope"]

_SEQ = StructType(
    [
        StructField("epoch", IntegerType()),
        StructField("file", IntegerType()),
        StructField("pos", LongType()),
        StructField("row", IntegerType()),
    ]
)
_SOURCE = StructType(
    [
        StructField("server_id", LongType()),
        StructField("file", StringType()),
        StructField("pos", LongType()),
        StructField("row", IntegerType()),
        StructField("tx_pos", LongType()),
        StructField("thread_id", LongType()),
        StructField("gtid", StringType()),
        StructField("query", StringType()),
        StructField("key", ArrayType(StringType())),
        StructField("absent", ArrayType(StringType())),
    ]
)


def envelope(payload: DataType) -> StructType:
    """The schema of a read whose `before` and `after` have the type `payload`."""
    return StructType(
        [
            StructField("op", StringType()),
            StructField("ts", TimestampType()),
            StructField("database", StringType()),
            StructField("table", StringType()),
            StructField("before", payload),
            StructField("after", payload),
            StructField("seq", _SEQ),
            StructField("source", _SOURCE),
        ]
    )


def check_schema(given: StructType, ours: StructType) -> None:
    """OptionError unless a schema that the user gave is the one that the read has."""
    if given != ours:
        raise OptionError(
            f"the schema given is {given.simpleString()}, expected {ours.simpleString()}; leave"
            " .schema(…) out"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """What Spark expects record batches of `schema` to look like."""
    return to_arrow_schema(schema, timezone="UTC")
