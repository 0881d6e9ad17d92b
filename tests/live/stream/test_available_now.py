"""Trigger.AvailableNow right after the start: every run delivers all existing rows and ends.

The tail has read nothing yet when Spark first asks for the latest offset. A source that answers
"nothing new" would end the run without rows and without an error.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.waiting import patience

LOG = logging.getLogger(__name__)

MB = 1 << 20


@dataclass
class Arrived:
    """A sink that keeps (id, CRC32 of body) of every row, and the row count of each batch.

    seconds : duration of the run.
    """

    rows: list[tuple[int, int]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def __call__(self, frame: DataFrame, _: int) -> None:
        found = frame.select(
            sf.get_json_object("after", "$.id").cast("bigint"),
            sf.crc32(sf.get_json_object("after", "$.body").cast("binary")),
        ).collect()
        self.rows += [(int(row[0]), int(row[1])) for row in found]
        self.batches.append(len(found))


@dataclass(frozen=True)
class Log:
    """A part of a server's binlog with inserts into one table, and other traffic."""

    server: Server
    database: str
    begin: tuple[str, int]

    @classmethod
    def write(cls, server: Server, database: str, size: int) -> Log:
        """Write about `size` bytes: bulk inserts, single rows, an uncaptured table, rotations."""
        server.execute(
            "CREATE TABLE wanted (id INT PRIMARY KEY, body VARCHAR(1000) CHARACTER SET utf8mb4)",
            "CREATE TABLE unwanted (id INT PRIMARY KEY, body VARCHAR(1000) CHARACTER SET utf8mb4)",
            database=database,
        )
        begin = server.position()
        draw = random.Random(size)
        written = key = 0
        with server.connect(database=database) as connection, connection.cursor() as cursor:
            while written < size:
                many = draw.choice([1, 1, 1, 1, 50, 200])
                bodies = [
                    draw.randbytes(draw.randrange(450)).hex() + "ü\U0001f600" for _ in range(many)
                ]
                rows = [(key + number, body) for number, body in enumerate(bodies, start=1)]
                key += many
                table = "unwanted" if draw.random() < 0.1 else "wanted"
                cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", rows)
                written += sum(map(len, bodies)) + 200
                if draw.random() < 0.004:
                    cursor.execute("FLUSH BINARY LOGS")
        # The binlog ends with uncaptured changes and a rotation; the offset must move there, too.
        server.execute("INSERT INTO unwanted VALUES (-1, 'last')", database=database)
        server.rotate()
        return cls(server, database, begin)

    @property
    def size(self) -> int:
        """The number of bytes in the binlog from `begin` on."""
        file, pos = self.begin
        return sum(size for name, size in self.server.binlog_files() if name >= file) - pos

    def rows(self) -> list[tuple[int, int]]:
        """Return the rows that SELECT shows, in the form of `Arrived.rows`."""
        found = self.server.execute("SELECT id, CRC32(body) FROM wanted", database=self.database)
        return sorted((int(row[0]), int(row[1])) for row in found)


def _run(spark: SparkSession, log: Log, checkpoint: Path, **options: str) -> Arrived:
    """Run one query to its end and return the rows that arrived."""
    arrived = Arrived()
    begun = time.monotonic()
    query = (
        Reads(spark, log.server)
        .stream(
            tables=f"{log.database}.wanted",
            startingOffset=":".join(map(str, log.begin)),
            **options,
        )
        .writeStream.foreachBatch(arrived)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(patience(300))
    assert query.exception() is None
    arrived.seconds = time.monotonic() - begun
    LOG.info("a run of %d batches took %.1f s", len(arrived.batches), arrived.seconds)
    return arrived


def _back_to_batch_zero(checkpoint: Path) -> None:
    """Reset a checkpoint to its state after the commit of batch 0, which is empty."""
    for name in ("offsets", "commits"):
        for path in (checkpoint / name).iterdir():
            if path.name not in {"0", ".0.crc"}:
                path.unlink()


def _run_again_and_again(
    spark: SparkSession, log: Log, folder: Path, times: int, **options: str
) -> None:
    """Alternate runs without a checkpoint and runs from a checkpoint at the start of the binlog.

    The second kind is harder: Spark has nothing else to do before it asks for the latest offset.
    """
    expected = log.rows()
    assert len(expected) > 100
    took = []
    for number in range(times):
        checkpoint = folder / str(number // 2)
        if number % 2:
            _back_to_batch_zero(checkpoint)
        arrived = _run(spark, log, checkpoint, **options)
        assert sorted(arrived.rows) == expected, f"run {number}: {arrived.batches}"
        took.append(arrived.seconds)
    LOG.info(
        "%d runs over %.1f MB of log with %d wanted rows: %.1f to %.1f s each, %d batches",
        times,
        log.size / MB,
        len(expected),
        min(took),
        max(took),
        len(arrived.batches),
    )


def test_available_now_delivers_all_rows_with_and_without_a_checkpoint(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, 3 * MB)
    _run_again_and_again(spark, log, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_available_now_runs_deliver_all_rows_of_fifty_megabytes(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, 50 * MB)
    assert log.size > 50 * MB
    _run_again_and_again(spark, log, tmp_path / "whole", 20)
    _run_again_and_again(spark, log, tmp_path / "small", 2, maxBytesPerTrigger="1m")


def test_available_now_in_small_batches_delivers_all_rows(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, 2 * MB)
    arrived = _run(spark, log, tmp_path / "checkpoint", maxBytesPerTrigger="200k")
    assert sorted(arrived.rows) == log.rows()
    assert len(arrived.batches) > 6
    # Batch 0 makes the start durable; a batch without captured rows only moves to the end.
    assert all(arrived.batches[1:-1])


def test_available_now_without_new_changes_runs_no_batch(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, MB // 4)
    checkpoint = tmp_path / "checkpoint"
    arrived = _run(spark, log, checkpoint)
    assert sorted(arrived.rows) == log.rows()

    again = _run(spark, log, checkpoint)
    assert again.batches == []

    live_server.execute("INSERT INTO wanted VALUES (-5, 'new')", database=database)
    later = _run(spark, log, checkpoint)
    assert sorted(later.rows + arrived.rows) == log.rows()
    assert len(later.rows) == 1


def test_available_now_with_only_uncaptured_changes_moves_to_the_end(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, MB // 4)
    checkpoint = tmp_path / "checkpoint"
    _run(spark, log, checkpoint)

    live_server.execute(
        *(f"INSERT INTO unwanted VALUES ({-number}, 'more')" for number in range(10, 1010)),
        database=database,
    )
    arrived = _run(spark, log, checkpoint)
    assert arrived.rows == []
    # The run moved to the end of the binlog, so the next run has nothing to do.
    again = _run(spark, log, checkpoint)
    assert again.batches == []


def test_available_now_ends_during_continuous_writes(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    log = Log.write(live_server, database, MB // 4)
    ended = Event()

    def write() -> None:
        with live_server.connect(database=database) as connection, connection.cursor() as cursor:
            number = 1_000_000
            while not ended.wait(0.002):
                number += 1
                cursor.execute("INSERT INTO wanted VALUES (%s, 'meanwhile')", (number,))

    checkpoint = tmp_path / "checkpoint"
    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        before = log.rows()
        arrived = _run(spark, log, checkpoint)
    finally:
        ended.set()
        writer.join()
    assert set(before) <= set(arrived.rows)
    # Rows that were committed during this run and not delivered belong to the next run.
    rest = _run(spark, log, checkpoint)
    assert sorted(arrived.rows + rest.rows) == log.rows()
