"""Loaded rows of one table as payload=struct gives them, whatever the payload of the stream.

Whoever takes each table's rows alone, as a mirror does, need not have them made JSON and read that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["typed_payload", "typed_schema"]

_TYPES = StructOptions()


def typed_schema(schema: pa.Schema, columns: Iterable[ColumnSchema]) -> pa.Schema:
    """That of a stream, with structs of a table's columns for `before` and `after`.

    Raises SchemaError for a column whose type is not known.
    """
    images = pa.struct([pa.field(each.name, arrow_type(each, _TYPES)) for each in columns])
    fields: list[pa.Field[Any]] = [
        field.with_type(images) if field.name in {"before", "after"} else field for field in schema
    ]
    return pa.schema(fields)


def typed_payload(side: str, images: pa.DataType) -> StructPayload:
    """What builds these structs."""
    return StructPayload(side, images, _TYPES)
