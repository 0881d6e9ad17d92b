"""A mirror and its change logs of a server whose binlog gets another base name at a restart."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from helpers.logs.log_names import INDEX, name_log, own_servers, restart_with_log_name
from helpers.mirrors.change_logs import assert_replay, change_log_of, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_process import delivered, last_offset
from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.waiting import wait_until
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.checkpoints.offset import Offset

TABLES = ("t", "k")


@pytest.fixture(params=own_servers())
def own_server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server with binlog aaa-bin.000004, and with a table with a key and one without."""
    request.getfixturevalue(own_kind().name)  # skips with the reason
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
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO k VALUES (1), (1)")
    return mirrored


def assert_change_log_complete(mirrored: MirroredDatabase, *ops: str) -> None:
    """Assert that the mirror equals SELECT, and the change log of `t` has these changes."""
    mirrored.assert_equal(*TABLES)
    rows = assert_replay(mirrored, "t", "id")
    rows_of_log(mirrored, "k")
    assert [row["op"] for row in rows if row["op"] not in {"reset", "r"}] == [*ops]


def follow_to_end(mirrored: MirroredDatabase, query: StreamingQuery | None) -> None:
    """Apply the whole binlog, with the running query or with a new one that ends."""
    if query is None:
        mirrored.run()
        return

    def is_there() -> bool:
        assert query.exception() is None
        offset = Offset.from_dict(last_offset(mirrored.folder))
        is_at_end = (offset.position.file, offset.position.pos) == mirrored.server.position()
        # A table is reloaded after its ALTER if chunks may have contained later columns.
        return is_at_end and (offset.snapshot_state is None or offset.snapshot_state.is_done)

    wait_until(is_there, "the mirror has come to the log's end")


@pytest.mark.sample(2)
@pytest.mark.parametrize("rotations", [0, 6])
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_new_binlog_base_name_loses_no_change(
    mirrored: MirroredDatabase, how: str, rotations: int
) -> None:
    """The binlog continues in bbb-bin.000001 with an update, a delete and inserts."""
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
    follow_to_end(mirrored, query)
    if query is not None:
        query.stop()
    assert_change_log_complete(mirrored, "u", "d", "c")
    # The next run resumes there.
    mirrored.execute("UPDATE t SET v = v + 1")
    mirrored.run()
    assert_change_log_complete(mirrored, "u", "d", "c", "u", "u", "u")


class FailsInBatch(DeltaMirror):
    """A mirror that fails before it applies a batch, which is then replayed."""

    number = 2

    def __call__(self, batch: DataFrame, number: int) -> None:
        if number == self.number:
            raise RuntimeError("this batch comes again")
        super().__call__(batch, number)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [1, 2])
def test_snapshot_resumed_under_a_new_binlog_base_name_equals_select(
    mirrored: MirroredDatabase, number: int
) -> None:
    """The planned batch of a table with a key is read again after the changes."""
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.execute(f"INSERT INTO t VALUES {','.join(f'({n}, 1)' for n in range(10, 3000))}")
    mirrored.options |= {"maxBytesPerTrigger": "20k", "targetPartitionBytes": "4000"}
    mirrored.options["tables"] = "shop.t"
    FailsInBatch.number = number
    query = mirrored.mirror(kind=FailsInBatch).start(mirrored.spark, availableNow=True)
    with pytest.raises(StreamingQueryException, match="this batch comes again"):
        query.awaitTermination()
    mirrored.execute("UPDATE t SET v = 2 WHERE id % 7 = 0", "DELETE FROM t WHERE id % 10 = 0")
    for name in ("bbb-bin", "ccc-bin"):
        restart_with_log_name(server, name)
        mirrored.execute(
            "UPDATE t SET v = v + 1 WHERE id % 9 = 0",
            f"DELETE FROM t WHERE id % 11 = 0 AND id % 2 = {name == 'bbb-bin':d}",
            "INSERT INTO t VALUES (20, 20) ON DUPLICATE KEY UPDATE v = v + 100",
        )
    mirrored.run()
    mirrored.execute("UPDATE t SET v = v + 1 WHERE id % 13 = 0")
    mirrored.run()
    mirrored.assert_equal("t")
    assert_replay(mirrored, "t", "id")


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_table_recreated_under_a_new_binlog_base_name_equals_select(
    mirrored: MirroredDatabase, how: str
) -> None:
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.execute("CREATE TABLE s (id INT PRIMARY KEY)", "INSERT INTO s VALUES (1), (2)")
    mirrored.run()
    query = mirrored.mirror().start(mirrored.spark) if how == "running" else None
    mirrored.execute("UPDATE s SET id = 3 WHERE id = 1")
    follow_to_end(mirrored, query)
    mirrored.execute("DROP TABLE s")
    restart_with_log_name(server, "bbb-bin")
    mirrored.execute("INSERT INTO t VALUES (7, 7)")
    follow_to_end(mirrored, query)
    mirrored.execute("CREATE TABLE s (id INT PRIMARY KEY, w INT)", "INSERT INTO s VALUES (2, 2)")
    follow_to_end(mirrored, query)
    restart_with_log_name(server, "ccc-bin")
    mirrored.execute("INSERT INTO s VALUES (3, 3)")
    follow_to_end(mirrored, query)
    if query is not None:
        query.stop()
    mirrored.assert_equal(*TABLES, "s")
    assert_replay(mirrored, "s", "id")


def test_new_checkpoint_after_a_new_binlog_base_name_stops_until_a_snapshot(
    mirrored: MirroredDatabase,
) -> None:
    """The new checkpoint counts epochs from 0, so the earlier commit markers are not its own."""
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.settings.pop("change_log")
    mirrored.run()
    restart_with_log_name(server, "bbb-bin")
    start = "{}:{}".format(*server.position())
    mirrored.execute("UPDATE t SET v = 22 WHERE id = 2", "INSERT INTO k VALUES (2)")
    mirrored.options["startingOffset"] = start
    with pytest.raises(StreamingQueryException, match="from another binlog"):
        mirrored.run("second")
    for table in TABLES:
        assert "from another binlog" in mirrored.stopped(table)
    # The tables are read again, as the error says.
    mirrored.options["startingOffset"] = "snapshot"
    mirrored.run("third")
    mirrored.assert_equal(*TABLES)
    mirrored.execute("DELETE FROM t WHERE id = 3", "DELETE FROM k WHERE v = 1 LIMIT 1")
    mirrored.run("third")
    mirrored.assert_equal(*TABLES)


def test_restored_delta_table_stops_under_a_new_binlog_base_name(
    mirrored: MirroredDatabase,
) -> None:
    """The table lacks changes of the earlier binlog, so it must not continue."""
    server = mirrored.server
    assert isinstance(server, LocalServer)
    mirrored.settings.pop("change_log")
    mirrored.run()
    version = mirrored.delta("t").version()
    mirrored.execute("UPDATE t SET v = 22 WHERE id = 2", "INSERT INTO k VALUES (2)")
    mirrored.run()
    mirrored.delta("t").restore(version)
    restart_with_log_name(server, "bbb-bin")
    mirrored.execute("INSERT INTO k VALUES (3)")
    mirrored.run()
    assert "an older version of its rows was restored" in mirrored.stopped("t")
    mirrored.assert_equal("k")


class Rounds:
    """Random changes, and random base names and numbers of the binlog."""

    def __init__(self, mirrored: MirroredDatabase, seed: int) -> None:
        assert isinstance(mirrored.server, LocalServer)
        self.mirrored, self.server = mirrored, mirrored.server
        self.chance = random.Random(seed)
        self.changes = 0
        self.last_id = 100
        self.has_s = False

    def write(self) -> None:
        chance = self.chance
        with self.server.connect(database="shop") as connection:
            cursor = connection.cursor()
            for _ in range(chance.randrange(8)):
                self.last_id += 1
                key = chance.randrange(100, self.last_id)
                value = chance.randrange(4)
                cursor.execute(
                    chance.choice(
                        [
                            f"INSERT INTO t (id, v) VALUES ({self.last_id}, {value})",
                            f"UPDATE t SET v = v + 1 WHERE id IN ({key}, {key + 1})",
                            f"DELETE FROM t WHERE id = {key}",
                            f"INSERT INTO k (v) VALUES ({value}), ({value})",
                            f"UPDATE k SET v = v + 10 WHERE v = {value} LIMIT 2",
                            f"DELETE FROM k WHERE v = {value} LIMIT 1",
                        ]
                    )
                )
                self.changes += cursor.rowcount
                if chance.random() < 0.2:
                    self.server.rotate()
        self._alter()

    def _alter(self) -> None:
        chance, run = self.chance, self.mirrored.execute
        if chance.random() < 0.1:
            self.last_id += 1
            run(f"ALTER TABLE t ADD c{self.last_id} INT")
        if chance.random() < 0.4:
            run("DROP TABLE s" if self.has_s else "CREATE TABLE s (id INT PRIMARY KEY)")
            self.has_s = not self.has_s
        if self.has_s:
            run("INSERT INTO s SELECT COALESCE(MAX(id), 0) + 1 FROM s")

    def restart(self) -> None:
        """Restart with a random base name and file number, after a shutdown or a kill."""
        chance, server = self.chance, self.server
        name = chance.choice(("aaa-bin", "bbb-bin", "ccc-bin"))
        if chance.random() < 0.3:
            server.kill()
        else:
            server.halt()
        assert server.datadir is not None
        if chance.random() < 0.3:
            # The server continues after the highest number of any file with this name.
            number = chance.randrange(1, 90)
            stray = server.datadir / f"{name}.{number:06}"
            if not stray.exists():
                stray.touch()
                name_log(server, name)
                server.start()
                stray.unlink()
                return
        name_log(server, name)
        server.start()

    def purge(self) -> None:
        """Sometimes purge all files that the mirror has read, so a name can start at 1 again."""
        file, _ = self.server.position()
        if self.chance.random() < 0.4 and delivered(self.mirrored.folder)[0] == file:
            self.server.execute(f"PURGE BINARY LOGS TO '{file}'")

    def assert_change_log_complete(self) -> None:
        mirrored = self.mirrored
        mirrored.assert_equal(*TABLES, *(["s"] if self.has_s else []))
        assert_replay(mirrored, "t", "id")
        if self.has_s:
            assert_replay(mirrored, "s", "id")
        logged = [*rows_of_log(mirrored, "t"), *rows_of_log(mirrored, "k")]
        assert sum(row["op"] in {"c", "u", "d"} for row in logged) == self.changes

    def play(self) -> None:
        mirrored = self.mirrored
        is_running = self.chance.random() < 0.5
        query = mirrored.mirror().start(mirrored.spark) if is_running else None
        self.write()
        for _ in range(self.chance.randrange(1, 4)):
            self.restart()
            self.write()
        # The last statement is a change, so that a query soon reaches the end.
        mirrored.execute("INSERT INTO k VALUES (1000)")
        self.changes += 1
        follow_to_end(mirrored, query)
        if query is not None:
            query.stop()
        self.assert_change_log_complete()
        self.purge()


@pytest.mark.sample(1, group="histories")
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(4, id="short"),
        pytest.param(30, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(5400)]),
    ],
)
def test_random_binlog_names_and_numbers_lose_no_change(
    mirrored: MirroredDatabase, ddl_seed: int, rounds: int
) -> None:
    logging.getLogger(__name__).warning("DDL_SEED=%d", ddl_seed)
    mirrored.run()
    played = Rounds(mirrored, ddl_seed)
    for _ in range(rounds):
        played.play()
