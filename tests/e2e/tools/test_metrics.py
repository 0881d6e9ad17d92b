"""The listener's metrics of a stream, above all its lag, compared with the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog import MySQLBinlogMetrics
from pyspark_mysqlbinlog.connector.metrics import listener
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics


@pytest.fixture
def metrics(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[MySQLBinlogMetrics]:
    """Yield a listener that gets the progress of an idle query several times a second."""
    monkeypatch.setattr(listener, "_POLL_SECONDS", 0.1)
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "200")
    found = MySQLBinlogMetrics(spark, log_interval=None)
    spark.streams.addListener(found)
    yield found
    spark.streams.removeListener(found)
    found.close()
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")


class Gate:
    """A sink that blocks at batches with rows while it is closed."""

    def __init__(self) -> None:
        self.opened = Event()
        self.opened.set()
        self.rows = 0

    def __call__(self, batch: DataFrame, _: int) -> None:
        count = batch.count()
        if count:
            assert self.opened.wait(patience(300)), "the gate was not opened"
        self.rows += count


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def query(
    spark: SparkSession, live_server: Server, database: str, gate: Gate, tmp_path: Path
) -> Iterator[StreamingQuery]:
    """Yield a stream of the table `t` into the gate."""
    live_server.execute(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY)")
    running = (
        Reads(spark, live_server)
        .stream(tables=f"{database}.t", heartbeatInterval="1s")
        .writeStream.foreachBatch(gate)
        .queryName("delivered")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    yield running
    gate.opened.set()
    running.stop()


def is_idle(query: StreamingQuery) -> bool:
    """Return whether the last progress was reported without a batch."""
    last = query.lastProgress
    return last is not None and "addBatch" not in last.durationMs


def test_lag_is_zero_when_idle_and_grows_while_changes_are_missing(
    live_server: Server,
    database: str,
    metrics: MySQLBinlogMetrics,
    gate: Gate,
    query: StreamingQuery,
) -> None:
    def now() -> QueryMetrics | None:
        return next((each for each in metrics.metrics() if each.query == "delivered"), None)

    def has_lag(at_least: float, at_most: float | None = None) -> bool:
        found = now()
        lag = None if found is None else found.lag_seconds
        return lag is not None and lag >= at_least and (at_most is None or lag <= at_most)

    wait_until(lambda: has_lag(0, 0), "the query is idle")
    gate.opened.clear()
    live_server.execute(f"INSERT INTO `{database}`.t VALUES (1), (2)")
    # The batch is blocked, so Spark reports no progress of it.
    wait_until(lambda: has_lag(0.1), "a change is missing")
    before = now()
    assert before is not None
    assert before.lag_seconds is not None
    older = before.lag_seconds + 1
    wait_until(lambda: has_lag(older), "it gets older")
    # This change is not planned before the sink has the first batch.
    live_server.execute(f"INSERT INTO `{database}`.t VALUES (3)")
    wait_until(lambda: has_lag(older + 1), "the oldest counts")
    gate.opened.set()
    wait_until(lambda: gate.rows == 3, "everything is delivered")
    # A batch runs until Spark has committed it; then Spark plans, and finds nothing.
    wait_until(lambda: is_idle(query), "the query is idle again")
    wait_until(lambda: (found := now()) is not None and found.rows == 3, "rows are counted")
    wait_until(lambda: has_lag(0, 0), "nothing is missing")
    found = now()
    assert found is not None
    assert found.is_active
    assert found.source is not None
    # Without changes there is no lag, however often Spark reports progress.
    seen: set[str] = set()
    while len(seen) < 10:
        assert has_lag(0, 0)
        last = query.lastProgress
        assert last is not None
        seen.add(last.timestamp)
    found = now()
    assert found is not None
    assert found.source is not None
    assert (found.source.lag_bytes, found.source.lag_files) == (0, 0)
    assert (found.source.file, found.source.pos) == live_server.position()
    assert found.batches.count >= 2
    query.stop()
    wait_until(
        lambda: (found := now()) is not None and not found.is_active,
        "the end of the query is printed",
    )
    found = now()
    assert found is not None
    assert found.lag_seconds is None


def test_metrics_of_a_mirror_report_its_tables(
    metrics: MySQLBinlogMetrics,
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
) -> None:
    shop = MirroredDatabase(spark, live_server, database, tmp_path)
    shop.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    mirror = shop.mirror()
    metrics.mirrors.append(mirror)
    query = mirror.start(spark)

    def tables() -> list[tuple[str, int, str | None]]:
        return [
            (each.name, each.rows, each.stopped)
            for found in metrics.metrics()
            if found.query == mirror.query_id
            for each in found.tables
        ]

    try:
        wait_until(lambda: tables() == [(f"{database}.t", 2, None)], "the table is reported")
    finally:
        query.stop()
