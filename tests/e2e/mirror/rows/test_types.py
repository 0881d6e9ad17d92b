"""DeltaMirror of binlogs recorded on MySQL 5.7.41: values and Delta types of every MySQL type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.logs.recorded_logs import describe
from helpers.mirrors.mirrored_rows import assert_same_rows
from helpers.replay import captured_schemas
from helpers.servers import Server
from pyspark_mysqlbinlog import DeltaMirror

pytestmark = pytest.mark.both_engines


@pytest.mark.parametrize(
    "scenario",
    ["numbers", "temporals", "strings", "charsets", "json_docs", "geometry", "rotations", "wide"],
)
def test_recorded_tables_of_every_type_equal_select(
    scenario: str, spark: SparkSession, serve_captured: Callable[[str], Server], tmp_path: Path
) -> None:
    described = describe(scenario)
    database = described["database"]
    mirror = DeltaMirror(
        target=f"{tmp_path}/lake/{{database}}/{{table}}",
        checkpoint=f"{tmp_path}/checkpoint",
        engine="auto",
        options=serve_captured(scenario).options(tables=f"{database}.*", startingOffset="earliest"),
    )
    mirror.start(spark, availableNow=True).awaitTermination()
    for schema in captured_schemas(described):
        rows = described["tables"][schema.table]["rows"]
        assert_same_rows(tmp_path / "lake" / database / schema.table, schema, rows)
