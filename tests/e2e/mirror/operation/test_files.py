"""Files of Delta tables: partitions, and compactions while a mirror writes."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of, log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.connector.delta.store.deltars import fast_writes
from pyspark_mysqlbinlog.connector.delta.store.deltars import table as table_module
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine
from pyspark_mysqlbinlog.connector.delta.store.maintenance import MAINTENANCE_THREAD
from pyspark_mysqlbinlog.errors import MirrorError, OptionError, cause_of


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    return MirroredDatabase(spark, live_server, database, tmp_path)


@pytest.mark.both_engines
def test_partitioned_table_equals_select(mirrored: MirroredDatabase) -> None:
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["the region"]}
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, `the region` VARCHAR(9), v INT, w INT)"
        " DEFAULT CHARACTER SET utf8mb4",
        "INSERT INTO t VALUES (1, 'ñ/漢', 1, 1), (2, NULL, 2, 2), (3, 'a=b', 3, 3), (4, ' ', 4, 4)",
        "CREATE TABLE other (id INT PRIMARY KEY, `the region` INT)",
        "INSERT INTO other VALUES (1, 1)",
    )
    mirrored.run()
    assert mirrored.delta("t").metadata().partition_columns == ["the_region"]
    assert mirrored.delta("other").metadata().partition_columns == []

    def assert_equal() -> None:
        _, selected = mirrored.select("t")
        found = [tuple(row.values()) for row in mirrored.rows("t").to_pylist()]
        assert sorted(found, key=repr) == selected

    assert_equal()
    mirrored.execute(
        "UPDATE t SET `the region` = 'moved' WHERE id = 1",
        "UPDATE t SET `the region` = 'x', id = 20 WHERE id = 2",
        "UPDATE t SET `the region` = NULL WHERE id = 3",
    )
    mirrored.run()
    assert_equal()
    mirrored.execute("ALTER TABLE t DROP COLUMN w", "INSERT INTO t VALUES (5, 'moved', 5)")
    mirrored.run()
    assert_equal()
    assert mirrored.delta("t").metadata().partition_columns == ["the_region"]


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("region VARCHAR(9)", "", "a row has an empty region, .* reads that as NULL"),
        ("region VARCHAR(40)", "__HIVE_DEFAULT_PARTITION__", "reads that as NULL"),
        ("region BINARY(2)", "ab", "region .* has bytes, which Delta does not read back"),
    ],
    ids=["empty", "null's name", "bytes"],
)
def test_partition_value_that_delta_would_not_read_back_stops_the_table(
    mirrored: MirroredDatabase, column: str, value: str, reason: str
) -> None:
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["region"]}
    mirrored.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY, {column})",
        f"INSERT INTO t VALUES (1, 'x'), (2, '{value}')",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
    )
    mirrored.run()
    assert re.search(reason, mirrored.stopped("t"))
    mirrored.assert_equal("other")


@pytest.mark.both_engines
def test_partition_column_that_is_a_floating_key_stops_the_table(
    mirrored: MirroredDatabase,
) -> None:
    """0 and -0 are one key, and two partitions."""
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["k"]}
    mirrored.execute(
        "CREATE TABLE t (k DOUBLE PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (-0e0, 1)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
    )
    mirrored.run()
    assert "k of the Delta table is a FLOAT or DOUBLE of the key" in mirrored.stopped("t")
    mirrored.assert_equal("other")


@pytest.mark.both_engines
def test_timestamp_partition_keeps_its_instant_or_stops_the_table(
    mirrored: MirroredDatabase,
) -> None:
    """delta-rs stores it without a time zone, and Spark reads it in the session's time zone."""
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["v"]}
    mirrored.execute(
        "SET time_zone = '+00:00'",
        "CREATE TABLE t (id INT PRIMARY KEY, v TIMESTAMP NULL)",
        "INSERT INTO t VALUES (1, NULL)",
    )
    mirrored.run()
    mirrored.execute("SET time_zone = '+00:00'", "INSERT INTO t VALUES (2, '2026-03-08 07:30:00')")
    if not mirrored.target("t").preserves_partition_time_zone:
        with pytest.raises(Exception, match="every table is stopped"):
            mirrored.run()
        assert "is a TIMESTAMP" in mirrored.stopped("t")
        return
    zone = mirrored.spark.conf.get("spark.sql.session.timeZone", "UTC")
    assert zone is not None
    mirrored.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        mirrored.run()
        read = mirrored.spark.read.format("delta").load(str(mirrored.delta("t").table_uri))
        seconds = read.selectExpr("unix_timestamp(v) AS at").where("id = 2").first()
    finally:
        mirrored.spark.conf.set("spark.sql.session.timeZone", zone)
    assert seconds is not None
    expected = datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    assert seconds["at"] == expected.timestamp()
    assert {row["v"] for row in mirrored.rows("t").to_pylist()} == {None, expected}


@pytest.mark.both_engines
def test_table_whose_only_partition_column_is_dropped_becomes_unpartitioned(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["region"]}
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(9), v INT)",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
    )
    mirrored.run()
    mirrored.execute("ALTER TABLE t DROP region", "UPDATE t SET v = 20 WHERE id = 2")
    mirrored.run()
    mirrored.assert_equal("t")
    assert mirrored.delta("t").metadata().partition_columns == []


def test_unknown_partition_column_is_rejected(mirrored: MirroredDatabase) -> None:
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["regoin"]}
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY, region INT)", "INSERT INTO t SELECT 1, 1")
    with pytest.raises(Exception, match="partition_by") as raised:
        mirrored.run()
    cause = cause_of(raised.value)
    assert isinstance(cause, OptionError)
    assert "has no column 'regoin'" in str(cause)


@pytest.mark.sample(2)
@pytest.mark.both_engines
@pytest.mark.parametrize("kind", ["INT", "BIGINT UNSIGNED"])
@pytest.mark.parametrize("most", [0, 1_000], ids=["merged", "without a merge"])
def test_files_that_can_have_no_row_of_a_batch_are_not_read(
    mirrored: MirroredDatabase,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    most: int,
) -> None:
    monkeypatch.setattr(fast_writes, "MAX_REPLACED_KEYS", most)
    mirrored.execute(
        f"CREATE TABLE t (id {kind} NOT NULL PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
    )
    mirrored.run()
    first = mirrored.delta("t").file_uris()
    mirrored.execute("INSERT INTO t VALUES (100, 1), (101, 1), (102, 1)")
    mirrored.run()
    assert {*first} < {*mirrored.delta("t").file_uris()}
    kept = {path: Path(path).rename(tmp_path / Path(path).name) for path in first}
    mirrored.execute(
        "UPDATE t SET v = 2 WHERE id = 100",
        "DELETE FROM t WHERE id = 101",
        "INSERT INTO t VALUES (103, 1)",
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (200, 1)")
    mirrored.run()
    for path, elsewhere in kept.items():
        elsewhere.rename(path)
    # A BIGINT UNSIGNED is an integer on the server, and a decimal in Delta.
    found = {(int(row["id"]), row["v"]) for row in mirrored.rows("t").to_pylist()}
    assert found == {*mirrored.select("t")[1]}


@pytest.mark.both_engines
def test_batches_with_concurrent_compactions_equal_select(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread compacts as often as it can, during each kind of commit."""
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), w INT)",
        "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)",
    )
    mirrored.run()
    stopped = Event()

    def operations() -> set[str]:
        return {commit["operation"] for commit in mirrored.delta("t").history()}

    def compact() -> None:
        target = mirrored.target("t")
        while not stopped.is_set():
            target.compact()

    thread = Thread(target=compact, daemon=True)
    thread.start()
    try:
        for number in range(10, 50, 10):
            # With delta-rs, rows are merged in two of the rounds, and written without a merge in
            # the others.
            monkeypatch.setattr(fast_writes, "MAX_REPLACED_KEYS", 0 if number % 20 else 1_000)
            rows = ", ".join(f"({number + i}, 'new', {i})" for i in range(9))
            mirrored.execute(f"INSERT INTO t (id, v, w) VALUES {rows}")
            mirrored.run()
            mirrored.execute(
                f"UPDATE t SET v = 'changed' WHERE id < {number}",
                f"DELETE FROM t WHERE id = {number + 1}",
                f"ALTER TABLE t CHANGE w w INT, ADD n{number} INT",
                "ALTER TABLE t DROP COLUMN v, ADD v VARCHAR(20)",
                f"UPDATE t SET v = 'again' WHERE id = {number}",
            )
            mirrored.run()
        mirrored.execute("INSERT INTO t (id) VALUES (1000)")
        mirrored.run()
        wait_until(lambda: "OPTIMIZE" in operations(), "a compaction is done")
    finally:
        stopped.set()
        thread.join(patience(60))
    mirrored.assert_equal("t")
    assert "MERGE" in operations()


def _two_files(folder: Path) -> Path:
    for number in (1, 2):
        write_deltalake(folder, pa.table({"id": [number], "_seq": [number]}), mode="append")
    return folder


@pytest.mark.parametrize("between", ["compaction", "append"])
def test_rewrite_of_columns_survives_a_compaction_and_rejects_a_foreign_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    uri = str(_two_files(tmp_path / "t"))
    reshaped, comes = table_module._reshaped, iter([True])

    def write() -> None:
        if between == "compaction":
            assert DeltalakeEngine().target(uri).compact()
        else:
            write_deltalake(uri, pa.table({"id": [3], "_seq": [3]}), mode="append")

    def interrupted(*arguments: Any) -> pa.RecordBatch:
        if next(comes, False):
            # delta-rs calls this in a thread of its runtime, which must not start another runtime.
            with ThreadPoolExecutor(1) as another:
                another.submit(write).result()
        return reshaped(*arguments)

    monkeypatch.setattr(table_module, "_reshaped", interrupted)
    target = DeltalakeEngine().target(uri)
    wanted = pa.schema([pa.field("number", pa.int64())])
    if between == "append":
        with pytest.raises(MirrorError, match=r"\(WRITE\): let only one mirror write it"):
            target.rewrite_columns(wanted, {"number": "id"})
    else:
        target.rewrite_columns(wanted, {"number": "id"})
        rows = DeltalakeEngine().target(uri)._there().to_pyarrow_table()
        assert sorted(rows["number"].to_pylist(), key=repr) == [1, 2]


@pytest.mark.both_engines
def test_files_are_compacted_and_removed_while_a_query_runs(mirrored: MirroredDatabase) -> None:
    mirrored.settings |= {
        "change_log": change_log_of(mirrored),
        "maintenance_interval": "100ms",
        "table_properties": {"delta.deletedFileRetentionDuration": "interval 0 seconds"},
    }
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (0, 0)")
    query = mirrored.mirror().start(mirrored.spark, processingTime="100 milliseconds")
    try:
        number = 0
        folders = (mirrored.folder / "lake" / mirrored.database / "t", log_of(mirrored, "t"))

        def are_maintained() -> bool:
            nonlocal number
            number += 1
            mirrored.execute(f"INSERT INTO t VALUES ({number}, {number})")
            assert query.exception() is None, query.exception()
            return all({"OPTIMIZE", "VACUUM END"} <= {*_operations(each)} for each in folders)

        wait_until(are_maintained, "both are compacted and vacuumed")
        # No batch is interrupted, so none starts another round of maintenance.
        query.processAllAvailable()
    finally:
        query.stop()
    mirrored.settings["maintenance_interval"] = None
    mirrored.run()
    # A vacuum without a retention time removes files of a version that is being read.
    for thread in threading.enumerate():
        if thread.name == MAINTENANCE_THREAD:
            thread.join()
    mirrored.assert_equal("t")
    assert len(assert_replay(mirrored, "t", "id")) > number
    # Each batch writes a file, and a compaction makes one of several.
    written = [name for name in _operations(folders[0]) if name in {"MERGE", "WRITE"}]
    assert len(mirrored.delta("t").file_uris()) < len(written)


def _operations(folder: Path) -> list[str]:
    """Return the operations of all commits."""
    if not DeltaTable.is_deltatable(str(folder)):
        return []
    return [str(commit["operation"]) for commit in DeltaTable(folder).history()]
