"""Rows of tables with unknown columns, under generated names: @1, @2, ….

Only the column types of a 5.7 table map are used; nothing else is guessed. Values are therefore as
in the binlog, not as SELECT shows them:

==========================  =======================================================================
integers                    read as signed: the binlog does not contain UNSIGNED, whose upper half
                            becomes negative
CHAR, VARCHAR, TEXT, BLOB   their bytes, as binary: the binlog contains neither the character set
and BINARY, VARBINARY       nor whether there is one. Trailing spaces and zeros are as stored
ENUM                        the label's number, 0 for the invalid value
SET                         the number whose bits are the labels
BIT, FLOAT, DOUBLE, DECIMAL, JSON, GEOMETRY, dates and times    as usual: the type is sufficient
==========================  =======================================================================

The primary key is also unknown.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.field_types import (
    OLD_TEMPORALS,
    FieldType,
    field_type_name,
    real_string,
)
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, RowPlan
from pyspark_mysqlbinlog.decoder.values import numbers
from pyspark_mysqlbinlog.decoder.values.codec import Codec
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.errors import UnsupportedEventError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["positional_plan"]

_TYPES: dict[int, str] = {
    FieldType.TINY: "tinyint",
    FieldType.SHORT: "smallint",
    FieldType.INT24: "mediumint",
    FieldType.LONG: "int",
    FieldType.LONGLONG: "bigint",
    FieldType.FLOAT: "float",
    FieldType.DOUBLE: "double",
    FieldType.YEAR: "year",
    FieldType.DATE: "date",
    FieldType.NEWDATE: "date",
    FieldType.TIME: "time",
    FieldType.TIME2: "time",
    FieldType.DATETIME: "datetime",
    FieldType.DATETIME2: "datetime",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.TIMESTAMP2: "timestamp",
    FieldType.VARCHAR: "varbinary",
    FieldType.BLOB: "longblob",
    FieldType.JSON: "json",
    FieldType.GEOMETRY: "geometry",
    FieldType.VECTOR: "vector",
}
_FRACTIONAL = (FieldType.TIME2, FieldType.DATETIME2, FieldType.TIMESTAMP2)


def positional_plan(table_map: TableMap, *, is_mariadb: bool = False) -> RowPlan:
    """Return the plan for rows of a table map without a schema.

    is_mariadb : columns of MariaDB in the layout before 5.6 can have fractions, whose digits, and
        so the size of the values, are not in the binlog.

    UnsupportedEventError for a column type that requires a schema.
    """
    columns = []
    for at, (code, metadata) in enumerate(zip(table_map.types, table_map.metadata, strict=True)):
        name = f"@{at + 1}"
        if is_mariadb and code in OLD_TEMPORALS:
            raise UnsupportedEventError(
                f"column `{name}` has the layout {field_type_name(code)} of"
                " mysql56_temporal_format=OFF, and its fraction digits are not in the binlog:"
                " rebuild the table with ON (ALTER TABLE … FORCE), or if it has no fractions,"
                " define it with schemaDdl",
                table=table_map.full_name,
            )
        schema, codec = _column(name, code, metadata, table_map.nullable(at))
        columns.append(ColumnPlan(name, f'"{name}":', codec.skip, codec, schema))
    schemas = tuple(column.schema for column in columns if column.schema is not None)
    plan = RowPlan(
        table_map, TableSchema(table_map.database, table_map.table, schemas), tuple(columns)
    )
    plan.key = None
    return plan


def _column(name: str, code: int, metadata: int, nullable: bool) -> tuple[ColumnSchema, Codec]:
    if code == FieldType.STRING:
        real, size = real_string(metadata)
        if real != FieldType.STRING:
            # ENUM and SET are little-endian numbers of `size` bytes.
            schema = ColumnSchema(name, "bigint", unsigned=True, nullable=nullable)
            return schema, numbers.integer(f"column `{name}`", size, unsigned=True)
        schema = ColumnSchema(name, "varbinary", nullable=nullable)
    elif code == FieldType.NEWDECIMAL:
        schema = ColumnSchema(name, "decimal", metadata >> 8, metadata & 0xFF, nullable=nullable)
    elif code == FieldType.BIT:
        bits = (metadata >> 8) * 8 + (metadata & 0xFF)
        schema = ColumnSchema(name, "bit", bits, nullable=nullable)
    elif code in _TYPES:
        length = metadata if code in _FRACTIONAL else None
        schema = ColumnSchema(name, _TYPES[code], length, nullable=nullable)
    else:
        raise UnsupportedEventError(
            f"column `{name}` has {field_type_name(code)}, which cannot be read without a schema"
        )
    return schema, codec_for(code, metadata, schema)
