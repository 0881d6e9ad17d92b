"""A mirror whose server is lost continues on a replica."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_process import last_offset
from helpers.servers import LocalServer, MySQL56Server
from helpers.waiting import wait_until
from helpers.writers.purges import purge
from helpers.writers.replication import promote, replicating_servers, wait_for_replica
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.checkpoints.offset import Offset

TABLES = ("t", "k")


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[list[LocalServer]]:
    """Yield a primary that has tables with and without a key, and its replica."""
    request.getfixturevalue("mysql56")  # skips with the reason
    with replicating_servers(MySQL56Server) as servers:
        servers[0].execute(
            "CREATE DATABASE shop CHARACTER SET utf8mb4",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE shop.k (v INT)",
            "CREATE TABLE shop.p (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id)"
            " (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (200))",
            "INSERT INTO shop.t VALUES (1, 1), (2, 2), (3, 3)",
            "INSERT INTO shop.k VALUES (1), (1)",
        )
        yield servers


@pytest.mark.parametrize("how", ["running", "restarted"])
def test_mirror_equals_select_after_a_failover(
    spark: SparkSession, pair: list[LocalServer], tmp_path: Path, how: str
) -> None:
    primary, replica = pair
    hosts = ",".join(f"{server.host}:{server.port}" for server in pair)
    mirrored = MirroredDatabase(
        spark,
        primary,
        "shop",
        tmp_path,
        startingOffset="snapshot",
        heartbeatInterval="1s",
        connectTimeout="2s",
        host=hosts,
    )
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.run()
    mirrored.execute("UPDATE t SET v = 22 WHERE id = 2")
    mirrored.run()
    query = mirrored.mirror().start(mirrored.spark) if how == "running" else None
    mirrored.execute("DELETE FROM t WHERE id = 3", "INSERT INTO k VALUES (2)")
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    mirrored.server = replica
    mirrored.options |= {"port": str(primary.port)}
    mirrored.execute("INSERT INTO t VALUES (4, 4)", "DELETE FROM k LIMIT 1")
    if query is None:
        mirrored.run()
    else:

        def is_at_end() -> bool:
            assert query.exception() is None
            offset = last_offset(mirrored.folder)
            return (offset["file"], offset["pos"]) == replica.position() and offset["epoch"] == 2

        wait_until(is_at_end, "the mirror has come to the end of the replica's binlog")
        query.processAllAvailable()
        query.stop()
    mirrored.execute("UPDATE t SET v = v + 1")
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    rows = assert_replay(mirrored, "t", "id")
    rows_of_log(mirrored, "k")
    ops = [row["op"] for row in rows if row["op"] not in {"reset", "r"}]
    assert ops == ["u", "d", "c", "u", "u", "u"]


def test_failover_after_the_last_batch_of_a_snapshot_keeps_its_rows(
    spark: SparkSession,
    pair: list[LocalServer],
    tmp_path: Path,
) -> None:
    """An empty batch records that no snapshot rows are ahead of the stream."""
    primary, replica = pair
    mirrored = MirroredDatabase(
        spark,
        primary,
        "shop",
        tmp_path,
        startingOffset="snapshot",
        connectTimeout="2s",
        host=",".join(f"{server.host}:{server.port}" for server in pair),
    )
    mirrored.run()
    offset = Offset.from_dict(last_offset(mirrored.folder))
    assert offset.snapshot_state is not None
    assert (offset.snapshot_state.is_done, offset.read_ahead) == (True, frozenset())
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    mirrored.server = replica
    mirrored.options |= {"port": str(primary.port)}
    mirrored.execute("INSERT INTO t VALUES (4, 4)", "DELETE FROM k LIMIT 1")
    before = mirrored.delta("t").version()
    mirrored.run()
    mirrored.assert_equal(*TABLES)
    # One commit of the failover, and one of the change.
    assert mirrored.delta("t").version() == before + 2


@pytest.fixture
def both(spark: SparkSession, pair: list[LocalServer], tmp_path: Path) -> MirroredDatabase:
    """Return a mirror that knows both servers, with change logs."""
    mirrored = MirroredDatabase(
        spark,
        pair[0],
        "shop",
        tmp_path,
        startingOffset="snapshot",
        heartbeatInterval="1s",
        connectTimeout="2s",
        host=",".join(f"{server.host}:{server.port}" for server in pair),
    )
    mirrored.settings["change_log"] = change_log_of(mirrored)
    return mirrored


def end_in_batch(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    """Let the driver die in its next batch: before applying it, or before Spark commits it."""
    call = DeltaMirror.__call__

    def ends(mirror: DeltaMirror, batch: DataFrame, number: int) -> None:
        if applied:
            call(mirror, batch, number)
        raise RuntimeError("the driver dies")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaMirror, "__call__", ends)
        with pytest.raises(StreamingQueryException, match="the driver dies"):
            mirrored.run()


def test_batch_purged_after_it_was_applied_is_not_applied_twice(
    both: MirroredDatabase, pair: list[LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The primary is alive but has purged the batch; the replica still has it."""
    primary, replica = pair
    both.options["failOnDataLoss"] = "false"
    both.run()
    both.execute("INSERT INTO t VALUES (10, 10)", "INSERT INTO k VALUES (10)")
    end_in_batch(both, monkeypatch, applied=True)
    wait_for_replica(replica, primary)
    purge(primary)
    both.execute("INSERT INTO t VALUES (11, 11)", "INSERT INTO k VALUES (11)")
    wait_for_replica(replica, primary)
    both.run()
    both.assert_equal(*TABLES)
    assert [row["op"] for row in assert_replay(both, "t", "id")].count("c") == 2
    assert [row["op"] for row in rows_of_log(both, "k")].count("c") == 2


def test_planned_batch_with_a_dropped_partition_fails_until_its_server_returns(
    both: MirroredDatabase, pair: list[LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positions at which rows are lost are those of that server."""
    primary, replica = pair
    both.options |= {"reloadAfterDdl": "true", "retryTimeout": "3s"}
    both.execute("INSERT INTO p VALUES (1, 1), (101, 1)")
    both.run()
    both.execute(
        "INSERT INTO p VALUES (5, 5), (105, 5)",
        "ALTER TABLE p DROP PARTITION p0",
        "INSERT INTO p VALUES (107, 7)",
    )
    end_in_batch(both, monkeypatch, applied=False)
    wait_for_replica(replica, primary)
    primary.kill()
    with pytest.raises(StreamingQueryException, match="makes rows of a snapshot unknown"):
        both.run()
    primary.start()
    both.run()
    both.run()
    both.assert_equal("p", *TABLES)
    assert_replay(both, "p", "id")
