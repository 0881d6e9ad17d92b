"""Failovers of a mirror at random moments under load: tables and change logs equal SELECT."""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_keyless_replay, assert_replay, change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_process import last_offset
from helpers.mirrors.mirror_steps import around_batch
from helpers.needed_servers import need
from helpers.servers import LocalServer
from helpers.servers.available import ONE_MARIADB_KINDS
from helpers.waiting import wait_until
from helpers.writers.replication import (
    executed_on,
    promote,
    replicating_servers,
    start_applying,
    stop_applying,
    wait_for_replica,
)
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.connector.delta.sync.change_log import ChangeLog
from pyspark_mysqlbinlog.connector.delta.sync.table import MirroredTable
from pyspark_mysqlbinlog.connector.snapshot.reading import chunk_reader
from pyspark_mysqlbinlog.errors import ConnectionFailedError, cause_of

# A table with a key, one whose key changes, and one without a key.
TABLES = ("t", "moved", "k")
CREATE = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shop.moved (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shop.k (v INT)",
)
CHANGES = (
    "INSERT INTO t (id, v) VALUES ({key}, 1) ON DUPLICATE KEY UPDATE v = v + 1",
    "DELETE FROM t WHERE id = {key}",
    "REPLACE INTO moved (id, v) VALUES ({key}, {other})",
    "UPDATE IGNORE moved SET id = {other} WHERE id = {key}",
    "INSERT INTO k (v) VALUES ({key}), ({key})",
    "DELETE FROM k WHERE v = {key} LIMIT 1",
    "UPDATE k SET v = {other} WHERE v = {key} LIMIT 1",
)


# One of each table, with a key that no others have.
ONE_EACH = (
    "INSERT INTO t (id, v) VALUES (-1, 1)",
    "INSERT INTO moved (id, v) VALUES (-1, 1)",
    "INSERT INTO k (v) VALUES (-1)",
)

# The number of keys in the tables of a snapshot.
KEYS = 3_000
# The retryTimeout of a query that is to find a server, and of one that finds none.
WAITING, GIVING_UP = "5m", "4s"


class Killed(Exception):  # noqa: N818 (in place of a kill)
    pass


@contextmanager
def writing(server: LocalServer, seed: int, keys: int = 20) -> Iterator[None]:
    """Write small transactions during the block, until the server is killed."""
    stop, rng = threading.Event(), random.Random(seed)

    def write() -> None:
        try:
            with server.connect(database="shop") as connection, connection.cursor() as cursor:
                while not stop.is_set():
                    cursor.execute("BEGIN")
                    for _ in range(rng.randint(1, 4)):
                        numbers = {"key": rng.randrange(keys), "other": rng.randrange(keys)}
                        cursor.execute(rng.choice(CHANGES).format(**numbers))
                    cursor.execute("COMMIT")
                    # A mirror on a busy machine must be able to keep up.
                    stop.wait(0.01)
        except (pymysql.err.MySQLError, OSError):
            pass  # the server was killed

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def killed_in_batch(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the driver die in a batch when some of the tables and change logs are applied."""
    dead = {
        (kind, table)
        for kind in (MirroredTable, ChangeLog)
        for table in rng.sample(TABLES, rng.randint(0, len(TABLES)))
    } or {(MirroredTable, "t")}

    def patched(kind: type[MirroredTable | ChangeLog], apply: Callable[..., int]) -> Any:
        def applied(this: Any, *given: Any) -> int:
            if (kind, this._table[1]) in dead:
                raise Killed
            return apply(this, *given)

        return applied

    with monkeypatch.context() as patch:
        patch.setattr(MirroredTable, "apply", patched(MirroredTable, MirroredTable.apply))
        patch.setattr(ChangeLog, "append", patched(ChangeLog, ChangeLog.append))
        yield


def _executed(server: LocalServer) -> GtidSet:
    return GtidSet.parse(executed_on(server))


def _planned(folder: Path) -> GtidSet:
    """Return the GTID set at the end of the last batch, which may not be committed."""
    offsets = folder / "checkpoint" / "offsets"
    last = max(int(path.name) for path in offsets.glob("[0-9]*"))
    return GtidSet.parse(json.loads((offsets / str(last)).read_text().splitlines()[-1])["gtid"])


def _run_killed(mirrored: MirroredDatabase) -> None:
    with pytest.raises(Exception, match="Killed"):
        mirrored.run()


def _mirrored(
    spark: SparkSession, pair: list[LocalServer], folder: Path, **options: str
) -> MirroredDatabase:
    """Return a mirror that knows both servers, with a change log."""
    mirrored = MirroredDatabase(
        spark,
        pair[0],
        "shop",
        folder,
        host=",".join(f"{server.host}:{server.port}" for server in pair),
        retryTimeout=WAITING,
        **options,
    )
    mirrored.settings["change_log"] = change_log_of(mirrored)
    return mirrored


def _assert_follows(
    mirrored: MirroredDatabase, replica: LocalServer, folder: Path, seed: int, keys: int = 20
) -> None:
    """Assert that the mirror continues on the replica under load, and equals its SELECT."""
    with writing(replica, seed, keys):
        mirrored.run()
    mirrored.run()
    assert GtidSet.parse(last_offset(folder)["gtid"]) == _executed(replica)
    mirrored.assert_equal(*TABLES)
    for table in ("t", "moved"):
        assert_replay(mirrored, table, "id")
    assert_keyless_replay(mirrored, "k")


def fail_over(
    spark: SparkSession,
    kind: type[LocalServer],
    folder: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Run one random failover; return how the driver and the primary ended."""
    rng = random.Random(seed)
    how = rng.choice(["alive", "in a batch", "in a batch"])
    lags = rng.random() < 0.3
    with replicating_servers(kind) as pair:
        primary, replica = pair
        primary.execute(*CREATE)
        wait_for_replica(replica, primary)
        mirrored = _mirrored(spark, pair, folder, maxBytesPerTrigger="20k")
        mirrored.run()
        query = None
        with writing(primary, seed):
            mirrored.run()
            if lags:
                stop_applying(replica)
            if how == "in a batch":
                # The batch in which it dies has changes of all tables.
                mirrored.execute(*ONE_EACH)
                with killed_in_batch(rng, monkeypatch):
                    _run_killed(mirrored)
            else:
                query, some = mirrored.mirror().start(spark), rng.randint(2, 5)
                wait_until(lambda: len(query.recentProgress) > some, "some batches are done")
            primary.kill()
        stop_applying(replica)
        if query is not None:
            query.stop()
        missing = _planned(folder).difference(_executed(replica))
        if missing:
            mirrored.options["retryTimeout"] = GIVING_UP
            with pytest.raises(Exception, match=r"it has not (executed|logged)") as found:
                mirrored.run()
            mirrored.options["retryTimeout"] = WAITING
            assert isinstance(cause_of(found.value), ConnectionFailedError)
            primary.start()
            start_applying(replica)
            wait_for_replica(replica, primary)
            primary.halt()
        _switch(mirrored, pair)
        _assert_follows(mirrored, replica, folder, seed + 1)
        return f"driver {how}, primary {'killed, lagging' if missing else 'killed'}"


class _Dies(Exception):  # noqa: N818 (in place of a kill)
    pass


def fail_over_in_snapshot(
    spark: SparkSession,
    kind: type[LocalServer],
    folder: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Run one random failover during a snapshot; return how the driver ended.

    From a random batch on, only the primary has its transactions, and snapshot rows include them.
    """
    rng = random.Random(seed)
    how = rng.choice(["alive", "applied", "applied in part", "planned", "reading"])
    reloads = rng.random() < 0.5
    with replicating_servers(kind) as pair:
        primary, replica = pair
        primary.execute(*CREATE)
        for table in TABLES:
            columns = "(v, pad)" if table == "k" else "(id, v, pad)"
            row = "({0} % 20, 'p')" if table == "k" else "({0}, 1, 'p')"
            # Every second key, so that the writer inserts rows in between.
            rows = ",".join(map(row.format, range(0, KEYS, 2)))
            pad = f"ALTER TABLE shop.{table} ADD pad CHAR(150) NOT NULL DEFAULT ''"
            primary.execute(pad, f"INSERT INTO shop.{table} {columns} VALUES {rows}")
        wait_for_replica(replica, primary)
        limits = {"startingOffset": "snapshot", "maxRowsPerTrigger": "1000"}
        mirrored = _mirrored(spark, pair, folder, **limits)
        if reloads:
            mirrored.run()
            mirrored.execute("INSERT INTO k (v) VALUES (1)")
            mirrored.options["reload"] = "again: shop.*"

        def before() -> None:
            planned = _planned(folder)
            wait_until(
                lambda: not planned.difference(_executed(replica)), "the replica has the batch"
            )
            stop_applying(replica)
            if how == "planned":
                raise _Dies
            wait_until(
                lambda: _executed(primary).difference(_executed(replica)),
                "rows are read that the replica lacks",
            )
            if how == "reading":
                primary.kill()
            if how == "applied in part":
                stack.enter_context(killed_in_batch(rng, monkeypatch))

        def after() -> None:
            if how == "alive":
                primary.kill()
                _switch(mirrored, pair)
            else:
                raise _Dies

        if how != "alive":
            mirrored.options["retryTimeout"] = GIVING_UP
        with ExitStack() as stack, monkeypatch.context() as patched:
            # The mirror's own reads of chunks would otherwise retry for a minute.
            patched.setattr(chunk_reader, "_RETRY_SECONDS", 1.0)
            patched.setattr(chunk_reader, "_MIN_TRIES", 2)
            around_batch(patched, rng.randint(2, 7), before, after)
            with writing(primary, seed, KEYS):
                if how == "alive":
                    mirrored.run()
                else:
                    with pytest.raises(Exception, match=r"Dies|Killed|start the query again"):
                        mirrored.run()
        if how != "alive":
            primary.kill()
            _switch(mirrored, pair)
        mirrored.options["retryTimeout"] = WAITING
        _assert_follows(mirrored, replica, folder, seed + 1, KEYS)
        assert last_offset(folder)["epoch"] == 2
        return f"driver {how}, {'reload' if reloads else 'snapshot'}"


def _switch(mirrored: MirroredDatabase, pair: list[LocalServer]) -> None:
    primary, replica = pair
    promote(replica)
    mirrored.server = replica
    mirrored.options |= {"port": str(primary.port)}


@pytest.mark.sample(1, group="histories")
@pytest.mark.one_server
@pytest.mark.parametrize("kind", ONE_MARIADB_KINDS)
@pytest.mark.parametrize("history", [fail_over, fail_over_in_snapshot])
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(2, id="short"), pytest.param(25, id="long", marks=pytest.mark.slow)],
)
def test_mirror_equals_select_after_random_failovers(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    ddl_seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    history: Callable[..., str],
    rounds: int,
) -> None:
    need(ONE_MARIADB_KINDS[kind])
    for seed in range(ddl_seed, ddl_seed + rounds):
        logging.getLogger(__name__).warning("DDL_SEED=%d", seed)
        how = history(spark, ONE_MARIADB_KINDS[kind], tmp_path / str(seed), seed, monkeypatch)
        logging.getLogger(__name__).warning("%s", how)
