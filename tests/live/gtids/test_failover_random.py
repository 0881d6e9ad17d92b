"""Failovers at random moments under load: each row change arrives once, and keys in order."""

from __future__ import annotations

import json
import logging
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import pymysql
import pytest

from helpers.needed_servers import need
from helpers.servers import LocalServer
from helpers.servers.available import ONE_MARIADB_KINDS
from helpers.streams.source_runner import Spark
from helpers.writers.replication import (
    executed_on,
    promote,
    replicating_servers,
    start_applying,
    stop_applying,
    wait_for_replica,
)
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.errors import ConnectionFailedError

KEYS = 20
TABLE = "failover.t"
# Why a server can't continue a stream that is ahead of it.
REFUSED = re.compile("it has not (executed|logged)")


class Writer(threading.Thread):
    """A thread that writes small transactions to a server until it is stopped or fails."""

    def __init__(self, server: LocalServer, seed: int) -> None:
        super().__init__()
        self._server, self._random = server, random.Random(seed)
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            with self._server.connect() as connection, connection.cursor() as cursor:
                while not self._stopped.is_set():
                    cursor.execute("BEGIN")
                    for _ in range(self._random.randint(1, 3)):
                        self._change(cursor)
                    cursor.execute("COMMIT")
        except (pymysql.err.MySQLError, OSError):
            pass  # the server was killed

    def _change(self, cursor: Any) -> None:
        key = self._random.randrange(KEYS)
        if self._random.random() < 0.3:
            cursor.execute(f"DELETE FROM {TABLE} WHERE id = {key}")
        else:
            cursor.execute(
                f"INSERT INTO {TABLE} VALUES ({key}, 1) ON DUPLICATE KEY UPDATE v = v + 1"
            )

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@contextmanager
def writing(server: LocalServer, seed: int) -> Iterator[None]:
    writer = Writer(server, seed)
    writer.start()
    try:
        yield
    finally:
        writer.stop()


class Reader:
    """A stream as Spark drives it, and the table that results from its rows.

    Each row must fit the previous row of its key, so none is lost, repeated or out of order.
    """

    def __init__(self, new_stream: NewStream, pair: list[LocalServer], seed: int) -> None:
        self._new_stream, self._pair, self._random = new_stream, pair, random.Random(seed)
        self.rows: dict[int, int] = {}
        self._last_seq: tuple[int, ...] = ()
        self._spark = self._new()
        self.offset = self._spark.initial()

    def _new(self) -> Spark:
        hosts = ",".join(f"{server.host}:{server.port}" for server in self._pair)
        return self._new_stream(
            self._pair[0],
            TABLE,
            host=hosts,
            retryTimeout="4s",
            connectTimeout="60s",
            maxBytesPerTrigger="4k",
            idleOffsetInterval="1ms",
        )

    def step(self) -> bool:
        """Read a batch; sometimes the driver ends between planning and reading it."""
        end = self._spark.latest(self.offset)
        if end == self.offset:
            return False
        if self._random.random() < 0.2:
            self._spark.reader.stop()
            self._spark = self._new()
        self._take(self._spark.rows(self.offset, end))
        self.offset = end
        return True

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for row in sorted(rows, key=lambda row: tuple(row["seq"].values())):
            seq = tuple(row["seq"].values())
            assert seq > self._last_seq
            self._last_seq = seq
            before: dict[str, int] = json.loads(row["before"] or "{}")
            after: dict[str, int] = json.loads(row["after"] or "{}")
            key = (before or after)["id"]
            assert self.rows.pop(key, None) == before.get("v"), row
            if after:
                self.rows[key] = after["v"]

    def restart(self) -> None:
        self._spark.reader.stop()
        self._spark = self._new()

    def read_to(self, server: LocalServer) -> None:
        """Read until the stream has delivered exactly what a server has executed."""
        executed = _executed(server)
        while GtidSet.parse(self.offset["gtid"]) != executed:
            self.step()


def _executed(server: LocalServer) -> GtidSet:
    return GtidSet.parse(executed_on(server))


def fail_over(kind: type[LocalServer], seed: int, new_stream: NewStream) -> str:
    """Run one random failover; return how the primary was lost."""
    rng = random.Random(seed)
    with replicating_servers(kind) as pair:
        primary, replica = pair
        primary.execute(
            "CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, v INT)"
        )
        wait_for_replica(replica, primary)
        reader = Reader(new_stream, pair, seed)
        how = rng.choice(["killed", "killed", "switched", "lags"])
        with writing(primary, seed):
            if how == "lags":
                sleep(rng.random() / 4)
                stop_applying(replica)
            for _ in range(rng.randint(1, 12)):
                reader.step()
            if how == "killed":
                primary.kill()
        if how == "switched":
            wait_for_replica(replica, primary)
            primary.halt()
        elif how == "lags":
            primary.kill()
        # From here on the replica applies nothing more of its relay log.
        stop_applying(replica)
        delivered = GtidSet.parse(reader.offset["gtid"])
        missing = delivered.difference(_executed(replica))
        if missing:
            with pytest.raises(ConnectionFailedError, match=REFUSED):
                reader.read_to(replica)
            primary.start()
            start_applying(replica)
            wait_for_replica(replica, primary)
            primary.halt()
            reader.restart()
        promote(replica)
        try:
            with writing(replica, seed + 1):
                for _ in range(rng.randint(1, 8)):
                    reader.step()
            replica.execute(f"INSERT INTO {TABLE} VALUES ({KEYS}, 1)")
            reader.read_to(replica)
            assert reader.offset["epoch"] >= 2
            last = replica
        except ConnectionFailedError as error:
            # The stream had received more from the primary than it had delivered until then.
            if missing or not REFUSED.search(str(error)):
                raise
            assert GtidSet.parse(reader.offset["gtid"]).difference(_executed(replica))
            how += ", lagging behind what was received"
            primary.start()
            reader.restart()
            reader.read_to(primary)
            last = primary
        assert reader.rows == dict(last.execute(f"SELECT id, v FROM {TABLE}"))
        return f"{how}{', lagging' if missing else ''}"


@pytest.mark.one_server
@pytest.mark.parametrize("kind", ONE_MARIADB_KINDS)
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(2, id="short"), pytest.param(25, id="long", marks=pytest.mark.slow)],
)
def test_random_failovers_lose_and_repeat_nothing(
    ddl_seed: int, new_stream: NewStream, kind: str, rounds: int
) -> None:
    need(ONE_MARIADB_KINDS[kind])
    for seed in range(ddl_seed, ddl_seed + rounds):
        logging.getLogger(__name__).warning("DDL_SEED=%d", seed)
        how = fail_over(ONE_MARIADB_KINDS[kind], seed, new_stream)
        logging.getLogger(__name__).warning("the primary was %s", how)
