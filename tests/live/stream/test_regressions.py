"""Regressions on a real server; each once lost, mislabelled or exposed something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.live_log import new_database
from helpers.servers import MySQL56Server, Server
from helpers.streams.source_runner import Spark, ids, insert, new_reader
from helpers.waiting import wait_until
from helpers.writers.global_settings import globally
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.source.start_offset import start_of_server
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    ServerError,
    StatementFormatError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient


@pytest.fixture
def table(live_server: Server, database: str) -> str:
    live_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        database=database,
    )
    return f"{database}.t"


@pytest.fixture
def stream(live_server: Server, table: str, new_stream: NewStream) -> Spark:
    return new_stream(live_server, table)


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_available_now_after_kill_in_batch_zero_delivers_all_rows(
    live_server: Server, table: str, new_stream: NewStream, start: str
) -> None:
    """The new process resolves the same start and replays batch 0, which must stay empty."""
    stored = new_stream(live_server, table, startingOffset=start).initial()
    insert(live_server, table, 1, 2)
    again = new_stream(live_server, table, startingOffset=start)
    again.reader.prepareForTriggerAvailableNow()
    begin = again.initial()
    assert again.rows(begin, stored) == []
    end = again.latest(stored)
    assert end != stored
    assert ids(again.rows(stored, end))[-2:] == [1, 2]


def test_truncate_in_ansi_quotes_mode_gives_a_truncate_row(
    live_server: Server, table: str, stream: Spark, new_stream: NewStream
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    database, name = table.split(".")
    with live_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ANSI_QUOTES'")
        cursor.execute(f'TRUNCATE TABLE "{database}"."{name}"')
    end = stream.next_batch(start)
    for reader in (stream, new_stream(live_server, table)):
        rows = reader.rows(start, end)
        assert [(row["op"], row["table"]) for row in rows] == [("t", "t")]


@pytest.mark.usefixtures("mysql56")  # ends the test if it is missing
def test_replay_on_another_server_is_rejected(
    live_server: Server, table: str, stream: Spark, new_stream: NewStream
) -> None:
    """The other server has files of the same names with other rows."""
    start = stream.initial()
    assert stream.latest(start) == start
    insert(live_server, table, 1)
    end = stream.next_batch(start)
    with MySQL56Server() as other, pytest.raises(ServerError, match="belongs to the server"):
        new_stream(other, table).rows(start, end)


def test_create_if_not_exists_of_existing_table_keeps_its_columns(
    live_server: Server, database: str, new_stream: NewStream
) -> None:
    live_server.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", database=database)
    live_server.rotate()
    file, _ = live_server.position()
    live_server.execute(
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, b INT, a INT)",
        "INSERT INTO t (id, a, b) VALUES (7, 1, 2)",
        database=database,
    )
    stream = new_stream(live_server, f"{database}.t", startingOffset=f"{file}:4")
    stream.reader.prepareForTriggerAvailableNow()
    start = stream.initial()
    assert stream.latest(start) == start
    (row,) = stream.rows(start, stream.latest(start))
    assert json.loads(row["after"]) == {"id": 7, "a": 1, "b": 2}


def test_statement_after_the_target_does_not_fail_available_now(
    live_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    insert(live_server, table, 1)
    stream.reader.prepareForTriggerAvailableNow()
    with live_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"INSERT INTO {table} (id) VALUES (2)")
    end = stream.latest(start)
    assert ids(stream.rows(start, end)) == [1]
    tail = stream.reader.tail
    assert tail is not None
    wait_until(lambda: tail.buffer.error is not None, "the tail has met the statement")
    assert stream.latest(end) == end


def test_available_now_reaches_its_target_with_only_uncaptured_changes(
    live_server: Server, table: str, stream: Spark
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    other = table.replace(".t", ".other")
    insert(live_server, other, 1)
    target = live_server.position()
    stream.reader.prepareForTriggerAvailableNow()
    insert(live_server, other, *range(2, 40))
    begin = Position.of(start["file"], start["pos"])
    end = wait_until(lambda: stream.latest(start), "an answer comes")
    tail = stream.reader.tail
    assert tail is not None
    wait_until(lambda: tail.buffer.tip.position.pos > target[1], "the tail is after the target")
    assert (end["file"], end["pos"]) == target
    assert Position.of(end["file"], end["pos"]) > begin
    assert stream.rows(start, end) == []


def test_load_data_statement_is_rejected_only_for_captured_table(
    live_server: Server, table: str, stream: Spark, tmp_path: Path
) -> None:
    start = stream.initial()
    assert stream.latest(start) == start
    file = tmp_path / "numbers.csv"
    file.write_text("1\n2\n", encoding="utf-8")
    load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE"
    # The client sends the file, so the server can be on another machine.
    with (
        globally(live_server, {"local_infile": 1}),  # off by default from 8.0 on
        live_server.connect(local_infile=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"{load} {table.replace('.t', '.other')}")
        cursor.execute("SET SESSION binlog_format = 'ROW'")
        cursor.execute(f"INSERT INTO {table} (id) VALUES (5)")
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"{load} {table} (id)")
    end = stream.next_batch(start)
    assert ids(stream.rows(start, end)) == [5]
    with pytest.raises(StatementFormatError, match="LOAD DATA"):
        wait_until(lambda: stream.latest(end) != end, "the statement is met")


# Statements that are logged as written unless the format is ROW, and the server that does so.
LOGGED_AS_THEY_ARE = [
    ("mysql", "MIXED", "CREATE TABLE t (id INT PRIMARY KEY) SELECT 1 AS id"),
    ("mysql", "STATEMENT", "CREATE TABLE IF NOT EXISTS t AS (SELECT 1 AS id)"),
    ("mariadb", "MIXED", "CREATE TABLE t (id INT PRIMARY KEY) SELECT 1 AS id"),
    ("mariadb", "MIXED", "CREATE OR REPLACE TABLE t (id INT) VALUES (1)"),
    ("mariadb", "STATEMENT", "CREATE TABLE t (id INT) WITH q AS (SELECT 1) SELECT * FROM q"),
    ("mariadb", "STATEMENT", "ANALYZE FORMAT=JSON INSERT INTO {database}.other VALUES (1)"),
    ("mariadb", "STATEMENT", "ANALYZE DELETE FROM other WHERE id = 0"),
]


@pytest.mark.parametrize(("kind", "binlog_format", "sql"), LOGGED_AS_THEY_ARE)
def test_rows_logged_as_a_statement_raise_statement_format_error(
    request: pytest.FixtureRequest,
    new_stream: NewStream,
    kind: str,
    binlog_format: str,
    sql: str,
) -> None:
    server: Server = request.getfixturevalue("live_server" if kind == "mysql" else "mariadb")
    with new_database(server, "statements") as database:
        server.execute("CREATE TABLE other (id INT)", database=database)
        stream = new_stream(server, f"{database}.*")
        start = stream.initial()
        assert stream.latest(start) == start
        with server.connect(database=database) as connection, connection.cursor() as cursor:
            # In row format the binlog has the resulting columns, and then the row.
            cursor.execute("CREATE TABLE first SELECT 5 AS id")
            cursor.execute(f"SET SESSION binlog_format = '{binlog_format}'")
            cursor.execute("CREATE TEMPORARY TABLE tmp SELECT 2 AS id")
            cursor.execute(sql.format(database=database))
        end = stream.next_batch(start)
        assert ids(stream.rows(start, end)) == [5]
        with pytest.raises(StatementFormatError, match="was logged as a statement"):
            wait_until(lambda: stream.latest(end) != end, "the statement is met")


def test_mariadb_statements_flagged_temporary_give_rows_except_truncate(
    mariadb: Server, new_stream: NewStream
) -> None:
    """MariaDB flags each statement of a table with such a default as one of a temporary table."""
    with new_database(mariadb, "flagged") as database:
        mariadb.execute(
            "CREATE TABLE t (id INT, c BIGINT DEFAULT (CONNECTION_ID()))"
            " PARTITION BY HASH (id) PARTITIONS 2",
            database=database,
        )
        stream = new_stream(mariadb, f"{database}.t", operations="insert,truncate,ddl")
        start = stream.initial()
        assert stream.latest(start) == start
        mariadb.execute(
            "ALTER TABLE t TRUNCATE PARTITION p0",
            "ALTER TABLE t ADD d INT",
            "INSERT INTO t VALUES (1, 2, 3)",
            "TRUNCATE t",
            database=database,
        )
        rows: list[dict[str, Any]] = []
        while len(rows) < 3:
            end = stream.next_batch(start)
            rows += stream.rows(start, end)
            start = end
        assert [row["op"] for row in rows] == ["t", "ddl", "c"]
        assert json.loads(rows[2]["after"]) == {"id": 1, "c": 2, "d": 3}
        with pytest.raises(UnsupportedEventError, match="or a temporary table of its name"):
            wait_until(lambda: stream.latest(start) != start, "the statement is met")


@pytest.fixture
def secret(live_server: Server) -> Iterator[str]:
    """Yield the password of the account `odd`."""
    password = "geheim-€-ä-漢"
    with live_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER 'odd'@'%%' IDENTIFIED BY %s", (password,))
        cursor.execute("GRANT ALL ON *.* TO 'odd'@'%'")
    yield password
    live_server.execute("DROP USER 'odd'@'%'")


def test_non_ascii_password_works_and_is_shown_in_no_error(
    live_server: Server, secret: str
) -> None:
    """The password is sent as UTF-8."""
    reader = new_reader(live_server, "a.*", user="odd", password=secret)
    with ReplicaClient.connect(reader._bound.options.server_settings()) as client:
        assert client.query("SELECT 1") == [(1,)]
    wrong = new_reader(live_server, "a.*", user="odd", password=secret + "€")
    with pytest.raises(AccessDeniedError) as caught:
        start_of_server(wrong._bound.options, streaming=True)
    assert "geheim" not in f"{caught.value!r}{wrong._bound.options!r}{caught.value}"
