"""A server that was restored to an earlier state and then wrote other changes."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import change_log_of, log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_steps import killed_after, with_short_steps
from helpers.servers import LocalServer, Server
from helpers.servers.available import own_kind


@pytest.fixture
def put_back(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Yield a server, and an object that keeps and restores a copy of its data."""
    request.getfixturevalue(own_kind().name)  # skips with the reason
    # A disk snapshot contains only what is on the disk.
    with own_kind()(["--innodb-flush-log-at-trx-commit=1"]) as server:
        yield server, Snapshot(server, tmp_path / "snapshot")


class Snapshot:
    """A copy of a running server's data, as a snapshot of its disk contains it."""

    def __init__(self, server: LocalServer, folder: Path) -> None:
        self._server, self._folder = server, folder

    def keep(self) -> None:
        assert self._server.datadir is not None
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("FLUSH TABLES WITH READ LOCK")
            # Its own threads write, too; a copy of files of different moments would be damaged.
            assert self._server.process is not None
            self._server.process.send_signal(signal.SIGSTOP)
            try:
                shutil.copytree(self._server.datadir, self._folder)
            finally:
                self._server.process.send_signal(signal.SIGCONT)

    def restore(self) -> None:
        assert self._server.datadir is not None
        self._server.kill()
        shutil.rmtree(self._server.datadir)
        shutil.move(self._folder, self._server.datadir)
        self._server.start()


_ROWS = 20_000
Where = Callable[[MirroredDatabase], Path]


def _shop(spark: SparkSession, server: Server, folder: Path, *, is_log: bool) -> MirroredDatabase:
    """Return a mirror of an empty table, or its change log only."""
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    mirrored = MirroredDatabase(spark, server, "shop", folder, startingOffset="earliest")
    if is_log:
        mirrored.settings = {"target": None, "change_log": change_log_of(mirrored)}
    return mirrored


def _insert(mirrored: MirroredDatabase, first: int, end: int) -> None:
    """Insert rows in transactions so large that some are read before the last ones are written."""
    for number in range(first, end):
        rows = ", ".join(f"({row})" for row in range(number * _ROWS, (number + 1) * _ROWS))
        mirrored.execute(f"INSERT INTO t VALUES {rows}")


of_each_kind = pytest.mark.parametrize(
    ("is_log", "where"),
    [
        (False, lambda mirrored: Path(mirrored.delta("t").table_uri)),
        (True, lambda mirrored: log_of(mirrored, "t")),
    ],
    ids=["table", "change log"],
)


@of_each_kind
def test_restored_server_that_lost_applied_changes_is_rejected(
    spark: SparkSession,
    put_back: tuple[LocalServer, Snapshot],
    tmp_path: Path,
    is_log: bool,
    where: Where,
) -> None:
    server, snapshot = put_back
    mirrored = _shop(spark, server, tmp_path, is_log=is_log)
    mirrored.execute("INSERT INTO t VALUES (1)")
    snapshot.keep()
    mirrored.execute("INSERT INTO t VALUES (2)")
    mirrored.run()
    before = DeltaTable(where(mirrored)).to_pyarrow_table()
    assert before.num_rows == 2
    snapshot.restore()
    mirrored.execute("INSERT INTO t VALUES (3)")
    assert mirrored.select("t")[1] == [(1,), (3,)]
    with pytest.raises(Exception, match="the binlog has another event before"):
        mirrored.run("another checkpoint")
    assert DeltaTable(where(mirrored)).to_pyarrow_table() == before


@of_each_kind
def test_restored_server_that_lost_a_part_of_a_batch_stops_the_table(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    put_back: tuple[LocalServer, Snapshot],
    tmp_path: Path,
    is_log: bool,
    where: Where,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server still has the start of the batch, but not a sub-batch that was applied."""
    with_short_steps(monkeypatch)
    server, snapshot = put_back
    mirrored = _shop(spark, server, tmp_path, is_log=is_log)
    mirrored.run()
    snapshot.keep()
    # A start of the server begins a new file, in which both histories continue, with one number.
    server.execute("FLUSH LOGS")
    _insert(mirrored, 0, 20)
    end = server.position()
    with killed_after(2, monkeypatch):
        mirrored.run()
    before = DeltaTable(where(mirrored)).to_pyarrow_table()
    assert before.num_rows == 2 * _ROWS
    snapshot.restore()
    _insert(mirrored, 100, 124)
    assert server.position() > end
    with pytest.raises(Exception, match=r"another event|BinlogReplacedError"):
        mirrored.run()
    table = DeltaTable(where(mirrored))
    assert table.to_pyarrow_table() == before
    stopped = table.metadata().configuration["mysqlbinlog.stopped"]
    assert "another event before" in stopped
