"""A mirror whose server is lost during a snapshot: equal to the replica afterwards.

The snapshot rows are ahead of the stream and include changes that the replica never gets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_keyless_replay, assert_replay, change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_process import last_offset
from helpers.mirrors.mirror_steps import around_batch
from helpers.servers import LocalServer, MySQL56Server
from helpers.writers.purges import purge
from helpers.writers.replication import (
    promote,
    replicate,
    replicating_servers,
    start_applying,
    stop_applying,
    wait_for_replica,
)
from pyspark_mysqlbinlog.connector.delta.sync.change_log import ChangeLog
from pyspark_mysqlbinlog.connector.delta.sync.table import MirroredTable

pytestmark = pytest.mark.one_server

TABLES = ("big", "emptied", "gone", "k", "small")
KEYS = {"big": "id", "emptied": "id", "gone": "id", "small": "id"}
CREATE = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    *(
        f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, v INT, pad CHAR(200) DEFAULT 'p')"
        for table in KEYS
    ),
    "CREATE TABLE shop.k (v INT)",
    f"INSERT INTO shop.big (id, v) VALUES {','.join(f'({n}, 1)' for n in range(1, 6_001, 2))}",
    "INSERT INTO shop.emptied (id, v) VALUES (1, 1), (2, 2)",
    "INSERT INTO shop.gone (id, v) VALUES (1, 1), (2, 2)",
    "INSERT INTO shop.k VALUES (1), (1), (2)",
    "INSERT INTO shop.small (id, v) VALUES (1, 1), (2, 2), (3, 3)",
)
# Changes that only the primary has.
LOST = (
    # Keys between those of the snapshot, and after them.
    "INSERT INTO big (id, v) SELECT id + 1, 9 FROM big WHERE id % 3 = 0",
    "INSERT INTO big (id, v) VALUES (7000, 1)",
    "DELETE FROM big WHERE id % 7 = 0 OR id > 5990",
    "UPDATE big SET v = 66 WHERE id % 5 = 0",
    "DELETE FROM emptied",
    "DROP TABLE gone",
    "DELETE FROM k WHERE v = 1",
    "INSERT INTO k VALUES (7)",
    "UPDATE small SET v = 5",
    "INSERT INTO small (id, v) VALUES (0, 9), (9, 9)",
    "DELETE FROM small WHERE id = 1",
)
KEPT = (
    "UPDATE big SET v = v + 1 WHERE id % 11 = 0",
    "DELETE FROM big WHERE id % 13 = 0",
    "REPLACE INTO big (id, v) VALUES (7001, 1)",
    "REPLACE INTO emptied (id, v) VALUES (3, 3)",
    "UPDATE gone SET v = 3",
    "INSERT INTO k VALUES (2), (8)",
    "DELETE FROM small WHERE id = 2",
)
KEPT_OF_K = "INSERT INTO k VALUES (3)"


class Dies(Exception):  # noqa: N818 (in place of a kill)
    pass


class Lost:
    """A mirror of a primary that is lost in one of the mirror's batches, and its replica."""

    def __init__(
        self, spark: SparkSession, pair: list[LocalServer], folder: Path, **options: str
    ) -> None:
        self.primary, self.replica, *_ = pair
        self.mirrored = MirroredDatabase(
            spark,
            self.primary,
            "shop",
            folder,
            startingOffset="snapshot",
            # Until the primary is back, or the replica is another one.
            retryTimeout="5m",
            maxRowsPerTrigger="600",
            host=",".join(f"{server.host}:{server.port}" for server in pair),
            **options,
        )
        self.mirrored.settings["change_log"] = change_log_of(self.mirrored)

    def commit_lost(self) -> None:
        """Make changes that the replica does not get."""
        wait_for_replica(self.replica, self.primary)
        stop_applying(self.replica)
        self.mirrored.execute(*LOST)

    def kill(self) -> None:
        self.primary.kill()

    def switch(self) -> None:
        """Promote the replica and make changes on it."""
        promote(self.replica)
        self.mirrored.server = self.replica
        self.mirrored.options |= {"port": str(self.primary.port)}
        self.mirrored.execute(*KEPT)

    def back(self) -> None:
        """Start the primary again, resume replication, and make changes."""
        self.primary.start()
        start_applying(self.replica)
        self.mirrored.execute(
            "INSERT INTO small (id, v) VALUES (50, 1)", "DELETE FROM big WHERE id < 100"
        )

    def assert_equal(self, *without: str) -> None:
        self.mirrored.run()
        tables = [table for table in TABLES if table not in without]
        self.mirrored.assert_equal(*tables)
        for table in tables:
            if table in KEYS:
                assert_replay(self.mirrored, table, KEYS[table])
        assert_keyless_replay(self.mirrored, "k")


@pytest.fixture(scope="module", autouse=True)
def _servers(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("mysql56")  # skips with the reason


@pytest.fixture
def pair() -> Iterator[list[LocalServer]]:
    with replicating_servers(MySQL56Server) as servers:
        servers[0].execute(*CREATE)
        wait_for_replica(servers[1], servers[0])
        yield servers


@pytest.fixture(params=["snapshot", "reload"])
def lost(
    request: pytest.FixtureRequest, spark: SparkSession, pair: list[LocalServer], tmp_path: Path
) -> Lost:
    """Return a mirror whose next run makes the first snapshot of the tables, or a reload."""
    lost = Lost(spark, pair, tmp_path)
    if request.param == "reload":
        lost.mirrored.run()
        lost.mirrored.execute("INSERT INTO k VALUES (2)", "DELETE FROM big WHERE id % 17 = 0")
        lost.mirrored.options["reload"] = "again: shop.*"
    return lost


def dies() -> None:
    raise Dies


def run_killed(lost: Lost) -> None:
    with pytest.raises(Exception, match="Dies"):
        lost.mirrored.run()


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_running_mirror_equals_select_after_a_failover_during_a_snapshot(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    """The primary is killed when a batch with rows that the replica lacks is applied."""

    def switch() -> None:
        lost.kill()
        lost.switch()

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        around_batch(patched, number, lost.commit_lost, switch)
        lost.mirrored.run()
    assert last_offset(lost.mirrored.folder)["epoch"] == 2
    lost.assert_equal()


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_tables_equal_select_after_failover_and_an_applied_snapshot_batch(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patched:
        around_batch(patched, number, lost.commit_lost, dies)
        run_killed(lost)
    lost.kill()
    lost.switch()
    lost.assert_equal()
    assert last_offset(lost.mirrored.folder)["epoch"] == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [1, 2])
def test_tables_equal_select_after_failover_and_a_partly_applied_snapshot_batch(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The batch also contains binlog changes, which the new server replays."""

    def before() -> None:
        lost.commit_lost()
        die_in_part(patched)

    changes = ["UPDATE big SET v = 3 WHERE id < 500", "UPDATE small SET v = v + 1"]
    with monkeypatch.context() as patched:
        around_batch(patched, number, lambda: lost.mirrored.execute(*changes, KEPT_OF_K))
        around_batch(patched, number + 1, before)
        run_killed(lost)
    lost.kill()
    lost.switch()
    lost.assert_equal()
    assert last_offset(lost.mirrored.folder)["epoch"] == 2


def die_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver die when only some of the Delta tables contain the batch."""
    apply, append = MirroredTable.apply, ChangeLog.append

    def applied(table: MirroredTable, *given: Any) -> int:
        if table._table[1] in {"k", "small"}:
            raise Dies
        return apply(table, *given)

    def appended(log: ChangeLog, *given: Any) -> int:
        if log._table[1] == "big":
            raise Dies
        return append(log, *given)

    monkeypatch.setattr(MirroredTable, "apply", applied)
    monkeypatch.setattr(ChangeLog, "append", appended)


@pytest.mark.sample(1)
def test_tables_equal_select_after_a_purged_snapshot_batch_and_failover(
    lost: Lost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server is alive; only the replica still has the purged binlog."""
    lost.mirrored.options["failOnDataLoss"] = "false"
    with monkeypatch.context() as patched:
        around_batch(patched, 2, lambda: lost.mirrored.execute("UPDATE big SET v = 3", KEPT_OF_K))
        around_batch(patched, 3, lambda: die_in_part(patched))
        run_killed(lost)
    wait_for_replica(lost.replica, lost.primary)
    purge(lost.primary)
    lost.mirrored.execute(*KEPT)
    wait_for_replica(lost.replica, lost.primary)
    lost.mirrored.run()
    assert last_offset(lost.mirrored.folder)["epoch"] == 2
    lost.assert_equal()


@pytest.mark.sample(1)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
def test_mirror_continues_on_a_lost_server_that_returns_for_the_repeated_batch(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    """The mirror reads what remains of the batch's snapshot."""
    with monkeypatch.context() as patched:
        around_batch(patched, number, lambda: lost.mirrored.execute(KEPT_OF_K))
        around_batch(patched, number + 1, lost.commit_lost, dies)
        run_killed(lost)
    lost.kill()
    with monkeypatch.context() as patched:
        hooks = {"before": lambda: None, "after": lambda: None, when: lost.back}
        around_batch(patched, 1, hooks["before"], hooks["after"])
        lost.mirrored.run()
    assert last_offset(lost.mirrored.folder)["epoch"] == 0
    lost.assert_equal("gone")


def test_tables_equal_select_after_two_failovers_during_a_snapshot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replicating_servers(MySQL56Server, 3) as (primary, second, third):
        primary.execute(*CREATE)
        for replica in (second, third):
            wait_for_replica(replica, primary)
        lost = Lost(spark, [primary, second, third], tmp_path)

        def before() -> None:
            wait_for_replica(third, primary)
            stop_applying(third)
            lost.commit_lost()

        def switch() -> None:
            lost.kill()
            lost.switch()
            promote(third)
            replicate(third, second)
            wait_for_replica(third, second)
            lost.primary, lost.replica = second, third

        def switch_again() -> None:
            lost.kill()
            lost.switch()

        with monkeypatch.context() as patched:
            around_batch(patched, 3, before, switch)
            # Batch 6 follows the batch of the failover and two batches of the new server.
            around_batch(patched, 6, lost.commit_lost, switch_again)
            lost.mirrored.run()
        assert last_offset(tmp_path)["epoch"] == 4
        lost.assert_equal()


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [2, 4])
def test_tables_equal_select_after_failover_in_a_reload_with_snapshot_where(
    spark: SparkSession,
    pair: list[LocalServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    """The tables were in an earlier snapshot, and are read by their keys."""
    lost = Lost(spark, pair, tmp_path)
    lost.mirrored.run()
    lost.mirrored.execute("INSERT INTO k VALUES (2)", "DELETE FROM big WHERE id % 17 = 0")
    lost.mirrored.options |= {
        "reload": "again: shop.big,shop.small",
        "snapshotWhere": json.dumps({"shop.big": "id % 3 = 0", "shop.small": "id > 2"}),
    }

    def switch() -> None:
        lost.kill()
        lost.switch()

    with monkeypatch.context() as patched:
        around_batch(patched, number, lost.commit_lost, switch)
        lost.mirrored.run()
    assert last_offset(tmp_path)["epoch"] == 2
    lost.mirrored.run()
    lost.mirrored.assert_equal(*TABLES)


def test_failover_during_a_snapshot_marks_lost_rows_as_deleted(
    spark: SparkSession, pair: list[LocalServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Lost(spark, pair, tmp_path, excludeTables="shop.k")
    lost.mirrored.settings["soft_delete"] = True

    def switch() -> None:
        lost.kill()
        lost.switch()

    with monkeypatch.context() as patched:
        around_batch(patched, 3, lost.commit_lost, switch)
        lost.mirrored.run()
    lost.mirrored.run()
    for table in ("big", "small", "emptied", "gone"):
        rows = lost.mirrored.rows(table).to_pylist()
        there = sorted((row["id"], row["v"]) for row in rows if not row["_deleted"])
        assert there == sorted(row[:2] for row in lost.mirrored.select(table)[1])
    assert {row["id"] for row in lost.mirrored.rows("big").to_pylist() if row["_deleted"]}
