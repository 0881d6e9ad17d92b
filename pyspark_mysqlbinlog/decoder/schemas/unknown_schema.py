"""The error for rows whose columns are unknown, with the information in their table map.

A 5.7 table map contains only the columns' types. The error shows these, and with
`onUnknownSchema=positional` the rows are read with generated names (see positional.py).
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.field_types import describe_field
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.errors import UnknownSchemaError

__all__ = ["unknown_schema"]

_GRANT = "GRANT SELECT on it to the user if that is missing; otherwise "
_REMEDIES = (
    "start from a position where the table already has its current columns, or before its CREATE"
    " TABLE; or set schemaDdl to its columns at the start; or set onUnknownSchema=positional to"
    " get the columns as @1, @2, …, or exclude the table"
)
_SHOWN = 8


def unknown_schema(
    table_map: TableMap, reason: str, *, is_shown: bool = False
) -> UnknownSchemaError:
    """Return the error for a row whose columns are unknown.

    Parameters
    ----------
    reason : part of a sentence.
    is_shown : the table's later columns are known, so no grant is missing.
    """
    fields = list(zip(table_map.types, table_map.metadata, strict=True))
    shown = ", ".join(describe_field(*field) for field in fields[:_SHOWN])
    more = ", …" if len(fields) > _SHOWN else ""
    return UnknownSchemaError(
        f"expected columns with known names, found {len(fields)} without names in the table"
        f" map ({shown}{more}): {reason};"
        f" {'' if is_shown else _GRANT}{_REMEDIES}",
        table=table_map.full_name,
    )
