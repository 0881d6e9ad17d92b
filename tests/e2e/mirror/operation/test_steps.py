"""Batches that a mirror applies in sub-batches: equal to SELECT, each change applied once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_steps import (
    CHECKPOINTS,
    checkpoint_names,
    killed_after,
    made_ahead,
    with_short_steps,
)
from helpers.servers import Server
from helpers.writers.mixed_changes import CREATE, TABLES, change
from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make each transaction a sub-batch; return the number of sub-batches of each batch."""
    return with_short_steps(monkeypatch)


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of three tables, one of them without a key."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(*CREATE)
    return mirrored


@pytest.mark.both_engines
def test_changes_and_ddl_in_sub_batches_equal_select(
    mirrored: MirroredDatabase, ddl_seed: int, steps: list[int]
) -> None:
    random_ = random.Random(ddl_seed)
    # With reloadAfterDdl, a batch in which a table appears is a single sub-batch.
    mirrored.options["reloadAfterDdl"] = "false"
    mirrored.run()
    for statements in (
        ("CREATE TABLE later (id INT PRIMARY KEY)", "INSERT INTO later VALUES (1)"),
        ("ALTER TABLE t ADD w ENUM('a','ñ')", "TRUNCATE TABLE pairs"),
        ("ALTER TABLE t CHANGE v x VARCHAR(30)", "ALTER TABLE t CHANGE x v VARCHAR(30)"),
        ("ALTER TABLE t DROP w", "DROP TABLE later", "CREATE TABLE later (k INT PRIMARY KEY)"),
        ("RENAME TABLE t TO old", "CREATE TABLE t LIKE old", "DROP TABLE old"),
    ):
        change(mirrored, random_, 20)
        mirrored.execute(*statements)
        mirrored.server.execute("FLUSH LOGS")
        change(mirrored, random_, 20)
        before = len(steps)
        mirrored.run()
        mirrored.assert_equal(*TABLES)
        assert max(steps[before:]) > 10


def test_table_truncated_within_a_sub_batch_equals_select(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States that are precomputed from all changes of a sub-batch are not used after a TRUNCATE."""
    mirrored.run()
    steps = with_short_steps(monkeypatch, 2_000)
    for first in range(0, 100, 10):
        mirrored.execute(
            f"INSERT INTO t VALUES ({first}, 'a', 1), ({first + 1}, 'b', 2)",
            "TRUNCATE TABLE t",
            f"INSERT INTO t VALUES ({first + 2}, 'c', 3)",
            f"UPDATE t SET id = {first + 3}, v = 'd'",
        )
    mirrored.run()
    mirrored.assert_equal("t")
    assert 2 < max(steps) < 10


@pytest.fixture(params=CHECKPOINTS)
def checkpoints(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the checkpoints of successive runs; a new one reads the whole binlog again."""
    return checkpoint_names(request.param)


@pytest.mark.sample(2, group="kills")
def test_each_change_is_applied_once_after_a_kill_between_sub_batches(
    mirrored: MirroredDatabase,
    ddl_seed: int,
    steps: list[int],
    checkpoints: Iterator[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows without a key occur as often as in SELECT, and the change log replays to SELECT."""
    random_ = random.Random(ddl_seed)
    mirrored.options["reloadAfterDdl"] = "false"
    mirrored.settings["change_log"] = change_log_of(mirrored)
    checkpoint = next(checkpoints)
    mirrored.run(checkpoint)
    for number in (1, 2, 4, 7):
        # Many of the statements find no row, and are no sub-batch.
        change(mirrored, random_, 60)
        if number == 4:
            mirrored.execute("ALTER TABLE t ADD w INT", "UPDATE t SET w = 8")
        with killed_after(number, monkeypatch):
            mirrored.run(checkpoint)
        change(mirrored, random_, 3)
        checkpoint = next(checkpoints)
        mirrored.run(checkpoint)
        mirrored.assert_equal(*TABLES)
        assert_replay(mirrored, "t", "id")
    assert max(steps) > 5


def test_transaction_is_never_split_across_sub_batches(
    mirrored: MirroredDatabase, steps: list[int]
) -> None:
    mirrored.run()
    for first in range(1, 60, 20):
        rows = ", ".join(f"({n}, '{'x' * 20}', 1)" for n in range(first, first + 10))
        more = ", ".join(f"({n}, '{'y' * 20}', 1)" for n in range(first + 10, first + 20))
        mirrored.execute(
            "BEGIN", f"INSERT INTO t VALUES {rows}", f"INSERT INTO t VALUES {more}", "COMMIT"
        )
    mirrored.run()
    mirrored.assert_equal("t")
    assert max(steps) == 3
    table = mirrored.delta("t")
    counts = [
        DeltaTable(table.table_uri, version=version).count()
        for version in range(table.version() + 1)
    ]
    assert {*counts} == {0, 20, 40, 60}


# The number of changes that the next test makes in each table.
COUNTS = {"t": 100, "pairs": 9_000, "plain": 100}


@pytest.mark.sample(1)
@pytest.mark.parametrize("payload", ["typed", "texts"])
def test_batch_larger_than_max_bytes_per_trigger_is_applied_in_sub_batches(
    mirrored: MirroredDatabase, payload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sub-batch is as long as `maxBytesPerTrigger`, and a batch several times as long.

    The first batch after a snapshot is a single sub-batch.
    """
    if payload == "texts":
        mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.options |= {"maxBytesPerTrigger": "20k", "startingOffset": "snapshot"}
    mirrored.execute("INSERT INTO t VALUES (-1, 'loaded', 1)")
    mirrored.run()
    taken, sizes = list[int](), list[int]()
    take = BatchRunner._apply_sub_batch

    def counted(runner: BatchRunner, step: SubBatch, number: int, *rest: Any) -> None:
        taken.append(number)
        sizes.append(step.last.position.pos - step.first.position.pos)
        take(runner, step, number, *rest)

    monkeypatch.setattr(BatchRunner, "_apply_sub_batch", counted)
    taken_ahead = made_ahead(monkeypatch)
    for number in range(100):
        mirrored.execute(f"INSERT INTO plain SELECT {number}, REPEAT('x', 9) FROM DUAL")
        mirrored.execute(f"INSERT INTO t VALUES ({number}, REPEAT('ñ', 20), {number})")
    for number in range(0, 100, 10):
        values = ", ".join(f"({number}, '{other:09}', NULL)" for other in range(900))
        mirrored.execute(f"INSERT INTO pairs VALUES {values}")
    mirror = mirrored.mirror()
    mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    mirrored.assert_equal(*TABLES)
    rows = {f"{mirrored.database}.{table}": count for table, count in COUNTS.items()}
    progress = mirror.progress
    assert {name: table.rows for name, table in progress.tables.items()} == rows
    parts = [batch.tables for batch in progress.batches]
    found = {name: sum(part[name].rows for part in parts if name in part) for name in rows}
    assert found == rows
    assert sum(batch.rows for batch in progress.batches) == sum(rows.values())
    # The changes are about 200 kB, of which a batch contains up to 160 kB.
    assert max(taken.count(number) for number in taken) >= 4
    # Each such sub-batch has two tables, with nothing between their changes.
    assert len(taken_ahead) >= 8
    assert all(taken_ahead)
    # 20 kB, and the transaction of 20 kB that follows.
    assert max(sizes) < 45_000
    if payload == "texts":
        assert_replay(mirrored, "t", "id")
