"""The connections of a live stream: one, as a replica has, and none after the query's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.query import StreamingQuery

from e2e.conftest import Account
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import wait_until

HEARTBEAT = 1.0
WATCHED = 5.0

Connections = Callable[[], list[str]]


@pytest.fixture
def table(live_server: Server, database: str) -> str:
    live_server.execute(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY AUTO_INCREMENT)")
    return f"{database}.t"


@pytest.fixture
def reads(live_server: Server, account: Account) -> Reads:
    return account(live_server, "REPLICATION SLAVE, REPLICATION CLIENT ON *.*", "SELECT ON *.*")


@pytest.fixture
def connections(live_server: Server, reads: Reads) -> Connections:
    """``connections()``: return the command of each connection of the stream's account."""

    def of_account() -> list[str]:
        rows = live_server.execute("SHOW PROCESSLIST")
        return [str(row[4]) for row in rows if row[1] == reads.options["user"]]

    return of_account


@pytest.fixture
def stream(
    reads: Reads, connections: Connections, table: str, tmp_path: Path
) -> Iterator[tuple[StreamingQuery, list[Row]]]:
    """Yield a running query on `table` that is connected, and the rows that it delivers."""
    rows: list[Row] = []
    query = (
        reads.stream(tables=table, heartbeatInterval=f"{HEARTBEAT:g}s")
        .writeStream.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        # At its start, a query reads parts of the binlog over connections that it then closes.
        wait_until(
            lambda: bool(query.lastProgress) and connections() == ["Binlog Dump"],
            "the first batch is done, and the stream is connected",
        )
        yield query, rows
    finally:
        query.stop()


def watch(connections: Connections, do: Callable[[], Any]) -> list[list[str]]:
    """Return samples of `connections`, as fast as the server answers; call `do` before each."""
    samples: list[list[str]] = []
    over = monotonic() + WATCHED
    while monotonic() < over or len(samples) < 200:
        do()
        samples.append(connections())
    return samples


def test_idle_stream_has_one_connection(
    connections: Connections, stream: tuple[StreamingQuery, list[Row]]
) -> None:
    samples = watch(connections, lambda: sleep(0.002))
    assert [sample for sample in samples if sample != ["Binlog Dump"]] == []
    assert stream[0].isActive


def test_stream_under_light_load_has_one_connection(
    live_server: Server,
    connections: Connections,
    table: str,
    stream: tuple[StreamingQuery, list[Row]],
) -> None:
    _, rows = stream
    inserted = 0
    next_at = monotonic()

    def insert_now_and_then() -> None:
        nonlocal inserted, next_at
        if monotonic() >= next_at:
            live_server.execute(f"INSERT INTO {table} VALUES ()")
            inserted += 1
            next_at += 0.05

    samples = watch(connections, insert_now_and_then)
    assert inserted > 5
    assert [sample for sample in samples if sample != ["Binlog Dump"]] == []
    wait_until(lambda: len(rows) == inserted, f"all of {inserted} rows arrive")


def test_stopped_query_has_no_connection(
    connections: Connections, stream: tuple[StreamingQuery, list[Row]]
) -> None:
    """Three heartbeats are the rule; a busy machine may need longer."""
    query, _ = stream
    assert connections() == ["Binlog Dump"]
    query.stop()
    wait_until(
        lambda: connections() == [],
        "the server has no connection of the stopped query",
        timeout=10 * HEARTBEAT,
    )
