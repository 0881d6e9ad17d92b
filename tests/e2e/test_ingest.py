"""``pyspark-mysqlbinlog ingest`` as a user runs it: loads, follows, stops, says what is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable

from helpers.mirror_process import rows_of_delta, rows_of_server
from helpers.servers import Server
from helpers.waiting import wait_until

COMMAND = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "ingest"]


def arguments(server: Server, database: str, folder: Path) -> list[str]:
    password = folder / "password"
    password.write_text(server.password, encoding="utf-8")
    return [
        *COMMAND,
        *("--host", server.host, "--port", str(server.port), "--user", server.user),
        *("--password-file", str(password), "--tables", f"{database}.orders"),
        *("--into", f"{folder}/lake/{{database}}/{{table}}"),
        *("--checkpoint", str(folder / "checkpoint"), "--conf", "spark.master=local[2]"),
    ]


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_it_loads_follows_and_stops(live_server: Server, database: str, tmp_path: Path) -> None:
    live_server.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, v VARCHAR(40)) CHARSET utf8mb4",
        "INSERT INTO orders VALUES (1, 'ñ漢'), (2, NULL)",
        database=database,
    )
    command = arguments(live_server, database, tmp_path)
    command += ["--history", f"{tmp_path}/changes/{{database}}/{{table}}"]
    once = run([*command, "--once", "--json"])
    assert once.returncode == 0, once.stderr
    (line,) = map(json.loads, once.stdout.splitlines())
    assert line["rows"] == 2
    expected = rows_of_server(live_server, database, "orders")
    assert rows_of_delta(tmp_path, database, "orders") == expected

    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            live_server.execute("UPDATE orders SET id = 3 WHERE id = 1", database=database)
            wait_until(
                lambda: process.poll() is not None or ": 1 row in" in log.read_text(),
                "a batch is told",
                300,
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()
    expected = rows_of_server(live_server, database, "orders")
    assert rows_of_delta(tmp_path, database, "orders") == expected
    changes = DeltaTable(tmp_path / "changes" / database / "orders").to_pyarrow_table()
    assert sorted(map(str, changes["op"].to_pylist())) == ["begin", "r", "r", "u"]


def test_what_is_wrong_is_said_in_a_line(
    live_server: Server, database: str, tmp_path: Path
) -> None:
    command = arguments(live_server, database, tmp_path)
    for more, words in (
        (["--option", "colour=red"], "colour"),
        (["--option", "host=other"], "there is an option of this command for it"),
        (["--option", "host"], "expected name=value"),
    ):
        found = run([*command, *more])
        assert found.returncode == 2, found.stderr
        assert words in found.stderr
        assert "Traceback" not in found.stderr
    into = command.index("--into")
    found = run([*command[:into], *command[into + 2 :]])
    assert found.returncode == 2
    assert "target: give it, or history, or both" in found.stderr
    found = run([*command, "--once"])
    assert found.returncode == 1
    assert any(line.startswith("UnknownTableError: ") for line in found.stderr.splitlines()), (
        found.stderr
    )


def test_a_table_that_is_stopped_is_an_exit_code(
    live_server: Server, database: str, tmp_path: Path
) -> None:
    live_server.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY)",
        "CREATE TABLE keyless (n INT)",
        "INSERT INTO orders VALUES (1)",
        "INSERT INTO keyless VALUES (1)",
        database=database,
    )
    command = arguments(live_server, database, tmp_path)
    found = run([*command, "--tables", f"{database}.*", "--once"])
    assert found.returncode == 1, found.stderr
    assert f"{database}.keyless is not kept in step: the table has no primary key" in found.stderr
    assert rows_of_delta(tmp_path, database, "orders") == [(1,)]
