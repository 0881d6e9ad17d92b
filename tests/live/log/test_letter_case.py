"""Files of a server with lower_case_table_names=1: rows have lower case, statements as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType
from typer.testing import CliRunner

from helpers.logs.archive import Archive
from helpers.needed_servers import need
from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.streams.file_streams import FileStream
from pyspark_mysqlbinlog.connector.cli.main import app
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError, StatementFormatError

FOLDED = {"lowerCaseTableNames": "1"}


@pytest.fixture(scope="module")
def shared_folding_server() -> Iterator[LocalServer]:
    """Yield a server that stores names in lower case."""
    need(own_kind())
    with own_kind()(["--lower-case-table-names=1"]) as server:
        yield server


@pytest.fixture
def shop(
    shared_folding_server: LocalServer, tmp_path: Path
) -> Iterator[tuple[LocalServer, Archive]]:
    """Yield the server with the table shop.orders, and an archive that begins with its CREATE."""
    server = shared_folding_server
    server.rotate()
    archive = Archive(server, tmp_path / "archive")
    server.execute(
        "CREATE DATABASE shop CHARSET utf8mb4",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, a INT, b INT)",
    )
    yield server, archive
    server.execute("DROP DATABASE shop")


def batch(archive: Archive, **options: str) -> list[dict[str, Any]]:
    archive.copy()
    given = {"path": str(archive.folder), "tables": "shop.*", "payload": "json"} | options
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    return [
        row
        for part in reader.partitions()
        for found in reader.read(part)
        for row in found.to_pylist()
    ]


def run(stream: FileStream, **texts: str) -> list[dict[str, Any]]:
    """Run a query to the end of its files or its server's binlog; return the new rows."""
    known = len(stream.batches)
    stream.texts = {"payload": "json"} | texts
    stream.begin()
    try:
        assert stream.spark is not None
        stream.spark.reader.prepareForTriggerAvailableNow()
        while stream.step():
            pass
    finally:
        stream.stop()
    return [row for _, _, rows in stream.batches[known:] for row in rows]


def streamed(archive: Archive, **options: str) -> list[dict[str, Any]]:
    archive.copy()
    return run(FileStream({}), **{"path": str(archive.folder), "tables": "shop.*"} | options)


def after(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(row["after"]) for row in rows]


SWAP = (
    "ALTER TABLE shop.Orders CHANGE a b INT, CHANGE b a INT",
    "INSERT INTO SHOP.orders (id, a, b) VALUES (2, 20, 30)",
)
SWAPPED = [{"id": 2, "b": 30, "a": 20}]


@pytest.mark.parametrize("tables", ["shop.orders", "Shop.Orders", "SHOP.*"])
@pytest.mark.parametrize("read", [batch, streamed])
def test_alter_in_another_letter_case_is_followed_with_the_option(
    shop: tuple[LocalServer, Archive], read: Any, tables: str
) -> None:
    server, archive = shop
    server.execute(*SWAP)
    assert after(read(archive, tables=tables, **FOLDED)) == SWAPPED


def test_inspect_follows_alter_in_another_letter_case_with_the_flag(
    shop: tuple[LocalServer, Archive],
) -> None:
    server, archive = shop
    server.execute(*SWAP)
    archive.copy()
    arguments = ["inspect", "-v", "--json", "--tables", "Shop.Orders", "--lower-case-table-names"]
    shown = CliRunner().invoke(app, [*arguments, str(archive.folder)])
    assert shown.exit_code == 0, shown.output
    found = [json.loads(line) for line in shown.stdout.splitlines()]
    changes = [change for each in found for change in each.get("changes", [])]
    assert [change["after"] for change in changes] == SWAPPED


@pytest.mark.parametrize("read", [batch, streamed])
def test_truncate_and_statements_in_another_letter_case_count_with_the_option(
    shop: tuple[LocalServer, Archive], read: Any
) -> None:
    server, archive = shop
    server.execute("INSERT INTO shop.orders VALUES (1, 1, 1)", "TRUNCATE TABLE shop.Orders")
    found = read(archive, **FOLDED)
    assert [(row["op"], row["table"]) for row in found] == [
        ("c", "orders"),
        ("t", "orders"),
    ]
    server.execute(
        "SET SESSION binlog_format = STATEMENT", "INSERT INTO shop.Orders VALUES (2, 2, 2)"
    )
    with pytest.raises(StatementFormatError):
        read(archive, **FOLDED)


@pytest.mark.parametrize(
    "options",
    [
        {"tables": "Shop.Orders"},
        {"tables": "shop.*", "maskColumns": '{"Shop.Orders.a": "redact"}'},
        {"tables": "shop.*", "excludeColumns": "Shop.Orders.a"},
        {"tables": "shop.*", "rowFilter": '{"Shop.Orders": "a > 50"}'},
        {"tables": "shop.*", "excludeTables": "Shop.Orders"},
    ],
    ids=lambda options: list(options)[-1],
)
def test_checkpoint_of_a_folding_server_continues_on_its_files(
    shop: tuple[LocalServer, Archive], options: dict[str, str]
) -> None:
    server, archive = shop
    live, files = FileStream({}), FileStream({})
    of_server = server.options(heartbeatInterval="1s", payload="json", **options)
    run(live, **of_server)
    server.execute("INSERT INTO shop.orders VALUES (1, 2, 3)")
    run(live, **of_server)
    assert live.checkpoint is not None
    assert live.checkpoint["case_insensitive"] is True
    files.checkpoint = live.checkpoint
    server.execute("INSERT INTO shop.orders VALUES (2, 20, 30), (3, 60, 30)", *SWAP[:1])
    server.execute("INSERT INTO shop.orders (id, a, b) VALUES (4, 70, 80)")
    archive.copy()
    expected = run(live, **of_server)
    assert bool(expected) == ("excludeTables" not in options)
    assert run(files, path=str(archive.folder), **options) == expected
    assert files.checkpoint["case_insensitive"] is True
    files.replay()
    with pytest.raises(OptionError, match="lowerCaseTableNames: expected 1"):
        run(files, path=str(archive.folder), lowerCaseTableNames="0", **options)
    # And back.
    server.execute("INSERT INTO shop.orders (id, a, b) VALUES (5, 90, 80)")
    assert run(files, **of_server) == run(live, **of_server)


def test_option_that_contradicts_the_checkpoint_raises_option_error(
    shop: tuple[LocalServer, Archive],
) -> None:
    _, archive = shop
    archive.copy()
    stream = FileStream({})
    run(stream, path=str(archive.folder), tables="shop.*")
    assert stream.checkpoint is not None
    assert "case_insensitive" not in stream.checkpoint
    with pytest.raises(OptionError, match="lowerCaseTableNames: expected 0"):
        run(stream, path=str(archive.folder), tables="shop.*", **FOLDED)


def test_misspelt_column_raises_when_a_checkpoint_moves_to_files(
    shop: tuple[LocalServer, Archive],
) -> None:
    server, archive = shop
    stream = FileStream({})
    given = {"payload": "json", "tables": "shop.*"}
    run(stream, **server.options(heartbeatInterval="1s", **given))
    server.execute("INSERT INTO shop.orders VALUES (1, 2, 3)")
    archive.copy()
    with pytest.raises(MySQLBinlogError, match="has no column"):
        run(stream, path=str(archive.folder), excludeColumns="shop.orders.aa", **given)


IN_ANOTHER_CASE = {
    "alter": "ALTER TABLE shop.Orders CHANGE a b INT, CHANGE b a INT",
    "index": "CREATE UNIQUE INDEX i ON SHOP.orders (a)",
    "rename": "RENAME TABLE shop.Orders TO shop.old",
    "truncate": "TRUNCATE TABLE shop.ORDERS",
    "statement": "UPDATE shop.Orders SET a = 1",
}


@pytest.mark.parametrize("statement", IN_ANOTHER_CASE.values(), ids=IN_ANOTHER_CASE)
def test_statement_in_another_letter_case_stops_a_read_without_the_option(
    shop: tuple[LocalServer, Archive], statement: str
) -> None:
    server, archive = shop
    server.execute("INSERT INTO shop.orders VALUES (1, 1, 1)")
    # A stream meets the statement after its start.
    archive.copy()
    stream = FileStream({})
    assert len(run(stream, path=str(archive.folder), tables="shop.orders")) == 1
    server.execute("SET SESSION binlog_format = STATEMENT", statement)
    archive.copy()
    words = r"lowerCaseTableNames is missing: .* differs from it only in case"
    with pytest.raises(OptionError, match=words):
        run(stream, path=str(archive.folder), tables="shop.orders")
    with pytest.raises(OptionError, match=words):
        batch(archive)


def test_literal_table_without_definition_is_recognized_in_another_letter_case(
    shop: tuple[LocalServer, Archive], tmp_path: Path
) -> None:
    server, _ = shop
    server.rotate()
    later = Archive(server, tmp_path / "later")
    server.execute("INSERT INTO shop.orders VALUES (1, 1, 1)", "TRUNCATE TABLE shop.Orders")
    positional = {"tables": "shop.orders", "onUnknownSchema": "positional"}
    with pytest.raises(OptionError, match="lowerCaseTableNames is missing"):
        batch(later, **positional)
    assert [row["op"] for row in batch(later, **positional, **FOLDED)] == ["c", "t"]
    assert [row["op"] for row in batch(later, **positional, lowerCaseTableNames="0")] == ["c"]


def test_inspect_without_the_flag_shows_no_names_after_alter_in_another_case(
    shop: tuple[LocalServer, Archive],
) -> None:
    server, archive = shop
    server.execute(*SWAP)
    archive.copy()
    shown = CliRunner().invoke(app, ["inspect", "-v", "--json", str(archive.folder)])
    assert shown.exit_code == 0, shown.output
    found = [json.loads(line) for line in shown.stdout.splitlines()]
    changes = [change for each in found for change in each.get("changes", [])]
    assert [[*change["after"]] for change in changes] == [["@1", "@2", "@3"]]


@pytest.mark.parametrize("read", [batch, streamed])
def test_names_that_differ_only_in_case_are_read_from_a_case_sensitive_server(
    read: Any, tmp_path: Path
) -> None:
    need(own_kind())
    with own_kind()() as server:
        archive = Archive(server, tmp_path / "archive")
        server.execute(
            "CREATE DATABASE d CHARSET utf8mb4",
            "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)",
            "INSERT INTO d.t VALUES (1, 1)",
            "DROP TABLE IF EXISTS d.T",
            "CREATE TEMPORARY TABLE d.T (id INT)",
            "ALTER TABLE d.T ADD b INT",
            "INSERT INTO d.T VALUES (1, 1)",
            "DROP TABLE d.T",
            "CREATE TABLE d.T (id INT PRIMARY KEY, b INT)",
            "ALTER TABLE d.T ADD c INT",
            "INSERT INTO d.T VALUES (2, 2, 2)",
            "TRUNCATE TABLE d.T",
            "ALTER TABLE d.t DROP a",
            "INSERT INTO d.t VALUES (3)",
            "RENAME TABLE d.T TO d.x, d.t TO d.T, d.x TO d.t",
            "INSERT INTO d.t VALUES (4, 4, 4)",
            "INSERT INTO d.T VALUES (5)",
            "DROP TABLE d.T",
            "SET SESSION binlog_format = STATEMENT",
            "CREATE TEMPORARY TABLE d.T (id INT)",
            "ALTER TABLE d.T ADD b INT",
            "INSERT INTO d.T VALUES (1, 1)",
            "TRUNCATE TABLE d.T",
            "DROP TABLE d.T",
        )
        server.execute("CREATE DATABASE D", "CREATE TABLE D.t (id INT PRIMARY KEY)")
        server.execute("INSERT INTO D.t VALUES (6)", "DROP DATABASE D")
        found = read(archive, tables="d.t,D.t", operations="insert,update,delete")
        assert after(found) == [
            {"id": 1, "a": 1},
            {"id": 3},
            {"id": 4, "b": 4, "c": 4},
            {"id": 6},
        ]
