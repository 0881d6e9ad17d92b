"""What is said of rows whose columns nobody knows, and what can be told of them all the same.

A 5.7 table map has the columns' types and nothing else. That is enough to say what was found, and
with `onUnknownSchema=positional` to read the rows with made-up names (see positional.py).
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.field_types import describe_field
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.errors import UnknownSchemaError

__all__ = ["unknown_schema"]

_GRANT = "GRANT SELECT on it to the user if that is missing; else "
_WAYS_ON = (
    "start from a position where the table already looks as it does now, or before its CREATE"
    " TABLE; or give its columns as they were at the start with schemaDdl; or set"
    " onUnknownSchema=positional to get them as @1, @2, …, or exclude the table"
)
_SHOWN = 8


def unknown_schema(
    table_map: TableMap, reason: str, *, is_shown: bool = False
) -> UnknownSchemaError:
    """The error of a row whose columns are not known.

    Parameters
    ----------
    reason : part of a sentence.
    is_shown : the table's later columns are known, so that no grant is missing.
    """
    fields = list(zip(table_map.types, table_map.metadata, strict=True))
    shown = ", ".join(describe_field(*field) for field in fields[:_SHOWN])
    more = ", …" if len(fields) > _SHOWN else ""
    return UnknownSchemaError(
        f"expected columns whose names are known, found {len(fields)} without names in the table"
        f" map ({shown}{more}): {reason};"
        f" {'' if is_shown else _GRANT}{_WAYS_ON}",
        table=table_map.full_name,
    )
