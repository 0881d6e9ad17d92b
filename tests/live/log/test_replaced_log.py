"""A binlog replaced by another one with the same file names: no row may be skipped.

Each test has its own server, because RESET MASTER removes all of a server's binlog files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.servers import LocalServer
from helpers.streams.source_runner import Offset, Spark, ids, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log import replacement
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import BinlogReplacedError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

pytestmark = pytest.mark.one_server

TABLE = "shop.t"


@pytest.fixture
def shop(own_server: LocalServer) -> LocalServer:
    own_server.execute("CREATE DATABASE shop", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
    own_server.reset_binlog()
    return own_server


def follow(stream: Spark, start: Offset, count: int) -> tuple[list[int], Offset]:
    got: list[int] = []
    while len(got) < count:
        end = stream.next_batch(start)
        got += ids(stream.rows(start, end))
        start = end
    return got, start


def stopped(new_stream: NewStream, server: LocalServer) -> tuple[Offset, Offset]:
    """Return the first and the last offset of a stream that has delivered two rows."""
    stream = new_stream(server, TABLE)
    start = stream.initial()
    assert stream.latest(start) == start
    insert(server, TABLE, 1, 2)
    got, end = follow(stream, start, 2)
    assert got == [1, 2]
    stream.reader.stop()
    return start, end


def grow_to(server: LocalServer, place: Offset, first: int) -> None:
    """Insert rows until the binlog reaches or passes a position."""
    while server.position() < (place["file"], place["pos"]):
        insert(server, TABLE, first)
        first += 1


def with_same_sizes(server: LocalServer, place: Offset) -> None:
    server.reset_binlog()
    insert(server, TABLE, 3, 4)
    assert server.position() == (place["file"], place["pos"])


def with_more(server: LocalServer, place: Offset) -> None:
    server.reset_binlog()
    insert(server, TABLE, 3, 4, 5)


def with_less(server: LocalServer, place: Offset) -> None:
    server.reset_binlog()
    insert(server, TABLE, 3)


def with_other_sizes(server: LocalServer, place: Offset) -> None:
    """Replace the binlog by one in which no event ends at the position."""
    server.reset_binlog()
    server.execute(f"INSERT INTO {TABLE} VALUES (3), (4), (5)")
    grow_to(server, place, 6)
    assert server.position() != (place["file"], place["pos"])


REPLACED = [with_same_sizes, with_more, with_less, with_other_sizes]


@pytest.mark.parametrize("trigger", ["default", "available now"])
@pytest.mark.parametrize("replace", REPLACED)
def test_reset_master_while_stopped_raises_binlog_replaced_error(
    shop: LocalServer,
    new_stream: NewStream,
    replace: Callable[[LocalServer, Offset], None],
    trigger: str,
) -> None:
    start, end = stopped(new_stream, shop)
    replace(shop, end)
    stream = new_stream(shop, TABLE)
    go_on = stream.next_batch
    if trigger == "available now":
        stream.reader.prepareForTriggerAvailableNow()
        go_on = stream.latest
    with pytest.raises(BinlogReplacedError, match=r"RESET MASTER.* new checkpoint"):
        go_on(end)
    # Nor is the batch before it replayed with other rows.
    with pytest.raises(MySQLBinlogError) as refused:
        new_stream(shop, TABLE).rows(start, end)
    assert isinstance(refused.value, BinlogReplacedError)


def with_same_sizes_and_more(server: LocalServer, place: Offset) -> None:
    with_same_sizes(server, place)
    insert(server, TABLE, 5)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "replace", [with_same_sizes_and_more, with_more, with_less, with_other_sizes]
)
def test_reset_master_while_running_raises_binlog_replaced_error(
    shop: LocalServer,
    new_stream: NewStream,
    replace: Callable[[LocalServer, Offset], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dump can continue with heartbeats of a removed file, as if nothing were written."""
    monkeypatch.setattr(replacement, "_IDLE_CHECK_SECONDS", 0.5)
    stream = new_stream(shop, TABLE)
    start = stream.initial()
    assert stream.latest(start) == start
    insert(shop, TABLE, 1, 2)
    got, end = follow(stream, start, 2)
    assert got == [1, 2]
    replace(shop, end)
    # No row of the new binlog may be delivered, before or after the old position.
    with pytest.raises(BinlogReplacedError, match=r"RESET MASTER.* new checkpoint"):
        stream.next_batch(end)


def test_idle_stream_keeps_its_connection_during_replacement_checks(
    shop: LocalServer, new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked for its position at every heartbeat in this test."""
    monkeypatch.setattr(replacement, "_IDLE_CHECK_SECONDS", 0.0)
    asked: list[Position] = []

    def asking(client: ReplicaClient) -> Position:
        asked.append(current_position(client))
        return asked[-1]

    monkeypatch.setattr(replacement, "current_position", asking)
    stream = new_stream(shop, TABLE)
    start = stream.initial()
    assert stream.latest(start) == start
    insert(shop, TABLE, 1)
    got, end = follow(stream, start, 1)
    # Those of the start may not have ended yet.
    wait_until(lambda: len(shop.dump_threads()) == 1, "one dump is left")
    dumps = shop.dump_threads()
    asked.clear()
    wait_until(lambda: len(asked) > 3, "the server was asked at several heartbeats", 60)
    insert(shop, TABLE, 2)
    more, _ = follow(stream, end, 1)
    assert got + more == [1, 2]
    assert shop.dump_threads() == dumps


@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
def test_server_restored_from_file_copy_raises_binlog_replaced_error(
    shop: LocalServer, new_stream: NewStream, checksum: str
) -> None:
    """Both binlogs have the same beginning; the events after the copy differ."""
    shop.execute(f"SET GLOBAL binlog_checksum = {checksum}")
    insert(shop, TABLE, 0)
    shop.halt()
    assert shop.folder is not None and shop.datadir is not None
    snapshot = shop.folder / "snapshot"
    shutil.copytree(shop.datadir, snapshot)
    shop.start()
    shop.execute(f"SET GLOBAL binlog_checksum = {checksum}")
    start, end = stopped(new_stream, shop)
    shop.kill()
    shutil.rmtree(shop.datadir)
    Path(snapshot).rename(shop.datadir)
    shop.start()
    shop.execute(f"SET GLOBAL binlog_checksum = {checksum}")
    insert(shop, TABLE, 3, 4, 5)
    with pytest.raises(BinlogReplacedError):
        new_stream(shop, TABLE).next_batch(end)
    with pytest.raises(BinlogReplacedError):
        new_stream(shop, TABLE).rows(start, end)


def test_restarts_and_rotations_keep_offsets_and_batches_valid(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """Restarts and rotations do not replace the binlog; equal positions give equal offsets."""
    stream = new_stream(shop, TABLE)
    start = stream.initial()
    assert stream.latest(start) == start
    insert(shop, TABLE, 1)
    _, first = follow(stream, start, 1)
    shop.rotate()
    insert(shop, TABLE, 2)
    _, second = follow(stream, first, 1)
    shop.restart()
    insert(shop, TABLE, 3)
    for place, rows in ((start, [1, 2, 3]), (first, [2, 3]), (second, [3])):
        again = new_stream(shop, TABLE)
        got, end = follow(again, place, len(rows))
        assert got == rows
        file, pos = shop.position()
        assert (end["file"], end["pos"]) == (file, pos)
        assert end == new_stream(shop, TABLE).initial()
        # An executor fetches the same rows.
        assert ids(new_stream(shop, TABLE).rows(place, end)) == rows
