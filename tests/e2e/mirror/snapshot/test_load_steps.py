"""Snapshots that a mirror applies in sub-batches, with changes and kills: equal to SELECT."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_steps import CHECKPOINTS, checkpoint_names, killed_after, made_ahead
from helpers.servers import Server
from helpers.snapshots.loaded_tables import TABLES, fill, some_changes
from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch

pytestmark = pytest.mark.both_engines

ROWS = 4_000


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of tables of which a sub-batch contains some hundred rows."""
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        maxBytesPerTrigger="16k",
    )
    fill(live_server, database, ROWS)
    return mirrored


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[SubBatch]:
    """Return the sub-batches with snapshot rows that are not the last of their batch."""
    steps = list[SubBatch]()
    take = BatchRunner._apply_sub_batch

    def noted(runner: BatchRunner, step: SubBatch, *rest: Any) -> None:
        if not step.is_last and step.last.reads_chunks_since(step.first):
            steps.append(step)
        take(runner, step, *rest)

    monkeypatch.setattr(BatchRunner, "_apply_sub_batch", noted)
    return steps


def changes(mirrored: MirroredDatabase, seed: int) -> Callable[[], None]:
    return some_changes(mirrored.server, mirrored.database, random.Random(seed), ROWS)


def before_each_step(monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]) -> None:
    """Call `work` before each sub-batch is applied."""
    take = BatchRunner._apply_sub_batch

    def with_work(runner: BatchRunner, *given: Any) -> None:
        work()
        take(runner, *given)

    monkeypatch.setattr(BatchRunner, "_apply_sub_batch", with_work)


def test_changes_during_a_snapshot_in_sub_batches_equal_select(
    mirrored: MirroredDatabase,
    taken: list[SubBatch],
    ddl_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken_ahead = made_ahead(monkeypatch)
    with monkeypatch.context() as patched:
        before_each_step(patched, changes(mirrored, ddl_seed))
        mirrored.run()
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    # Sub-batches that only contain chunks end at the same binlog position.
    parts = Counter(str(step.last.position) for step in taken)
    assert max(parts.values()) >= 2
    assert len(taken) >= 6
    assert all(taken_ahead)


def test_full_binlog_batch_contains_one_snapshot_sub_batch(
    mirrored: MirroredDatabase, taken: list[SubBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_after(2, monkeypatch):
        mirrored.run()
    mirrored.execute(*["UPDATE small SET v = v + 1"] * 5_000)
    taken.clear()
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    # The first batch is planned when little of the binlog has been read, and may contain a
    # sub-batch of each of two tables.
    full = [step for step in taken if step.last.position.pos - step.first.position.pos > 6_000]
    assert full
    assert all(count == 1 for count in Counter(str(step.last.position) for step in full).values())


@pytest.fixture(params=CHECKPOINTS)
def checkpoints(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the checkpoints of successive runs; a new one starts a new snapshot."""
    return checkpoint_names(request.param)


@pytest.mark.sample(2, group="kills")
def test_tables_equal_select_after_a_kill_between_snapshot_sub_batches(
    mirrored: MirroredDatabase,
    taken: list[SubBatch],
    ddl_seed: int,
    checkpoints: Iterator[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows applied before the kill may be changed, moved or deleted before they are read again."""
    work = changes(mirrored, ddl_seed)
    checkpoint = next(checkpoints)
    for number in (2, 3, 5):
        # Batch 0 and the first chunk are separate sub-batches.
        with killed_after(number, monkeypatch):
            mirrored.run(checkpoint)
        work()
        if number == 5:
            mirrored.execute("TRUNCATE TABLE small", "INSERT INTO small VALUES (2, 3), (3, 3)")
        checkpoint = next(checkpoints)
    mirrored.run(checkpoint)
    mirrored.assert_equal(*TABLES)
    assert taken


def test_tables_equal_select_after_ddl_between_snapshot_sub_batches(
    mirrored: MirroredDatabase, taken: list[SubBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks after a statement have other columns than earlier chunks and the binlog so far."""
    statements = iter(
        [
            "ALTER TABLE t ADD w INT DEFAULT 5",
            "ALTER TABLE pairs MODIFY v BIGINT",
            "ALTER TABLE t CHANGE n m INT",
            "CREATE TABLE later (id INT PRIMARY KEY)",
            "INSERT INTO later VALUES (1)",
            "ALTER TABLE t DROP v",
        ]
    )

    def alter() -> None:
        if taken and (statement := next(statements, None)) is not None:
            mirrored.execute(statement)

    with monkeypatch.context() as patched:
        before_each_step(patched, alter)
        mirrored.run()
    assert not [*statements]
    mirrored.run()
    mirrored.assert_equal(*TABLES, "later")


def test_reload_in_sub_batches_removes_rows_only_at_its_end(
    mirrored: MirroredDatabase,
    taken: list[SubBatch],
    ddl_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    before = len(taken)
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("DELETE FROM t WHERE id % 10 = 3")
        cursor.execute("UPDATE pairs SET v = -1 WHERE a % 10 = 3")
        connection.commit()
    mirrored.options["reload"] = f"again: {mirrored.database}.*"
    work, counts = changes(mirrored, ddl_seed), list[int]()

    def work_and_count() -> None:
        work()
        counts.append(mirrored.delta("t").count())

    with monkeypatch.context() as patched:
        before_each_step(patched, work_and_count)
        mirrored.run()
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    assert len(taken) - before >= 6
    assert min(counts) > ROWS * 0.8
