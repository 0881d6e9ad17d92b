"""Typed rows of tables, as with payload=struct, whatever the payload of the stream.

A consumer that takes each table's rows separately, such as a mirror, avoids JSON this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["nested_payload", "nested_schema", "typed_payload", "typed_schema", "with_images"]

_TYPES = StructOptions()


def typed_schema(schema: pa.Schema, columns: Iterable[ColumnSchema]) -> pa.Schema:
    """Return a stream's schema with structs of a table's columns for `before` and `after`.

    Raises SchemaError for a column of an unknown type.
    """
    return with_images(schema, _images(columns))


def nested_schema(schema: pa.Schema, tables: Mapping[Table, Sequence[ColumnSchema]]) -> pa.Schema:
    """Return a stream's schema with structs of several tables: ``after.shop.orders.id``."""
    databases: dict[str, list[pa.Field[Any]]] = {}
    for (database, table), columns in tables.items():
        databases.setdefault(database, []).append(pa.field(table, _images(columns)))
    nested = [pa.field(database, pa.struct(fields)) for database, fields in databases.items()]
    return with_images(schema, pa.struct(nested))


def with_images(schema: pa.Schema, kind: pa.DataType) -> pa.Schema:
    """Return a schema with this type for `before` and `after`."""
    fields: list[pa.Field[Any]] = [
        field.with_type(kind) if field.name in {"before", "after"} else field for field in schema
    ]
    return pa.schema(fields)


def typed_payload(side: str, images: pa.DataType) -> StructPayload:
    """Return the builder of one table's structs, of `typed_schema`."""
    return StructPayload(side, images, _TYPES)


def nested_payload(side: str, images: pa.DataType) -> StructPayload:
    """Return the builder for `nested_schema`; a row of any other table is an error."""
    return StructPayload(side, images, _TYPES, nested=True)


def _images(columns: Iterable[ColumnSchema]) -> pa.DataType:
    return pa.struct([pa.field(each.name, arrow_type(each, _TYPES)) for each in columns])
