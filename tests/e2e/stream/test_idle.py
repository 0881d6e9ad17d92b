"""A query on one table of a server that is busy with others: few batches, no delay."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import wait_until

INTERVAL = 3.0
WATCHED = 10.0


class Batch(NamedTuple):
    at: float
    rows: list[Row]


Starts = Callable[[str], tuple[StreamingQuery, list[Batch]]]


@pytest.fixture
def busy(live_server: Server, database: str) -> Iterator[str]:
    """Yield a database with the tables `wanted` and `other`; `other` changes all the time."""
    live_server.execute(
        f"CREATE TABLE `{database}`.wanted (id INT PRIMARY KEY)",
        f"CREATE TABLE `{database}`.other (id INT PRIMARY KEY AUTO_INCREMENT)",
    )
    over = threading.Event()

    def work() -> None:
        with live_server.connect(database=database) as connection, connection.cursor() as cursor:
            rounds = 0
            while not over.wait(0.005):
                cursor.execute("INSERT INTO other VALUES ()")
                rounds += 1
                if rounds % 100 == 0:
                    cursor.execute("FLUSH BINARY LOGS")

    worker = threading.Thread(target=work)
    worker.start()
    yield database
    over.set()
    worker.join()


@pytest.fixture
def stream(
    spark: SparkSession, live_server: Server, busy: str, tmp_path: Path
) -> Iterator[Callable[[str], tuple[StreamingQuery, list[Batch]]]]:
    """``stream("3s")``: start a query on `wanted` with this idleOffsetInterval.

    Returns the query and the list of its batches.
    """
    queries: list[StreamingQuery] = []

    def start(interval: str) -> tuple[StreamingQuery, list[Batch]]:
        batches: list[Batch] = []
        query = (
            Reads(spark, live_server)
            .stream(tables=f"{busy}.wanted", idleOffsetInterval=interval)
            .writeStream.foreachBatch(
                lambda frame, _: batches.append(Batch(monotonic(), frame.collect()))
            )
            .option("checkpointLocation", str(tmp_path))
            .start()
        )
        queries.append(query)
        # Batch 0 is empty and makes the position durable.
        wait_until(lambda: len(batches) >= 1, "there is a batch 0")
        return query, batches

    yield start
    for query in queries:
        query.stop()


def test_empty_batches_keep_the_idle_interval(
    live_server: Server, stream: Starts, tmp_path: Path
) -> None:
    query, batches = stream(f"{INTERVAL:g}s")
    wait_until(lambda: len(batches) >= 2, "there is a batch 1")
    before, files_before = len(batches), len(live_server.binlog_files())
    # The offsets of later batches are requested after this batch has begun.
    began = batches[before - 1].at
    position = newest_offset(tmp_path)
    sleep(WATCHED)
    # Spark reports the progress of a batch after the next one has begun.
    wait_until(
        lambda: len(batches) > before + 1 and len(live_server.binlog_files()) > files_before,
        "the offset moves, and a file ends",
    )
    watched = batches[before:]
    lasted = monotonic() - began
    assert [batch.rows for batch in watched] == [[]] * len(watched)
    # The offset moves at most once per interval.
    assert len(watched) <= lasted / INTERVAL + 1
    assert newest_offset(tmp_path) > position
    assert query.isActive
    check_reported_offset(query.recentProgress)


def test_captured_rows_on_a_busy_server_arrive_at_once(
    live_server: Server, busy: str, stream: Starts
) -> None:
    # So long that no row would arrive in time if it waited for the next idle move.
    query, batches = stream("24h")
    for number in range(5):
        live_server.execute(f"INSERT INTO `{busy}`.wanted VALUES ({number})")
        wait_until(partial(has_delivered, batches, number + 1), f"row {number} arrives")
    # Each row arrived alone: no batch after batch 0 was empty or had two rows.
    assert [len(batch.rows) for batch in batches] == [0, 1, 1, 1, 1, 1]
    assert query.isActive


def has_delivered(batches: list[Batch], count: int) -> bool:
    return delivered(batches) == list(range(count))


def delivered(batches: list[Batch]) -> list[int]:
    return [json.loads(row.after)["id"] for batch in batches for row in batch.rows]


def newest_offset(checkpoint: Path) -> tuple[str, int]:
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    offset = json.loads(newest.read_text().splitlines()[-1])
    return offset["file"], offset["pos"]


def check_reported_offset(progress: list[Any]) -> None:
    """Check that `latestOffset` in the progress follows the tail and contains no schemas."""
    said = [json.loads(event.json)["sources"][0]["latestOffset"] for event in progress]
    reported = [offset for offset in said if offset is not None]
    assert len(reported) > 0
    for offset in reported:
        assert offset["schemas"] == ""
        assert offset["pos"] >= 4
    places = [(offset["file"], offset["pos"]) for offset in reported]
    assert places == sorted(places)
    assert places[-1] > places[0]
