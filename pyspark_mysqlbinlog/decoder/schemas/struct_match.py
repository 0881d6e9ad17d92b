"""Whether a column of the binlog fits a query's struct.

A struct's fields are fixed before the first row is read, but the tables in the binlog change. A
column fits if the struct has a field of its name, in any case, that can hold each of its values
exactly: the same type, or a wider one::

    an integer      a wider integer, a decimal with enough digits, a double that is exact, a string
    a decimal       one with no fewer digits on either side, a string
    float           double

The caller handles columns that do not fit: the stream stops, or rescues the values, as
`schemaEvolutionMode` determines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["columns_without_place", "field_of", "widening"]

Convert = Callable[[Any], Any]

# Decimal digits that any value of an integer type may need.
_DIGITS: dict[pa.DataType, int] = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT_FLOATS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.float32(): (pa.int8(), pa.int16()),
    pa.float64(): (pa.int8(), pa.int16(), pa.int32()),
}


def field_of(struct: pa.StructType, name: str) -> pa.Field[Any] | None:
    """Find a field by name, in any case: MySQL and Spark compare column names that way."""
    at = struct.get_field_index(name)
    if at >= 0:
        return struct.field(at)
    lower = fold(name)
    return next((field for field in struct if fold(field.name) == lower), None)


def widening(found: pa.DataType, wanted: pa.DataType) -> Convert | None:
    """Return the conversion from type `found` to `wanted`; None if some value would not fit."""
    if found == wanted:
        return _same
    if found in _DIGITS:
        digits = _DIGITS[found]
        if wanted in _DIGITS:
            return _same if _DIGITS[wanted] > digits else None
        if pa.types.is_decimal(wanted):
            return str if wanted.precision - wanted.scale >= digits else None
        if found in _EXACT_FLOATS.get(wanted, ()):
            return float
        return str if pa.types.is_string(wanted) else None
    if pa.types.is_decimal(found):
        if pa.types.is_decimal(wanted):
            whole = wanted.precision - wanted.scale >= found.precision - found.scale
            return str if whole and wanted.scale >= found.scale else None
        return str if pa.types.is_string(wanted) else None
    if found == pa.float32() and wanted == pa.float64():
        return _same
    return None


def _same(value: Any) -> Any:
    return value


def columns_without_place(
    schema: TableSchema,
    struct: pa.StructType,
    options: StructOptions,
    excluded: Callable[[str, str, str], bool],
) -> Iterator[ColumnSchema]:
    """Return the columns of a table that do not fit a struct, without excluded columns."""
    for column in schema.columns:
        if excluded(schema.database, schema.table, column.name):
            continue
        field = field_of(struct, column.name)
        if field is None or widening(arrow_type(column, options), field.type) is None:
            yield column
