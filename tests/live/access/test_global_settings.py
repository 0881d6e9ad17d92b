"""Global settings that are meant for other clients do not change what this package reads."""

from __future__ import annotations

from time import time

import pytest

from helpers.logs.live_log import client_of, schemas_of
from helpers.servers import Server
from helpers.writers.global_settings import globally
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

BROAD = ", ".join(f"`{'column of many letters ' * 2}{n:02d}` INT" for n in range(40))
LABELS = ",".join(f"'label {n} {'x' * 40}'" for n in range(60))

# Settings of MariaDB.
IDLE_TIMEOUTS = (
    "idle_transaction_timeout",
    "idle_readonly_transaction_timeout",
    "idle_write_transaction_timeout",
)


@pytest.fixture
def described(any_server: Server, any_database: str) -> str:
    """Return a database with many tables and columns, and with long texts."""
    any_server.execute(
        *(f"CREATE TABLE t{n} (id INT PRIMARY KEY, a CHAR(9), b INT, c INT)" for n in range(9)),
        f"CREATE TABLE broad (id INT PRIMARY KEY, e ENUM({LABELS}), {BROAD})",
        "CREATE TABLE `quo'ted\"` (id INT PRIMARY KEY, e ENUM('it''s', '\"', '\\\\'))",
        database=any_database,
    )
    return any_database


@pytest.mark.parametrize(
    "values",
    [
        {"sql_select_limit": 3},
        {"max_join_size": 1},
        {
            "sql_mode": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT",
            "max_allowed_packet": 1024,
            "lock_wait_timeout": 1,
            "max_sort_length": 4,
            "sql_quote_show_create": 0,
        },
    ],
    ids=["rows", "joins", "others"],
)
def test_global_settings_do_not_change_the_schemas_read(
    any_server: Server, described: str, values: dict[str, object]
) -> None:
    expected = schemas_of(any_server, described)
    assert len(expected) == 11
    with globally(any_server, values):
        assert schemas_of(any_server, described) == expected


def test_init_connect_does_not_change_names_and_session_settings(
    any_server: Server, any_database: str
) -> None:
    """init_connect runs only for accounts that are not administrators."""
    user = "reader_init"
    any_server.execute(
        f"CREATE TABLE `{any_database}`.`größe_€` (`é` INT PRIMARY KEY)",
        f"CREATE USER {user}@'%' IDENTIFIED BY 'secret'",
        f"GRANT SELECT ON *.* TO {user}@'%'",
    )
    settings = any_server.settings(user=user, password="secret", ssl_mode="DISABLED")
    init = (
        "SET NAMES latin1, SESSION sql_select_limit = 1, SESSION sql_mode = 'ANSI_QUOTES',"
        " SESSION timestamp = 1"
    )
    try:
        with (
            globally(any_server, {"init_connect": init}),
            ReplicaClient.connect(settings) as client,
        ):
            limit, mode, clock = client.query(
                "SELECT @@sql_select_limit, @@sql_mode, UNIX_TIMESTAMP(NOW())"
            )[0]
            found = client.query(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = %s",
                ["größe_€"],
            )
    finally:
        any_server.execute(f"DROP USER {user}@'%'")
    assert (limit > 1, mode, found) == (True, "ALLOW_INVALID_DATES", [("é",)])
    assert abs(clock - time()) < 3600


def test_session_overrides_global_settings_that_change_results(any_server: Server) -> None:
    # The timeouts are long enough for a session that is delayed before it sets its own.
    values = {
        "sql_select_limit": 3,
        "sql_big_selects": 0,
        "sql_quote_show_create": 0,
        "lock_wait_timeout": 77,
        "wait_timeout": 77,
        "net_read_timeout": 77,
        "net_write_timeout": 77,
        "lc_messages": "de_DE",
        "time_zone": "+05:30",
        "autocommit": 0,
        "completion_type": "RELEASE",
        "sql_buffer_result": 1,
        "div_precision_increment": 0,
        "default_week_format": 3,
        "lc_time_names": "ja_JP",
        "sql_auto_is_null": 1,
        "tx_isolation": "READ-UNCOMMITTED",
        "transaction_isolation": "READ-UNCOMMITTED",
    }
    values |= dict.fromkeys(IDLE_TIMEOUTS, 77)
    values |= {
        "information_schema_stats_expiry": 3600,
        "show_gipk_in_create_table_and_information_schema": 0,
    }
    with globally(any_server, values) as known, client_of(any_server) as client:
        found = client.query("SELECT " + ", ".join(f"@@SESSION.{name}" for name in known))[0]
        is_mariadb = client.is_mariadb
    expected = {
        "sql_select_limit": 2**64 - 1,
        "sql_big_selects": 1,
        "sql_quote_show_create": 1,
        "lock_wait_timeout": 31_536_000,
        "wait_timeout": 31_536_000,
        "net_read_timeout": 600,
        "net_write_timeout": 31_536_000,
        "lc_messages": "en_US",
        "time_zone": "+00:00",
        "autocommit": 1,
        "completion_type": "NO_CHAIN",
        "sql_buffer_result": 0,
        "div_precision_increment": 4,
        "default_week_format": 0,
        "lc_time_names": "en_US",
        "sql_auto_is_null": 0,
    }
    for name in ("tx_isolation", "transaction_isolation"):
        if name in known:
            expected[name] = "REPEATABLE-READ"
    if is_mariadb:
        expected |= dict.fromkeys(IDLE_TIMEOUTS, 0)
    elif any_server.version().startswith("9."):
        expected |= {
            "information_schema_stats_expiry": 0,
            "show_gipk_in_create_table_and_information_schema": 1,
        }
    assert dict(zip(known, found, strict=True)) == expected


def test_global_query_time_limits_do_not_interrupt_queries(any_server: Server) -> None:
    """MySQL's limit is in milliseconds, MariaDB's in seconds; MySQL before 5.7.8 has none."""
    limits = {"max_execution_time": 1, "max_statement_time": 0.001}
    with globally(any_server, limits) as known, client_of(any_server) as client:
        assert client.query("SELECT SLEEP(0.05) FROM information_schema.ENGINES LIMIT 1") == [(0,)]
        for name in known:
            assert client.query(f"SELECT @@SESSION.{name}") == [(0,)]
