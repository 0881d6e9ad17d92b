"""DeltaMirror over logs that a real 5.7.41 wrote: every type, by content and by Delta's type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.captured_logs import describe
from helpers.payload_faces import struct_image
from helpers.replay import Replay, captured_schemas, select_tokens
from helpers.servers import Server
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.tables import TableSchema

_DATES = {"date", "datetime", "timestamp"}


@pytest.mark.parametrize(
    "scenario",
    ["numbers", "temporals", "strings", "charsets", "json_docs", "geometry", "rotations", "wide"],
)
def test_captured_tables_are_in_delta_what_select_showed(
    scenario: str, spark: SparkSession, serve_captured: Callable[[str], Server], tmp_path: Path
) -> None:
    described = describe(scenario)
    database = described["database"]
    mirror = DeltaMirror(
        target=f"{tmp_path}/lake/{{database}}/{{table}}",
        checkpoint=f"{tmp_path}/checkpoint",
        options=serve_captured(scenario).options(tables=f"{database}.*", startingOffset="earliest"),
    )
    mirror.start(spark, availableNow=True).awaitTermination()
    for schema in captured_schemas(described):
        expected = described["tables"][schema.table]["rows"]
        held = DeltaTable(tmp_path / "lake" / database / schema.table).to_pyarrow_table()
        _expect_types(schema, held.schema)
        replay = Replay([_nullable(schema)])
        images = [
            struct_image(schema, "after", row, [], {}) for row in held.drop(["_seq"]).to_pylist()
        ]
        replay.apply(_inserted(schema, images))
        wanted = [_without_zero_dates(schema, row) for row in expected]
        assert replay.tokens(database, schema.table) == select_tokens(schema, wanted)


def _expect_types(schema: TableSchema, found: pa.Schema) -> None:
    assert found.names == [*(column.name for column in schema.columns), "_seq"]
    for column in schema.columns:
        assert found.field(column.name).type == arrow_type(column, StructOptions())


def _nullable(schema: TableSchema) -> TableSchema:
    # A key may hold dates that are no day, which are null in Delta.
    return replace(schema, primary_key=())


def _inserted(schema: TableSchema, images: list[str]) -> list[dict[str, Any]]:
    """The rows as the stream would give their inserts."""
    return [
        {
            "op": "c",
            "database": schema.database,
            "table": schema.table,
            "before": None,
            "after": image,
            "seq": {"epoch": 0, "file": 1, "pos": 4, "row": row},
            "source": {"key": [], "absent": None, "query": None},
        }
        for row, image in enumerate(images)
    ]


def _without_zero_dates(schema: TableSchema, row: list[str | None]) -> list[str | None]:
    """SELECT's row, with NULL for each date that is no day from the year 1 on."""
    return [
        None if text is not None and column.type in _DATES and _is_no_day(text) else text
        for column, text in zip(schema.columns, row, strict=True)
    ]


def _is_no_day(text: str) -> bool:
    try:
        return pa.scalar(text[:10]).cast(pa.date32()).as_py() is None
    except (pa.ArrowInvalid, ValueError):
        return True
