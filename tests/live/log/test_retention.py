"""The part of a server's retention that is left for a stream's files, and how files age."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import time

import pytest

from helpers.needed_servers import need
from helpers.servers import (
    LocalServer,
)
from helpers.servers.available import LOCAL_KINDS
from helpers.streams.source_runner import Offset, Spark, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.tail import retention
from pyspark_mysqlbinlog.connector.tail.retention import retention_seconds
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

DAY = 86_400
TABLE = "kept.t"
# The remaining part falls below this within a second after a file is closed.
AT_ONCE = "0.999995"


@pytest.fixture(scope="module", params=LOCAL_KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server that keeps files for a day."""
    kind = LOCAL_KINDS[request.param]
    need(kind)
    with kind() as server:
        # MariaDB 11.8 purges nothing on its own without a replica.
        if server.is_mariadb and server.version() >= "11.":
            server.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
        keep(server, DAY)
        server.execute("CREATE DATABASE kept", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        yield server


@pytest.fixture(autouse=True)
def _asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "POLL_SECONDS", 0.05)


def keep(server: LocalServer, seconds: int) -> None:
    if server.is_mysql9():
        server.execute(f"SET GLOBAL binlog_expire_logs_seconds = {seconds}")
    else:
        server.execute(f"SET GLOBAL expire_logs_days = {seconds // DAY}")


def known_retention(server: LocalServer) -> float | None:
    with ReplicaClient.connect(server.settings(ssl_mode="DISABLED")) as client:
        return retention_seconds(client)


@pytest.fixture
def stream(own: LocalServer, new_stream: NewStream) -> Iterator[tuple[Spark, Offset]]:
    own.execute(f"TRUNCATE {TABLE}")
    spark = new_stream(own, TABLE, retentionWarning=AT_ONCE, idleOffsetInterval="1ms")
    start = spark.initial()
    assert spark.latest(start) == start
    spark.latest(start)
    yield spark, start
    keep(own, DAY)


def left(spark: Spark) -> float | None:
    """Return the value of the server's last answer, which may change at any moment."""
    watch = spark.reader._tail.retention
    assert watch is not None
    return watch.left


def reported(spark: Spark) -> float | None:
    """Return `left`, checked against the report; it must not become known meanwhile."""
    found, report = left(spark), spark.reader.reportLatestOffset()
    assert report is not None
    assert report["retention_left"] == (None if found is None else pytest.approx(found, abs=1e-3))
    seconds = None if found is None else pytest.approx(found * DAY, abs=100)
    assert report["seconds_until_purge"] == seconds
    return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "may soon purge" in line]


def wait_for_warnings(caplog: pytest.LogCaptureFixture, count: int) -> None:
    wait_until(lambda: len(warnings(caplog)) == count, "it warns")


def wait_for_less(spark: Spark, than: float) -> None:
    wait_until(lambda: (left(spark) or 0) < than, "less is left")


def test_server_purges_files_by_the_time_of_their_last_write(own: LocalServer) -> None:
    """Neither the times of the file's events nor its creation time count."""
    assert own.datadir is not None
    assert known_retention(own) == DAY
    own.rotate()
    touched = own.position()[0]
    insert(own, TABLE, 101)
    own.rotate()
    old = own.position()[0]
    long_ago = int(time()) - 10 * DAY
    own.execute(f"SET TIMESTAMP = {long_ago}", f"INSERT INTO {TABLE} VALUES (102)")
    own.rotate()
    two_days_ago = time() - 2 * DAY
    for file, _ in own.binlog_files():
        if file < touched:
            os.utime(own.datadir / file, (two_days_ago, two_days_ago))
    os.utime(own.datadir / touched, (two_days_ago, two_days_ago))

    def is_purged() -> bool:
        # MariaDB purges nothing at FLUSH BINARY LOGS, and keeps files that a recovery would need.
        own.execute("FLUSH LOGS")
        return own.binlog_files()[0][0] > touched

    wait_until(is_purged, "the file is purged", every=0.2)
    assert own.binlog_files()[0][0] == old


@pytest.mark.sample(2)
def test_upcoming_purge_of_unread_file_warns_once(
    own: LocalServer, stream: tuple[Spark, Offset], caplog: pytest.LogCaptureFixture
) -> None:
    spark, start = stream
    assert reported(spark) is None
    for turn in (1, 2):
        file = start["file"]
        insert(own, TABLE, turn)
        own.rotate()
        wait_for_warnings(caplog, turn)
        assert f"may soon purge {file}, which" in warnings(caplog)[-1]
        lower = reported(spark)
        assert lower is not None
        assert lower < 1
        # The remaining part decreases, without another warning.
        wait_for_less(spark, lower)
        assert len(warnings(caplog)) == turn
        # The stream reaches the last file.
        start = spark.next_batch(start)
        while start["file"] != own.position()[0]:
            start = spark.next_batch(start)
        spark.latest(start)
        wait_until(lambda: left(spark) is None, "nothing threatens it")
        assert reported(spark) is None


def test_upcoming_purge_of_prepared_xa_transaction_warns(
    own: LocalServer, stream: tuple[Spark, Offset], caplog: pytest.LogCaptureFixture
) -> None:
    if own.version().startswith("5.6"):
        pytest.skip("5.6 logs an XA transaction when it commits")
    spark, start = stream
    own.execute("XA START 'x'", f"INSERT INTO {TABLE} VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
    file = own.position()[0]
    try:
        own.rotate()
        insert(own, TABLE, 2)
        while start["file"] != own.position()[0]:
            start = spark.next_batch(start)
        spark.latest(start)
        assert start["prepared_xa"]
        wait_for_warnings(caplog, 1)
        assert f"may soon purge {file}, which" in warnings(caplog)[-1]
    finally:
        own.execute("XA COMMIT 'x'")


@pytest.mark.parametrize("setting", ["0", "auto_purge=OFF"])
def test_server_without_automatic_purge_gives_no_purge_warning(
    own: LocalServer, new_stream: NewStream, caplog: pytest.LogCaptureFixture, setting: str
) -> None:
    if setting == "0":
        keep(own, 0)
    elif own.is_mysql9():
        own.execute("SET GLOBAL binlog_expire_logs_auto_purge = OFF")
    else:
        pytest.skip("a setting of MySQL 8.0.29 and later")
    try:
        assert known_retention(own) is None
        spark = new_stream(own, TABLE, retentionWarning="1")
        start = spark.initial()
        spark.latest(start)
        spark.latest(start)
        insert(own, TABLE, 201 if setting == "0" else 202)
        own.rotate()
        spark.wait_for_tail(own)
        watch = spark.reader._tail.retention
        assert watch is not None
        with ReplicaClient.connect(own.settings(ssl_mode="DISABLED")) as client:
            watch.ask(client)
        assert (reported(spark), warnings(caplog)) == (None, [])
    finally:
        keep(own, DAY)
        if own.is_mysql9():
            own.execute("SET GLOBAL binlog_expire_logs_auto_purge = ON")
