"""Random XA histories on real servers: the stream's rows equal SELECT's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from helpers.needed_servers import need
from helpers.servers import LocalServer, MariaDB11Server, MariaDBServer, MySQL9Server, Server
from helpers.servers.mysql57 import MySQL57Server
from helpers.streams.source_runner import Offset, Spark, insert, new_reader
from helpers.waiting import wait_until
from helpers.writers.xa_writer import XaWriter
from pyspark_mysqlbinlog.connector.tail import prepared_transactions

SEED = int(os.environ["MYSQLBINLOG_FUZZ_SEED"])
KINDS: dict[str, type[LocalServer]] = {
    kind.name: kind for kind in (MySQL57Server, MySQL9Server, MariaDBServer, MariaDB11Server)
}
# With these options, prepared transactions survive a kill, too.
DURABLE = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a restartable server for all histories of its kind."""
    kind = KINDS[request.param]
    need(kind)
    options = [*DURABLE, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
    with kind(options=DURABLE if kind.is_mariadb else options) as server:
        yield server


def apply(held: dict[int, str], rows: list[dict[str, Any]]) -> None:
    for row in rows:
        before, after = (row[side] and json.loads(row[side]) for side in ("before", "after"))
        if before is not None:
            assert held.pop(before["id"]) == before["v"]
        if after is not None:
            assert after["id"] not in held
            held[after["id"]] = after["v"]


class Reading:
    """A stream that is sometimes restarted; each batch is read twice."""

    def __init__(self, server: Server, tables: str, random: Random) -> None:
        self._server, self._tables, self._random = server, tables, random
        self.rows: list[dict[str, Any]] = []
        self._spark = self._new()
        self._at: Offset = self._spark.initial()
        self._spark.latest(self._at)

    def _new(self) -> Spark:
        return Spark(new_reader(self._server, self._tables, retryTimeout="120s"))

    def close(self) -> None:
        self._spark.reader.stop()

    def step(self) -> None:
        if self._random.random() < 0.2:
            self.close()
            self._spark = self._new()
        self._take(self._spark.latest(self._at))

    def until(self, value: int) -> None:
        """Read until the row with this id is delivered."""

        def has_come() -> bool:
            self._take(self._spark.latest(self._at))
            return any(
                row["after"] and json.loads(row["after"])["id"] == value for row in self.rows[-50:]
            )

        wait_until(has_come, "the last row comes")

    def _take(self, end: Offset) -> None:
        if end == self._at:
            return
        rows = self._spark.rows(self._at, end)
        fresh = self._new()
        try:
            assert fresh.rows(self._at, end) == rows
        finally:
            fresh.reader.stop()
        self.rows += rows
        self._at = end


@pytest.mark.sample(6)
@pytest.mark.parametrize("number", range(50))
def test_random_xa_histories_equal_select(
    own: LocalServer, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    seed = SEED + number
    random = Random(seed)
    # With the smaller limits, events of prepared transactions are not kept.
    monkeypatch.setattr(prepared_transactions, "_MAX_BYTES", random.choice([8 << 20, 600, 0]))
    database = f"xa_{number}"
    own.execute(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")

    def crash() -> None:
        # 5.7 loses a one-phase commit that was not flushed, although its binlog contains it.
        own.execute("FLUSH ENGINE LOGS")
        own.kill()
        own.start()

    writer = XaWriter(own, database, random, crash if random.random() < 0.3 else None)
    for _ in range(random.choice([0, 5])):
        writer.step()
    reading = Reading(own, f"{database}.t", random)
    held: dict[int, str] = {
        int(row[0]): str(row[1]) for row in own.execute(f"SELECT * FROM {database}.t")
    }
    try:
        for _ in range(25):
            writer.step()
            if random.random() < 0.3:
                reading.step()
        if random.random() < 0.8:
            writer.finish()
        insert(own, f"{database}.t", 1_000_000)
        reading.until(1_000_000)
    finally:
        reading.close()
        shown = own.execute(f"SELECT * FROM {database}.t")
        writer.forget()
        own.execute(f"DROP DATABASE {database}")
    apply(held, reading.rows)
    assert held == {row[0]: row[1] for row in shown}, seed
    seqs = [tuple(row["seq"].values()) for row in reading.rows]
    assert all(one < other for one, other in pairwise(seqs)), seed
