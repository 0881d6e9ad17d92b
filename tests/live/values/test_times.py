"""Times in a server's binlog, whose files are hours apart, and times given by a user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.types import StringType

from helpers.logs.live_log import client_of
from helpers.servers import LocalServer, Server
from helpers.streams.source_runner import Spark, ids
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.time_lookup import first_since
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema

pytestmark = pytest.mark.one_server

HOUR = 3600


def test_time_lookup_returns_the_first_position_since_that_time(
    any_server: Server, any_database: str
) -> None:
    """A session's timestamp is that of its transactions, and of the head of a file it starts."""
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    with client_of(any_server) as client:
        ((now,),) = client.query("SELECT UNIX_TIMESTAMP()")
        times = [int(now) + n * HOUR for n in range(1, 10)]
        # Other tests may have left older files whose times are later.
        client.query("FLUSH BINARY LOGS")
        for time in times:
            client.query(f"SET TIMESTAMP = {time}")
            client.query("FLUSH BINARY LOGS")
            client.query(f"INSERT INTO {any_database}.t VALUES ({time - int(now)})")
        begins = [Position.of(file, 4) for file in binlog_files(client)][-len(times) - 1 :]
        # Later events have the clock's time again.
        client.query("SET TIMESTAMP = DEFAULT")
        client.query("FLUSH BINARY LOGS")
    log = ServerLog(any_server.settings(ssl_mode="DISABLED"))
    expected = begins[1:]
    for time, begin in zip(times, expected, strict=True):
        assert first_since(log, begins, time) == begin
        assert first_since(log, begins, time - HOUR / 2) == begin
    assert first_since(log, begins, times[-1] + 1) is None
    assert first_since(log, expected[3:], times[0]) == expected[3]


def batch(server: Server, **options: str) -> list[int]:
    """Return the ids of a batch read."""
    given = server.options(tables="d.t", payload="json") | options
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    batches = [each for part in reader.partitions() for each in reader.read(part)]
    return ids([row for each in batches for row in each.to_pylist()])


def streamed(stream: Spark) -> list[int]:
    """Return the ids of all rows from the start on."""
    start = stream.initial()
    assert stream.latest(start) == start
    stream.reader.prepareForTriggerAvailableNow()
    found: list[int] = []
    while (end := stream.latest(start)) != start:
        found += ids(stream.rows(start, end))
        start = end
    return found


def test_times_as_offsets_select_the_rows_between_them(
    own_server: LocalServer, new_stream: NewStream
) -> None:
    """The server is new, so its binlog has no times later than these."""
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    times = [first + timedelta(hours=hours) for hours in range(3)]
    own_server.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        *(
            sql
            for number, time in enumerate(times, 1)
            for sql in (
                f"SET timestamp = {time.timestamp():.0f}",
                f"INSERT INTO d.t VALUES ({number})",
            )
        ),
    )
    elsewhere = timezone(timedelta(hours=-3, minutes=-30))
    expected = {
        times[0].isoformat(): [1, 2, 3],
        times[1].isoformat(): [2, 3],
        times[1].astimezone(elsewhere).isoformat(): [2, 3],
        times[1].replace(tzinfo=None).isoformat(" "): [2, 3],
        (times[1] + timedelta(seconds=1)).isoformat(): [3],
    }
    for text, numbers in expected.items():
        assert batch(own_server, startingOffset=text) == numbers, text
        assert streamed(new_stream(own_server, "d.t", startingOffset=text)) == numbers, text
        before = [number for number in (1, 2, 3) if number not in numbers]
        assert batch(own_server, endingOffset=text) == before, text
    begin, end = times[1].isoformat(), times[2].isoformat()
    assert batch(own_server, startingOffset=begin, endingOffset=end) == [2]
    assert batch(own_server, startingOffset=begin, endingOffset=begin) == []
