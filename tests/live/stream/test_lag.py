"""The lag that a stream reports, compared with the end of the binlog that the server reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import Offset, Spark, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.tail import lag as lag_module

pytestmark = pytest.mark.one_server

Report = dict[str, Any]
# With heartbeats that report the server's end, and without, where the server has to be asked.
HEARTBEATS = pytest.mark.parametrize("heartbeat", ["1s", "1h"])


@pytest.fixture(autouse=True)
def _asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_module, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(lag_module, "_ASK_AFTER_SECONDS", 0.2)


@pytest.fixture
def other(any_server: Server, table: str) -> str:
    name = table.replace(".t", ".other")
    any_server.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


@pytest.fixture
def stream(any_server: Server, table: str, new_stream: NewStream) -> tuple[Spark, Offset]:
    return begun(any_server, table, new_stream)


def begun(
    server: Server, table: str, new_stream: NewStream, **options: str
) -> tuple[Spark, Offset]:
    """Return a stream after batch 0, with a tail, and its committed offset."""
    spark = new_stream(server, table, **options)
    start = spark.initial()
    assert spark.latest(start) == start
    assert spark.latest(start) == start
    return spark, start


def report(spark: Spark) -> Report:
    found = spark.reader.reportLatestOffset()
    assert found is not None
    return found


def reports(spark: Spark, ready: Callable[[Report], bool], what: str) -> Report:
    def look() -> Report | None:
        found = report(spark)
        return found if ready(found) else None

    return wait_until(look, what)


def bytes_between(server: Server, start: Offset) -> int:
    """Return the bytes up to the end by SHOW MASTER STATUS and SHOW BINARY LOGS."""
    file, pos = server.position()
    sizes = dict(server.binlog_files())
    before = [size for name, size in sizes.items() if start["file"] <= name < file]
    return sum(before) + pos - int(start["pos"])


def at_end(server: Server, found: Report) -> bool:
    server_position = found["server"]
    return (
        server_position is not None
        and (server_position["file"], server_position["pos"]) == server.position()
    )


def has_read(server: Server, found: Report) -> bool:
    """Return whether the tail has read to the server's end, too."""
    return at_end(server, found) and (found["file"], found["pos"]) == server.position()


def rotate(server: Server) -> None:
    """Rotate and wait for the new file's head: MariaDB writes its Binlog_checkpoint event later."""
    server.rotate()
    file, _ = server.position()
    if "mariadb" in server.version().lower():

        def is_checkpointed() -> bool:
            rows = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            return any(row[2] == "Binlog_checkpoint" and row[5] == file for row in rows)

        wait_until(is_checkpointed, f"{file} has a checkpoint of its own")


@HEARTBEATS
def test_bytes_behind_equal_the_distance_to_the_end_of_the_binlog(
    any_server: Server, table: str, new_stream: NewStream, heartbeat: str
) -> None:
    spark, start = begun(any_server, table, new_stream, heartbeatInterval=heartbeat)
    insert(any_server, table, *range(5))
    there = bytes_between(any_server, start)
    assert there > 0
    found = reports(
        spark,
        lambda it: it["bytes_behind"] == there and has_read(any_server, it),
        f"{there} bytes are reported",
    )
    assert found["delivered"] == {"file": start["file"], "pos": start["pos"]}
    assert found["seconds_behind"] >= 0
    end = spark.next_batch(start)
    while (end["file"], end["pos"]) != any_server.position():
        end = spark.next_batch(end)
    assert spark.latest(end) == end
    found = reports(spark, lambda it: has_read(any_server, it), "the server's end is reported")
    assert (found["bytes_behind"], found["seconds_behind"]) == (0, 0)
    assert (found["file"], found["pos"]) == any_server.position()


def test_lag_across_several_files_counts_bytes_and_files(
    any_server: Server, table: str, stream: tuple[Spark, Offset]
) -> None:
    spark, start = stream
    for number in range(3):
        insert(any_server, table, number)
        rotate(any_server)
    insert(any_server, table, 3)
    there = bytes_between(any_server, start)
    found = reports(spark, lambda it: it["bytes_behind"] == there, f"{there} bytes are reported")
    assert found["files_behind"] == 3
    end = spark.next_batch(start)
    while (end["file"], end["pos"]) != any_server.position():
        end = spark.next_batch(end)
    spark.latest(end)
    found = reports(spark, lambda it: has_read(any_server, it), "the server's end is reported")
    assert (found["bytes_behind"], found["files_behind"]) == (0, 0)


def test_restored_connection_is_counted_as_reconnect(
    any_server: Server, table: str, stream: tuple[Spark, Offset]
) -> None:
    spark, start = stream
    insert(any_server, table, 1)
    reports(spark, lambda it: has_read(any_server, it), "the dump is there")
    assert report(spark)["reconnects"] == 0
    any_server.kill_dumps()
    reports(spark, lambda it: it["reconnects"] == 1, "it is restored")
    end = spark.next_batch(start)
    assert len(spark.rows(start, end)) == 1


def test_bytes_behind_include_files_not_read_yet(
    any_server: Server, table: str, new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail is blocked, so the sizes come from the server."""
    monkeypatch.setattr(
        "pyspark_mysqlbinlog.connector.tail.transaction_scanner.LogBuffer.wait_for_room",
        lambda buffer: wait_until(lambda: buffer.closed, "the test is over"),
    )
    spark, start = begun(any_server, table, new_stream)
    for number in range(3):
        insert(any_server, table, number)
        rotate(any_server)
    insert(any_server, table, 3)
    there = bytes_between(any_server, start)
    found = reports(spark, lambda it: it["bytes_behind"] == there, f"{there} bytes are reported")
    assert found["file"] < found["server"]["file"]


@HEARTBEATS
def test_uncaptured_changes_do_not_count_as_lag(
    any_server: Server, table: str, other: str, new_stream: NewStream, heartbeat: str
) -> None:
    spark, start = begun(any_server, table, new_stream, heartbeatInterval=heartbeat)
    insert(any_server, other, *range(20))
    rotate(any_server)
    insert(any_server, other, *range(20, 40))
    found = reports(spark, lambda it: has_read(any_server, it), "the server's end is reported")
    assert (found["bytes_behind"], found["seconds_behind"]) == (0, 0)
    # The offset has not moved.
    assert found["delivered"] == {"file": start["file"], "pos": start["pos"]}
    assert found["last_event_time"] is not None


def test_seconds_behind_are_the_age_of_the_oldest_undelivered_change(
    any_server: Server, table: str, other: str, stream: tuple[Spark, Offset]
) -> None:
    spark, start = stream
    (now,) = any_server.execute("SELECT UNIX_TIMESTAMP()")[0]
    any_server.execute(
        f"SET TIMESTAMP = {now - 7200}",
        f"INSERT INTO {other} VALUES (1)",
        f"SET TIMESTAMP = {now - 3600}",
        f"INSERT INTO {table} (id) VALUES (1)",
        "SET TIMESTAMP = DEFAULT",
        f"INSERT INTO {table} (id) VALUES (2)",
    )
    found = reports(spark, lambda it: has_read(any_server, it), "rows are behind")
    assert found["bytes_behind"] > 0
    (later,) = any_server.execute("SELECT UNIX_TIMESTAMP()")[0]
    # The server reports whole seconds.
    assert 3600 - 2 <= found["seconds_behind"] <= later - now + 3600 + 2
    end = spark.next_batch(start)
    while (end["file"], end["pos"]) != any_server.position():
        end = spark.next_batch(end)
    assert spark.latest(end) == end
    found = reports(spark, lambda it: has_read(any_server, it), "the server's end is reported")
    assert found["seconds_behind"] == 0


def test_lag_is_unknown_if_the_known_end_of_the_binlog_is_stale(
    any_server: Server, table: str, new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, _ = begun(any_server, table, new_stream)
    reports(spark, lambda it: at_end(any_server, it), "the server's end is reported")
    tail = spark.reader.tail
    assert tail is not None
    tail.stop()
    monkeypatch.setattr(lag_module, "STALE_AFTER_SECONDS", -1e9)
    found = report(spark)
    assert found["server"] is found["bytes_behind"] is found["seconds_behind"] is None
