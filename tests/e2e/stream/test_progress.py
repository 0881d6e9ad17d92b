"""The lag that a query's progress reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import patience, wait_until

Source = dict[str, Any]


@pytest.fixture
def tables(live_server: Server, database: str) -> str:
    """Create the tables `wanted` and `other`; return their database."""
    live_server.execute(
        f"CREATE TABLE `{database}`.wanted (id INT PRIMARY KEY)",
        f"CREATE TABLE `{database}`.other (id INT PRIMARY KEY)",
    )
    return database


@pytest.fixture
def query(
    spark: SparkSession, live_server: Server, tables: str, tmp_path: Path
) -> Iterator[StreamingQuery]:
    """Yield a running query on `wanted` that writes to a table in memory."""
    # By default, Spark reports an idle query only every ten seconds.
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "200")
    running = (
        Reads(spark, live_server)
        .stream(tables=f"{tables}.wanted", heartbeatInterval="1s", idleOffsetInterval="10m")
        .writeStream.format("memory")
        .queryName("delivered")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    yield running
    running.stop()
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")


def progress(query: StreamingQuery, ready: Callable[[Source], bool], what: str) -> Source:
    """Return the source's part of the first `lastProgress` for which `ready` is true."""

    def look() -> Source | None:
        last = query.lastProgress
        if last is None:
            return None
        source: Source = json.loads(last.json)["sources"][0]
        return source if source["latestOffset"] is not None and ready(source) else None

    return wait_until(look, what)


def is_idle_at(source: Source, end: tuple[str, int]) -> bool:
    """Of a moment without a batch, in which the server's log ended there, and nothing was missing.

    What is read just then is missing, and is delivered by the next batch: later ones are so.
    """
    latest = source["latestOffset"]
    server_position = latest["server"]
    is_at_end = (
        server_position is not None and (server_position["file"], server_position["pos"]) == end
    )
    return source["numInputRows"] == 0 and is_at_end and latest["bytes_behind"] == 0


def test_progress_reports_no_lag_at_the_end_of_the_binlog(
    spark: SparkSession, live_server: Server, tables: str, query: StreamingQuery
) -> None:
    # Changes before the end of batch 0 could be before the query's start.
    progress(query, lambda it: it["endOffset"] is not None, "batch 0 is done")
    live_server.execute(f"INSERT INTO `{tables}`.wanted VALUES (1), (2)")
    wait_until(lambda: spark.table("delivered").count() == 2, "both rows arrive")
    before = live_server.position()
    source = progress(query, lambda it: is_idle_at(it, before), "the query is at the log's end")
    server_position = source["latestOffset"]
    assert server_position["seconds_behind"] == 0
    assert server_position["last_event_time"] is not None
    end = source["endOffset"]
    assert server_position["delivered"] == {"file": end["file"], "pos": end["pos"]}

    # Changes of tables that are not captured are no lag, even though the offset does not move.
    live_server.execute(
        *(f"INSERT INTO `{tables}`.other VALUES ({number})" for number in range(50)),
        "FLUSH BINARY LOGS",
        f"INSERT INTO `{tables}`.other VALUES (50)",
    )
    after = live_server.position()
    source = progress(query, lambda it: is_idle_at(it, after), "the query is at the log's end")
    server_position = source["latestOffset"]
    assert server_position["seconds_behind"] == 0
    assert (source["endOffset"]["file"], source["endOffset"]["pos"]) == before


def test_progress_reports_the_bytes_of_a_backlog(
    spark: SparkSession, live_server: Server, tables: str, tmp_path: Path
) -> None:
    """The backlog is in several files; each batch's progress reports the bytes left."""
    reads = Reads(spark, live_server)
    options = {"tables": f"{tables}.wanted", "maxBytesPerTrigger": "4k"}
    assert reads.available_now(tmp_path, **options) == [[]]
    start = live_server.position()
    for number in range(3):
        rows = ", ".join(f"({number * 1000 + row})" for row in range(1000))
        live_server.execute(f"INSERT INTO `{tables}`.wanted VALUES {rows}")
        live_server.rotate()
    end = live_server.position()
    sizes = dict(live_server.binlog_files())
    run = (
        reads.stream(**options)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert run.awaitTermination(patience(300))
    sources = [json.loads(each.json)["sources"][0] for each in run.recentProgress]
    batches = [source for source in sources if source["numInputRows"]]
    assert [source["numInputRows"] for source in batches] == [1000, 1000, 1000]
    server_position = [source["latestOffset"] for source in batches]
    assert server_position[0]["delivered"] == {"file": start[0], "pos": start[1]}

    def left(delivered: dict[str, Any]) -> int:
        files = sum(size for file, size in sizes.items() if delivered["file"] <= file < end[0])
        begin: int = delivered["pos"]
        return files + end[1] - begin

    # The value is null until the server has reported the sizes of its files.
    known = [each for each in server_position if each["bytes_behind"] is not None]
    assert known
    assert [each["bytes_behind"] for each in known] == [left(each["delivered"]) for each in known]
    assert all(each["seconds_behind"] >= 0 for each in known)
