"""A table whose folder was removed gets its partitions again by a reload."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

pytestmark = pytest.mark.both_engines


@pytest.mark.parametrize("soft_delete", [False, True])
def test_a_removed_table_is_partitioned_after_a_reload(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, *, soft_delete: bool
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.settings["partition_by"] = {f"{database}.t": ["region"]}
    mirrored.settings["soft_delete"] = soft_delete
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(9))",
        "INSERT INTO t VALUES (1, 'east'), (2, 'west')",
    )
    mirrored.run()
    assert mirrored.delta("t").metadata().partition_columns == ["region"]
    shutil.rmtree(tmp_path / "lake" / database / "t")
    mirrored.execute("INSERT INTO t VALUES (3, 'east')")
    with pytest.raises(StreamingQueryException, match="every table is stopped"):
        mirrored.run()
    mirrored.options["reload"] = f"again: {database}.t"
    mirrored.run()
    assert mirrored.delta("t").metadata().partition_columns == ["region"]
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.run()
    names, selected = mirrored.select("t")
    found = mirrored.rows("t").to_pylist()
    kept = [row for row in found if not row.get("_deleted")]
    assert sorted(tuple(row[name] for name in names) for row in kept) == selected
    assert not mirrored.delta("t").metadata().configuration.get("mysqlbinlog.stopped")
