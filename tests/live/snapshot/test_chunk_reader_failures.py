"""Chunk reads by executors whose connection or server breaks, or whose reader is closed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import Any

import pytest

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.servers import LocalServer, Server
from helpers.servers.available import every_server
from helpers.snapshots.chunk_readings import (
    Reading,
    Row,
    fill,
    place,
    planned,
    with_table,
)
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.snapshot.reading import chunk_reader
from pyspark_mysqlbinlog.errors import BinlogReplacedError, ServerError

pytestmark = pytest.mark.one_server

DATABASE = "broken_chunks"
T = (DATABASE, "t")


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server in turn, with a table of 100 rows."""
    with with_table(request.getfixturevalue(request.param), DATABASE) as found:
        yield found


@pytest.fixture
def large(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return a server whose table has 30 MB, of which 1 MB is fetched ahead."""
    monkeypatch.setattr(chunk_reader, "_AHEAD_BYTES", 1 << 20)
    fill_large(server)
    return server


def fill_large(server: Server) -> None:
    server.execute(f"ALTER TABLE {DATABASE}.t ADD b LONGTEXT")
    server.execute(f"UPDATE {DATABASE}.t SET b = REPEAT(CHAR(65 + id % 26), 300000)")


def assert_all(rows: list[Row]) -> None:
    """Check that every row is present and that no retried row has an older watermark."""
    last: dict[int, tuple[str, int]] = {}
    for row in rows:
        image = json.loads(row["after"])
        assert image["b"] == chr(65 + image["id"] % 26) * 300000
        assert place(row) >= last.get(image["id"], ("", 0))
        last[image["id"]] = place(row)
    assert sorted(last) == list(range(1, 101))


def only(server: Server, query: str) -> list[tuple[Any, ...]] | None:
    """Return the rows of a query if there is only one query."""
    found = server.execute(query)
    return found if len(found) == 1 else None


@pytest.mark.parametrize("what", ["CONNECTION", "QUERY"])
def test_killed_snapshot_query_is_retried_with_a_new_watermark(large: Server, what: str) -> None:
    batches = Reading(large, Chunk(T)).batches()
    rows = next(batches).to_pylist()
    start = place(rows[0])
    large.execute(f"UPDATE {DATABASE}.t SET v = -1 WHERE id = 100")
    query = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SQL_NO_CACHE%'"
    ((thread,),) = wait_until(partial(only, large, query), "the SELECTs of other tests have ended")
    large.execute(f"KILL {what} {thread}")
    rows += [row for batch in batches for row in batch.to_pylist()]
    assert_all(rows)
    assert len(rows) > 100
    ends = [(place(row), json.loads(row["after"])["v"]) for row in rows][-1]
    assert ends[0] > start
    assert ends[1] == -1


def test_snapshot_is_complete_after_repeated_disconnects(
    large: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections are cut inside the result and in the queries before it."""
    chunks = planned(large, T, 40)
    more = [*range(100, 6000, 700), *repeat(3_000_000, 4)]
    settings = large.settings()
    with cutting_proxy(settings.host, settings.port, iter(more)) as proxy:
        reading = Reading(large, *chunks, host="127.0.0.1", port=str(proxy.port))
        assert_all(reading.rows())
        # The connections of visibility checks close before they are cut.
        assert 6 <= proxy.cuts <= len(more)
    assert caplog.text.count("inside a result") >= 2
    assert "does not answer while running" in caplog.text


def test_snapshot_fails_after_five_broken_connections(
    large: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_reader, "_RETRY_SECONDS", 0.5)
    settings = large.settings()
    with cutting_proxy(settings.host, settings.port, repeat(3_000_000)) as proxy:
        reading = Reading(large, Chunk(T), host="127.0.0.1", port=str(proxy.port))
        with pytest.raises(ServerError, match=r"inside a result|broke"):
            reading.rows()
        assert proxy.cuts == 5


def test_closing_a_chunk_reader_ends_its_thread_and_query(large: Server) -> None:
    before = {*threading.enumerate()}
    batches = Reading(large, Chunk(T)).batches()
    next(batches)
    # `batches` is a generator, annotated as an iterator.
    batches.close()  # type: ignore[attr-defined]
    # Some of the tests before may end meanwhile.
    assert {*threading.enumerate()} <= before
    query = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SQL_NO_CACHE%'"
    wait_until(lambda: not large.execute(query), "the server is done with it", 30)


def test_snapshot_is_complete_after_server_restart(
    own_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_reader, "_AHEAD_BYTES", 1 << 20)
    monkeypatch.setattr(chunk_reader, "_RETRY_SECONDS", patience(600))
    own_server.execute(f"CREATE DATABASE {DATABASE}")
    fill(own_server, DATABASE)
    fill_large(own_server)
    batches = Reading(own_server, Chunk(T)).batches()
    rows = next(batches).to_pylist()
    own_server.kill()
    starting = threading.Timer(1, own_server.start)
    starting.start()
    rows += [row for batch in batches for row in batch.to_pylist()]
    starting.join()
    assert_all(rows)
    assert place(rows[-1]) > place(rows[0])


def test_binlog_ending_before_the_batch_raises_binlog_replaced_error(server: Server) -> None:
    """After RESET MASTER, the watermark would be before changes that the sink already has."""
    reading = Reading(server, Chunk(T))
    since = Position.of(*server.position())
    reading.partition.since = since
    assert len(reading.rows()) == 100
    reading.partition.since = since._replace(pos=since.pos + 1)
    with pytest.raises(BinlogReplacedError, match=f"it ends at {since}, before it"):
        reading.rows()
