"""A mirror and its change logs of a server that purged binlog files before the mirror read them.

With ``failOnDataLoss=false``, the mirror reloads all tables and then equals SELECT.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.mirrors.change_logs import assert_replay, change_log_of, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_process import last_offset
from helpers.mirrors.mirror_steps import killed_after
from helpers.needed_servers import need
from helpers.servers import LocalServer
from helpers.servers.available import ONE_MARIADB_KINDS
from helpers.waiting import wait_until
from helpers.writers.purges import purge
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner
from pyspark_mysqlbinlog.errors import BinlogPurgedError

pytestmark = pytest.mark.one_server

GTIDS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"]
NUMBERS = count()


@pytest.fixture(scope="module", params=ONE_MARIADB_KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server whose binlog files the tests purge."""
    kind = ONE_MARIADB_KINDS[request.param]
    need(kind)
    with kind(options=[] if kind.is_mariadb else GTIDS) as server:
        yield server


@pytest.fixture
def mirrored(spark: SparkSession, own: LocalServer, tmp_path: Path) -> MirroredDatabase:
    """Return a mirror of tables with and without a key, and of tables to alter, drop and rename."""
    name = f"purged_{next(NUMBERS)}"
    own.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    mirrored = MirroredDatabase(
        spark,
        own,
        name,
        tmp_path,
        startingOffset="snapshot",
        failOnDataLoss="false",
        retryTimeout="120s",
        heartbeatInterval="1s",
    )
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE k (v INT)",
        "CREATE TABLE altered (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))",
        "CREATE TABLE dropped (id INT PRIMARY KEY)",
        "CREATE TABLE renamed (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE again (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO k VALUES (1), (1), (2)",
        "INSERT INTO altered VALUES (1, 'a', 'b'), (2, 'a', 'b')",
        "INSERT INTO dropped VALUES (1), (2)",
        "INSERT INTO renamed VALUES (1, 1)",
        "INSERT INTO again VALUES (1, 1), (2, 2)",
    )
    return mirrored


TABLES = ("t", "k", "altered", "again", "new_name", "created")
# Changes of each kind, in a part of the binlog that is lost.
LOST = (
    "INSERT INTO t VALUES (4, 4)",
    "UPDATE t SET v = 22 WHERE id = 2",
    "DELETE FROM t WHERE id = 3",
    "DELETE FROM k WHERE v = 1 LIMIT 1",
    "INSERT INTO k VALUES (3)",
    "ALTER TABLE altered CHANGE a x VARCHAR(9), CHANGE b a VARCHAR(9)",
    "ALTER TABLE altered CHANGE x b VARCHAR(9), ADD c INT DEFAULT 7",
    "UPDATE altered SET a = 'lost' WHERE id = 1",
    "DROP TABLE dropped",
    "RENAME TABLE renamed TO new_name",
    "INSERT INTO new_name VALUES (2, 2)",
    "DROP TABLE again",
    "CREATE TABLE again (v INT, id INT, PRIMARY KEY (v))",
    "INSERT INTO again VALUES (5, 1), (6, 1)",
    "CREATE TABLE created (id INT PRIMARY KEY)",
    "INSERT INTO created VALUES (1), (2)",
)
LATER = (
    "UPDATE t SET v = v + 100",
    "INSERT INTO k VALUES (4), (4)",
    "INSERT INTO altered (id, a, b) VALUES (9, 'a', 'b')",
    "DELETE FROM again WHERE v = 5",
    "INSERT INTO created VALUES (3)",
)


def assert_all_equal(mirrored: MirroredDatabase) -> None:
    """Assert that the mirror and the replayed change logs equal SELECT."""
    mirrored.assert_equal(*TABLES)
    assert [mirrored.rows(table).num_rows for table in ("dropped", "renamed")] == [0, 0]
    for table, key in (("t", "id"), ("altered", "id"), ("again", "v"), ("created", "id")):
        assert_replay(mirrored, table, key)
    for table in ("dropped", "renamed"):
        assert rows_of_log(mirrored, table)[-1]["op"] == "reset"


@pytest.mark.both_engines
@pytest.mark.sample(2)
def test_tables_are_reloaded_after_a_purge(mirrored: MirroredDatabase) -> None:
    mirrored.run()
    mirrored.execute(*LOST)
    purge(mirrored.server)
    mirrored.run()
    assert_all_equal(mirrored)
    mirrored.execute(*LATER, "CREATE TABLE dropped (id INT PRIMARY KEY)")
    mirrored.execute("INSERT INTO dropped VALUES (7)")
    mirrored.run()
    mirrored.assert_equal(*TABLES, "dropped")
    for table, key in (("t", "id"), ("altered", "id"), ("again", "v"), ("dropped", "id")):
        assert_replay(mirrored, table, key)
    assert last_offset(mirrored.folder)["epoch"] == 1


def test_changes_and_an_alter_after_a_purged_part_equal_select(mirrored: MirroredDatabase) -> None:
    """Rows before the ALTER cannot be decoded, and are not needed: the tables are read after it."""
    mirrored.run()
    mirrored.execute(*LOST)
    purge(mirrored.server)
    mirrored.execute(*LATER, "ALTER TABLE t ADD w INT DEFAULT 5", "UPDATE t SET w = 6 WHERE id = 1")
    mirrored.run()
    assert_all_equal(mirrored)
    mirrored.execute("UPDATE t SET w = 7 WHERE id = 2", "DELETE FROM k LIMIT 1")
    mirrored.run()
    assert_all_equal(mirrored)


def test_mirror_disconnected_while_the_binlog_is_purged_equals_select(
    mirrored: MirroredDatabase,
) -> None:
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.run()
    with cutting_proxy(server.host, server.port, iter(())) as proxy:
        mirrored.options["port"] = proxy.port
        query = mirrored.mirror().start(mirrored.spark)
        mirrored.execute("INSERT INTO t VALUES (10, 10)")
        wait_until(lambda: mirrored.rows("t").num_rows == 4, "the mirror follows")
        proxy.allowed = repeat(0)
        server.kill_dumps()
        mirrored.execute(*LOST)
        purge(mirrored.server)
        proxy.allowed = iter(())
        wait_until(lambda: last_offset(mirrored.folder)["epoch"] == 1, "it is past the gap")
        mirrored.execute(*LATER)
        query.processAllAvailable()
        query.stop()
        mirrored.run()
    assert_all_equal(mirrored)


class FailsInBatch(DeltaMirror):
    """A mirror that fails before it applies a batch, which is then replayed."""

    number = 1

    def __call__(self, batch: DataFrame, number: int) -> None:
        if number == self.number:
            raise RuntimeError("this batch comes again")
        super().__call__(batch, number)


def test_purged_planned_batch_fails_unless_fail_on_data_loss_is_false(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (10, 10)", "INSERT INTO k VALUES (10)")
    number = max(int(file.name) for file in (mirrored.folder / "checkpoint/commits").glob("[0-9]*"))
    FailsInBatch.number = number + 1
    query = mirrored.mirror(kind=FailsInBatch).start(mirrored.spark, availableNow=True)
    with pytest.raises(StreamingQueryException, match="this batch comes again"):
        query.awaitTermination()
    mirrored.execute(*LOST)
    purge(mirrored.server)
    mirrored.options["failOnDataLoss"] = "true"
    with pytest.raises((StreamingQueryException, BinlogPurgedError), match="no longer has"):
        mirrored.run()
    mirrored.options["failOnDataLoss"] = "false"
    mirrored.run()
    assert_all_equal(mirrored)
    mirrored.execute(*LATER)
    mirrored.run()
    assert_all_equal(mirrored)


def test_purged_batch_that_was_applied_before_a_crash_equals_select(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crash comes after the whole batch and before its commit in the checkpoint."""
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (10, 10)", "INSERT INTO k VALUES (10)")
    applied = DeltaMirror.__call__

    def fail_after(mirror: DeltaMirror, batch: DataFrame, number: int) -> None:
        applied(mirror, batch, number)
        if mirrored.rows("t").num_rows == 4:
            raise RuntimeError("it ends here")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaMirror, "__call__", fail_after)
        with pytest.raises(StreamingQueryException, match="it ends here"):
            mirrored.run()
    mirrored.execute("DELETE FROM t WHERE id = 10", *LOST)
    purge(mirrored.server)
    mirrored.run()
    assert_all_equal(mirrored)


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", range(4))
def test_tables_equal_select_after_a_purge_and_a_kill_during_the_reload(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The kill is in the batch of the gap, or in a batch of the reload."""
    mirrored.execute(f"INSERT INTO t VALUES {','.join(f'({n}, 1)' for n in range(10, 1000))}")
    mirrored.options |= {"maxBytesPerTrigger": "20k", "targetPartitionBytes": "4000"}
    mirrored.run()
    mirrored.execute(*LOST, "DELETE FROM t WHERE id % 7 = 0")
    purge(mirrored.server)
    with killed_after(step, monkeypatch):
        mirrored.run()
    mirrored.execute("DELETE FROM t WHERE id % 11 = 0", "INSERT INTO k VALUES (99)")
    mirrored.run()
    assert_all_equal(mirrored)


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", range(1, 4))
def test_purge_during_a_snapshot_leaves_no_deleted_rows(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The snapshot had read rows that were then deleted in the lost part."""
    mirrored.execute(f"INSERT INTO t VALUES {','.join(f'({n}, 1)' for n in range(10, 9000))}")
    mirrored.options |= {"maxBytesPerTrigger": "20k", "targetPartitionBytes": "4000"}
    with killed_after(step, monkeypatch):
        mirrored.run()
    mirrored.execute(*LOST, "DELETE FROM t WHERE id % 7 = 0", "INSERT INTO t VALUES (9999, 1)")
    purge(mirrored.server)
    mirrored.execute("UPDATE t SET v = 5 WHERE id % 13 = 0")
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    for table, key in (("t", "id"), ("altered", "id"), ("again", "v"), ("created", "id")):
        assert_replay(mirrored, table, key)


def test_purge_with_soft_deletes_marks_rows_deleted_in_the_lost_part(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.settings["soft_delete"] = True
    mirrored.options["excludeTables"] = f"{mirrored.database}.k"
    mirrored.run()
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.run()
    mirrored.execute(*LOST)
    purge(mirrored.server)
    mirrored.run()
    rows = {row["id"]: row["_deleted"] for row in mirrored.rows("t").to_pylist()}
    assert rows == {1: True, 2: False, 3: True, 4: False}
    assert [row["_deleted"] for row in mirrored.rows("dropped").to_pylist()] == [True, True]


def test_xa_transaction_prepared_in_a_purged_part_is_applied_after_its_commit(
    mirrored: MirroredDatabase,
) -> None:
    if mirrored.server.version().startswith("5.6"):
        pytest.skip("5.6 logs an XA transaction when it commits")
    mirrored.run()
    xid = f"'{mirrored.database}'"
    mirrored.execute(
        f"XA START {xid}", "UPDATE t SET v = 77 WHERE id = 1", "INSERT INTO t VALUES (50, 50)",
        f"XA END {xid}", f"XA PREPARE {xid}",
    )  # fmt: skip
    purge(mirrored.server)
    # A check of visibility would wait for the locks of the transaction.
    mirrored.run()
    mirrored.execute(f"XA COMMIT {xid}", "INSERT INTO k VALUES (5)")
    mirrored.run()
    mirrored.assert_equal("t", "k", "altered", "dropped", "renamed", "again")
    assert_replay(mirrored, "t", "id")
    assert last_offset(mirrored.folder)["epoch"] == 2


def test_purged_binlog_fails_the_query_by_default(mirrored: MirroredDatabase) -> None:
    mirrored.run()
    mirrored.execute(*LOST)
    purge(mirrored.server)
    mirrored.options.pop("failOnDataLoss")
    with pytest.raises(StreamingQueryException, match="The first available position is"):
        mirrored.run()


class Rounds:
    """Random changes, purges and kills of a mirror."""

    def __init__(self, mirrored: MirroredDatabase, seed: int) -> None:
        self.mirrored, self.chance = mirrored, random.Random(seed)
        self.last_id, self.has_s = 100, False

    def write(self) -> None:
        chance, run = self.chance, self.mirrored.execute
        for _ in range(chance.randrange(1, 9)):
            self.last_id += 1
            key, value = chance.randrange(100, self.last_id), chance.randrange(4)
            if "x" in self.mirrored.select("altered")[0]:
                run("ALTER TABLE altered CHANGE x b VARCHAR(9)")
            run(
                chance.choice(
                    [
                        f"INSERT INTO t (id, v) VALUES ({self.last_id}, {value})",
                        f"INSERT INTO t (id, v) VALUES ({self.last_id}, {value})",
                        f"UPDATE t SET v = v + 1 WHERE id IN ({key}, {key + 1})",
                        f"DELETE FROM t WHERE id = {key}",
                        f"INSERT INTO k (v) VALUES ({value}), ({value})",
                        f"UPDATE k SET v = v + 10 WHERE v = {value} LIMIT 2",
                        f"DELETE FROM k WHERE v = {value} LIMIT 1",
                        f"ALTER TABLE t ADD c{self.last_id} INT DEFAULT {value}",
                        "ALTER TABLE altered CHANGE a x VARCHAR(9), CHANGE b a VARCHAR(9)",
                        f"INSERT INTO altered (id, a) VALUES ({self.last_id}, 'a{value}')",
                    ][: 7 if chance.random() < 0.8 else 10]
                )
            )
            if chance.random() < 0.2:
                self.mirrored.server.rotate()
        if chance.random() < 0.4:
            run("DROP TABLE s" if self.has_s else "CREATE TABLE s (id INT PRIMARY KEY)")
            self.has_s = not self.has_s
        if self.has_s:
            run("INSERT INTO s SELECT COALESCE(MAX(id), 0) + 1 FROM s")

    def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            self.write()
            if self.chance.random() < 0.5:
                with_kill(self.mirrored, self.chance.randrange(4), monkeypatch)
            self.write()
            if self.chance.random() < 0.7:
                purge(self.mirrored.server)
            self.write()
        self.mirrored.run()
        self.mirrored.assert_equal("t", "k", "altered", *(["s"] if self.has_s else []))
        assert_replay(self.mirrored, "t", "id")
        if self.has_s:
            assert_replay(self.mirrored, "s", "id")


def with_kill(mirrored: MirroredDatabase, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the mirror, and kill it after `number` sub-batches if it has more."""
    apply, left = BatchRunner._apply_sub_batch, number

    def killed(runner: BatchRunner, *given: Any) -> None:
        nonlocal left
        if not left:
            raise RuntimeError("it ends here")
        left -= 1
        apply(runner, *given)

    with monkeypatch.context() as patched:
        patched.setattr(BatchRunner, "_apply_sub_batch", killed)
        try:
            mirrored.run()
        except StreamingQueryException as error:
            if "it ends here" not in str(error):
                raise


@pytest.mark.sample(1, group="histories")
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(3, id="short"),
        pytest.param(25, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(5400)]),
    ],
)
def test_mirror_equals_select_after_random_purges_and_kills(
    mirrored: MirroredDatabase, ddl_seed: int, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    logging.getLogger(__name__).warning("DDL_SEED=%d", ddl_seed)
    mirrored.options |= {"maxBytesPerTrigger": "2k"}
    mirrored.run()
    played = Rounds(mirrored, ddl_seed)
    for _ in range(rounds):
        played.play(monkeypatch)
