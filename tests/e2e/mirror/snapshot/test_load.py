"""DeltaMirror after its initial snapshot: changes, lost checkpoints, reloads and kills."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.killed_commits import KilledCommits
from helpers.servers import Server

pytestmark = pytest.mark.both_engines


@pytest.fixture
def loaded(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of three tables that has made its initial snapshot."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT)",
        "INSERT INTO t VALUES (1, 'ñ漢', 1), (2, 'two', 2), (3, 'three', 3), (4, NULL, NULL)",
        "CREATE TABLE pairs (a INT, b VARCHAR(9), v INT, PRIMARY KEY (b, a))",
        "INSERT INTO pairs VALUES (1, 'x', 1), (1, 'y', 2)",
        "CREATE TABLE nothing (id INT PRIMARY KEY)",
    )
    mirrored.run()
    mirrored.assert_equal("t", "pairs", "nothing")
    return mirrored


def test_changes_after_a_snapshot_equal_select(loaded: MirroredDatabase) -> None:
    loaded.execute(
        "UPDATE t SET v = 'changed' WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "UPDATE t SET id = 40 WHERE id = 4",
        "INSERT INTO nothing VALUES (1)",
        "TRUNCATE TABLE pairs",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (1)",
    )
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing", "later")


def test_new_snapshot_after_a_lost_checkpoint_equals_select(loaded: MirroredDatabase) -> None:
    # These changes are made while no mirror runs; the new checkpoint starts after them.
    loaded.execute(
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (5, 'new', 5)",
        "UPDATE t SET v = 'changed' WHERE id = 2",
        "DELETE FROM pairs",
        "ALTER TABLE pairs ADD w INT",
    )
    loaded.run("another checkpoint")
    loaded.assert_equal("t", "pairs", "nothing")
    loaded.execute("INSERT INTO pairs VALUES (1, 'x', 1, 1)", "DELETE FROM t WHERE id = 5")
    loaded.run("another checkpoint")
    loaded.assert_equal("t", "pairs", "nothing")


def test_binlog_replayed_after_a_lost_checkpoint_writes_nothing_twice(
    loaded: MirroredDatabase,
) -> None:
    begin = "{}:{}".format(*loaded.server.position())
    loaded.execute("UPDATE t SET n = n + 1", "DELETE FROM t WHERE id = 1")
    loaded.run()
    versions = loaded.delta("t").version()
    loaded.options["startingOffset"] = begin
    loaded.run("another checkpoint")
    # All of the changes are applied already, so nothing is written.
    assert loaded.delta("t").version() == versions
    loaded.execute("UPDATE t SET n = n + 1")
    loaded.run("another checkpoint")
    loaded.assert_equal("t", "pairs")


def test_start_after_missed_changes_stops_every_table(loaded: MirroredDatabase) -> None:
    loaded.execute("DELETE FROM t WHERE id = 1", "INSERT INTO pairs VALUES (3, 'z', 3)")
    loaded.options["startingOffset"] = "latest"
    query = loaded.mirror("another checkpoint").start(loaded.spark, availableNow=True)
    with pytest.raises(Exception, match="every table is stopped"):
        query.awaitTermination()
    assert "the query begins after it" in loaded.stopped("t")


def test_stopped_table_equals_select_after_a_reload(loaded: MirroredDatabase) -> None:
    loaded.options["reloadAfterDdl"] = "false"
    loaded.execute(
        "DELETE FROM t WHERE id = 1",
        "ALTER TABLE t MODIFY n VARCHAR(9)",
        "INSERT INTO t VALUES (6, 'six', 'six')",
        "INSERT INTO nothing VALUES (1)",
    )
    loaded.run()
    assert "changed rows without row events" in loaded.stopped("t")
    loaded.execute("DELETE FROM t WHERE id = 2")
    loaded.options["reload"] = f"again: {loaded.database}.t"
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing")
    loaded.execute("INSERT INTO t VALUES (7, 'seven', '7')")
    # The reload ID is done, so the table is not reloaded again.
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing")
    assert not loaded.delta("t").metadata().configuration.get("mysqlbinlog.stopped")


def test_reload_of_an_emptied_table_removes_its_rows(loaded: MirroredDatabase) -> None:
    """The snapshot of an empty table starts and ends in one batch, and reads no row."""
    with loaded.server.connect(database=loaded.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("DELETE FROM pairs")
        connection.commit()
    loaded.options["reload"] = f"again: {loaded.database}.pairs"
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing")


def test_reload_of_the_only_table_after_a_failed_batch_equals_select(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """The failed batch is replayed before the reload can start."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.options["reloadAfterDdl"] = "false"
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)")
    mirrored.run()
    mirrored.execute("ALTER TABLE t MODIFY n VARCHAR(9)", "INSERT INTO t VALUES (2, 'two')")
    with pytest.raises(Exception, match="every table is stopped"):
        mirrored.run()
    mirrored.options["reload"] = f"again: {database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


def test_mirror_with_an_older_copy_of_its_checkpoint_equals_select(
    loaded: MirroredDatabase,
) -> None:
    """Its batches have numbers that the Delta tables already contain, but other changes."""
    checkpoint, copy = loaded.folder / "checkpoint", loaded.folder / "copy"
    shutil.copytree(checkpoint, copy)
    for number in range(10, 13):
        loaded.execute(f"INSERT INTO t VALUES ({number}, 'new', 1)", "UPDATE pairs SET v = v + 1")
        loaded.run()
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    loaded.execute("UPDATE t SET n = 99 WHERE id = 10", "DELETE FROM t WHERE id = 2")
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing")
    loaded.execute("INSERT INTO nothing VALUES (1)", "DELETE FROM pairs WHERE a = 1")
    loaded.run()
    loaded.assert_equal("t", "pairs", "nothing")


@pytest.mark.parametrize(
    "commits",
    [
        pytest.param((1, 3), id="short"),
        pytest.param(range(1, 17), id="all", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("with_change_log", [False, True])
def test_tables_equal_select_after_a_kill_at_each_commit_of_a_snapshot(
    loaded: MirroredDatabase,
    monkeypatch: pytest.MonkeyPatch,
    commits: Iterable[int],
    with_change_log: bool,
) -> None:
    kills = KilledCommits(monkeypatch, loaded.target("t"), "after")
    killed = 0
    for number in commits:
        loaded.folder = loaded.folder / "next"
        if with_change_log:
            loaded.settings["change_log"] = change_log_of(loaded)
        kills.left = number
        with contextlib.suppress(StreamingQueryException):
            loaded.run()
        killed += kills.left <= 0
        kills.left = 0
        loaded.execute("INSERT INTO nothing SELECT COUNT(*) FROM nothing", "DELETE FROM t LIMIT 1")
        loaded.run()
        loaded.assert_equal("t", "pairs", "nothing")
    assert killed > 1


@pytest.mark.parametrize("more", [1, 200])
def test_reset_binlog_after_a_lost_checkpoint_stops_every_table(
    spark: SparkSession, own_server: Server, tmp_path: Path, more: int
) -> None:
    """The new binlog starts before the position up to which the table is complete."""
    own_server.execute("DROP DATABASE IF EXISTS anew")
    own_server.execute("CREATE DATABASE anew")
    mirrored = MirroredDatabase(spark, own_server, "anew", tmp_path, startingOffset="latest")
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    mirrored.run()
    mirrored.execute(*(f"INSERT INTO t VALUES ({n})" for n in range(50)))
    mirrored.run()
    own_server.reset_binlog()
    mirrored.execute(*(f"INSERT INTO t VALUES ({100 + n})" for n in range(more)))
    mirrored.options["startingOffset"] = "earliest"
    query = mirrored.mirror("another checkpoint").start(spark, availableNow=True)
    with pytest.raises(Exception, match="every table is stopped"):
        query.awaitTermination()
    stopped = mirrored.delta("t").metadata().configuration["mysqlbinlog.stopped"]
    assert "another event" in stopped
