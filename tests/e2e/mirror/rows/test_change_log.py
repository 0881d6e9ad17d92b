"""Change logs of DeltaMirror: each change is written once, and no gap is left unmarked."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.logs.live_log import new_database
from helpers.mirrors.change_logs import (
    assert_replay,
    change_log_of,
    log_of,
    replayed,
    rows_of_log,
)
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.query.checkpoint import files as checkpoint_io
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.targets import (
    check_checkpoint_targets,
)
from pyspark_mysqlbinlog.connector.source.arrow_ipc import IPC_ROWS
from pyspark_mysqlbinlog.errors import OptionError

_COLUMNS = "id INT PRIMARY KEY, v VARCHAR(20), n DECIMAL(12,2)"


@pytest.fixture
def logged(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror with only a change log, which contains three changes."""
    logged = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="latest")
    logged.settings = {"target": None, "change_log": change_log_of(logged)}
    logged.execute(f"CREATE TABLE t ({_COLUMNS}) CHARSET utf8mb4")
    logged.run()
    logged.execute("INSERT INTO t VALUES (1, 'ñ漢', 1.25), (2, NULL, NULL), (3, 'three', 3)")
    logged.run()
    assert [row["op"] for row in rows_of_log(logged, "t")] == ["c", "c", "c"]
    return logged


def _stopped(logged: MirroredDatabase, table: str) -> str:
    return DeltaTable(log_of(logged, table)).metadata().configuration["mysqlbinlog.stopped"]


def _seq(logged: MirroredDatabase, table: str = "t") -> Counter[tuple[int, ...]]:
    return Counter(tuple(row["seq"].values()) for row in rows_of_log(logged, table))


def _change(logged: MirroredDatabase, random_: random.Random, count: int) -> None:
    """Make random changes: many change keys, some are deletes or a TRUNCATE."""
    statements = []
    for number in range(count):
        key, other = random_.randrange(30), random_.randrange(30)
        statements.append(
            random_.choice(
                [
                    f"REPLACE INTO t (id, v, n) VALUES ({key}, 'ñ漢{number}', {number}.25)",
                    f"INSERT IGNORE INTO t (id) VALUES ({key}), ({other})",
                    f"UPDATE IGNORE t SET id = {other}, v = '{number}' WHERE id = {key}",
                    "UPDATE IGNORE t SET id = id + 1 ORDER BY id DESC",
                    f"DELETE FROM t WHERE id IN ({key}, {other})",
                    "TRUNCATE TABLE t" if number % 7 == 0 else "UPDATE t SET n = n + 1",
                ]
            )
        )
    logged.execute(*statements)


def test_change_log_of_random_changes_replays_to_select(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path, ddl_seed: int
) -> None:
    random_ = random.Random(ddl_seed)
    logged = MirroredDatabase(spark, any_server, any_database, tmp_path, startingOffset="snapshot")
    logged.settings["change_log"] = change_log_of(logged)
    logged.execute(
        f"CREATE TABLE t ({_COLUMNS}) CHARSET utf8mb4",
        "INSERT INTO t VALUES (1, 'ñ漢', 1.25), (2, NULL, NULL), (3, 'three', 3)",
        "CREATE TABLE pairs (a INT, b VARCHAR(9), PRIMARY KEY (b, a))",
    )
    logged.run()
    for count in (40, 20):
        _change(logged, random_, count)
        logged.execute(f"INSERT INTO pairs VALUES ({count}, 'x'), ({count}, 'y')")
        logged.run()
    logged.execute(
        "ALTER TABLE t ADD w INT",
        "REPLACE INTO t VALUES (50, 'new', 1, 1)",
        "DELETE FROM pairs WHERE a = 20",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (1), (2)",
        "DROP TABLE later",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (3)",
    )
    logged.run()
    logged.assert_equal("t", "pairs", "later")
    rows = assert_replay(logged, "t", "id")
    assert [row["op"] for row in rows[:4]] == ["reset", "r", "r", "r"]
    assert [row["op"] for row in assert_replay(logged, "later", "id")] == ["c", "c", "ddl", "c"]
    assert_replay(logged, "pairs", "a", "b")
    source = rows[-1]["source"]
    assert (source["key"], source["file"]) == (["id"], any_server.position()[0])
    assert rows[-1]["ts"] is not None


def test_mirror_and_change_log_of_a_replaced_table_or_database_equal_select(
    spark: SparkSession, mariadb: Server, tmp_path: Path
) -> None:
    """A replaced table gives a `ddl` row, as does each table of a replaced database."""
    with new_database(mariadb, "replaced") as database:
        logged = MirroredDatabase(spark, mariadb, database, tmp_path, startingOffset="latest")
        logged.settings = {"change_log": change_log_of(logged)}
        logged.execute(f"CREATE TABLE t ({_COLUMNS})")
        logged.run()
        for number, statement in enumerate(
            [f"CREATE OR REPLACE TABLE t ({_COLUMNS})", f"CREATE OR REPLACE DATABASE {database}"]
        ):
            logged.execute(f"INSERT INTO t (id) VALUES ({number})", statement)
            logged.execute(
                f"CREATE TABLE IF NOT EXISTS t ({_COLUMNS})", "INSERT INTO t (id) VALUES (9)"
            )
            logged.run()
            logged.assert_equal("t")
            rows = assert_replay(logged, "t", "id")
            assert len(replayed(rows, "id")) == 1
            logged.execute("DELETE FROM t")
        assert [row["op"] for row in rows] == ["c", "ddl", "c", "d", "c", "ddl", "c"]


def test_dropped_partition_writes_a_reset_row_to_the_change_log(logged: MirroredDatabase) -> None:
    for number in (1, 2):
        logged.execute(
            "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3),"
            " PARTITION p1 VALUES LESS THAN (100))",
            f"REPLACE INTO t VALUES (0, 'goes', {number}), (9, 'stays', {number})",
            "ALTER TABLE t DROP PARTITION p0",
            f"INSERT INTO t VALUES ({10 + number}, 'after', 1)",
            "ALTER TABLE t REMOVE PARTITIONING",
            f"REPLACE INTO t VALUES (1, 'again', {number}), (2, 'again', {number})",
        )
        logged.run()
        rows = assert_replay(logged, "t", "id")
        assert [row["op"] for row in rows].count("reset") == number


def test_replayed_batch_adds_nothing_to_the_change_log(logged: MirroredDatabase) -> None:
    before = _seq(logged)
    commits = sorted(
        (logged.folder / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name)
    )
    # The state after a kill between Delta's commit and Spark's.
    for path in (commits[-1], commits[-1].parent / f".{commits[-1].name}.crc"):
        path.unlink()
    logged.run()
    assert _seq(logged) == before
    logged.execute("DELETE FROM t WHERE id = 1")
    logged.run()
    assert_replay(logged, "t", "id")
    assert len(_seq(logged)) == 4


@pytest.mark.parametrize("in_packets", [False, True])
def test_replayed_snapshot_batch_adds_nothing_to_the_change_log(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, *, in_packets: bool
) -> None:
    """A snapshot row has no position of its own, so its batch identifies it."""
    logged = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    logged.settings = {"target": None, "change_log": change_log_of(logged)}
    logged.execute(f"CREATE TABLE t ({_COLUMNS})", "INSERT INTO t (id) VALUES (1), (2), (3)")
    mirror = logged.mirror()
    calls = []

    def twice(batch: object, number: int) -> None:
        for _ in range(2):
            # foreachBatch passes a DataFrame; its annotation here is wider.
            mirror(batch, number)  # type: ignore[arg-type]
        calls.append(number)

    reader = spark.readStream.format("mysqlbinlog").options(**mirror._options)
    if in_packets:
        reader = reader.schema(IPC_ROWS)
    writer = reader.load().writeStream.foreachBatch(twice).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert len(calls) > 1
    rows = assert_replay(logged, "t", "id")
    assert [row["op"] for row in rows] == ["reset", "r", "r", "r"]


def test_lost_checkpoint_and_replayed_binlog_add_nothing_to_the_change_log(
    logged: MirroredDatabase, live_server: Server
) -> None:
    before = _seq(logged)
    begin = logged.options["startingOffset"] = "{}:{}".format(*live_server.position())
    logged.execute("UPDATE t SET n = n + 1", "DELETE FROM t WHERE id = 1")
    logged.run()
    after = _seq(logged)
    assert len(after) == len(before) + 3
    logged.options["startingOffset"] = begin
    logged.run("another checkpoint")
    assert _seq(logged) == after
    logged.execute("UPDATE t SET v = 'last'")
    logged.run("another checkpoint")
    assert_replay(logged, "t", "id")


def test_lost_checkpoint_and_new_snapshot_write_a_reset_row(logged: MirroredDatabase) -> None:
    """No change records the row deleted in between; the `reset` row discards it."""
    before = _seq(logged)
    logged.execute("DELETE FROM t WHERE id = 1", "UPDATE t SET v = 'changed' WHERE id = 2")
    logged.options["startingOffset"] = "snapshot"
    logged.run("another checkpoint")
    assert _seq(logged) & before == before
    logged.execute("INSERT INTO t VALUES (4, 'four', 4)")
    logged.run("another checkpoint")
    rows = assert_replay(logged, "t", "id")
    assert Counter(row["op"] for row in rows) == {"c": 4, "reset": 1, "r": 2}
    # Again, at the position where the change log ends, without changes in between.
    logged.run("a third checkpoint")
    rows = assert_replay(logged, "t", "id")
    assert Counter(row["op"] for row in rows) == {"c": 4, "reset": 2, "r": 5}


def test_gap_in_a_change_log_is_an_error_until_an_earlier_start(
    logged: MirroredDatabase, live_server: Server
) -> None:
    begin = "{}:{}".format(*live_server.position())
    logged.execute("DELETE FROM t WHERE id = 1")
    before = _seq(logged)
    # With `latest`, the error is raised even before the table changes again.
    query = logged.mirror("another checkpoint").start(logged.spark, availableNow=True)
    with pytest.raises(Exception, match="begin there or earlier, or reload the table"):
        query.awaitTermination()
    logged.execute("INSERT INTO t VALUES (4, 'four', 4)")
    with pytest.raises(Exception, match="the query begins after it"):
        logged.run("another checkpoint")
    assert _seq(logged) == before
    # The remedy.
    logged.options["startingOffset"] = begin
    logged.run("a third checkpoint")
    assert not _stopped(logged, "t")
    assert [row["op"] for row in assert_replay(logged, "t", "id")] == ["c", "c", "c", "d", "c"]


def test_table_dropped_before_a_new_query_and_recreated_gets_a_reset_row(
    logged: MirroredDatabase,
) -> None:
    """At its start, the new query does not know the table; only the `reset` row marks the gap."""
    logged.execute("DROP TABLE t", "CREATE TABLE other (id INT PRIMARY KEY)")
    logged.run("another checkpoint")
    logged.execute(
        f"CREATE TABLE t ({_COLUMNS})",
        "INSERT INTO t VALUES (9, 'nine', 9)",
        "INSERT INTO other VALUES (1)",
    )
    logged.run("another checkpoint")
    rows = assert_replay(logged, "t", "id")
    assert [row["op"] for row in rows] == ["c", "c", "c", "reset", "c"]


def test_removed_change_log_is_an_error_until_a_reload(logged: MirroredDatabase) -> None:
    shutil.rmtree(log_of(logged, "t"))
    logged.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(Exception, match="it has no change log, or no longer one"):
        logged.run()
    # The remedy.
    logged.options["reload"] = f"again: {logged.database}.t"
    logged.run()
    rows = assert_replay(logged, "t", "id")
    assert [row["op"] for row in rows] == ["reset", "r", "r"]


@pytest.mark.parametrize("again", ["earliest", "snapshot"])
def test_reset_binlog_is_rejected_for_an_existing_change_log(
    spark: SparkSession, own_server: Server, tmp_path: Path, again: str
) -> None:
    """Positions in the new binlog are equal to those in the change log, or smaller."""
    own_server.execute("DROP DATABASE IF EXISTS anew", "CREATE DATABASE anew")
    logged = MirroredDatabase(spark, own_server, "anew", tmp_path, startingOffset="latest")
    logged.settings = {"target": None, "change_log": change_log_of(logged)}
    logged.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    logged.run()
    logged.execute(*(f"INSERT INTO t VALUES ({n})" for n in range(50)))
    logged.run()
    before = _seq(logged)
    own_server.reset_binlog()
    logged.execute(*(f"INSERT INTO t VALUES ({100 + n})" for n in range(10)))
    logged.options["startingOffset"] = again
    with pytest.raises(Exception, match=r"another event .* set another path for its change log"):
        logged.run("another checkpoint")
    assert _seq(logged) == before


def test_abandoned_snapshot_stops_table(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """Rows that the snapshot has not read yet are in no change."""
    logged = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    logged.settings = {"target": None, "change_log": change_log_of(logged)}
    rows = ", ".join(f"({n})" for n in range(4000))
    logged.execute("CREATE TABLE t (id INT PRIMARY KEY)", f"INSERT INTO t VALUES {rows}")
    begin = "{}:{}".format(*live_server.position())
    mirror = logged.mirror()

    def until_some_are_there(batch: object, number: int) -> None:
        # foreachBatch passes a DataFrame; its annotation here is wider.
        mirror(batch, number)  # type: ignore[arg-type]
        path = log_of(logged, "t")
        if any(row["op"] == "r" for row in rows_of_log(logged, "t")):
            raise RuntimeError("the machine is lost")
        assert path.exists()

    options = mirror._options | {"maxRowsPerTrigger": "1000"}
    reader = spark.readStream.format("mysqlbinlog").options(**options).load()
    writer = reader.writeStream.foreachBatch(until_some_are_there).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(Exception, match="the machine is lost"):
        query.awaitTermination()
    loaded = [row for row in rows_of_log(logged, "t") if row["op"] == "r"]
    assert 0 < len(loaded) < 4000
    logged.options["startingOffset"] = begin
    with pytest.raises(Exception, match="a snapshot by another query is incomplete"):
        logged.run("another checkpoint")
    # The first query resumes its snapshot.
    logged.options["startingOffset"] = "snapshot"
    logged.run()
    assert len(assert_replay(logged, "t", "id")) == 4001


def test_other_target_or_change_log_with_the_same_checkpoint_is_rejected(
    logged: MirroredDatabase,
) -> None:
    """Changes applied meanwhile would be missing in the previous target or change log."""
    target = f"{logged.folder}/lake/{{database}}/{{table}}"
    for settings in (
        {"target": target},
        {"target": target, "change_log": None},
        {"change_log": change_log_of(logged).replace("changes", "elsewhere")},
    ):
        another = logged.mirror()
        logged.settings, kept = logged.settings | settings, logged.settings
        logged.execute("UPDATE t SET n = n + 1")
        with pytest.raises(Exception, match="this checkpoint was created with"):
            logged.run()
        logged.settings = kept
        assert another.stopped == {}
    logged.run()
    assert_replay(logged, "t", "id")


def test_mirrored_table_and_change_log_at_the_same_path_are_rejected(
    logged: MirroredDatabase,
) -> None:
    of_logs = {"target": None, "change_log": change_log_of(logged)}
    logged.options["startingOffset"] = "snapshot"
    # A mirror at the path of the change logs, then change logs at the path of a mirror.
    logged.settings = {"target": of_logs["change_log"]}
    with pytest.raises(Exception, match="rows that no mirror wrote"):
        logged.run("a second checkpoint")
    logged.settings = {}
    logged.run("a third checkpoint")
    logged.settings = of_logs | {"change_log": f"{logged.folder}/lake/{{database}}/{{table}}"}
    with pytest.raises(Exception, match="has other columns than a change log"):
        logged.run("a fourth checkpoint")
    logged.assert_equal("t")
    logged.settings = of_logs
    logged.execute("DELETE FROM t WHERE id = 1")
    logged.run()
    assert_replay(logged, "t", "id")


def test_change_log_added_to_a_remote_checkpoint_is_rejected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is on local disk, but written and read through Spark."""
    monkeypatch.setattr(checkpoint_io, "local_path", lambda _: None)
    checkpoint = f"file://{tmp_path}/checkpoint"
    check_checkpoint_targets(spark, checkpoint, {"target": "/a/{table}", "change_log": None})
    check_checkpoint_targets(spark, checkpoint, {"target": "/a/{table}", "change_log": None})
    with pytest.raises(OptionError, match="change_log: this checkpoint was created with None"):
        check_checkpoint_targets(
            spark, checkpoint, {"target": "/a/{table}", "change_log": "/b/{table}"}
        )
