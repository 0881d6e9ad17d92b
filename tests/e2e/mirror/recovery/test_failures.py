"""An error of one table stops that table; an error of the store or process fails the batch."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of, log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.store.commits import commit_conflict_error
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget

# 300 bytes, which delta-rs percent-encodes and Spark does not.
_LONG = "漢" * 100


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of two tables that has not run yet."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, p VARCHAR(100), d INT) CHARSET utf8mb4",
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)",
        "CREATE TABLE u (id INT PRIMARY KEY, v INT)",
        "INSERT INTO u VALUES (1, 1)",
    )
    return mirrored


def _run(mirrored: MirroredDatabase) -> DeltaMirror:
    mirror = mirrored.mirror()
    mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    return mirror


def _run_last_batch_again(mirrored: MirroredDatabase) -> DeltaMirror:
    """Run as after a kill between Delta's commits and Spark's."""
    commits = mirrored.folder / "checkpoint" / "commits"
    last = max((path for path in commits.glob("[0-9]*")), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    return _run(mirrored)


@pytest.mark.sample(1)
@pytest.mark.both_engines
@pytest.mark.parametrize("value", ["text", "double"])
def test_partition_value_longer_than_a_file_name_stops_the_table_until_a_reload(
    mirrored: MirroredDatabase, value: str
) -> None:
    column, change = ("p", f"'{_LONG}', 0") if value == "text" else ("d", "'c', 1e300")
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": [column]}
    mirrored.execute("ALTER TABLE t MODIFY d DOUBLE")
    _run(mirrored)
    mirrored.assert_equal("t", "u")
    mirrored.execute(f"INSERT INTO t VALUES (3, {change})", "INSERT INTO u VALUES (2, 2)")
    if value == "double" and mirrored.target("t").preserves_partition_time_zone:
        # Spark writes 1.0E300.
        _run(mirrored)
        mirrored.assert_equal("t", "u")
        return
    for run in (_run, _run_last_batch_again, _run):
        mirror = run(mirrored)
        assert [*mirror.stopped] == [f"{mirrored.database}.t"]
        reason = mirrored.stopped("t")
        assert "is longer than a file name" in reason
        assert "partition the table by another column, and reload the table" in reason
        assert len(reason) < 700
        mirrored.assert_equal("u")
        assert {row["id"] for row in mirrored.rows("t").to_pylist()} == {1, 2}
        mirrored.execute("UPDATE u SET v = v + 1", "INSERT IGNORE INTO t VALUES (4, 'late', 4)")
    mirrored.execute("DELETE FROM t WHERE id = 3")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")


@pytest.mark.both_engines
def test_long_partition_value_in_a_snapshot_stops_the_table_until_a_reload(
    mirrored: MirroredDatabase,
) -> None:
    """Chunks after the failed one do not resume the table."""
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["p"]}
    rows = ", ".join(f"({number}, 'a', 0)" for number in range(10, 3000))
    mirrored.execute(f"UPDATE t SET p = '{_LONG}' WHERE id = 1", f"INSERT INTO t VALUES {rows}")
    mirrored.options |= {"startingOffset": "snapshot", "maxRowsPerTrigger": 500}
    for _ in range(2):
        assert [*_run(mirrored).stopped] == [f"{mirrored.database}.t"]
        assert "is longer than a file name" in mirrored.stopped("t")
        mirrored.assert_equal("u")
        mirrored.execute("UPDATE u SET v = v + 1", "UPDATE t SET d = d + 1 WHERE id = 20")
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")


@contextmanager
def _failing(
    mirrored: MirroredDatabase,
    error: Callable[[], BaseException],
    name: str = "merge",
    table: str = "t",
    times: int = 100,
) -> Iterator[list[int]]:
    """Let a method of a table's Delta table fail `times` times; yield the number of calls."""
    made = [0]
    kind: Any = type(mirrored.target("t"))
    call = getattr(kind, name)

    def fail(target: DeltaTarget, *given: Any, **named: Any) -> Any:
        if target.uri.endswith(f"/{table}"):
            made[0] += 1
            if made[0] <= times:
                raise error()
        return call(target, *given, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kind, name, fail)
        yield made


class PanicException(BaseException):
    """The name that a Rust panic has in Python."""


_OF_TABLE: list[Callable[[], BaseException]] = [
    lambda: DeltaError("Kernel error: Json error: unexpected 'g'"),
    lambda: PanicException("called `Option::unwrap()` on a `None` value"),
    lambda: pa.ArrowInvalid("Integer value out of range"),
    lambda: ValueError("year 0 is out of range"),
]
_OF_ALL: list[Callable[[], BaseException]] = [
    lambda: DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"),
    lambda: DeltaError("Generic S3 error: Client error with status 403 Forbidden: AccessDenied"),
    lambda: DeltaError("Generic S3 error: <Code>NoSuchBucket</Code>"),
    lambda: DeltaError("Generic S3 error: error sending request: connect error"),
    lambda: OSError(errno.ENOSPC, "No space left on device"),
    lambda: ConnectionResetError("reset"),
    MemoryError,
    lambda: commit_conflict_error("/lake/t"),
    lambda: DeltaError("Job 12 cancelled part of cancelled job group"),
]


@pytest.mark.parametrize("number", range(len(_OF_TABLE)))
def test_write_error_of_one_table_stops_only_this_table_until_a_reload(
    mirrored: MirroredDatabase, number: int
) -> None:
    mirrored.settings["change_log"] = change_log_of(mirrored)
    _run(mirrored)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO u VALUES (2, 2)")
    with _failing(mirrored, _OF_TABLE[number]) as made:
        assert [*_run(mirrored).stopped] == [f"{mirrored.database}.t"]
        assert made == [2]
    assert str(_OF_TABLE[number]()) in mirrored.stopped("t")
    mirrored.assert_equal("u")
    assert_replay(mirrored, "t", "id")
    # The error does not recur, but the table lacks changes.
    mirrored.execute("DELETE FROM t WHERE id = 1")
    assert [*_run(mirrored).stopped] == [f"{mirrored.database}.t"]
    assert mirrored.rows("t").num_rows == 2
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")
    assert_replay(mirrored, "t", "id")


@pytest.mark.parametrize("number", range(len(_OF_ALL)))
def test_store_or_process_error_fails_the_batch_and_stops_no_table(
    mirrored: MirroredDatabase, number: int
) -> None:
    _run(mirrored)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO u VALUES (2, 2)")
    with _failing(mirrored, _OF_ALL[number]) as made:
        with pytest.raises(StreamingQueryException):
            _run(mirrored)
        assert made == [1]
    assert "mysqlbinlog.stopped" not in mirrored.delta("t").metadata().configuration
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")


@pytest.mark.both_engines
def test_constraint_error_with_the_text_of_a_store_error_stops_only_its_table(
    mirrored: MirroredDatabase,
) -> None:
    """The error of a Delta constraint contains a row with all its columns."""
    words = [
        *("interrupted", "connection timed out", "no such file", "503 Service Unavailable"),
        *("x: Generic S3 error: y", "(os error 28)", "a: error sending request", "Job 1 cancelled"),
        *("java.net.SocketException: x", "x\\nCaused by: java.net.SocketException: y"),
        *("<Code>SlowDown</Code>", "No space left on device", "[DELTA_CONCURRENT_APPEND] x"),
    ]
    names = ["cancelled_at", "timeout", "forbidden", *(f"c{at}" for at in range(3, len(words)))]
    columns = ", ".join(f"`{name}` VARCHAR(60)" for name in names)
    values = ", ".join(f"'{word}'" for word in words)
    mirrored.execute(
        f"CREATE TABLE connection (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO connection VALUES (1, {values})",
    )
    _run(mirrored)
    mirrored.delta("connection").alter.add_constraint({"interrupted": "id < 2"})
    mirrored.execute(f"INSERT INTO connection VALUES (2, {values})", "INSERT INTO u VALUES (2, 2)")
    for _ in range(2):
        assert [*_run(mirrored).stopped] == [f"{mirrored.database}.connection"]
        mirrored.assert_equal("t", "u")
        assert mirrored.rows("connection").num_rows == 1
        mirrored.execute("UPDATE u SET v = v + 1")


def test_write_error_that_a_retry_resolves_stops_no_table(mirrored: MirroredDatabase) -> None:
    _run(mirrored)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "DELETE FROM t WHERE id = 1")
    with _failing(mirrored, _OF_TABLE[0], times=1) as made:
        assert _run(mirrored).stopped == {}
        assert made == [2]
    mirrored.assert_equal("t", "u")


def test_stop_that_cannot_be_stored_fails_the_batch(mirrored: MirroredDatabase) -> None:
    """A later start would not know that the table lacks changes."""
    _run(mirrored)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO u VALUES (2, 2)")
    with (
        _failing(mirrored, _OF_TABLE[0]),
        _failing(mirrored, lambda: OSError("gone"), "set_properties"),
        pytest.raises(StreamingQueryException, match="Json error: unexpected 'g'"),
    ):
        _run(mirrored)
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")


@pytest.mark.both_engines
@pytest.mark.parametrize("is_log", [False, True])
def test_a_damaged_delta_log_stops_one_table(mirrored: MirroredDatabase, *, is_log: bool) -> None:
    """The stop cannot be stored in the table, so the checkpoint stores it, also after a repair."""
    mirrored.settings["change_log"] = change_log_of(mirrored)
    _run(mirrored)
    name, folder = f"{mirrored.database}.t", mirrored.folder / "lake" / mirrored.database / "t"
    if is_log:
        name, folder = f"the change log of {name}", log_of(mirrored, "t")
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    for commit in (folder / "_delta_log").glob("*.json"):
        commit.write_text("garbage")
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO u VALUES (2, 2)")
    for run in (_run, _run_last_batch_again, _run):
        assert [*run(mirrored).stopped] == [name]
        mirrored.assert_equal("u", *(["t"] if is_log else []))
        assert_replay(mirrored, "u", "id")
        # A batch that changes only this table.
        mirrored.execute("INSERT INTO t SELECT MAX(id) + 1, 'late', 4 FROM t AS before_it")
    shutil.rmtree(folder)
    shutil.move(whole, folder)
    for _ in range(2):
        assert [*_run(mirrored).stopped] == [name]
        held = DeltaTable(folder)
        assert held.metadata().configuration["mysqlbinlog.stopped"]
        assert held.to_pyarrow_table().num_rows == 2
        mirrored.execute("UPDATE u SET v = v + 1")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")
    assert_replay(mirrored, "t", "id")


def test_a_damaged_delta_log_of_the_only_table_fails_the_batch(mirrored: MirroredDatabase) -> None:
    """No other Delta table shows that the store itself works."""
    mirrored.options["tables"] = f"{mirrored.database}.t"
    _run(mirrored)
    for commit in (mirrored.folder / "lake" / mirrored.database / "t" / "_delta_log").glob(
        "*.json"
    ):
        commit.write_text("garbage")
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)")
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="Json error"):
            _run(mirrored)


def test_failure_of_the_first_snapshot_chunk_stops_the_table_and_its_change_log(
    mirrored: MirroredDatabase,
) -> None:
    """The start of the snapshot is not stored, and the next chunk is not taken for the first."""
    rows = ", ".join(f"({number}, 'a', 0)" for number in range(10, 3000))
    mirrored.execute(f"INSERT INTO t VALUES {rows}")
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.options |= {"startingOffset": "snapshot", "maxRowsPerTrigger": 500}
    with (
        _failing(mirrored, _OF_TABLE[0], "has_since", times=2),
        _failing(mirrored, _OF_TABLE[0], "append", times=2) as appended,
    ):
        mirror = _run(mirrored)
        assert appended[0] >= 2
    name = f"{mirrored.database}.t"
    assert {*mirror.stopped} == {name, f"the change log of {name}"}
    assert mirrored.rows("t").num_rows == 0
    mirrored.assert_equal("u")
    assert_replay(mirrored, "u", "id")
    mirrored.execute("DELETE FROM t WHERE id = 10")
    assert {*_run(mirrored).stopped} == {name, f"the change log of {name}"}
    mirrored.options["reload"] = f"again: {name}"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")
    assert_replay(mirrored, "t", "id")


def test_a_change_log_that_misses_changes_stays_stopped(mirrored: MirroredDatabase) -> None:
    mirrored.settings["change_log"] = change_log_of(mirrored)
    _run(mirrored)
    mirrored.execute("INSERT INTO t VALUES (3, 'c', 3)", "INSERT INTO u VALUES (2, 2)")
    name = f"the change log of {mirrored.database}.t"
    with _failing(mirrored, _OF_TABLE[0], "append"):
        assert [*_run(mirrored).stopped] == [name]
    rows = DeltaTable(log_of(mirrored, "t")).to_pyarrow_table().num_rows
    mirrored.execute("INSERT INTO t VALUES (4, 'd', 4)")
    for run in (_run, _run_last_batch_again):
        assert [*run(mirrored).stopped] == [name]
        assert DeltaTable(log_of(mirrored, "t")).to_pyarrow_table().num_rows == rows
    mirrored.assert_equal("t", "u")
    assert_replay(mirrored, "u", "id")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    assert _run(mirrored).stopped == {}
    mirrored.assert_equal("t", "u")
    assert_replay(mirrored, "t", "id")


def test_full_disk_fails_the_batch_and_stops_no_table(mirrored: MirroredDatabase) -> None:
    """A tmpfs of 100 kB is mounted as the lake's folder."""
    _run(mirrored)
    letters = random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=60 * 3000)
    texts = ["".join(letters[60 * at : 60 * at + 60]) for at in range(3000)]
    rows = ", ".join(f"({number + 10}, '{text}', 0)" for number, text in enumerate(texts))
    mirrored.execute(f"INSERT INTO t VALUES {rows}", "INSERT INTO u VALUES (2, 2)")
    lake = mirrored.folder / "lake" / mirrored.database
    if not _mounted(lake, "size=100k"):
        pytest.skip("a file system of a size can be mounted by root only")
    try:
        with pytest.raises(StreamingQueryException):
            _run(mirrored)
        _resized(lake, "size=100m")
        assert _run(mirrored).stopped == {}
        mirrored.assert_equal("t", "u")
    finally:
        subprocess.run(["umount", "-l", str(lake)], check=True)


def _mounted(folder: Path, size: str) -> bool:
    """Mount a small file system with the folder's files; return False if that fails."""
    if os.geteuid() != 0:
        return False
    kept = folder.with_name("kept")
    shutil.move(folder, kept)
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    return done.returncode == 0


def _resized(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{size}", str(folder)], check=True)
