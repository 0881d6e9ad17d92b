"""The columns that every read returns, as Spark types, with Debezium's names where it has them.

What they mean is in docs/reference/output-schema.md.
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
    VariantType,
)

from pyspark_mysqlbinlog.decoder.payloads.envelope import RESCUED
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_schema", "check_schema", "output_schema"]

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
        StructField("missing", ArrayType(StringType())),
        StructField("invalid_dates", ArrayType(StringType())),
    ]
)


def output_schema(payload: DataType, *, rescued: bool = False) -> StructType:
    """Return the schema of a read whose `before` and `after` have the type `payload`.

    rescued : with a column for values that a struct can't contain.
    """
    more = [StructField(RESCUED, StringType())] if rescued else []
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
            *more,
        ]
    )


def check_schema(given: StructType, payload: str, *, rescued: bool) -> None:
    """Raise OptionError unless a user-specified schema is one that the read can have.

    The fields inside the structs of payload=struct are checked at the first row of a table: its
    columns at that position are known there.
    """
    if payload == "struct":
        kinds = [
            field.dataType
            for field in given
            if field.name in ("before", "after") and isinstance(field.dataType, StructType)
        ]
        if len(kinds) == 2 and given == output_schema(kinds[0], rescued=rescued):
            return
        shape = output_schema(StructType(), rescued=rescued).simpleString()
        expected = f"one struct for before and after in {shape}"
    else:
        fixed = output_schema(VariantType() if payload == "variant" else StringType())
        if given == fixed:
            return
        expected = fixed.simpleString()
    raise OptionError(
        f"the schema is {given.simpleString()}, expected {expected}; remove .schema(…)"
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of record batches of `schema`."""
    return to_arrow_schema(schema, timezone="UTC")
