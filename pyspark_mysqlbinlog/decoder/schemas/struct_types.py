"""The Arrow type of each MySQL column in a `struct` payload, by the column's schema.

The Spark types (connector/schemas/struct_schema.py) and the choice of builders both follow from
these types, so that the data always has the declared types::

    integers, UNSIGNED ones   the narrowest signed integer that holds all; BIGINT UNSIGNED
                              decimal(20,0)
    DECIMAL(p,s)              decimal(p,s); string above 38 digits, the maximum of Spark
    BIT(1), BIT(n), BIT(64)   boolean, bigint, decimal(20,0)
    TIME                      string, interval or microseconds, depending on `timeType`
    JSON                      string or variant, depending on `jsonType`
    VECTOR                    array of float: its values, as vector libraries expect them
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysqlbinlog.errors import SchemaError
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, SPATIAL_TYPES, ColumnSchema

__all__ = ["GEOMETRY", "MOST_DIGITS", "VARIANT", "VECTOR", "StructOptions", "arrow_type"]

# The type that pyspark's to_arrow_type makes.
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
# As pyspark's to_arrow_type makes it.
VECTOR: pa.DataType = pa.list_(pa.field("element", pa.float32()))
GEOMETRY = pa.struct([pa.field("srid", pa.int32()), pa.field("wkb", pa.binary())])

MOST_DIGITS = 38
_UINT64 = pa.decimal128(20, 0)
_INTEGERS: dict[tuple[str, bool], pa.DataType] = {
    ("tinyint", False): pa.int8(),
    ("tinyint", True): pa.int16(),
    ("smallint", False): pa.int16(),
    ("smallint", True): pa.int32(),
    ("mediumint", False): pa.int32(),
    ("mediumint", True): pa.int32(),
    ("int", False): pa.int32(),
    ("int", True): pa.int64(),
    ("bigint", False): pa.int64(),
    ("bigint", True): _UINT64,
}
_PLAIN: dict[str, pa.DataType] = {
    "float": pa.float32(),
    "double": pa.float64(),
    "year": pa.int32(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "char": pa.string(),
    "varchar": pa.string(),
    "tinytext": pa.string(),
    "text": pa.string(),
    "mediumtext": pa.string(),
    "longtext": pa.string(),
    "enum": pa.string(),
    "set": pa.string(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
    "tinyblob": pa.binary(),
    "blob": pa.binary(),
    "mediumblob": pa.binary(),
    "longblob": pa.binary(),
    "vector": VECTOR,
}
_TIMES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "interval": pa.duration("us"),
    "micros": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class StructOptions:
    """How to represent types for which there is a choice; the options of the same names.

    Attributes
    ----------
    time_type : ``string``, ``interval`` or ``micros``.
    json_type : ``string`` or ``variant``.
    zero_dates : ``null`` or ``fail``.
    tiny_int1_is_boolean : whether TINYINT(1) is a boolean.
    """

    time_type: str = "string"
    json_type: str = "string"
    zero_dates: str = "null"
    tiny_int1_is_boolean: bool = False


def arrow_type(column: ColumnSchema, options: StructOptions) -> pa.DataType:
    """Return the Arrow type of a column's values; SchemaError for an unknown column type."""
    kind = column.type
    if kind in INTEGER_TYPES:
        if kind == "tinyint" and column.length == 1 and options.tiny_int1_is_boolean:
            return pa.bool_()
        return _INTEGERS[kind, column.unsigned]
    if kind == "decimal":
        precision = column.length or 10
        if precision > MOST_DIGITS:
            return pa.string()
        return pa.decimal128(precision, column.scale or 0)
    if kind == "bit":
        bits = column.length or 1
        return pa.bool_() if bits == 1 else _UINT64 if bits == 64 else pa.int64()
    if kind == "time":
        return _TIMES[options.time_type]
    if kind == "json":
        return VARIANT if options.json_type == "variant" else pa.string()
    if kind in SPATIAL_TYPES:
        return GEOMETRY
    if kind in _PLAIN:
        return _PLAIN[kind]
    raise SchemaError(
        f"column `{column.name}` has the type {kind}, which a struct does not support; exclude it"
        " with excludeColumns"
    )
