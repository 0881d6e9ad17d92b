"""The ``inspect --host`` command: a live server's binlog, with column names from the server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.logs.binlog_download import download
from helpers.servers import LocalServer, Server
from helpers.tools.connection_flags import connection_flags
from pyspark_mysqlbinlog.connector.cli.main import app

pytestmark = pytest.mark.one_server


@pytest.fixture
def connection(any_server: Server, tmp_path: Path) -> list[str]:
    """Return the flags that name the server."""
    return connection_flags(any_server, tmp_path)


def inspect(*arguments: str) -> str:
    shown = CliRunner().invoke(app, ["inspect", *arguments])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def objects(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in inspect("--json", *arguments).splitlines()]


@pytest.fixture
def files(any_server: Server, any_database: str) -> list[str]:
    """Return the names of two files; neither contains the CREATE TABLE."""
    any_server.execute(
        f"CREATE TABLE {any_database}.t (id INT UNSIGNED PRIMARY KEY, e ENUM('a', 'é'))"
        " CHARACTER SET utf8mb4"
    )
    names = []
    for rows in ("(4294967295, 'é')", "(1, 'a'), (2, NULL)"):
        any_server.rotate()
        names.append(any_server.position()[0])
        any_server.execute(f"INSERT INTO {any_database}.t VALUES {rows}")
    return names


def copied(server: Server, names: list[str], folder: Path) -> list[str]:
    """Copy binlog files to a new folder; return their paths."""
    folder.mkdir()
    if server.datadir is None:
        download(server, names, folder)
    else:
        # A dump of MariaDB 11 has no positions that show what the file contains.
        for name in names:
            shutil.copy(server.datadir / name, folder)
    return [str(folder / name) for name in names]


def test_inspect_of_a_server_equals_its_files_and_adds_column_names(
    any_server: Server,
    any_database: str,
    connection: list[str],
    files: list[str],
    tmp_path: Path,
) -> None:
    copies = copied(any_server, files, tmp_path / "files")
    of_server, of_files = objects(*connection, *files), objects(*copies)
    # The server keeps writing its last file.
    assert of_server[: len(of_files)] == of_files
    tables = ["--tables", f"{any_database}.t", "-v"]
    rows = [each["changes"] for each in objects(*connection, *files, *tables) if "op" in each]
    assert rows == [
        [{"after": {"id": 4294967295, "e": "é"}}],
        [{"after": {"id": 1, "e": "a"}}, {"after": {"id": 2, "e": None}}],
    ]
    unnamed = [each["changes"] for each in objects(*copies, *tables) if "op" in each]
    assert unnamed[1] == [{"after": {"@1": 1, "@2": 1}}, {"after": {"@1": 2, "@2": None}}]
    assert "`e`='é' /* enum */" in inspect(*connection, *files, *tables)


def test_inspect_stats_count_the_rows_of_the_chosen_files(
    any_database: str, connection: list[str], files: list[str]
) -> None:
    (statistics,) = objects(*connection, *files, "--tables", f"{any_database}.t", "--stats")
    assert (statistics["transactions"], statistics["rows"]) == (2, 3)
    assert statistics["files"] == files
    (table,) = statistics["tables"]
    assert table["operations"]["c"]["rows"] == 3
    # Without file names, the last file is read.
    (statistics,) = objects(*connection, "--tables", f"{any_database}.t", "--stats")
    assert statistics["rows"] == 2


# The files that are given, and how many of their pairs are no neighbours.
@pytest.mark.parametrize(
    ("chosen", "gaps"),
    [([0, 1, 2], 0), ([0, 2], 1), ([2, 0], 1), ([1, 0, 2], 2), ([2, 1, 0], 2), ([0, 2, 1], 2)],
)
def test_inspect_of_files_with_gaps_does_not_use_earlier_column_names(
    any_server: Server,
    any_database: str,
    tmp_path: Path,
    chosen: list[int],
    gaps: int,
) -> None:
    table, names = f"{any_database}.t", []
    for statements in (
        [
            f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT)",
            f"INSERT {table} SET id=1, a=1, b=2",
        ],
        [f"ALTER TABLE {table} CHANGE a b INT, CHANGE b a INT"],
        [f"INSERT {table} SET id=2, a=10, b=20"],
    ):
        any_server.rotate()
        names.append(any_server.position()[0])
        any_server.execute(*statements)
    any_server.rotate()
    paths = copied(any_server, [names[each] for each in chosen], tmp_path / "files")
    expected = {
        names[0]: {"id": 1, "a": 1, "b": 2},
        names[2]: {"@1": 2, "@2": 20, "@3": 10} if gaps else {"id": 2, "b": 20, "a": 10},
    }
    # A folder is read in the server's order.
    folder = [[str(tmp_path / "files")]] if chosen == sorted(chosen) else []
    for given in (paths, *folder):
        shown = CliRunner().invoke(app, ["inspect", "--json", "-v", "--tables", table, *given])
        assert shown.exit_code == 0, shown.output
        found = [json.loads(text) for text in shown.stdout.splitlines()]
        rows = {each["file"]: each["changes"][0]["after"] for each in found if "op" in each}
        assert rows == {names[each]: expected[names[each]] for each in chosen if each != 1}
        notes = shown.stderr.splitlines()
        assert len(notes) == gaps
        for note in notes:
            name, what, _ = note.split(": ", 2)
            assert name in names
            assert what == "column names from earlier files are not used"


@pytest.mark.parametrize("selection", [[], ["--start-datetime", "2000-01-01T00:00:00"]])
@pytest.mark.parametrize("chosen", [[0, 2], [2, 0], [1, 0], [1]])
def test_inspect_stats_count_each_chosen_file_of_a_server(
    any_server: Server,
    any_database: str,
    connection: list[str],
    chosen: list[int],
    selection: list[str],
) -> None:
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    names = []
    for file in range(3):
        any_server.rotate()
        names.append(any_server.position()[0])
        rows = ", ".join(f"({10 * file + n})" for n in range(file + 1))
        any_server.execute(f"INSERT INTO {any_database}.t VALUES {rows}")
    any_server.rotate()
    any_server.execute(f"INSERT INTO {any_database}.t VALUES (99)")
    files = [names[each] for each in chosen]
    tables = ["--tables", f"{any_database}.t", *selection]
    (statistics,) = objects(*connection, *files, *tables, "--stats")
    assert statistics["files"] == files
    assert statistics["rows"] == sum(each + 1 for each in chosen)
    assert statistics["rows"] == sum(
        each["rows"] for each in objects(*connection, *files, *tables) if "op" in each
    )


def test_inspect_of_a_server_rejects_a_file_that_is_named_twice(
    connection: list[str], files: list[str]
) -> None:
    done = CliRunner().invoke(app, ["inspect", *connection, files[0], files[1], files[0]])
    assert done.exit_code == 2
    assert done.stderr == f"OptionError: the file {files[0]} is named twice; name each file once\n"


def test_inspect_hexdump_of_a_server_shows_column_names(
    any_database: str, connection: list[str], files: list[str]
) -> None:
    shown = inspect(*connection, files[0], "--tables", f"{any_database}.t", "--hexdump")
    assert "`id`: 4294967295" in shown
    assert "CRC32: 0x" in shown


def test_inspect_selects_tables_case_insensitively_if_the_server_does(
    folding_server: LocalServer, tmp_path: Path
) -> None:
    create = "CREATE TABLE Shop.Orders (id INT PRIMARY KEY)"
    folding_server.execute("CREATE DATABASE shop", create, "INSERT INTO Shop.Orders VALUES (1)")
    connection = connection_flags(folding_server, tmp_path)
    for tables in ("Shop.Orders", "shop.orders", "SHOP.O*", "/Shop.Orders/"):
        found = objects(*connection, "-v", "--tables", tables)
        assert [each["changes"] for each in found if "op" in each] == [[{"after": {"id": 1}}]]
        assert create in [each.get("query") for each in found]
        (statistics,) = objects(*connection, "--stats", "--tables", tables)
        assert statistics["rows"] == 1


@pytest.mark.parametrize("any_server", ["mariadb"], indirect=True)
def test_inspect_selects_mariadb_transactions_up_to_a_gtid(
    any_server: Server, any_database: str, connection: list[str]
) -> None:
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    any_server.rotate()
    file = any_server.position()[0]
    any_server.execute(
        *(f"INSERT INTO {any_database}.t VALUES ({number})" for number in range(4)),
        "SET SESSION gtid_domain_id = 7",
        f"INSERT INTO {any_database}.t VALUES (100)",
        "SET SESSION gtid_domain_id = DEFAULT",
    )

    def shown(*selection: str) -> list[tuple[str, list[int]]]:
        """Return the GTID and the rows of each transaction of the table."""
        tables = ["--tables", f"{any_database}.t", "-v"]
        return [
            (each["gtid"], [row["after"]["id"] for row in each["changes"]])
            for each in objects(*connection, file, *tables, *selection)
            if "op" in each
        ]

    whole = shown()
    gtids = [gtid for gtid, _ in whole]
    assert [rows for _, rows in whole] == [[0], [1], [2], [3], [100]]
    assert shown("--include-gtids", gtids[1]) == whole[:2]
    assert shown("--exclude-gtids", gtids[1]) == whole[2:]
    assert shown("--include-gtids", gtids[2], "--exclude-gtids", gtids[1]) == whole[2:3]
    assert shown("--include-gtids", f"{gtids[0]},{gtids[4]}") == [whole[0], whole[4]]
    # A MySQL GTID matches none of these transactions.
    of_mysql = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100000"
    assert shown("--include-gtids", of_mysql) == []
    assert shown("--exclude-gtids", of_mysql) == whole
