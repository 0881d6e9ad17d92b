"""The test servers themselves: properties that other tests rely on."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from helpers.parity.decoding import CAPTURED
from helpers.servers import (
    ExternalServer,
    MariaDBServer,
    MySQL56Server,
    Server,
    ServerStartError,
    captured_files,
    write_certificates,
)
from helpers.servers.base import LocalServer
from helpers.servers.recorded import original_name
from helpers.waiting import wait_until


@pytest.fixture(params=["mysql56", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def test_started_server_logs_full_row_images_with_checksums(server: Server) -> None:
    names = ["log_bin", "binlog_format", "binlog_row_image", "binlog_checksum"]
    values = server.execute("SELECT " + ", ".join(f"@@global.{name}" for name in names))
    assert values == [(1, "ROW", "FULL", "CRC32")]


def test_rotate_starts_the_next_binlog_file(server: Server) -> None:
    before = server.binlog_files()
    server.rotate()
    after = server.binlog_files()
    assert [name for name, _ in after[: len(before)]] == [name for name, _ in before]
    assert len(after) == len(before) + 1
    assert server.position()[0] == after[-1][0]
    # MariaDB adds a BINLOG_CHECKPOINT event a moment later, possibly between the two queries.
    wait_until(
        lambda: server.position() == server.binlog_files()[-1], "the position at the file's end"
    )


def test_inserts_on_started_server_are_logged_as_row_events(server: Server) -> None:
    start = server.position()
    server.execute(
        "CREATE DATABASE changes_are_logged",
        "CREATE TABLE changes_are_logged.t (id INT PRIMARY KEY)",
        "INSERT INTO changes_are_logged.t VALUES (1), (2)",
    )
    assert server.position() > start
    assert server.execute("SELECT id FROM t ORDER BY id", database="changes_are_logged") == [
        (1,),
        (2,),
    ]
    events = server.execute(f"SHOW BINLOG EVENTS IN '{start[0]}' FROM {start[1]}")
    assert any("Write_rows" in str(event[2]) for event in events)
    server.execute("DROP DATABASE changes_are_logged")


def test_account_logs_in_only_with_its_password(server: Server) -> None:
    server.execute(
        "CREATE USER 'reader'@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'reader'@'%'",
    )
    with server.connect(user="reader", password="secret") as connection:
        assert connection.open
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        server.connect(user="reader", password="wrong")
    server.execute("DROP USER 'reader'@'%'")


@pytest.mark.parametrize("kind", [MySQL56Server, MariaDBServer])
def test_server_keeps_data_after_restart_and_kill_and_removes_it_at_the_end(
    kind: type[LocalServer],
) -> None:
    if reason := kind.missing():
        pytest.skip(reason)  # the fixtures above fail in CI
    with kind() as server:
        port, folder = server.port, server.folder
        assert server.process is not None and folder is not None
        first = server.process.pid
        server.execute("CREATE DATABASE kept")
        server.restart()
        assert server.process.pid != first
        assert server.port == port
        assert ("kept",) in server.execute("SHOW DATABASES")
        server.kill()
        with pytest.raises(pymysql.err.OperationalError):
            server.execute("SELECT 1")
        server.start()
        assert ("kept",) in server.execute("SHOW DATABASES")
        assert len(server.binlog_files()) == 3
        pid = server.process.pid
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_server_options_override_the_defaults() -> None:
    if reason := MySQL56Server.missing():
        pytest.skip(reason)  # the fixtures above fail in CI
    options = ["--binlog-format=STATEMENT", "--skip-log-bin", "--lower-case-table-names=1"]
    with MySQL56Server(options) as server:
        names = "@@log_bin, @@global.binlog_format, @@lower_case_table_names"
        assert server.execute(f"SELECT {names}") == [(0, "STATEMENT", 1)]


def test_failed_server_start_reports_the_reason() -> None:
    if reason := MySQL56Server.missing():
        pytest.skip(reason)  # the fixtures above fail in CI
    with pytest.raises(ServerStartError, match="unknown option '--no-such-option'"):
        MySQL56Server(["--no-such-option"]).start()


def test_two_servers_have_different_uuids_and_ports(mysql56: Server) -> None:
    with MySQL56Server() as other:
        uuids = {server.execute("SELECT @@server_uuid")[0] for server in (mysql56, other)}
        assert len(uuids) == 2
        assert other.port != mysql56.port


def test_tls_connection_fails_for_clients_that_trust_another_authority(tmp_path: Path) -> None:
    if reason := MariaDBServer.missing():
        pytest.skip(reason)  # the fixtures above fail in CI
    made = write_certificates(tmp_path)
    with MariaDBServer(made.server_options) as server:
        trusting = ssl.create_default_context(cafile=str(made.ca))
        with server.connect(ssl=trusting) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            row = cursor.fetchone()
            assert row is not None and row[1] != ""
        other = tmp_path / "other"
        other.mkdir()
        distrusting = ssl.create_default_context(cafile=str(write_certificates(other).ca))
        with pytest.raises(pymysql.err.OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
            server.connect(ssl=distrusting)


# --- the recorded binlogs


def test_original_name_of_every_recorded_file_is_found() -> None:
    names = {file.name: original_name(file) for file in CAPTURED.glob("*.binlog")}
    assert len(names) == 24
    assert names["rotations.001.binlog"] == "mysql-bin.000002"
    assert names["rotations.005.binlog"] == "mysql-bin.000006"
    assert names["gtid_no_checksum.002.binlog"] == "mysql-bin.000003"


@pytest.mark.parametrize(
    ("scenario", "events"),
    [
        # the number of events in each file
        ("rotations", [37, 33, 35, 35, 3]),
        ("gtid_no_checksum", [46, 9]),
        ("json_docs", [370]),
    ],
)
def test_recorded_logs_are_served_with_their_names_and_events(
    serve_captured: Callable[[str], Server], scenario: str, events: list[int]
) -> None:
    files = captured_files(scenario)
    server = serve_captured(scenario)
    listed = server.binlog_files()
    assert listed[: len(files)] == [(original_name(f), f.stat().st_size) for f in files]
    assert len(listed) == len(files) + 1
    shown = [server.execute(f"SHOW BINLOG EVENTS IN '{name}'") for name, _ in listed[:-1]]
    assert [len(rows) for rows in shown] == events
    # Each file's last event is a ROTATE that names the next file of the index.
    for rows, (following, _) in zip(shown, listed[1:], strict=True):
        assert rows[-1][5] == f"{following};pos=4"


# --- servers by URL


def test_external_server_connects_by_its_url(mysql56: Server) -> None:
    mysql56.execute("GRANT ALL ON *.* TO 'ext'@'%' IDENTIFIED BY 'p@ss:w/rd'")
    server = ExternalServer(f"mysql://ext:p%40ss%3Aw%2Frd@127.0.0.1:{mysql56.port}")
    assert server.start().version().startswith("5.6.24")
    mysql56.execute("DROP USER 'ext'@'%'")


@pytest.mark.parametrize("url", ["", "http://u:hidden@h", "mysql://h:1", "mysql://u:hidden@"])
def test_external_server_rejects_invalid_urls_without_showing_passwords(url: str) -> None:
    with pytest.raises(ValueError, match="mysql://user:password@host:port") as caught:
        ExternalServer(url)
    assert "hidden" not in str(caught.value)
