"""Errors before the first row: connection, accounts, settings and names."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from pyspark.sql import SparkSession

from e2e.conftest import AVAILABLE_NOW, REPLICATION, SECRET, Account, Fails, ShownError
from helpers.servers import MySQL56Server, Server
from helpers.servers.base import port_of, reserve_port
from helpers.streams.spark_session import Reads
from helpers.waiting import wait_until


@pytest.mark.sample(1)
def test_unknown_host_fails_without_retry(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    error = reading(account(shop), host="no-such-host.invalid", tables="shop.orders")
    assert error.name == "ConnectionFailedError"
    assert error.message.startswith("unknown host: no-such-host.invalid:")
    assert error.message.endswith("check the option host")
    # A retry would not find the host either.
    assert "gave up after" not in error.message


def test_closed_port_fails_after_three_tries(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    with reserve_port() as keeper:
        port = port_of(keeper)
        error = reading(account(shop), port=port, tables="shop.orders")
    assert error.name == "ConnectionFailedError"
    assert f"127.0.0.1:{port} does not answer" in error.message
    assert "Connection refused" in error.message
    assert "3 tries" in error.message


class Listener:
    """A server that sends a greeting to each connection, and nothing more."""

    def __init__(self, greeting: bytes) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._greeting = greeting
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed: the test is over
            self.connections.append(connection)
            connection.sendall(self._greeting)

    def close(self) -> None:
        for each in (self._socket, *self.connections):
            each.close()


@pytest.mark.parametrize(
    ("greeting", "says", "tries"),
    [
        (b"", "does not answer while connecting", 3),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "did not answer like a MySQL server", 1),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "did not answer like a MySQL server", 1),
        (b"\x05\0\0\0\x0aabcd", "did not answer like a MySQL server", 1),
    ],
    ids=["silence", "ssh", "http", "cut short"],
)
def test_port_without_a_mysql_server_raises_connection_failed_error(
    *,
    greeting: bytes,
    says: str,
    tries: int,
    shop: Server,
    account: Account,
    fails: Fails,
) -> None:
    reads = account(shop)
    with closing(Listener(greeting)) as peer:
        # Who is not silent may take long to greet.
        timeout = "60s" if greeting else "1s"
        options = {"port": peer.port, "tables": "shop.orders", "connectTimeout": timeout}
        error = fails(lambda: reads.stream(**options))
        wait_until(lambda: len(peer.connections) >= tries, "all connections are accepted")
        assert len(peer.connections) == tries
    assert error.name == "ConnectionFailedError"
    assert f"127.0.0.1:{peer.port} {says}" in error.message
    assert ("gave up after 3 tries" in error.message) == (tries == 3)
    assert error.message.endswith("host and port")


# --- accounts and settings


def test_wrong_password_raises_access_denied_error(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    reads.options["password"] = SECRET + "not"
    error = reading(reads, tables="shop.orders")
    assert error.name == "AccessDeniedError"
    assert f"Access denied for user '{reads.options['user']}'" in error.message
    assert error.message.endswith("check the options user and password")


@pytest.mark.parametrize("missing", ["REPLICATION SLAVE", "REPLICATION CLIENT"])
def test_missing_replication_grant_raises_access_denied_error(
    missing: str, shop: Server, account: Account, fails: Fails
) -> None:
    (other,) = {"REPLICATION SLAVE", "REPLICATION CLIENT"} - {missing}
    reads = account(shop, f"{other} ON *.*", "SELECT ON shop.*")
    for trigger in (None, AVAILABLE_NOW):
        error = fails(
            lambda: reads.stream(tables="shop.orders", startingOffset="earliest"),
            trigger=trigger,
            checkpoint=None,
        )
        assert error.name == "AccessDeniedError"
        assert "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*" in error.message
        assert "user and password" not in error.message
    assert fails(lambda: reads.batch(tables="shop.orders")).name == "AccessDeniedError"


def test_missing_select_on_a_named_table_raises_unknown_table_error(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    here = shop.position()
    reads = account(shop, REPLICATION)
    # After the CREATE TABLE, so that only the server could provide the columns.
    error = reading(reads, tables="shop.orders", startingOffset=f"{here[0]}:{here[1]}")
    assert error.name == "UnknownTableError"
    assert "SELECT grant" in error.message
    assert error.message.endswith("(table shop.orders)")


def test_missing_select_on_every_table_of_a_glob_raises_access_denied_error(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    here = shop.position()
    reads = account(shop, REPLICATION)
    error = reading(reads, tables="shop.*", startingOffset=f"{here[0]}:{here[1]}")
    assert error.name == "AccessDeniedError"
    assert "shop.* matches no table that the account can see" in error.message
    assert error.message.endswith("GRANT SELECT ON `shop`.* to this account")


def test_missing_select_on_some_tables_of_a_glob_fails_at_their_first_row(
    shop: Server, account: Account, fails: Fails
) -> None:
    shop.execute("CREATE TABLE shop.seen (id INT PRIMARY KEY)")
    reads = account(shop, REPLICATION, "SELECT ON shop.seen")
    file, pos = shop.position()
    shop.execute("REPLACE INTO shop.orders VALUES (10, 'ten')")
    error = fails(lambda: reads.stream(tables="shop.*", startingOffset=f"{file}:{pos}"))
    assert error.name == "UnknownSchemaError"
    assert "shop.orders" in error.message
    assert "GRANT SELECT" in error.message


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--skip-log-bin", "writes no binlog.*--log-bin"),
        ("--binlog-format=STATEMENT", "binlog_format is STATEMENT"),
        ("--binlog-format=MIXED", "binlog_format is MIXED"),
    ],
)
def test_server_that_logs_no_rows_raises_binlog_settings_error(
    option: str, says: str, mysql56: Server, spark: SparkSession, fails: Fails
) -> None:
    with MySQL56Server([option]) as server:
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        reads = Reads(spark, server)
        for error in (
            fails(lambda: reads.stream(tables="shop.orders")),
            fails(lambda: reads.stream(tables="shop.orders"), trigger=AVAILABLE_NOW),
            fails(lambda: reads.batch(tables="shop.orders")),
        ):
            assert error.name == "BinlogSettingsError"
            assert "ROW" in error.message
            assert re.search(says, error.message) is not None


# --- names


def test_misspelled_table_raises_unknown_table_error(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    error = reading(reads, tables="shop.orders,shop.ordres")
    assert error.name == "UnknownTableError"
    assert "check the spelling" in error.message
    assert error.message.endswith("(table shop.ordres)")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("pasword", "password"), ("startingOfset", "startingOffset"), ("table", "tables")],
)
def test_unknown_option_is_rejected_with_a_suggestion_and_without_its_value(
    given: str, meant: str, shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    # The value may be a secret: `fails` checks that it is not shown.
    error = reading(account(shop), tables="shop.orders", **{given: SECRET})
    assert error.name == "OptionError"
    assert error.message == f"unknown option {given.lower()!r}: did you mean {meant}?"


def test_invalid_option_value_is_shown_in_the_error(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    error = reading(account(shop), tables="shop.orders", heartbeatInterval="soon")
    assert error.name == "OptionError"
    assert "heartbeatInterval" in error.message
    assert error.message.endswith("found 'soon'")
