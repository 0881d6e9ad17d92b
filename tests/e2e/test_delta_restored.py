"""A server that was put back to an earlier state, and went on otherwise, behind a lost checkpoint.

Its last file was begun when the one of before was, and ends before what the mirror has read of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.change_logs import history_of, log_of
from helpers.delta_mirrors import MirroredDatabase
from helpers.servers import LocalServer, MySQL56Server, Server


@pytest.fixture
def put_back(mysql56: Server, tmp_path: Path) -> Any:
    """A server, and what puts it back to where it was when `keep` was called."""
    # A snapshot has what is on the disk.
    with MySQL56Server(["--innodb-flush-log-at-trx-commit=1"]) as server:
        yield server, Snapshot(server, tmp_path / "snapshot")


class Snapshot:
    """The data of a server that goes on running, as a snapshot of its disk has it."""

    def __init__(self, server: LocalServer, folder: Path) -> None:
        self._server, self._folder = server, folder

    def keep(self) -> None:
        assert self._server.datadir is not None
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("FLUSH TABLES WITH READ LOCK")
            shutil.copytree(self._server.datadir, self._folder)

    def restore(self) -> None:
        assert self._server.datadir is not None
        self._server.kill()
        shutil.rmtree(self._server.datadir)
        shutil.move(self._folder, self._server.datadir)
        self._server.start()


Where = Callable[[MirroredDatabase], Path]


@pytest.mark.parametrize(
    ("is_log", "where"),
    [
        (False, lambda mirrored: Path(mirrored.delta("t").table_uri)),
        (True, lambda mirrored: log_of(mirrored, "t")),
    ],
    ids=["table", "change log"],
)
def test_what_the_restored_server_lost_is_not_kept_in_silence(
    spark: SparkSession,
    put_back: tuple[LocalServer, Snapshot],
    tmp_path: Path,
    is_log: bool,
    where: Where,
) -> None:
    server, snapshot = put_back
    server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    mirrored = MirroredDatabase(spark, server, "shop", tmp_path, startingOffset="earliest")
    if is_log:
        mirrored.settings = {"target": None, "history": history_of(mirrored)}
    mirrored.execute("INSERT INTO t VALUES (1)")
    snapshot.keep()
    mirrored.execute("INSERT INTO t VALUES (2)")
    mirrored.run()
    before = DeltaTable(where(mirrored)).to_pyarrow_table()
    assert before.num_rows == 2
    snapshot.restore()
    mirrored.execute("INSERT INTO t VALUES (3)")
    assert mirrored.select("t")[1] == [(1,), (3,)]
    with pytest.raises(Exception, match="the log has another event in front of"):
        mirrored.run("another checkpoint")
    assert DeltaTable(where(mirrored)).to_pyarrow_table() == before
