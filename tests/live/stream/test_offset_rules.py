"""Rules of the offset calls, each found through lost rows, on real servers without a JVM.

The tests drive the reader as Spark's source runner does: `initialOffset`, then `latestOffset` from
the last end, then `partitions` and `read`. Offsets go through JSON, as Spark stores them.
"""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from helpers.servers import Server
from helpers.streams.source_runner import Spark, ids, insert
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.source import stream_reader
from pyspark_mysqlbinlog.connector.source.stream import tails
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer

pytestmark = pytest.mark.one_server


@pytest.fixture
def table(any_server: Server, any_database: str) -> str:
    any_server.execute(f"CREATE TABLE `{any_database}`.t (id INT PRIMARY KEY, v VARCHAR(20))")
    any_server.execute(f"CREATE TABLE `{any_database}`.other (id INT PRIMARY KEY)")
    return f"{any_database}.t"


@pytest.fixture
def stream(any_server: Server, table: str, new_stream: NewStream) -> Spark:
    return new_stream(any_server, table)


class Clock:
    """A replacement of the reader's time.monotonic that only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_initial_offset_is_the_same_every_time(
    any_server: Server, table: str, stream: Spark
) -> None:
    first = stream.initial()
    insert(any_server, table, 1)
    assert stream.initial() == first


def test_batch_zero_is_empty_and_loses_nothing(
    any_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    insert(any_server, table, 1, 2)
    assert stream.latest(start) == start
    assert stream.rows(start, start) == []
    got: list[int] = []
    while len(got) < 2:
        end = stream.next_batch(start)
        got += ids(stream.rows(start, end))
        start = end
    assert got == [1, 2]


def test_batch_zero_replayed_in_a_new_process_is_empty(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    """The first process died after storing batch 0's offset; Spark asks for the start again."""
    first = new_stream(any_server, table)
    stored = first.initial()
    insert(any_server, table, 1)
    second = new_stream(any_server, table)
    later = second.initial()
    assert later["pos"] > stored["pos"]
    assert second.rows(later, stored) == []
    end = second.next_batch(stored)
    assert ids(second.rows(stored, end)) == [1]


def test_batch_zero_replayed_with_an_earlier_start_is_empty(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    insert(any_server, table, 1)
    stored = new_stream(any_server, table).initial()
    second = new_stream(any_server, table, startingOffset="earliest")
    assert second.rows(second.initial(), stored) == []


def test_available_now_delivers_exactly_the_rows_before_its_start(
    any_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    insert(any_server, table, *range(100))
    stream.reader.prepareForTriggerAvailableNow()
    insert(any_server, table, 1000)  # not for this run
    assert stream.latest(start) == start
    got: list[int] = []
    end = stream.latest(start)
    while end != start:
        got += ids(stream.rows(start, end))
        start, end = end, stream.latest(end)
    assert got == list(range(100))


def test_available_now_without_a_backlog_ends(
    any_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    stream.reader.prepareForTriggerAvailableNow()
    assert stream.latest(start) == start
    assert stream.latest(start) == start


@pytest.mark.parametrize("rotations", [0, 1, 3])
def test_available_now_ends_when_only_uncaptured_tables_changed(
    any_server: Server, table: str, stream: Spark, rotations: int
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    insert(any_server, table.replace(".t", ".other"), *range(10))
    for _ in range(rotations):
        any_server.rotate()
    stream.reader.prepareForTriggerAvailableNow()
    batches = 0
    while (end := stream.latest(start)) != start:
        assert stream.rows(start, end) == []
        start = end
        batches += 1
    assert batches <= 1


def test_trigger_once_delivers_the_whole_backlog(
    any_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    insert(any_server, table, *range(50))
    stream.limit = ReadAllAvailable()
    assert ids(stream.rows(start, stream.latest(start))) == list(range(50))


def test_bytes_limit_splits_batches_between_transactions(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(any_server, table, maxBytesPerTrigger="1")
    start = stream.initial()
    assert stream.latest(start) == start
    insert(any_server, table, 1, 2, 3)
    values = ", ".join(f"({number})" for number in range(10, 20))
    any_server.execute(f"INSERT INTO {table} (id) VALUES {values}")
    batches: list[list[int]] = []
    while sum(map(len, batches)) < 13:
        end = stream.next_batch(start)
        batches.append(ids(stream.rows(start, end)))
        start = end
    assert batches == [[1], [2], [3], list(range(10, 20))]


def test_fetched_replay_equals_the_inline_batch(
    any_server: Server, table: str, stream: Spark, new_stream: NewStream
) -> None:
    """Inline at first, fetched after a restart: the rows are equal, with `seq` and `source`."""
    start = stream.initial()
    assert stream.latest(start) == start
    assert stream.latest(start) == start  # here the tail begins
    insert(any_server, table, 1, 2)
    any_server.rotate()
    any_server.execute(f"UPDATE {table} SET v = 'x'", f"DELETE FROM {table} WHERE id = 1")
    any_server.execute(f"TRUNCATE TABLE {table}")
    # A single batch, so that it is inline as a whole: the buffer drops data that Spark has taken.
    stream.wait_for_tail(any_server)
    end = stream.next_batch(start)
    rows = stream.rows(start, end)
    assert [row["op"] for row in rows] == ["c", "c", "u", "u", "d", "t"]
    assert stream.carried(start, end) == [True]
    again = new_stream(any_server, table)
    assert again.carried(start, end) == [False]
    assert again.rows(start, end) == rows


def test_uncaptured_changes_move_the_offset_once_per_idle_interval(
    any_server: Server, table: str, new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(stream_reader, "monotonic", clock)
    stream = new_stream(any_server, table, idleOffsetInterval="3s")
    start = stream.initial()
    assert stream.latest(start) == start
    assert stream.latest(start) == start  # here the tail begins
    other = table.replace(".t", ".other")
    insert(any_server, other, 1)
    stream.wait_for_tail(any_server)
    clock.now += 2.5
    assert stream.latest(start) == start
    clock.now += 0.5
    moved = stream.latest(start)
    assert (moved["file"], moved["pos"]) == any_server.position()
    assert stream.rows(start, moved) == []
    # The next move is due three seconds later, however much is logged before.
    insert(any_server, other, *range(2, 30))
    any_server.rotate()
    stream.wait_for_tail(any_server)
    clock.now += 2.5
    assert stream.latest(moved) == moved
    clock.now += 0.5
    assert stream.latest(moved)["pos"] == 4


def test_captured_rows_after_an_idle_offset_are_not_lost(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(any_server, table, idleOffsetInterval="1ms")
    start = stream.initial()
    assert stream.latest(start) == start
    other = table.replace(".t", ".other")
    got: list[int] = []
    for number in range(1, 40):
        insert(any_server, other, number)
        if number % 3 == 0:
            insert(any_server, table, number)
        if number % 7 == 0:
            any_server.rotate()
        end = stream.latest(start)
        got += ids(stream.rows(start, end))
        start = end
    while len(got) < 13:
        end = stream.next_batch(start)
        got += ids(stream.rows(start, end))
        start = end
    assert got == [number for number in range(1, 40) if number % 3 == 0]


def test_offset_after_rotation_is_the_start_of_the_next_file(
    any_server: Server, table: str, stream: Spark, new_stream: NewStream
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    assert stream.latest(start) == start  # here the tail begins
    insert(any_server, table, 1)
    any_server.rotate()
    file, _ = any_server.position()
    # Between the row and the rotation, the answer would be the boundary before the rotation.
    stream.wait_for_tail(any_server)
    end = stream.latest(start)
    assert (end["file"], end["pos"]) == (file, 4)
    fresh = new_stream(any_server, table).initial()
    assert (fresh["file"], fresh["pos"]) == (file, 4)
    assert fresh["schemas"] == end["schemas"]


def test_stream_with_killed_connections_delivers_each_row_once(
    any_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    got: list[int] = []
    for number in range(1, 6):
        insert(any_server, table, number)
        while number not in got:
            end = stream.next_batch(start)
            got += ids(stream.rows(start, end))
            start = end
        for thread in any_server.dump_threads():
            any_server.execute(f"KILL {thread}")
    assert got == [1, 2, 3, 4, 5]


def test_batch_of_dropped_table_is_decoded_by_schemas_in_the_offset(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    """The later reader takes the columns from `schemas` in the offset."""
    stream = new_stream(any_server, table)
    start = stream.initial()
    assert stream.latest(start) == start
    insert(any_server, table, 1)
    end = stream.next_batch(start)
    any_server.execute(f"DROP TABLE {table}")
    later = new_stream(any_server, table)
    assert ids(later.rows(start, end)) == [1]


def test_transaction_larger_than_the_buffer_is_split_without_changing_rows(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    """It is cut at row events, and each piece has the table maps that it needs."""
    stream = new_stream(
        any_server, table, bufferBytes="1m", targetPartitionBytes="1", maxConnections="6"
    )
    start = stream.initial()
    assert stream.latest(start) == start
    other = table.replace(".t", ".other")
    with any_server.connect() as connection, connection.cursor() as cursor:
        texts = "annotate_row_events" if any_server.is_mariadb else "rows_query_log_events"
        cursor.execute(f"SET SESSION binlog_{texts} = ON")
        cursor.execute(f"ALTER TABLE {other} ADD filler VARCHAR(20000) CHARACTER SET latin1")
        cursor.execute("BEGIN")
        for number in range(100):
            ids_here = range(1000 * number, 1000 * number + 1000)
            cursor.execute(
                f"INSERT INTO {table} (id) VALUES " + ",".join(f"({i})" for i in ids_here)
            )
            cursor.execute(
                f"INSERT INTO {other} VALUES "
                + ",".join(f"({i}, REPEAT('x', 20000))" for i in ids_here[:10])
            )
        # One statement larger than the buffer: its table maps are only at its beginning.
        cursor.execute(f"UPDATE {table} SET v = REPEAT('y', 20)")
        cursor.execute("COMMIT")
    end = stream.next_batch(start)
    parts = stream.reader.partitions(start, end)
    assert len(parts) == 6
    rows = stream.rows(start, end)
    assert len(rows) == 200_000
    again = new_stream(any_server, table)
    assert len(again.reader.partitions(start, end)) == 1
    assert rows == again.rows(start, end)
    assert sum(row["source"]["query"].startswith("UPDATE") for row in rows) == 100_000


def test_rows_limit_splits_batches_between_transactions(
    any_server: Server, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(any_server, table, maxRowsPerTrigger="10")
    start = stream.initial()
    assert stream.latest(start) == start
    for first in range(0, 60, 4):
        values = ", ".join(f"({number})" for number in range(first, first + 4))
        any_server.execute(f"INSERT INTO {table} (id) VALUES {values}")
    any_server.execute(f"UPDATE {table} SET v = 'x'")
    stream.reader.prepareForTriggerAvailableNow()
    counts = []
    while (end := stream.latest(start)) != start:
        counts.append(len(stream.rows(start, end)))
        start = end
    assert counts == [8] * 7 + [4, 60]


@pytest.mark.parametrize("trigger", ["available now", "once"])
def test_full_buffer_index_does_not_block_available_now_or_once(
    any_server: Server,
    table: str,
    new_stream: NewStream,
    monkeypatch: pytest.MonkeyPatch,
    trigger: str,
) -> None:
    """The tail waits for Spark and Spark for the tail; neither may wait indefinitely."""
    monkeypatch.setattr(tails, "LogBuffer", partial(LogBuffer, most_spans=4))
    stream = new_stream(any_server, table, maxBytesPerTrigger="8000")
    start = stream.initial()
    assert stream.latest(start) == start
    insert(any_server, table, *range(100))
    if trigger == "once":
        stream.limit = ReadAllAvailable()
    else:
        stream.reader.prepareForTriggerAvailableNow()
    got: list[int] = []
    batches = 0
    while len(got) < 100 and batches < 100:
        end = stream.latest(start)
        got += ids(stream.rows(start, end))
        start = end
        batches += 1
    assert got == list(range(100))
    assert batches > 1 if trigger == "available now" else batches == 1
