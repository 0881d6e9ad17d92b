"""A mirror, and its change logs, of a server whose binlog gets another base name at a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from helpers.change_logs import expect_replay, history_of, rows_of_log
from helpers.delta_mirrors import MirroredDatabase
from helpers.log_names import INDEX, own_servers, restart_with_log_name
from helpers.mirror_process import delivered
from helpers.servers import LocalServer
from helpers.waiting import wait_until

TABLES = ("t", "k")


@pytest.fixture(params=own_servers())
def own_server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """One whose binlog is at aaa-bin.000004, with a table with a key and one without."""
    request.getfixturevalue("mysql56")  # it says what is missing
    with request.param([INDEX, "--innodb-flush-log-at-trx-commit=1"]) as server:
        server.execute(
            "CREATE DATABASE shop CHARACTER SET utf8mb4",
            "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE shop.k (v INT)",
        )
        restart_with_log_name(server, "aaa-bin")
        while server.position()[0] != "aaa-bin.000004":
            server.rotate()
        yield server


@pytest.fixture
def mirrored(spark: SparkSession, own_server: LocalServer, tmp_path: Path) -> MirroredDatabase:
    mirrored = MirroredDatabase(
        spark, own_server, "shop", tmp_path, startingOffset="snapshot", heartbeatInterval="1s"
    )
    mirrored.settings["history"] = history_of(mirrored)
    mirrored.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO k VALUES (1), (1)")
    return mirrored


def expect_kept(mirrored: MirroredDatabase, *ops: str) -> None:
    """The mirror and the change log are equal to SELECT; every change of `t` is there once."""
    mirrored.expect_equal(*TABLES)
    rows = expect_replay(mirrored, "t", "id")
    rows_of_log(mirrored, "k")
    assert [row["op"] for row in rows if row["op"] not in {"begin", "r"}] == [*ops]


def follow_to_end(mirrored: MirroredDatabase, query: StreamingQuery) -> None:
    """Stop a query when its last batch ends where the server's log does."""

    def is_there() -> bool:
        assert query.exception() is None
        return delivered(mirrored.folder) == mirrored.server.position()

    wait_until(is_there, "the mirror has come to the log's end")
    query.stop()


@pytest.mark.parametrize("rotations", [0, 6])
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_nothing_is_lost(mirrored: MirroredDatabase, how: str, rotations: int) -> None:
    """The server goes on in bbb-bin.000001 with a change of each kind."""
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.run()
    query = mirrored.mirror().start(mirrored.spark) if how == "running" else None
    restart_with_log_name(server, "bbb-bin")
    mirrored.execute(
        "UPDATE t SET v = 22 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO k VALUES (2)",
    )
    for _ in range(rotations):
        server.rotate()
    mirrored.execute("INSERT INTO t VALUES (4, 4)", "DELETE FROM k LIMIT 1")
    if query is None:
        mirrored.run()
    else:
        follow_to_end(mirrored, query)
    expect_kept(mirrored, "u", "d", "c")
    # The next run goes on there.
    mirrored.execute("UPDATE t SET v = v + 1")
    mirrored.run()
    expect_kept(mirrored, "u", "d", "c", "u", "u", "u")
