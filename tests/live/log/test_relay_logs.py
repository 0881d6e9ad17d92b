"""Relay logs of a real replica contain the changes in its source's binlog."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.later_logs import read
from helpers.needed_servers import need
from helpers.servers import (
    MariaDB11Server,
    MariaDBServer,
    MySQL9Server,
    MySQL56Server,
)
from helpers.servers.base import LocalServer
from helpers.waiting import wait_until

pytestmark = pytest.mark.usefixtures("implementation")
KINDS = (MySQL56Server, MySQL9Server, MariaDBServer, MariaDB11Server)


class Pair:
    """A source and its replica, which receives changes without applying them."""

    def __init__(self, source: LocalServer, replica: LocalServer) -> None:
        self.source, self.replica = source, replica
        self._is_later = isinstance(source, MySQL9Server)

    def begin(self) -> None:
        self.source.execute(
            "CREATE USER 'r'@'%' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.* TO 'r'@'%'"
        )
        first = self.source.binlog_files()[0][0]
        word, name = ("SOURCE", "REPLICATION SOURCE") if self._is_later else ("MASTER", "MASTER")
        key = ", GET_SOURCE_PUBLIC_KEY = 1" if self._is_later else ""
        if isinstance(self.source, MariaDBServer):
            key = ", MASTER_USE_GTID = no"
            if isinstance(self.source, MariaDB11Server):
                key += ", MASTER_SSL = 0"
        self.replica.execute(
            f"CHANGE {name} TO {word}_HOST = '127.0.0.1', {word}_PORT = {self.source.port},"
            f" {word}_USER = 'r', {word}_PASSWORD = 'r', {word}_LOG_FILE = '{first}',"
            f" {word}_LOG_POS = 4{key}"
        )
        self.receive()

    def receive(self, verb: str = "START") -> None:
        self.replica.execute(f"{verb} {'REPLICA' if self._is_later else 'SLAVE'} IO_THREAD")

    def wait(self) -> None:
        """Wait until the replica has received everything."""
        show = "SHOW REPLICA STATUS" if self._is_later else "SHOW SLAVE STATUS"

        def has_all() -> bool:
            # MariaDB writes an event of its own some time after a rotation.
            place = self.source.position()
            with self.replica.connect() as connection, connection.cursor() as cursor:
                cursor.execute(show)
                names = [each[0] for each in cursor.description or ()]
                (row,) = cursor.fetchall()
            status = dict(zip(names, row, strict=True))
            assert not status["Last_IO_Error"], status["Last_IO_Error"]
            word = "Source" if self._is_later else "Master"
            return (status[f"{word}_Log_File"], int(status[f"Read_{word}_Log_Pos"])) == place

        wait_until(has_all, "the replica has received everything")

    def relay_logs(self, folder: Path) -> Path:
        assert self.replica.datadir is not None
        for path in self.replica.datadir.glob("relay-bin.0*"):
            shutil.copy(path, folder)
        return folder


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    kind = request.param
    need(kind)
    relay = ["--server-id=72", "--relay-log=relay-bin", "--skip-slave-start"]
    if kind is MySQL9Server:
        relay[-1] = "--skip-replica-start"
    with kind(["--server-id=71"]) as source, kind(relay) as replica:
        yield Pair(source, replica)


def _changes(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    named = ("op", "ts", "database", "table", "before", "after")
    return [(*(row[name] for name in named), row["source"]["server_id"]) for row in rows]


@pytest.mark.sample(3)
def test_relay_logs_contain_the_changes_of_the_source(pair: Pair, tmp_path: Path) -> None:
    source, replica = pair.source, pair.replica
    pair.begin()
    source.execute(
        "CREATE DATABASE d CHARACTER SET utf8mb4",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(40))",
        "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
    )
    source.rotate()
    source.execute("UPDATE d.t SET v = 'zwei' WHERE id = 2", "ALTER TABLE d.t ADD w INT")
    pair.wait()
    replica.execute("FLUSH RELAY LOGS")
    source.execute("INSERT INTO d.t VALUES (3, 'three', 3)")
    pair.wait()
    pair.receive("STOP")
    source.execute("DELETE FROM d.t WHERE id = 1")
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for n in range(10, 20):
            cursor.execute("INSERT INTO d.t VALUES (%s, %s, %s)", (n, "x" * n, n))
        cursor.execute("COMMIT")
    pair.receive()
    pair.wait()
    source.execute("UPDATE d.t SET w = 0 WHERE id > 10")
    pair.wait()

    assert source.datadir is not None
    first, _ = source.binlog_files()[0]
    binlog = str(source.datadir / f"{first.rpartition('.')[0]}.0*[0-9]")
    expected = read(binlog, "json", tables="d.t")
    assert len(expected) == 24
    folder = pair.relay_logs(tmp_path)
    found = read(str(folder), "json", tables="d.t")
    assert _changes(found) == _changes(expected)
    assert all(row["source"]["file"].startswith("relay-bin.") for row in found)
    # Read from each transaction on, in many ranges.
    for row in found:
        start = f"{row['source']['file']}:{row['source']['tx_pos']}"
        some = read(
            str(folder),
            "json",
            tables="d.t",
            startingOffset=start,
            targetPartitionBytes="1k",
        )
        assert some == [each for each in found if _place(each) >= _place(row)]


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["source"]["file"], row["source"]["tx_pos"]
