"""Delta tables that were replaced: equal to SELECT, or stopped until a reload."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of, log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.tools.harmed_tables import HARMS, FolderCopies, interrupted

pytestmark = pytest.mark.both_engines

ROWS = 2_000
BEGINS = ("first load", "reload")


def _filled(spark: SparkSession, server: Server, database: str, folder: Path) -> MirroredDatabase:
    """Return a mirror of a table with rows for several batches, and of two small tables."""
    mirrored = MirroredDatabase(
        spark,
        server,
        database,
        folder,
        startingOffset="snapshot",
        maxRowsPerTrigger="500",
        targetPartitionBytes="20000",
    )
    rows = ", ".join(f"({n}, REPEAT('x', 40))" for n in range(ROWS))
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60))",
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE quiet (id INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1), (2)",
        "INSERT INTO quiet VALUES (1), (2)",
        f"INSERT INTO t VALUES {rows}",
        "ANALYZE TABLE t, a, quiet",
    )
    return mirrored


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    return _filled(spark, live_server, database, tmp_path)


def _begin(mirrored: MirroredDatabase, begin: str) -> None:
    """Make the next run start a snapshot of the table `t`: the first one, or a reload."""
    if begin == "reload":
        mirrored.run()
        _assert_equal(mirrored, "t", "a", "quiet")
        _without_log(mirrored, "DELETE FROM t WHERE id % 10 = 3")
        mirrored.execute("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")


def _without_log(mirrored: MirroredDatabase, statement: str) -> None:
    """Execute a statement without writing to the binlog; only a snapshot contains its effect."""
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(statement)
        connection.commit()


def _assert_equal(mirrored: MirroredDatabase, *tables: str) -> None:
    """Assert equality with SELECT as `assert_equal` does, with a short message."""
    for table in tables:
        names, selected = mirrored.select(table)
        found = mirrored.rows(table).select(names).to_pylist()
        rows = {tuple(row.values()) for row in found}
        assert len(rows) == len(found), f"{table}: a row is there twice"
        wrong = rows ^ {*selected}
        assert not wrong, f"{table}: {len(found)} rows of {len(selected)}, wrong {len(wrong)}"


def _change(mirrored: MirroredDatabase, number: int) -> None:
    mirrored.execute(
        f"UPDATE t SET v = 'changed {number}' WHERE id % 50 = {number % 50}",
        f"DELETE FROM t WHERE id % 60 = {number % 60}",
        f"REPLACE INTO t (id, v) VALUES ({10_000 + number}, 'new')",
        "INSERT INTO a SELECT MAX(id) + 1 FROM a",
    )


def _copies(mirrored: MirroredDatabase) -> FolderCopies:
    folder = mirrored.folder / "lake" / mirrored.database / "t"
    return FolderCopies(folder, mirrored.folder / "copies")


def _is_stopped(mirrored: MirroredDatabase, table: str) -> bool:
    return bool(mirrored.delta(table).metadata().configuration.get("mysqlbinlog.stopped"))


def _assert_stopped_until_reload(mirrored: MirroredDatabase, *, is_removed: bool = False) -> None:
    """Assert that the table `t` stays stopped until it is reloaded.

    is_removed : its folder is removed before each start.
    """
    for number in (1, 2):
        _change(mirrored, number)
        if is_removed:
            shutil.rmtree(mirrored.folder / "lake" / mirrored.database / "t")
        mirrored.run()
        assert mirrored.stopped("t")
        _assert_equal(mirrored, "a", "quiet")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    _change(mirrored, 3)
    mirrored.run()
    _assert_equal(mirrored, "t", "a", "quiet")


@pytest.mark.sample(1)
@pytest.mark.parametrize("begin", BEGINS)
def test_reload_of_another_table_during_a_snapshot_equals_select(
    mirrored: MirroredDatabase, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _begin(mirrored, begin)
    with interrupted(monkeypatch, 4):
        mirrored.run()
    mirrored.options["reload"] = f"again: {mirrored.database}.a"
    mirrored.run()
    _assert_equal(mirrored, "t", "a", "quiet")


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [kind for kind in HARMS if kind != "nothing"])
@pytest.mark.parametrize("begin", BEGINS)
def test_table_replaced_during_its_snapshot_stops_until_a_reload(
    mirrored: MirroredDatabase, begin: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _begin(mirrored, begin)
    copies = _copies(mirrored)
    with interrupted(monkeypatch, 4, copies.keep):
        mirrored.run()
    HARMS[kind](mirrored, copies, random.Random(3), monkeypatch)
    mirrored.run()
    assert mirrored.stopped("t")
    _assert_equal(mirrored, "a", "quiet")
    _assert_stopped_until_reload(mirrored, is_removed=kind == "removed")


def test_table_removed_before_its_first_snapshot_chunk_equals_select(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No snapshot row is missing: the snapshot starts where the mirror resumes."""
    with interrupted(monkeypatch, 1):
        mirrored.run()
    assert not mirrored.rows("t").num_rows
    HARMS["removed"](mirrored, _copies(mirrored), random.Random(3), monkeypatch)
    _change(mirrored, 1)
    mirrored.run()
    _assert_equal(mirrored, "t", "a", "quiet")
    assert not _is_stopped(mirrored, "t")


@pytest.fixture
def lake(mirrored: MirroredDatabase) -> FolderCopies:
    """Return copies of the lake, with one of its state after the first run."""
    mirrored.execute("CREATE TABLE k (v INT)", "CREATE TABLE emptied (id INT PRIMARY KEY)")
    mirrored.execute("INSERT INTO k VALUES (1), (1)", "INSERT INTO emptied VALUES (1), (2)")
    mirrored.run()
    copies = FolderCopies(mirrored.folder / "lake", mirrored.folder / "lakes")
    copies.keep()
    return copies


LATER = (
    "UPDATE t SET v = 'later' WHERE id < 10",
    "DELETE FROM quiet WHERE id = 1",
    "INSERT INTO k VALUES (1)",
    "TRUNCATE TABLE emptied",
)


def test_older_lake_with_a_newer_checkpoint_stops_tables_that_lack_changes(
    mirrored: MirroredDatabase, lake: FolderCopies
) -> None:
    mirrored.execute(*LATER)
    mirrored.run()
    lake.put_back(0)
    # As many commits as the table had.
    for _ in range(4):
        mirrored.target("emptied").set_properties({"mine": "1"})
    mirrored.execute("INSERT INTO a VALUES (9)")
    mirrored.run()
    for table in ("t", "quiet", "k", "emptied"):
        assert "lacks what this query wrote to it" in mirrored.stopped(table)
    _assert_equal(mirrored, "a")
    assert not _is_stopped(mirrored, "a")
    mirrored.options["reload"] = f"again: {mirrored.database}.*"
    mirrored.run()
    mirrored.assert_equal("k", "emptied")
    _assert_equal(mirrored, "t", "quiet", "a")


def test_older_lake_with_its_checkpoint_equals_select(
    mirrored: MirroredDatabase, lake: FolderCopies
) -> None:
    checkpoint = FolderCopies(mirrored.folder / "checkpoint", mirrored.folder / "checkpoints")
    checkpoint.keep()
    mirrored.execute(*LATER)
    mirrored.run()
    lake.put_back(0)
    checkpoint.put_back(0)
    mirrored.execute("INSERT INTO a VALUES (9)")
    mirrored.run()
    mirrored.assert_equal("k", "emptied")
    _assert_equal(mirrored, "t", "quiet", "a")


def test_newer_lake_with_an_older_checkpoint_equals_select(
    mirrored: MirroredDatabase, lake: FolderCopies
) -> None:
    checkpoint = FolderCopies(mirrored.folder / "checkpoint", mirrored.folder / "checkpoints")
    checkpoint.keep()
    mirrored.execute(*LATER)
    mirrored.run()
    checkpoint.put_back(0)
    mirrored.execute("INSERT INTO a VALUES (9)")
    mirrored.run()
    mirrored.assert_equal("k", "emptied")
    _assert_equal(mirrored, "t", "quiet", "a")


def test_stopped_table_stays_stopped_after_an_older_copy_is_restored(
    mirrored: MirroredDatabase, lake: FolderCopies
) -> None:
    """The older copy contains all applied changes, but not the reason for the stop."""
    mirrored.options["reloadAfterDdl"] = "false"
    mirrored.execute("ALTER TABLE quiet ADD COLUMN c INT DEFAULT 7")
    mirrored.execute("INSERT INTO quiet VALUES (8, 8)")
    mirrored.run()
    assert "changed rows without row events" in mirrored.stopped("quiet")
    mirrored.execute("INSERT INTO quiet VALUES (9, 9)")
    mirrored.run()
    lake.put_back(0)
    mirrored.execute("INSERT INTO a VALUES (9)")
    mirrored.run()
    assert "changed rows without row events" in mirrored.stopped("quiet")
    _assert_equal(mirrored, "a", "t")


def _logged(mirrored: MirroredDatabase) -> FolderCopies:
    """Write only change logs; return copies of the change log of `t`."""
    mirrored.settings |= {"target": None, "change_log": change_log_of(mirrored)}
    return FolderCopies(log_of(mirrored, "t"), mirrored.folder / "copies")


def test_reload_of_another_table_during_a_snapshot_keeps_change_logs_complete(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _logged(mirrored)
    with interrupted(monkeypatch, 5):
        mirrored.run()
    mirrored.options["reload"] = f"again: {mirrored.database}.a"
    mirrored.run()
    for table in ("t", "a", "quiet"):
        assert_replay(mirrored, table, "id")


@pytest.mark.parametrize("kind", ["removed", "older copy"])
def test_replaced_change_log_stops_until_a_reload(
    mirrored: MirroredDatabase, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = _logged(mirrored)
    with interrupted(monkeypatch, 3, copies.keep):
        mirrored.run()
    copies.put_back(0 if kind == "removed" else copies.last_older())
    for number in (1, 2):
        _change(mirrored, number)
        mirror = mirrored.mirror()
        mirror.start(mirrored.spark, availableNow=True).awaitTermination()
        name = f"the change log of {mirrored.database}.t"
        assert [*mirror.stopped] == [name]
        assert_replay(mirrored, "a", "id")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    _change(mirrored, 3)
    mirrored.run()
    for table in ("t", "a", "quiet"):
        assert_replay(mirrored, table, "id")


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(106))
def test_interrupted_snapshot_equals_select_or_stops_the_table(
    mirrored: MirroredDatabase, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [*HARMS]
    kind, begin = kinds[seed % len(kinds)], BEGINS[seed // len(kinds) % len(BEGINS)]
    is_stopped = _one_round(mirrored, kind, begin, random.Random(seed), monkeypatch)
    assert not (is_stopped and kind == "nothing")


def _one_round(
    mirrored: MirroredDatabase,
    kind: str,
    begin: str,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> bool:
    """Interrupt a snapshot and harm its table at random; return whether the table was stopped."""
    _begin(mirrored, begin)
    copies, number = _copies(mirrored), 0

    def before_step() -> None:
        nonlocal number
        copies.keep()
        if chance.random() < 0.5:
            number += 1
            _change(mirrored, number)

    with interrupted(monkeypatch, chance.randrange(1, 10), before_step, may_end=True):
        mirrored.run()
    HARMS[kind](mirrored, copies, chance, monkeypatch)
    if chance.random() < 0.5:
        with interrupted(monkeypatch, chance.randrange(1, 5), may_end=True):
            mirrored.run()
    mirrored.run()
    _assert_equal(mirrored, "a", "quiet")
    if _is_stopped(mirrored, "t"):
        _assert_stopped_until_reload(mirrored, is_removed=chance.random() < 0.5)
        return True
    for _ in range(2):
        number += 1
        _change(mirrored, number)
        mirrored.run()
    _assert_equal(mirrored, "t", "a", "quiet")
    return False
