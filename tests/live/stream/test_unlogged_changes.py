"""Changes that are in the binlog under another name, as a statement, or not at all."""

from __future__ import annotations

import json
import logging

import pytest

from helpers.logs.live_log import client_of, new_database
from helpers.servers import LocalServer, Server
from helpers.servers.available import own_kinds
from helpers.streams.source_runner import Offset, Spark, new_reader
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.server import warn_once as warnings
from pyspark_mysqlbinlog.connector.server.unlogged_changes import warn_of_unlogged_changes
from pyspark_mysqlbinlog.connector.server.warn_once import collected_warnings
from pyspark_mysqlbinlog.errors import StatementFormatError


@pytest.fixture(autouse=True)
def _warn_again() -> None:
    warnings.forget_warnings()


def stopped(stream: Spark) -> Exception:
    tail = stream.reader.tail
    assert tail is not None
    return wait_until(lambda: tail.buffer.error, "the stream stops")


CREATE_FUNCTION = (
    "CREATE FUNCTION f(i INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO t VALUES (i, 1); RETURN i; END"
)
# The objects that are created, and a statement that changes table t through them.
ROUTES = {
    "a view": (["CREATE VIEW v AS SELECT id, n FROM t"], "INSERT INTO v VALUES (7, 7)"),
    "a view of a view": (
        ["CREATE VIEW w AS SELECT id, n FROM t", "CREATE VIEW v AS SELECT id, n FROM w"],
        "UPDATE v SET n = 8",
    ),
    "a trigger": (
        ["CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW INSERT INTO t VALUES (NEW.id, 1)"],
        "INSERT INTO other VALUES (7)",
    ),
    "a function": (
        [CREATE_FUNCTION],
        "INSERT INTO other VALUES (f(7))",
    ),
    "a trigger that calls": (
        [
            "CREATE PROCEDURE p(i INT) INSERT INTO t VALUES (i, 1)",
            "CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW CALL p(NEW.id)",
        ],
        "INSERT INTO other VALUES (7)",
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_statement_that_changes_captured_table_indirectly_stops_the_stream(
    any_server: Server, any_database: str, route: str
) -> None:
    before, change = ROUTES[route]
    any_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        *before,
        database=any_database,
    )
    stream = Spark(new_reader(any_server, f"{any_database}.t"))
    try:
        stream.latest(stream.initial())
        any_server.execute("SET SESSION binlog_format = 'STATEMENT'", change, database=any_database)
        error = stopped(stream)
    finally:
        stream.reader.stop()
    assert isinstance(error, StatementFormatError)
    # Errors show no literals.
    assert change[:17] in error.message
    words = {"view": "is a view", "trigger": "a trigger of", "function": "f is a function"}
    assert words[route.split()[1]] in error.message


def test_statement_on_unrelated_table_does_not_stop_the_stream(
    any_server: Server, any_database: str
) -> None:
    any_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE log (id INT)",
        "CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
        "CREATE VIEW v AS SELECT id FROM other",
        database=any_database,
    )
    stream = Spark(new_reader(any_server, f"{any_database}.t"))
    try:
        begin = stream.latest(stream.initial())
        any_server.execute(
            "SET SESSION binlog_format = 'STATEMENT'",
            "INSERT INTO other VALUES (1)",
            "INSERT INTO v (id) VALUES (ABS(-2))",
            "SET SESSION binlog_format = 'ROW'",
            "INSERT INTO t VALUES (3)",
            database=any_database,
        )
        end = stream.next_batch(begin)
        assert [json.loads(row["after"])["id"] for row in stream.rows(begin, end)] == [3]
    finally:
        stream.reader.stop()


@pytest.mark.parametrize("options", [{}, {"snapshotExactKeyless": "true"}], ids=["", "exact"])
def test_stream_start_names_tables_whose_changes_may_not_be_logged(
    any_server: Server,
    any_database: str,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, str],
) -> None:
    any_server.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE part (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE whole (id INT PRIMARY KEY) ENGINE = MERGE UNION = (part)",
        "CREATE TABLE quick (id INT PRIMARY KEY) ENGINE = MEMORY",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE VIEW seen AS SELECT id FROM part",
        "CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW DELETE FROM quick WHERE id = NEW.id",
        database=any_database,
    )
    tables = ",".join(f"{any_database}.{name}" for name in ("parent", "child", "part", "quick"))
    stream = Spark(new_reader(any_server, tables, **options))
    with caplog.at_level(logging.INFO, "pyspark_mysqlbinlog"):
        try:
            stream.latest(stream.initial())
            tail = stream.reader.tail
            assert tail is not None
            # Each connection begins its dump after the warnings.
            wait_until(lambda: tail.compared, "the tail follows the binlog")
        finally:
            stream.reader.stop()
    text = caplog.text
    is_old = any_server.is_mariadb or any_server.version().startswith("5.6.")
    cascade = f"foreign keys change rows of {any_database}.child (ON DELETE CASCADE"
    assert (cascade in text) == (not any_server.is_mysql9())
    assert f"rows of {any_database}.part that are changed through the MERGE table" in text
    assert f"{any_database}.part through the view {any_database}.seen" in text
    assert f"{any_database}.quick through triggers of {any_database}.other" in text
    assert (f"{any_database}.quick: a restart of the server empties" in text) == is_old


@pytest.mark.parametrize("kind", ["mysql9", "mariadb", "mariadb11"])
def test_tables_whose_before_update_trigger_changes_are_not_logged_get_a_warning(
    request: pytest.FixtureRequest, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    column = "v INT AS (a + 1) VIRTUAL" if server.is_mariadb else "v JSON"
    change = "SET NEW.a = 2 * NEW.a" if server.is_mariadb else "SET NEW.v = JSON_SET(NEW.v, '$', 1)"
    with new_database(server, "before_triggers") as name:
        for table, definition, when in (
            ("found", column, "BEFORE UPDATE"),
            ("other_time", column, "BEFORE INSERT"),
            ("other_column", "v INT", "BEFORE UPDATE"),
        ):
            server.execute(
                f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, {definition})",
                f"CREATE TRIGGER g_{table} {when} ON {table} FOR EACH ROW"
                f" {change if definition == column else 'SET NEW.a = 2 * NEW.a'}",
                database=name,
            )
        tables = {(name, table) for table in ("found", "other_time", "other_column")}
        with collected_warnings() as usual, client_of(server) as client:
            warn_of_unlogged_changes(client, tables, with_cascades=False)
        if not server.is_mariadb:
            server.execute("SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
        try:
            with collected_warnings() as warnings, client_of(server) as client:
                warn_of_unlogged_changes(client, tables, with_cascades=False)
        finally:
            if not server.is_mariadb:
                server.execute("SET GLOBAL binlog_row_value_options = DEFAULT")
    if kind == "mariadb11":
        assert usual == warnings == []
    else:
        (warning,) = warnings
        assert warning.startswith(f"{name}.found: `after` can have wrong values")
        assert usual == (warnings if server.is_mariadb else [])


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", own_kinds().values(), ids=own_kinds())
@pytest.mark.parametrize("is_logged", [True, False])
def test_memory_table_emptied_by_restart_gives_a_truncate_row_if_logged(
    request: pytest.FixtureRequest, kind: type[LocalServer], *, is_logged: bool
) -> None:
    """The server's own statement counts as TRUNCATE; some log none with sql_log_bin = 0."""
    request.getfixturevalue(kind.name)
    with kind() as server:
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE = MEMORY",
        )
        stream = Spark(new_reader(server, "shop.t", retryTimeout="5m"))
        begin = stream.latest(stream.initial())
        server.execute("INSERT INTO shop.t VALUES (1)", "INSERT INTO shop.t VALUES (2)")
        stream.wait_for_tail(server)
        stream.reader.stop()
        server.restart()
        hides = () if is_logged else ("SET SESSION sql_log_bin = 0",)
        server.execute(*hides, "SELECT * FROM shop.t")
        server.execute("INSERT INTO shop.t VALUES (3)")
        stream = Spark(new_reader(server, "shop.t", retryTimeout="5m"))
        rows = _until(stream, begin, 3)
        stream.reader.stop()
        assert server.execute("SELECT id FROM shop.t") == [(3,)]
        loses = not is_logged and (server.is_mariadb or server.version().startswith("5.6."))
        inserted = [("c", 1), ("c", 2)]
        assert rows == [*inserted, *([] if loses else [("t", None)]), ("c", 3)]


def _until(stream: Spark, begin: Offset, number: int) -> list[tuple[str, int | None]]:
    found: list[tuple[str, int | None]] = []
    while ("c", number) not in found:
        end = stream.next_batch(begin)
        found += [
            (row["op"], json.loads(row["after"])["id"] if row["after"] else None)
            for row in stream.rows(begin, end)
        ]
        begin = end
    return found
