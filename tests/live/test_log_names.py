"""A binlog whose base name changes at a restart while the index file stays: nothing is lost.

The server goes on in the new name's first file. The order of the files is the order of the index
then, whatever their numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.log_names import INDEX, restart_with_log_name
from helpers.servers import LocalServer
from helpers.source_runner import Offset, Spark, ids, insert
from live.conftest import LOCAL, NewStream

TABLE = "shop.t"


@pytest.fixture(params=LOCAL)
def shop(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """A server of the test's own, whose binlog is at aaa-bin.000004."""
    request.getfixturevalue(request.param)  # it says what is missing
    with LOCAL[request.param]([INDEX, "--innodb-flush-log-at-trx-commit=1"]) as server:
        server.execute("CREATE DATABASE shop", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        restart_with_log_name(server, "aaa-bin")
        while server.position()[0] != "aaa-bin.000004":
            server.rotate()
        yield server


def follow(stream: Spark, start: Offset, count: int) -> tuple[list[int], Offset]:
    """The ids of the next rows, and where they end; `seq` grows from row to row."""
    got: list[int] = []
    last: tuple[int, ...] = ()
    while len(got) < count:
        end = stream.next_batch(start)
        rows = stream.rows(start, end)
        for row in rows:
            seq = tuple(row["seq"].values())
            assert seq > last
            last = seq
        got += ids(rows)
        start = end
    return got, start


def begun(stream: Spark) -> Offset:
    start = stream.initial()
    assert stream.latest(start) == start
    return start


@pytest.mark.parametrize("rotations", [0, 2, 6])
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_a_stream_goes_on_in_the_new_name(
    shop: LocalServer, new_stream: NewStream, how: str, rotations: int
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1, 2)
    got, middle = follow(stream, start, 2)
    if how == "restarted":
        stream.reader.stop()
    restart_with_log_name(shop, "bbb-bin")
    assert shop.position()[0] == "bbb-bin.000001"
    insert(shop, TABLE, 3, 4)
    for _ in range(rotations):
        shop.rotate()
    insert(shop, TABLE, 5)
    if how == "restarted":
        stream = new_stream(shop, TABLE)
    more, end = follow(stream, middle, 3)
    assert got + more == [1, 2, 3, 4, 5]
    assert (end["epoch"], end["file"]) == (1, f"bbb-bin.{rotations + 1:06}")
