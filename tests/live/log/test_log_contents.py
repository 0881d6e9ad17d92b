"""Servers whose binlogs leave out captured changes: because of filters, and as replicas."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from helpers.servers import LocalServer, Server
from helpers.servers.available import own_kinds
from helpers.streams.source_runner import Spark, ids, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.server.warn_once import forget_warnings
from pyspark_mysqlbinlog.errors import BinlogSettingsError

WITHOUT_FILTERS = ("--server-id=2",)


@pytest.fixture(scope="module", params=own_kinds())
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server of each kind in turn, with two databases; tests restart it with options."""
    request.getfixturevalue(request.param)  # ends the test if it is missing
    with own_kinds()[request.param](options=WITHOUT_FILTERS) as server:
        for database in ("shop", "stock"):
            server.execute(
                f"CREATE DATABASE {database}",
                f"CREATE TABLE {database}.t (id INT PRIMARY KEY)",
            )
        yield server


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Forget which warnings have been logged, as in a new process."""
    forget_warnings()


@pytest.fixture
def restarted(server: LocalServer) -> Callable[..., LocalServer]:
    """``restarted("--an-option")`` returns the server, running with these options and no others."""

    def restart(*options: str) -> LocalServer:
        arguments = (*WITHOUT_FILTERS, *options)
        if server.arguments != arguments:
            server.halt()
            server.arguments = arguments
        return server.start()

    return restart


def _refused(stream: Spark) -> str:
    with pytest.raises(BinlogSettingsError) as caught:
        stream.initial()
    return caught.value.message


def test_server_filter_that_excludes_a_captured_database_is_rejected(
    restarted: Callable[..., LocalServer],
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = restarted("--binlog-ignore-db=stock", "--binlog-ignore-db=later")
    for tables in ("stock.t", "sto*.*", r"/stock\..*/", "shop.t,stock.t"):
        message = _refused(new_stream(server, tables))
        assert "leaves the changes of `stock` out of its binlog" in message
        assert "(binlog_ignore_db shows stock, later)" in message
    assert "of `later` out" in _refused(new_stream(server, "la*.*"))
    assert "of `later`, `stock` out" in _refused(new_stream(server, "*.t"))
    assert "of `later` out" in _refused(new_stream(server, "*.t", excludeTables="stock.*"))
    with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
        for tables in ("shop.*", "/(shop|crm)[.]t/"):
            assert new_stream(server, tables).initial()["file"]
    texts = [record.getMessage() for record in caplog.records]
    assert sum("DDL is in it if the session's default database" in text for text in texts) == 1
    assert sum("if the option tables includes one of these" in text for text in texts) == 1

    server = restarted("--binlog-do-db=shop")
    assert "of `stock` out of its binlog (binlog_do_db shows shop)" in _refused(
        new_stream(server, "stock.t")
    )
    assert "of `crm` out" in _refused(new_stream(server, "crm.*"))
    assert new_stream(server, "shop.*").initial()["file"]


def test_binlog_filter_set_by_restart_raises_binlog_settings_error(
    restarted: Callable[..., LocalServer], new_stream: NewStream
) -> None:
    """Earlier rows are delivered; then no change is skipped silently."""
    server = restarted()
    stream = new_stream(server, "shop.*", retryTimeout="300s")
    start = stream.initial()
    start = stream.latest(start)
    insert(server, "shop.t", 1)
    end = stream.next_batch(start)
    assert ids(stream.rows(start, end)) == [1]
    restarted("--binlog-ignore-db=shop")
    insert(server, "shop.t", 2)
    with pytest.raises(BinlogSettingsError, match=r"of `shop` out of its binlog"):
        stream.next_batch(end)


def test_resume_without_replication_client_grant_warns_once(
    restarted: Callable[..., LocalServer],
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A resumed stream needs no REPLICATION CLIENT; it reports the missing checks only once."""
    server = restarted()
    reader = {"user": "reader_asks", "password": "secret"}
    server.execute(
        "CREATE USER reader_asks@'%' IDENTIFIED BY 'secret'",
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader_asks@'%'",
    )
    start = new_stream(server, "shop.*", **reader).initial()
    server.execute("REVOKE REPLICATION CLIENT ON *.* FROM reader_asks@'%'")
    insert(server, "shop.t", 7)
    stream = new_stream(server, "shop.*", **reader)
    with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
        assert ids(stream.rows(start, stream.next_batch(start))) == [7]
    server.execute("DROP USER reader_asks@'%'")
    (record,) = caplog.records
    assert record.getMessage().startswith("not checked whether the binlog has all changes")


def test_running_replica_without_log_slave_updates_is_rejected(
    request: pytest.FixtureRequest,
    restarted: Callable[..., LocalServer],
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = restarted()
    is_mysql9 = server.is_mysql9()
    if is_mysql9:  # logs applied changes by default; only newer keywords
        server = restarted("--skip-log-replica-updates")
    source: Server = request.getfixturevalue(server.name)
    file, pos = source.position()
    reader = {"user": "reader_replica", "password": "secret"}
    replica, master = ("REPLICA", "SOURCE") if is_mysql9 else ("SLAVE", "MASTER")
    change = "CHANGE REPLICATION SOURCE" if is_mysql9 else "CHANGE MASTER"
    server.execute(
        "CREATE USER reader_replica@'%' IDENTIFIED BY 'secret'",
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader_replica@'%'",
        f"{change} TO {master}_HOST='{source.host}', {master}_PORT={source.port},"
        f" {master}_USER='{source.user}', {master}_PASSWORD='{source.password}',"
        f" {master}_LOG_FILE='{file}', {master}_LOG_POS={pos}",
    )
    with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
        assert new_stream(server, "shop.*").initial()["file"]
    assert "log_slave_updates is OFF" in caplog.text
    assert "it is configured as one" in caplog.text
    server.execute(f"START {replica}")
    wait_until(
        lambda: server.execute(f"SHOW {replica} STATUS")[0][11] == "Yes",
        "the replica applies changes",
    )
    # Also as the account that the docs describe: on MariaDB it cannot read the full status.
    for more in ({}, reader):
        message = _refused(new_stream(server, "shop.*", **more))
        assert "log_slave_updates is OFF" in message
        assert "it is replicating" in message
    server = restarted("--log-slave-updates")
    wait_until(
        lambda: server.execute(f"SHOW {replica} STATUS")[0][11] == "Yes", "it applies changes again"
    )
    assert new_stream(server, "shop.*").initial()["file"]
