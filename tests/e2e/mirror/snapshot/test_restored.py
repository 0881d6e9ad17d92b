"""A server that was put back to an earlier state, and went on otherwise, behind a lost checkpoint.

Its last file was begun when the one of before was, and ends before what the mirror has read of it.
"""

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
from helpers.mirrors.mirror_steps import killed_behind, with_short_steps
from helpers.servers import LocalServer, Server
from helpers.servers.available import own_kind


@pytest.fixture
def put_back(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A server, and what puts it back to where it was when `keep` was called."""
    request.getfixturevalue(own_kind().name)  # it says what is missing
    # A snapshot has what is on the disk.
    with own_kind()(["--innodb-flush-log-at-trx-commit=1"]) as server:
        yield server, Snapshot(server, tmp_path / "snapshot")


class Snapshot:
    """The data of a server that goes on running, as a snapshot of its disk has it."""

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
    """A table without rows, and its mirror or its change log."""
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    mirrored = MirroredDatabase(spark, server, "shop", folder, startingOffset="earliest")
    if is_log:
        mirrored.settings = {"target": None, "change_log": change_log_of(mirrored)}
    return mirrored


def _insert(mirrored: MirroredDatabase, first: int, behind: int) -> None:
    """Transactions of so many rows that some are read before the last ones come."""
    for number in range(first, behind):
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
def test_what_the_restored_server_lost_is_not_kept_in_silence(
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
def test_nor_is_a_part_of_a_batch_that_comes_once_more(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    put_back: tuple[LocalServer, Snapshot],
    tmp_path: Path,
    is_log: bool,
    where: Where,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch begins in what the server still has, and a step of it was not."""
    with_short_steps(monkeypatch)
    server, snapshot = put_back
    mirrored = _shop(spark, server, tmp_path, is_log=is_log)
    mirrored.run()
    snapshot.keep()
    # A server that starts begins a file: there both of its pasts go on, from the same number.
    server.execute("FLUSH LOGS")
    _insert(mirrored, 0, 20)
    end = server.position()
    with killed_behind(2, monkeypatch):
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
