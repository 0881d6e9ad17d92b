"""Streams from a growing archive of a server's files, with switches to the server and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.archive import Archive
from helpers.needed_servers import need
from helpers.servers import (
    LocalServer,
    MySQL9Server,
)
from helpers.servers.available import LOCAL_KINDS
from helpers.servers.mysql57 import MySQL57Server
from helpers.snapshots.load_rows import applied, select_json
from helpers.streams.file_streams import FileStream
from helpers.streams.stream_process import StreamProcess
from pyspark_mysqlbinlog.connector.log.files import followed_files
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    BinlogReplacedError,
    MySQLBinlogError,
    ServerError,
)

COLUMNS = ("id", "a", "b")
DURABLE = ["--innodb-flush-log-at-trx-commit=1"]
GTIDS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]


@pytest.fixture(params=LOCAL_KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a restartable server with an empty database; MySQL 5.7 and later have GTIDs."""
    kind = LOCAL_KINDS[request.param]
    need(kind)
    has_gtids = kind in (MySQL57Server, MySQL9Server)
    with kind(options=[*DURABLE, *GTIDS] if has_gtids else DURABLE) as found:
        found.execute("CREATE DATABASE shop CHARSET utf8mb4")
        yield found


class Shop:
    """Two tables, and random changes of them."""

    def __init__(self, server: LocalServer, seed: int) -> None:
        self.server = server
        self._random = random.Random(seed)
        self._next = 0
        for table in ("t", "u"):
            server.execute(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, a INT, b INT)")

    def change(self, count: int) -> None:
        """Commit transactions of several statements, and sometimes start a new file."""
        with self.server.connect(database="shop") as connection, connection.cursor() as cursor:
            for _ in range(count):
                for _ in range(self._random.randrange(1, 4)):
                    cursor.execute(self._statement())
                connection.commit()
                if self._random.random() < 0.05:
                    cursor.execute("FLUSH LOGS")

    def _statement(self) -> str:
        table = self._random.choice("tu")
        some = f"id % 10 = {self._random.randrange(10)}"
        match self._random.randrange(6):
            case 0:
                return f"UPDATE {table} SET a = a + 1, b = {self._next} WHERE {some}"
            case 1:
                return f"DELETE FROM {table} WHERE id % 50 = {self._random.randrange(50)}"
            case _:
                self._next += self._random.randrange(1, 4)
                rows = ", ".join(f"({self._next + n}, {n}, 0)" for n in range(5))
                return f"REPLACE INTO {table} VALUES {rows}"

    def assert_equal(self, rows: list[dict[str, Any]]) -> None:
        for table in ("shop.t", "shop.u"):
            assert applied(rows, table) == select_json(self.server, table, *COLUMNS), table


@pytest.mark.usefixtures("quick_python")
@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize(
    ("changes", "kills"),
    [
        pytest.param(300, 2, id="short"),
        pytest.param(4_000, 20, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_killed_query_reads_growing_archive_exactly_once(
    server: LocalServer, tmp_path: Path, changes: int, kills: int
) -> None:
    """A replayed batch gives the same rows (see `stream_driver`)."""
    seed = random.randrange(1 << 30)
    # pytest prints the seed if the test fails.
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    archive = Archive(server, tmp_path / "archive", seed=seed)
    shop = Shop(server, seed)
    shop.change(10)
    archive.copy()
    options = {
        "path": str(archive.folder),
        "tables": "shop.*",
        "payload": "json",
        "maxBytesPerTrigger": "64k",
    }
    with StreamProcess(tmp_path, options) as stream:
        stream.start()
        with archive:
            for _ in range(kills):
                place = chance.choice(("before-partitions", "before-sink", "after-sink", ""))
                reached = stream.hold(place) if place else stream.checkpoint / "nowhere"
                known = len(stream.commits())
                # The changes are archived after the count of commits, so there is another batch.
                shop.change(changes // (kills + 1))
                stream.wait_until(
                    partial(_is_due, stream, reached, known), f"a batch is {place or 'committed'}"
                )
                stream.kill()
                stream.let_go()
                stream.start()
            shop.change(changes // (kills + 1))
            server.execute("INSERT INTO shop.t VALUES (-1, 0, 0)")
        stream.wait_until(lambda: _has_last(stream), "everything is read", 600)
        stream.stop()
        rows = [row for _, batch in stream.batches() for row in batch]
    shop.assert_equal(rows)
    places = [tuple(row["seq"].values()) for row in rows]
    assert len(places) == len(set(places))


def _is_due(stream: StreamProcess, reached: Path, known: int) -> bool:
    """Return whether the driver is held, or has committed another batch since."""
    held = reached.parent == stream.output
    return reached.exists() if held else len(stream.commits()) > known


def _has_last(stream: StreamProcess) -> bool:
    # A batch that is written but not committed does not count when the query is stopped.
    committed = [stream.output / f"batch-{number:06}.jsonl" for number in stream.commits()]
    return any('{\\"id\\":-1' in path.read_text() for path in committed)


@pytest.fixture
def moved(server: LocalServer, tmp_path: Path) -> Iterator[tuple[FileStream, Archive, Shop]]:
    archive = Archive(server, tmp_path / "archive")
    shop = Shop(server, 1)
    stream = FileStream({"tables": "shop.*"})
    yield stream, archive, shop
    stream.stop()


def to_files(stream: FileStream, archive: Archive) -> FileStream:
    stream.stop()
    stream.texts = {"payload": "json", "tables": "shop.*", "path": str(archive.folder)}
    return stream.begin()


def to_server(stream: FileStream, server: LocalServer, **options: str) -> FileStream:
    stream.stop()
    stream.texts = server.options(tables="shop.*", payload="json", heartbeatInterval="1s") | options
    return stream.begin()


def read(stream: FileStream) -> list[dict[str, Any]]:
    """Read to the end of the binlog, as a run with AvailableNow; return all rows so far."""
    assert stream.spark is not None
    stream.spark.reader.prepareForTriggerAvailableNow()
    while stream.step():
        pass
    return [row for _, _, rows in stream.batches for row in rows]


def purge(server: LocalServer, archive: Archive) -> None:
    """Remove all files from the server that are complete in the archive."""
    server.execute("FLUSH LOGS")
    archive.copy()
    server.execute(f"PURGE BINARY LOGS TO '{server.position()[0]}'")


@pytest.mark.sample(2)
def test_switching_between_archive_and_server_keeps_rows_equal_to_select(
    server: LocalServer, moved: tuple[FileStream, Archive, Shop]
) -> None:
    stream, archive, shop = moved
    shop.change(40)
    archive.copy()
    shop.assert_equal(read(to_files(stream, archive)))
    shop.change(40)
    shop.assert_equal(read(to_server(stream, server)))
    # The schema history from the server continues with the DDL in the files.
    server.execute("ALTER TABLE shop.t ADD c INT FIRST")
    server.execute("DELETE FROM shop.t WHERE id % 3 = 0", "ALTER TABLE shop.t DROP c")
    shop.change(40)
    stream.stop()
    purge(server, archive)
    with pytest.raises(BinlogPurgedError):
        read(to_server(stream, server))
    shop.assert_equal(read(to_files(stream, archive)))
    shop.change(40)
    shop.assert_equal(read(to_server(stream, server)))
    places = [tuple(row["seq"].values()) for _, _, rows in stream.batches for row in rows]
    assert len(places) == len(set(places))


@pytest.mark.sample(2)
def test_purged_backlog_read_from_archive_needs_no_new_snapshot(
    server: LocalServer, moved: tuple[FileStream, Archive, Shop]
) -> None:
    stream, archive, shop = moved
    shop.change(40)
    to_server(stream, server, startingOffset="snapshot")
    read(stream)
    shop.change(40)
    stream.stop()
    purge(server, archive)
    shop.assert_equal(read(to_files(stream, archive)))
    shop.change(40)
    to_server(stream, server, startingOffset="snapshot")
    rows = read(stream)
    shop.assert_equal(rows)
    # Nothing is snapshotted again.
    state = stream.batches[-1][1]["snapshot"]
    assert state
    assert sum(row["op"] == "r" for row in rows) == sum(
        row["op"] == "r" for _, _, batch in stream.batches[:3] for row in batch
    )


@pytest.mark.sample(2)
def test_archive_with_files_of_crashes_and_stops_equals_select(
    server: LocalServer,
    moved: tuple[FileStream, Archive, Shop],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crash leaves a file without ROTATE; a shutdown leaves one that ends with STOP."""
    monkeypatch.setattr(followed_files, "_SETTLE_SECONDS", 0.1)
    stream, archive, shop = moved
    shop.change(20)
    archive.copy()
    read(to_files(stream, archive))
    for end in (server.kill, server.halt):
        shop.change(20)
        end()
        server.start()
        shop.change(20)
        archive.copy()
        shop.assert_equal(read(to_files(stream, archive)))
    shop.assert_equal(read(to_server(stream, server)))


@pytest.mark.sample(2)
def test_files_of_another_server_are_rejected(
    server: LocalServer, moved: tuple[FileStream, Archive, Shop]
) -> None:
    """The other server's binlog files have the same names."""
    stream, archive, shop = moved
    shop.change(5)
    archive.copy()
    read(to_files(stream, archive))
    with type(server)(options=["--innodb-flush-log-at-trx-commit=1"]) as other:
        other.execute("CREATE DATABASE shop")
        for _ in range(len(other.binlog_files()), len(server.binlog_files())):
            other.rotate()
        other_shop = Shop(other, 2)
        other_shop.change(20)
        with pytest.raises((BinlogReplacedError, ServerError)):
            read(to_server(stream, other))
        first, _ = other.binlog_files()[0]
        elsewhere = Archive(other, archive.folder.with_name("other"), since=first)
        elsewhere.copy()
        begun = FileStream({"tables": "shop.*"})
        read(to_server(begun, server, startingOffset=f"{archive.names()[-1]}:4"))
        with pytest.raises(MySQLBinlogError):
            read(to_files(begun, elsewhere))
        begun.stop()
