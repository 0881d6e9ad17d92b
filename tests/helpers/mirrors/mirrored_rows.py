"""Comparison of a Delta table with SELECT: columns, types and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from helpers.parity.payload_faces import struct_image
from helpers.replay import Replay, select_tokens
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["assert_same_rows"]

_DATES = {"date", "datetime", "timestamp"}


def assert_same_rows(
    path: Path, schema: TableSchema, selected: Iterable[Sequence[str | None]]
) -> None:
    """Check that a Delta table has the columns, types and rows that SELECT shows."""
    held = DeltaTable(path).to_pyarrow_table()
    names = [column.name for column in schema.columns]
    # Delta has added columns after the others.
    assert sorted(held.column_names) == sorted([*names, "_seq"]), schema.full_name
    for column in schema.columns:
        found = held.schema.field(column.name).type
        assert found == arrow_type(column, StructOptions()), (schema.full_name, column)
    rows = held.select(names).to_pylist()
    replay = Replay([replace(schema, primary_key=())])  # a key may contain dates that are NULL here
    images = [struct_image(schema, "after", row, [], {}) for row in rows]
    replay.apply(_inserted(schema, images))
    wanted = [_without_zero_dates(schema, row) for row in selected]
    found_tokens = replay.tokens(schema.database, schema.table)
    expected = select_tokens(schema, wanted)
    assert len(found_tokens) == len(expected), schema.full_name
    assert found_tokens == expected, schema.full_name


def _inserted(schema: TableSchema, images: list[str]) -> list[dict[str, Any]]:
    """Return the rows as the stream would deliver their inserts."""
    return [
        {
            "op": "c",
            "database": schema.database,
            "table": schema.table,
            "before": None,
            "after": image,
            "seq": {"epoch": 0, "file": 1, "pos": 4, "row": row},
            "source": {"key": [], "missing": None, "query": None},
        }
        for row, image in enumerate(images)
    ]


def _without_zero_dates(schema: TableSchema, row: Sequence[str | None]) -> list[str | None]:
    """Return SELECT's row with NULL for each date that is invalid or before the year 1."""
    return [
        None if text is not None and column.type in _DATES and _is_no_day(text) else text
        for column, text in zip(schema.columns, row, strict=True)
    ]


def _is_no_day(text: str) -> bool:
    try:
        return pa.scalar(text[:10]).cast(pa.date32()).as_py() is None
    except (pa.ArrowInvalid, ValueError):
        return True
