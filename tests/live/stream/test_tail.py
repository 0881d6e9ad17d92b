"""The ``tail`` command: changes of a live server, as lines and as JSON."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.servers import LocalServer, Server
from helpers.tools.connection_flags import connection_flags
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.connector.cli.main import app

pytestmark = pytest.mark.one_server


@pytest.fixture
def connection(any_server: Server, any_database: str, tmp_path: Path) -> list[str]:
    """Return the flags that name the server and the tables."""
    return [*connection_flags(any_server, tmp_path), "--tables", f"{any_database}.*"]


@pytest.fixture
def since(any_server: Server, any_database: str) -> str:
    """Return the position before a table and its changes."""
    file, pos = any_server.position()[:2]
    any_server.execute(
        f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY, v VARCHAR(9) CHARSET utf8, n INT)",
        f"INSERT INTO {any_database}.t VALUES (1, 'a', 5), (2, NULL, 6)",
        f"UPDATE {any_database}.t SET v = 'b' WHERE id = 1",
        f"ALTER TABLE {any_database}.t ADD extra INT DEFAULT 9",
        f"DELETE FROM {any_database}.t WHERE id = 2",
    )
    return f"{file}:{pos}"


def tail(*arguments: str) -> list[str]:
    shown = CliRunner().invoke(app, ["tail", *arguments])
    assert shown.exit_code == 0, shown.output
    return shown.stdout.splitlines()


def test_tail_command_shows_each_change_in_one_line(
    any_database: str, connection: list[str], since: str
) -> None:
    lines = tail(*connection, "--since", since, "--limit", "6")
    name = f"{any_database}.t"
    # The lines are compared without their times.
    assert [re.sub(r"^\d\d:\d\d:\d\d ", "", text) for text in lines] == [
        f"! CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(9) CHARSET utf8, n INT)",
        f"+ {name}  id=1 v='a' n=5",
        f"+ {name}  id=2 v=NULL n=6",
        f"~ {name}  id=1  v: 'a' → 'b'",
        f"! ALTER TABLE {name} ADD extra INT DEFAULT 9",
        f"- {name}  id=2 v=NULL n=6 extra=9",
    ]


def test_tail_command_json_contains_images_of_chosen_operations(
    any_database: str, connection: list[str], since: str
) -> None:
    chosen = ["--operations", "update,delete", "--limit", "2"]
    found = [json.loads(text) for text in tail(*connection, "--since", since, "--json", *chosen)]
    assert [(each["op"], each["table"]) for each in found] == [("u", "t"), ("d", "t")]
    assert found[0]["before"] == {"id": 1, "v": "a", "n": 5}
    assert found[0]["after"] == {"id": 1, "v": "b", "n": 5}
    assert found[1]["before"]["extra"] == 9


@contextmanager
def running(arguments: list[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    # A shell's background process and all processes that it starts ignore SIGINT.
    command = ["env", "--default-signal=INT", sys.executable, "-P"]
    command += ["-m", "pyspark_mysqlbinlog.connector.cli.main", "tail"]
    with (
        output.open("wb") as file,
        subprocess.Popen([*command, *arguments], stdout=file) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_tail_command_shows_new_changes_until_interrupted(
    any_server: Server, any_database: str, connection: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "shown"
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    with running([*connection, "--json"], output) as process:
        numbers = iter(range(10_000))

        def is_followed() -> bool:
            any_server.execute(f"INSERT INTO {any_database}.t VALUES ({next(numbers)})")
            return output.stat().st_size > 0

        wait_until(is_followed, "a change is shown")
        process.send_signal(signal.SIGINT)
        assert process.wait(patience(60)) == 0
    shown = [json.loads(text)["after"]["id"] for text in output.read_text().splitlines()]
    # Changes before the command listened are not shown, and no later one is missing.
    assert shown == list(range(shown[0], shown[-1] + 1))


def test_tail_command_shows_each_change_once_across_server_restarts(
    own_server: LocalServer, tmp_path: Path
) -> None:
    own_server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    file, pos = own_server.position()[:2]
    flags = [*connection_flags(own_server, tmp_path), "--tables", "shop.*"]
    output = tmp_path / "shown"
    flags += ["--since", f"{file}:{pos}", "--json", "--limit", "10"]
    with running(flags, output) as process:
        for first, end in ((0, own_server.halt), (3, own_server.kill)):
            # The table gets another table id in each file, so earlier table maps do not apply.
            own_server.execute("CREATE TABLE shop.other (id INT)", "DROP TABLE shop.other")
            own_server.execute(f"INSERT INTO shop.t VALUES ({first}), ({first + 1})")
            wait_until(partial(has_shown, output, first + 1), "the rows are shown")
            end()
            own_server.start()
        own_server.execute("INSERT INTO shop.t VALUES (6)", "DELETE FROM shop.t WHERE id = 6")
        wait_until(lambda: process.poll() is not None, "it has shown all")
        assert process.returncode == 0
    shown = [json.loads(text) for text in output.read_text().splitlines()]
    rows = [each.get("after") or each.get("before") for each in shown if each["op"] in "cd"]
    assert [row["id"] for row in rows] == [0, 1, 3, 4, 6, 6]


def has_shown(output: Path, number: int) -> bool:
    return f'"id": {number}' in output.read_text()


def test_tail_command_shows_each_change_once_despite_broken_connections(
    any_server: Server, any_database: str, connection: list[str], tmp_path: Path
) -> None:
    any_server.execute(
        f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY, v VARCHAR(99) CHARSET utf8)",
        f"CREATE TABLE {any_database}.o (id INT PRIMARY KEY)",
    )
    file, pos = any_server.position()[:2]
    numbers = iter(range(1000))
    for _ in range(10):
        # Several statements in a transaction: a table map can be the last event that arrives.
        rows = [f"({next(numbers)}, '{'x' * 90}')" for _ in range(50)]
        with any_server.connect(autocommit=False) as client, client.cursor() as cursor:
            cursor.execute(f"INSERT INTO {any_database}.t VALUES {', '.join(rows[:25])}")
            cursor.execute(f"INSERT INTO {any_database}.o VALUES ({next(numbers)})")
            cursor.execute(f"INSERT INTO {any_database}.t VALUES {', '.join(rows[25:])}")
            client.commit()
    whole = [f"{file}:{pos}", "--json", "--limit", str(next(numbers))]
    expected = tail(*connection, "--since", *whole)
    # At the start, some connections read columns, which is much data.
    allowed = iter([None] * 4 + [n * 997 for n in range(4, 40)])
    with cutting_proxy(any_server.host, any_server.port, allowed) as proxy:
        flags = connection_flags(any_server, tmp_path, proxy.port)
        assert tail(*flags, "--tables", f"{any_database}.*", "--since", *whole) == expected
        assert proxy.cuts > 3


def test_tail_command_exits_with_1_if_the_server_stays_down(
    own_server: LocalServer, tmp_path: Path
) -> None:
    own_server.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    flags = [*connection_flags(own_server, tmp_path), "--tables", "shop.*"]
    output = tmp_path / "shown"
    more = ["--since", "earliest", "--option", "retryTimeout=1s"]
    with running([*flags, *more], output) as process:
        wait_until(lambda: "CREATE TABLE shop.t" in output.read_text(), "a change is shown")
        own_server.kill()
        assert process.wait(patience(60)) == 1


def test_tail_command_selects_tables_case_insensitively_if_the_server_does(
    folding_server: LocalServer, tmp_path: Path
) -> None:
    folding_server.execute("CREATE DATABASE shop")
    file, pos = folding_server.position()[:2]
    folding_server.execute(
        "CREATE TABLE Shop.Orders (id INT PRIMARY KEY)", "INSERT INTO Shop.Orders VALUES (1)"
    )
    flags = connection_flags(folding_server, tmp_path)
    for tables in ("Shop.Orders", "shop.orders", "SHOP.O*", "/Shop.Orders/"):
        lines = tail(*flags, "--tables", tables, "--since", f"{file}:{pos}", "--limit", "2")
        assert [re.sub(r"^\d\d:\d\d:\d\d ", "", text) for text in lines] == [
            "! CREATE TABLE Shop.Orders (id INT PRIMARY KEY)",
            "+ shop.orders  id=1",
        ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--since", "tomorrow"], "--since: expected a duration"),
        (["--operations", "insert,drop"], "--operations: expected some of insert"),
        (["--tables", "a.b.c.d"], "option tables"),
    ],
)
def test_wrong_tail_command_argument_is_rejected_in_one_line(
    connection: list[str], arguments: list[str], error: str
) -> None:
    shown = CliRunner().invoke(app, ["tail", *connection, *arguments])
    assert shown.exit_code == 2
    (line,) = shown.stderr.splitlines()
    assert error in line
