"""Two servers that replicate each other: each row comes once, with its origin's server_id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.streams.source_runner import Offset, Spark, ids, insert, new_reader
from helpers.waiting import wait_until
from helpers.writers.replication import REPLICATION_OPTIONS, replicate
from pyspark_mysqlbinlog.errors import BinlogSettingsError

WITHOUT_GTIDS = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
CREATE = ("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")


@contextmanager
def circle(options: list[str]) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Yield two servers that replicate each other, with these options."""
    kind = own_kind()
    with (
        kind(options=[*options, "--server-id=1"]) as one,
        kind(options=[*options, "--server-id=2"]) as other,
    ):
        for replica, source in ((other, one), (one, other)):
            replicate(replica, source, with_gtids="--gtid-mode=ON" in options)
        one.execute(*CREATE)
        wait_until(lambda: _has(other, 0), "the table is replicated")
        yield one, other


def _has(server: LocalServer, count: int) -> bool:
    exists = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'"
    return bool(server.execute(exists)[0][0]) and bool(
        server.execute("SELECT COUNT(*) FROM shop.t")[0][0] == count
    )


@pytest.mark.parametrize("options", [REPLICATION_OPTIONS, [*WITHOUT_GTIDS, "--log-slave-updates"]])
def test_circular_replication_delivers_each_row_once(options: list[str]) -> None:
    with circle(options) as servers:
        streams = [Spark(new_reader(server, "shop.t")) for server in servers]
        begun = [stream.latest(stream.initial()) for stream in streams]
        for number in range(1, 7):
            insert(servers[number % 2], "shop.t", number)
            for server in servers:
                # mypy infers no types of a lambda's defaults.
                wait_until(lambda at=server, n=number: _has(at, n), "the row is on both servers")  # type: ignore[misc]
        expected = {number: number % 2 + 1 for number in range(1, 7)}
        for server, stream, begin in zip(servers, streams, begun, strict=True):
            insert(server, "shop.t", 100 + server.port)
            own = int(server.execute("SELECT @@server_id")[0][0])
            here: Offset = begin
            rows: list[dict[str, Any]] = []
            while 100 + server.port not in ids(rows):
                end = stream.next_batch(here)
                rows += stream.rows(here, end)
                here = end
            stream.reader.stop()
            origins = [row["source"]["server_id"] for row in rows]
            found = list(zip(ids(rows), origins, strict=True))
            other_last = [row for row in found if row[0] > 100 and row[1] != own]
            assert sorted(set(found) - set(other_last)) == sorted(
                [*expected.items(), (100 + server.port, own)]
            )
            assert len(set(ids(rows))) == len(rows)


def test_circular_replication_without_log_slave_updates_is_rejected() -> None:
    """The binlog of one server does not contain the rows of the other one."""
    with circle([*WITHOUT_GTIDS, "--skip-log-slave-updates"]) as servers:
        for server in servers:
            reader = new_reader(server, "shop.t")
            with pytest.raises(BinlogSettingsError, match=r"log_slave_updates is OFF.*replicating"):
                Spark(reader).initial()
            reader.stop()
