"""Selects columns without statistics, because delta-rs would round them.

delta-rs writes the minimum and the maximum of a file's column as floating-point numbers. A decimal
of up to 15 digits stays exact. A longer one, possible in a BIGINT UNSIGNED, becomes another number,
and a merge or a reader that searches its row skips the file that has it. So a column loses its
statistics before its first long value is written (observed with delta-rs 1.6.6: after an UPDATE, a
row with a long key was in the table twice).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc

__all__ = [
    "long_in_shape",
    "stats_properties_excluding",
    "wide_decimal_columns",
    "wide_decimals_in_files",
]


_EXACT_DIGITS = 15
_PROPERTY = "delta.dataSkippingStatsColumns"
# Without it, this many of a table's first columns have statistics; -1 means all.
_COUNT, _USUAL_COUNT = "delta.dataSkippingNumIndexedCols", "32"
_NAME = re.compile(r"`((?:[^`]|``)*)`|([^,`]+)")


def wide_decimal_columns(rows: pa.Table) -> set[str]:
    """Return the columns that have a decimal of more than 15 digits in these rows."""
    found = set()
    for field in rows.schema:
        if _is_wide(field.type):
            ends = pc.min_max(rows.column(field.name)).as_py()
            if any(_is_long(value, field.type) for value in ends.values()):
                found.add(field.name)
    return found


def wide_decimals_in_files(table: DeltaTable, columns: pa.Schema) -> set[str]:
    """Return the columns that have, or may have, a long decimal in a file of the table.

    columns : the table's.
    """
    may_have = _may_have_stats(table, columns)
    wide = [
        name for name in may_have if name in columns.names and _is_wide(columns.field(name).type)
    ]
    if not wide:
        return set()
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {
        name
        for name in wide
        if any(_may_have_long(file, name, columns.field(name).type) for file in files)
    }


def long_in_shape(held: pa.Schema, columns: pa.Schema, came_from: Mapping[str, str]) -> set[str]:
    """Return the new columns that may get long decimals when they are cast from held ones.

    came_from : new column -> the held column with its values.
    """
    return {
        field.name
        for field in columns
        if _is_wide(field.type)
        and field.name in came_from
        and not (came_from[field.name] == field.name and field in [*held])
    }


def stats_properties_excluding(
    table: DeltaTable, columns: pa.Schema, long: AbstractSet[str]
) -> dict[str, str]:
    """Return the properties to set so that these columns have no statistics; empty if none.

    columns : that the table has, or will have.
    """
    may_have = _may_have_stats(table, columns)
    if long.isdisjoint(may_have):
        return {}
    count = int(table.metadata().configuration.get(_COUNT, _USUAL_COUNT))
    kept = [
        f"`{name.replace('`', '``')}`"
        for name in may_have[: count if count >= 0 else None]
        if name in columns.names and name not in long and _may_be_named(columns.field(name).type)
    ]
    return {_PROPERTY: ",".join(kept)}


def _may_have_stats(table: DeltaTable, columns: pa.Schema) -> list[str]:
    """Return the columns of the property; else all, since earlier columns may be dropped."""
    metadata = table.metadata()
    said = metadata.configuration.get(_PROPERTY)
    if said is None:
        names = columns.names
    else:
        names = [(a or b).replace("``", "`") for a, b in _NAME.findall(said)]
    return [name for name in names if name not in metadata.partition_columns]


def _may_be_named(kind: pa.DataType) -> bool:
    """Return whether Delta for Spark accepts a column of this type in the property."""
    types = pa.types
    return (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_string(kind)
    )


def _is_wide(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.Decimal128Type) and kind.precision > _EXACT_DIGITS


def _is_long(value: Decimal | None, kind: Any) -> bool:
    return value is not None and abs(value) >= Decimal(10) ** (_EXACT_DIGITS - kind.scale)


def _may_have_long(file: Mapping[str, Any], name: str, kind: pa.DataType) -> bool:
    ends = [file.get(f"{end}.{name}") for end in ("min", "max")]
    if None in ends:
        # A column whose values are all NULL has none.
        return bool(file.get(f"null_count.{name}") != file.get("num_records"))
    return any(_is_long(value, kind) for value in ends)
