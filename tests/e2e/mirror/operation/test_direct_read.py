"""Parts of the binlog that a mirror reads directly: equal to SELECT, each change once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.waiting import wait_until
from helpers.writers.mixed_changes import CREATE, TABLES, change
from pyspark_mysqlbinlog.connector.delta.query import batch_runner
from pyspark_mysqlbinlog.connector.delta.query.mirror_tables import MirrorTables
from pyspark_mysqlbinlog.connector.delta.read import direct_read, policy
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.errors import BinlogReplacedError


@pytest.fixture
def nothing_handed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make the handoff folder unavailable, as with Spark Connect from another machine."""
    elsewhere = str(tmp_path / "elsewhere")
    monkeypatch.setattr(BatchHandoff, "new", lambda _: BatchHandoff(elsewhere))


@pytest.fixture
def read_here(nothing_handed_over: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Read even short batches directly; return the number of changes in each direct read."""
    monkeypatch.setattr(policy, "MIN_REREAD_BYTES", 0)
    read: list[int] = []
    steps = DirectReader.sub_batches

    def counted(reading: DirectReader, *given: Any) -> Iterator[SubBatch]:
        read.append(0)
        for step in steps(reading, *given):
            read[-1] += sum(map(len, step.changes_by_table.values()))
            yield step

    monkeypatch.setattr(DirectReader, "sub_batches", counted)
    return read


@pytest.fixture
def mirrored(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of three tables, one of them without a key."""
    mirrored = MirroredDatabase(
        spark, any_server, any_database, tmp_path, startingOffset="snapshot"
    )
    mirrored.execute(
        *CREATE,
        "INSERT INTO t VALUES (1, 'ñ漢', 1.25), (2, NULL, NULL)",
        "INSERT INTO plain VALUES (1, 'a'), (1, 'a')",
    )
    return mirrored


@pytest.fixture
def short(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of an empty database on one server."""
    return MirroredDatabase(spark, live_server, database, tmp_path)


@pytest.mark.sample(1)
def test_changes_and_ddl_read_by_spark_tasks_equal_select(
    mirrored: MirroredDatabase, ddl_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_ = random.Random(ddl_seed)
    monkeypatch.setattr(DirectReader, "can_read", lambda *_: False)
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.run()
    for statement in "ALTER TABLE t ADD w ENUM('a','ñ') DEFAULT 'ñ'", "TRUNCATE TABLE pairs":
        change(mirrored, random_, 40)
        mirrored.execute(statement)
        change(mirrored, random_, 40)
        mirrored.run()
    mirrored.assert_equal(*TABLES)
    assert_replay(mirrored, "t", "id")


@pytest.mark.sample(1)
@pytest.mark.both_engines
def test_changes_and_ddl_read_directly_equal_select(
    mirrored: MirroredDatabase, ddl_seed: int, read_here: list[int]
) -> None:
    random_ = random.Random(ddl_seed)
    mirrored.run()
    # The rows of `plain` were read by Spark: a table without a key is read as a whole.
    assert sum(read_here) == 2
    steps: list[tuple[str, ...]] = [
        ("CREATE TABLE later (id INT PRIMARY KEY)", "INSERT INTO later VALUES (1)"),
        ("ALTER TABLE t ADD w ENUM('a','ñ') DEFAULT 'ñ'", "TRUNCATE TABLE pairs"),
        ("ALTER TABLE t MODIFY v VARCHAR(30) FIRST, DROP w", "DROP TABLE later"),
    ]
    for statements in steps:
        change(mirrored, random_, 40)
        mirrored.execute(*statements)
        change(mirrored, random_, 40)
        before = len(read_here)
        mirrored.run()
        assert sum(read_here[before:]) > 0, "Spark read it"
        mirrored.assert_equal(*TABLES)


@pytest.mark.sample(2)
@pytest.mark.parametrize("with_change_log", [False, True])
@pytest.mark.parametrize("reader", ["mirror", "Spark"])
def test_snapshot_of_several_chunks_equals_select(
    short: MirroredDatabase,
    read_here: list[int],
    reader: str,
    with_change_log: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tables have equal columns, one a key of two columns, and one a column without a type."""
    if reader == "Spark":
        monkeypatch.setattr(DirectReader, "can_read", lambda *_: False)
    if with_change_log:
        short.settings["change_log"] = change_log_of(short)
    short.options |= {"startingOffset": "snapshot", "targetPartitionBytes": "64k"}
    short.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200)) CHARSET utf8mb4",
        "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(200)) CHARSET utf8mb4",
        "CREATE TABLE c (x VARCHAR(9), y DATE, v INT, PRIMARY KEY (x, y))",
        "CREATE TABLE g (id INT PRIMARY KEY, v GEOMETRY)",
        "INSERT INTO a VALUES (1, REPEAT('ñ', 90)), (2, NULL), (3, '漢')",
        *["INSERT INTO a SELECT id + (SELECT MAX(id) FROM a), v FROM a"] * 10,
        "INSERT INTO b SELECT id, CONCAT('b', id) FROM a WHERE id % 3",
        "INSERT INTO c SELECT id % 10, DATE_ADD('2020-01-01', INTERVAL id DAY), id FROM a",
        "INSERT INTO g SELECT id, POINT(id, -id) FROM a WHERE id < 20",
        "ANALYZE TABLE a, b, c, g",
    )
    counts = {
        table: short.server.execute(f"SELECT COUNT(*) FROM {short.database}.{table}")[0][0]
        for table in "abcg"
    }
    short.run()
    short.assert_equal(*"abc")
    assert {table: short.rows(table).num_rows for table in "abcg"} == counts
    assert sum(read_here) == (sum(counts.values()) if reader == "mirror" else 0)
    short.execute(
        "DELETE FROM a WHERE id % 2", "UPDATE c SET v = v + 1", "INSERT INTO b VALUES (-1, 'n')"
    )
    short.run()
    short.assert_equal(*"abc")


@pytest.mark.sample(1)
def test_tables_and_change_log_read_directly_equal_select(
    mirrored: MirroredDatabase, ddl_seed: int, read_here: list[int]
) -> None:
    random_ = random.Random(ddl_seed)
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.run()
    for _ in range(2):
        change(mirrored, random_, 60)
        mirrored.run()
    assert sum(read_here) > 0, "Spark read it"
    mirrored.assert_equal(*TABLES)
    assert_replay(mirrored, "t", "id")


def test_failed_batch_is_read_directly_again_and_applied_once(
    short: MirroredDatabase, read_here: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    short.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, n INT)", "CREATE TABLE b (id INT PRIMARY KEY, n INT)"
    )
    short.run()
    short.execute(
        "INSERT INTO a VALUES (1, 1), (2, 2)",
        "INSERT INTO b VALUES (1, 1)",
        "DELETE FROM a WHERE id = 1",
    )
    bring_in = MirrorTables.apply

    def fails_for_b(mirror: Any, name: Any, *rest: Any) -> int:
        if name[1] == "b":
            raise OSError("the disk is full")
        return bring_in(mirror, name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(MirrorTables, "apply", fails_for_b)
        with pytest.raises(Exception, match="the disk is full"):
            short.run()
    short.assert_equal("a")
    short.execute("UPDATE a SET n = 20", "UPDATE b SET n = 10")
    short.run()
    short.assert_equal("a", "b")
    # The failed batch, its replay, and one more batch.
    assert [count for count in read_here if count] == [4, 4, 2]


def test_planned_batch_is_not_read_from_another_binlog_of_the_same_name(
    spark: SparkSession, own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binlog is reset after the batch is planned, and only the direct read can detect it."""
    monkeypatch.setattr(policy, "MIN_REREAD_BYTES", 0)
    own_server.execute("CREATE DATABASE shop")
    mirrored = MirroredDatabase(spark, own_server, "shop", tmp_path)
    mirrored.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT)")
    mirrored.run()
    mirrored.execute("INSERT INTO a VALUES (1, 1)")
    end = own_server.position()

    def fail(*_: Any) -> int:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(MirrorTables, "apply", fail)
        with pytest.raises(Exception, match="the disk is full"):
            mirrored.run()
    own_server.reset_binlog()
    while own_server.position() <= end:
        mirrored.execute("INSERT INTO a VALUES (2, 1)", "DELETE FROM a WHERE id = 2")
    refused: list[type[BaseException]] = []
    steps = DirectReader.sub_batches

    def watched(reading: DirectReader, *given: Any) -> Iterator[SubBatch]:
        try:
            yield from steps(reading, *given)
        except BinlogReplacedError as error:
            refused.append(type(error))
            raise

    monkeypatch.setattr(DirectReader, "sub_batches", watched)
    with pytest.raises(Exception, match=BinlogReplacedError.__name__):
        mirrored.run()
    assert refused == [BinlogReplacedError]
    assert mirrored.rows("a").num_rows == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("with_change_log", [False, True])
def test_handoff_files_are_applied_without_reading_the_binlog_again(
    mirrored: MirroredDatabase,
    ddl_seed: int,
    with_change_log: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark runs no task either."""
    random_ = random.Random(ddl_seed)
    if with_change_log:
        mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.run()

    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("the log is read once more")

    monkeypatch.setattr(direct_read, "range_partitions", asked)
    monkeypatch.setattr(batch_runner, "collected", asked)
    for number, statements in enumerate(
        (
            ("CREATE TABLE later (id INT PRIMARY KEY)", "INSERT INTO later VALUES (1)"),
            ("ALTER TABLE t ADD w ENUM('a','ñ') DEFAULT 'ñ'", "TRUNCATE TABLE pairs"),
            ("ALTER TABLE t MODIFY v VARCHAR(30) FIRST, DROP w", "DROP TABLE later"),
        )
    ):
        change(mirrored, random_, 40)
        mirrored.execute(*statements)
        change(mirrored, random_, 40)
        mirrored.run()
        mirrored.assert_equal(*TABLES, *(["later"] if number < 2 else []))
    if with_change_log:
        assert_replay(mirrored, "t", "id")


@pytest.mark.parametrize("with_change_log", [False, True])
def test_batch_of_several_ranges_is_applied_from_its_handoff_file(
    short: MirroredDatabase, with_change_log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes keep their order, and each has the columns of its time, typed or as text."""
    if with_change_log:
        short.settings["change_log"] = change_log_of(short)
    short.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(2000), n INT)")
    short.run()
    taken: list[int] = []
    take = BatchHandoff.read

    def noted(handoff: BatchHandoff, *batch: Any) -> Any:
        ranges = take(handoff, *batch)
        taken.append(len(ranges or ()))
        return ranges

    monkeypatch.setattr(BatchHandoff, "read", noted)
    monkeypatch.setattr(direct_read, "range_partitions", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(batch_runner, "collected", lambda *_, **__: 1 / 0)
    many = range(250)
    short.execute(
        "INSERT INTO a VALUES " + ", ".join(f"({id_}, REPEAT('x', 2000), 1)" for id_ in many),
        "UPDATE a SET n = 2 WHERE id < 3",
        "ALTER TABLE a DROP n, ADD w VARCHAR(9) FIRST",
        "UPDATE a SET v = REPEAT('y', 900), w = 'ñ'",
        "ALTER TABLE a MODIFY w TEXT",
        "UPDATE a SET v = REPEAT('z', 700), w = id WHERE id % 2",
        "DELETE FROM a WHERE id % 7 = 1",
        "INSERT INTO a VALUES ('again', 1, 'there')",
    )
    short.run()
    assert max(taken) > 1
    short.assert_equal("a")
    if with_change_log:
        assert_replay(short, "a", "id")


def test_handoff_files_of_successive_batches_are_removed_after_use(
    short: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_read, "range_partitions", lambda *_, **__: 1 / 0)
    short.options["maxRowsPerTrigger"] = "7"
    short.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT)")
    short.run()
    short.execute(
        *(f"INSERT INTO a VALUES ({number}, 0)" for number in range(50)),
        *(f"UPDATE a SET n = n + {number} WHERE id % 5 = {number % 5}" for number in range(20)),
    )
    mirror = short.mirror()
    query = mirror.start(short.spark, availableNow=True)
    query.awaitTermination()
    assert len([each for each in mirror.progress.batches if each.rows]) > 7
    assert not any(each["numInputRows"] for each in query.recentProgress)
    short.assert_equal("a")
    handoff = mirror._runner.reading.handoff
    assert handoff is not None
    assert [*Path(handoff.folder).iterdir()] == []


def test_large_transaction_among_small_ones_is_applied_without_spark_tasks(
    short: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task could inline it, and Spark runs no Python worker, because small batches need none."""
    monkeypatch.setattr(batch_runner, "collected", lambda *_, **__: 1 / 0)
    short.execute("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000))")
    short.run()
    query = short.mirror().start(short.spark, processingTime="0 seconds")
    there = 0

    def is_there() -> bool:
        return not query.isActive or short.rows("a").num_rows == there

    try:
        for count in 1, 1, 500, 1, 500, 1:
            rows = ", ".join(["(REPEAT('x', 2000))"] * count)
            short.execute(f"INSERT INTO a (v) VALUES {rows}")
            there += count
            wait_until(is_there, "the rows are in Delta")
        assert query.exception() is None
    finally:
        query.stop()
    short.assert_equal("a")


def test_second_short_batch_in_a_row_is_read_by_spark_without_handoff_files(
    short: MirroredDatabase, nothing_handed_over: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's tasks read short batches, so that a mirror keeps a single binlog connection."""
    # However long it takes, a short one comes soon after another.
    monkeypatch.setattr(policy, "WORKER_IDLE_SECONDS", 1e9)
    short.execute("CREATE TABLE a (id INT PRIMARY KEY, v LONGTEXT)")
    mirror = short.mirror()
    counts = []
    for first, rows in ((0, 1), (1, 1), (10, 6), (20, 1)):
        for number in range(first, first + rows):
            short.execute(f"INSERT INTO a VALUES ({number}, REPEAT('x', 800000))")
        query = mirror.start(short.spark, availableNow=True)
        query.awaitTermination()
        counts.append(sum(each["numInputRows"] for each in query.recentProgress))
    assert [count > 0 for count in counts] == [False, True, False, False]
    short.assert_equal("a")


def test_binlog_with_few_captured_changes_is_left_to_spark_after_one_batch(
    short: MirroredDatabase, read_here: list[int]
) -> None:
    """With direct reads, the server would send its whole binlog twice."""
    short.options["tables"] = f"{short.database}.a"
    short.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY, v LONGTEXT)"
    )
    mirror = short.mirror()
    for number in range(3):
        short.execute(
            f"INSERT INTO other VALUES ({number}, REPEAT('x', 50000))",
            f"INSERT INTO a VALUES ({number})",
        )
        mirror.start(short.spark, availableNow=True).awaitTermination()
    # Batch 0, and the batch after which the binlog is left to Spark.
    assert read_here == [0, 1]
    short.assert_equal("a")
