"""The connections of a live stream: one, as a replica has, and none after the query's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.query import StreamingQuery

from e2e.conftest import Account
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import wait_until

WATCHED = 5.0
# Without heartbeats for this long and some seconds more, the stream asks for the end of the log.
HEARTBEAT = 60.0
# In which it may ask over another connection: for the retention, and for the end of the log by each
# of two that do without heartbeats.
MINUTE, ASKED_A_MINUTE = 60.0, 3

# By their ids, what the connections of the stream's account do.
Connections = Callable[[], dict[int, str]]


@pytest.fixture
def table(live_server: Server, database: str) -> str:
    live_server.execute(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY AUTO_INCREMENT)")
    return f"{database}.t"


@pytest.fixture
def reads(live_server: Server, account: Account) -> Reads:
    return account(live_server, "REPLICATION SLAVE, REPLICATION CLIENT ON *.*", "SELECT ON *.*")


@pytest.fixture
def connections(live_server: Server, reads: Reads) -> Connections:
    """``connections()``: return the connections of the stream's account, by ID."""

    def of_account() -> dict[int, str]:
        rows = live_server.execute("SHOW PROCESSLIST")
        return {int(row[0]): str(row[4]) for row in rows if row[1] == reads.options["user"]}

    return of_account


class Stream(NamedTuple):
    """A running query, when it was started, and what it delivers."""

    query: StreamingQuery
    began: float
    rows: list[Row]


@pytest.fixture(params=[f"{HEARTBEAT:g}s"])
def stream(
    request: pytest.FixtureRequest,
    reads: Reads,
    connections: Connections,
    table: str,
    tmp_path: Path,
) -> Iterator[Stream]:
    """Yield a connected query on `table` with this heartbeatInterval."""
    rows: list[Row] = []
    began = monotonic()
    query = (
        reads.stream(tables=table, heartbeatInterval=request.param)
        .writeStream.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        # At its start, a query reads parts of the binlog over connections that it then closes.
        wait_until(
            lambda: bool(query.lastProgress) and [*connections().values()] == ["Binlog Dump"],
            "the first batch is done, and the stream is connected",
        )
        yield Stream(query, began, rows)
    finally:
        query.stop()


def watch(connections: Connections, stream: Stream, do: Callable[[], Any]) -> None:
    """Sample the connections as fast as the server answers, with `do` before each sample.

    AssertionError unless all of them show the same dump, and nothing else but what is asked each
    minute.
    """
    samples: list[dict[int, str]] = []
    over = monotonic() + WATCHED
    while monotonic() < over or len(samples) < 200:
        do()
        samples.append(connections())
    minutes = int((monotonic() - stream.began) // MINUTE)
    (dump,) = {number for sample in samples for number in sample if sample[number] == "Binlog Dump"}
    assert all(dump in sample for sample in samples)
    others = {number: sample[number] for sample in samples for number in sample if number != dump}
    assert len(others) <= ASKED_A_MINUTE * minutes, others


def test_idle_stream_has_one_connection(connections: Connections, stream: Stream) -> None:
    watch(connections, stream, lambda: sleep(0.002))
    assert stream.query.isActive


def test_stream_under_light_load_has_one_connection(
    live_server: Server, connections: Connections, table: str, stream: Stream
) -> None:
    inserted = 0
    next_at = monotonic()

    def insert_now_and_then() -> None:
        nonlocal inserted, next_at
        if monotonic() >= next_at:
            live_server.execute(f"INSERT INTO {table} VALUES ()")
            inserted += 1
            next_at += 0.05

    watch(connections, stream, insert_now_and_then)
    assert inserted > 5
    wait_until(lambda: len(stream.rows) == inserted, f"all of {inserted} rows arrive")


@pytest.mark.parametrize("stream", ["1s"], indirect=True)
def test_stopped_query_has_no_connection(connections: Connections, stream: Stream) -> None:
    """Three heartbeats are the rule; a busy machine may need longer."""
    assert "Binlog Dump" in connections().values()
    stream.query.stop()
    wait_until(lambda: not connections(), "the server has no connection of the stopped query", 60)
