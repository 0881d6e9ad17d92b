"""Check that a table map fits the schema that should be valid at its position.

The schema determines the entry of each column in the table map. If an entry differs, the schema is
of another time, and rows would have wrong values under the right names. This check cannot detect
swapped names, relabelled ENUMs and changed signs, because their table maps are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.decoder.events.field_types import (
    OLD_TEMPORALS,
    FieldType,
    describe_field,
)
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.values.charsets import bytes_per_character
from pyspark_mysqlbinlog.errors import SchemaMismatchError
from pyspark_mysqlbinlog.tables import SPATIAL_TYPES, ColumnSchema, TableSchema

__all__ = ["check_fit", "expected_fields"]

_PLAIN: dict[str, tuple[int, int]] = {
    "tinyint": (FieldType.TINY, 0),
    "smallint": (FieldType.SHORT, 0),
    "mediumint": (FieldType.INT24, 0),
    "int": (FieldType.LONG, 0),
    "bigint": (FieldType.LONGLONG, 0),
    "float": (FieldType.FLOAT, 4),
    "double": (FieldType.DOUBLE, 8),
    "year": (FieldType.YEAR, 0),
    "json": (FieldType.JSON, 4),
    "vector": (FieldType.VECTOR, 4),
    "tinytext": (FieldType.BLOB, 1),
    "text": (FieldType.BLOB, 2),
    "mediumtext": (FieldType.BLOB, 3),
    "longtext": (FieldType.BLOB, 4),
    "tinyblob": (FieldType.BLOB, 1),
    "blob": (FieldType.BLOB, 2),
    "mediumblob": (FieldType.BLOB, 3),
    "longblob": (FieldType.BLOB, 4),
}
# The current layout, and the one from before 5.6, which tables keep until they are rebuilt.
_TEMPORAL: dict[str, tuple[int, int]] = {
    "time": (FieldType.TIME2, FieldType.TIME),
    "datetime": (FieldType.DATETIME2, FieldType.DATETIME),
    "timestamp": (FieldType.TIMESTAMP2, FieldType.TIMESTAMP),
}


def check_fit(table_map: TableMap, schema: TableSchema) -> None:
    """Raise SchemaMismatchError (table, column, expected, found) unless all columns fit."""
    name = table_map.full_name
    if table_map.column_count != len(schema.columns):
        raise SchemaMismatchError(
            f"expected {len(schema.columns)} columns ({_last_names(schema)}), found"
            f" {table_map.column_count} in the table map; {_CURE}",
            table=name,
        )
    shows_not_null = not table_map.is_all_nullable
    for index, column in enumerate(schema.columns):
        found = (table_map.types[index], table_map.metadata[index])
        expected = tuple(expected_fields(column))
        if found not in expected:
            is_old = column.type in _TEMPORAL and found[0] in OLD_TEMPORALS
            raise SchemaMismatchError(
                f"column {index + 1} `{column.name}`: expected"
                f" {' or '.join(describe_field(*field) for field in expected)} for its type"
                f" {column.type}, found {describe_field(*found)} in the table map;"
                f" {_OLD_TEMPORAL_CURE if is_old else ''}{_CURE}",
                table=name,
            )
        # Without NULL or NOT NULL, the nullability of a TIMESTAMP depends on a server variable.
        is_comparable = shows_not_null and column.type != "timestamp"
        if is_comparable and table_map.nullable(index) != column.nullable:
            words = ("NOT NULL", "NULL")
            raise SchemaMismatchError(
                f"column {index + 1} `{column.name}`: expected {words[column.nullable]}, found"
                f" {words[not column.nullable]} in the table map; {_CURE}",
                table=name,
            )


_CURE = (
    "the schema is of another time: start from a position after the table's last ALTER, or"
    " correct the file of schemaDdl, or exclude the table"
)
_OLD_TEMPORAL_CURE = (
    "if MariaDB made the column with mysql56_temporal_format=OFF, rebuild the table with ON (ALTER"
    " TABLE … FORCE), because this layout of fractions is not supported; otherwise "
)


def _last_names(schema: TableSchema) -> str:
    names = [f"`{column.name}`" for column in schema.columns]
    return ", ".join(names if len(names) <= 8 else [*names[:3], "…", *names[-3:]])


def expected_fields(column: ColumnSchema) -> Iterator[tuple[int, int]]:
    """Yield each (type, metadata) that a table map may have for the column."""
    kind, length = column.type, column.length or 0
    if kind in _PLAIN:
        yield _PLAIN[kind]
    elif kind in SPATIAL_TYPES:
        yield FieldType.GEOMETRY, 4
    elif kind in _TEMPORAL:
        new, old = _TEMPORAL[kind]
        yield new, length
        if length == 0:
            yield old, 0
    elif kind == "date":
        yield FieldType.DATE, 0
        yield FieldType.NEWDATE, 0
    elif kind == "decimal":
        yield FieldType.NEWDECIMAL, length << 8 | (column.scale or 0)
    elif kind == "bit":
        yield FieldType.BIT, length // 8 << 8 | length % 8
    elif kind in ("char", "binary"):
        yield FieldType.STRING, _char_metadata(length * _width(column))
    elif kind in ("varchar", "varbinary"):
        yield FieldType.VARCHAR, length * _width(column)
    elif kind == "enum":
        yield FieldType.STRING, FieldType.ENUM << 8 | (1 if len(column.labels) <= 255 else 2)
    elif kind == "set":
        size = (len(column.labels) + 7) // 8
        yield FieldType.STRING, FieldType.SET << 8 | (size if size <= 4 else 8)
    else:
        raise SchemaMismatchError(f"column `{column.name}` has the unknown type {kind}")


def _char_metadata(length: int) -> int:
    """Field_string::do_save_field_metadata; see `field_types.real_string`."""
    return (FieldType.STRING ^ (length & 0x300) >> 4) << 8 | length & 0xFF


def _width(column: ColumnSchema) -> int:
    width = bytes_per_character(column.charset)
    if width is None:
        raise SchemaMismatchError(
            f"column `{column.name}` has the character set {column.charset}, which MySQL 5.7 does"
            " not support"
        )
    return width
