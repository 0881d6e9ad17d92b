"""Rows duplicated by two concurrent compactions: the table stops until a reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.repeated_compactions import repeat_compaction
from helpers.servers import Server

pytestmark = pytest.mark.both_engines
_TABLES = ("t", "copies")


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    made = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="latest")
    made.settings |= {"maintenance_interval": None}
    made.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))",
        "CREATE TABLE copies (v VARCHAR(9))",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    made.run()
    for number in (1, 2):
        made.execute(
            f"INSERT INTO t VALUES ({number}, 'x')", f"INSERT INTO copies VALUES ('{number}')"
        )
        made.run()
    return made


@pytest.mark.sample(1)
@pytest.mark.parametrize("is_running", [True, False])
def test_rows_duplicated_by_compactions_stop_their_table_until_a_reload(
    mirrored: MirroredDatabase, is_running: bool
) -> None:
    mirror = mirrored.mirror()
    if is_running:
        # The mirror has opened its tables, at the version before the compactions.
        mirrored.execute("INSERT INTO other VALUES (1)")
        mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    for table in _TABLES:
        repeat_compaction(mirrored.folder / "lake" / mirrored.database / table)
        assert mirrored.rows(table).num_rows == 4
    mirrored.execute(
        "UPDATE t SET v = 'y' WHERE id = 1",
        "DELETE FROM copies WHERE v = '1'",
        "INSERT INTO other VALUES (2)",
    )
    mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    for table in _TABLES:
        assert "rows are in the table twice" in mirrored.stopped(table)
    mirrored.assert_equal("other")
    mirrored.options["reload"] = f"again: {mirrored.database}.t, {mirrored.database}.copies"
    mirrored.run()
    mirrored.assert_equal(*_TABLES, "other")
