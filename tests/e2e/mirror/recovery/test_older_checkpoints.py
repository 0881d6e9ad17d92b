"""Delta tables that are newer than the checkpoint, of which an older copy was restored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.tools.harmed_tables import interrupted

pytestmark = pytest.mark.both_engines

ROWS = 2_000


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of a table with rows for several batches."""
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        maxRowsPerTrigger="500",
        targetPartitionBytes="20000",
    )
    rows = ", ".join(f"({n}, {n}, REPEAT('x', 40))" for n in range(ROWS))
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(60))",
        f"INSERT INTO t VALUES {rows}",
        "ANALYZE TABLE t",
    )
    return mirrored


def _copy(mirrored: MirroredDatabase) -> Path:
    copy = mirrored.folder / "copy"
    shutil.copytree(mirrored.folder / "checkpoint", copy)
    return copy


def _put_back(mirrored: MirroredDatabase, copy: Path) -> None:
    shutil.rmtree(mirrored.folder / "checkpoint")
    copy.rename(mirrored.folder / "checkpoint")


def test_reload_with_an_older_checkpoint_equals_select(mirrored: MirroredDatabase) -> None:
    mirrored.run()
    copy = _copy(mirrored)
    for number in range(3):
        mirrored.execute(f"UPDATE t SET n = n + 1 WHERE id = {number}")
        mirrored.run()
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("UPDATE t SET n = 77 WHERE id % 7 = 2")
        cursor.execute("DELETE FROM t WHERE id % 7 = 3")
        connection.commit()
    _put_back(mirrored, copy)
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.mark.sample(2)
@pytest.mark.parametrize("is_complete", [True, False], ids=["complete", "in progress"])
@pytest.mark.parametrize("rows", ["300", "900"])
def test_snapshot_resumed_from_an_older_checkpoint_equals_select(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, rows: str, *, is_complete: bool
) -> None:
    """The chunks differ, because `maxRowsPerTrigger` has changed."""
    with interrupted(monkeypatch, 2):
        mirrored.run()
    assert 0 < mirrored.rows("t").num_rows < ROWS
    copy = _copy(mirrored)
    with interrupted(monkeypatch, 99 if is_complete else 2, may_end=is_complete):
        mirrored.run()
    assert (mirrored.rows("t").num_rows == ROWS) == is_complete
    mirrored.execute(
        "UPDATE t SET n = n + 1 WHERE id % 5 = 1",
        "DELETE FROM t WHERE id % 9 = 2",
        f"INSERT INTO t VALUES ({ROWS + 5}, 5, 'new')",
    )
    if is_complete:
        mirrored.run()
    _put_back(mirrored, copy)
    mirrored.options["maxRowsPerTrigger"] = rows
    mirrored.run()
    mirrored.execute(f"DELETE FROM t WHERE id = {ROWS + 5}", "UPDATE t SET n = 0 WHERE id = 1")
    mirrored.run()
    mirrored.assert_equal("t")
