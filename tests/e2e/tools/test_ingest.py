"""``pyspark-mysqlbinlog ingest`` as a user runs it: snapshot, changes, shutdown and errors."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
from deltalake import DeltaTable

from helpers.mirrors.mirror_process import rows_of_delta, rows_of_server
from helpers.servers import Server
from helpers.waiting import patience, wait_until

COMMAND = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "ingest"]


def arguments(server: Server, database: str, folder: Path) -> list[str]:
    password = folder / "password"
    password.write_text(server.password, encoding="utf-8")
    return [
        *COMMAND,
        *("--host", server.host, "--port", str(server.port), "--user", server.user),
        *("--password-file", str(password), "--tables", f"{database}.orders"),
        *("--target", f"{folder}/lake/{{database}}/{{table}}"),
        *("--checkpoint", str(folder / "checkpoint"), "--conf", "spark.master=local[2]"),
    ]


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=patience(300)
    )


def test_ingest_applies_snapshot_and_changes_and_exits_at_sigterm(
    live_server: Server, database: str, tmp_path: Path
) -> None:
    live_server.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, v VARCHAR(40)) CHARSET utf8mb4",
        "INSERT INTO orders VALUES (1, 'ñ漢'), (2, NULL)",
        database=database,
    )
    command = arguments(live_server, database, tmp_path)
    command += ["--change-log", f"{tmp_path}/changes/{{database}}/{{table}}"]
    once = run([*command, "--available-now", "--json"])
    assert once.returncode == 0, once.stderr
    (line,) = map(json.loads, once.stdout.splitlines())
    assert (line["rows"], line["tables_in_snapshot"], line["lag_seconds"]) == (2, 0, None)
    assert line["tables"][f"{database}.orders"]["rows"] == 2
    expected = rows_of_server(live_server, database, "orders")
    assert rows_of_delta(tmp_path, database, "orders") == expected

    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            live_server.execute("UPDATE orders SET id = 3 WHERE id = 1", database=database)
            wait_until(
                lambda: process.poll() is not None or ": 1 row in" in log.read_text(),
                "a batch is printed",
                300,
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(patience(120)) == 0, log.read_text()
            assert re.search(r": 1 row in [\d.]+ s, lag [\d.]+ s, up to ", log.read_text())
            assert "\x1b" not in log.read_text()
        finally:
            process.kill()
            process.wait()
    expected = rows_of_server(live_server, database, "orders")
    assert rows_of_delta(tmp_path, database, "orders") == expected
    changes = DeltaTable(tmp_path / "changes" / database / "orders").to_pyarrow_table()
    assert sorted(map(str, changes["op"].to_pylist())) == ["r", "r", "reset", "u"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", [150, 80])
def test_ingest_in_a_terminal_shows_its_tables_and_exits_at_ctrl_c(
    live_server: Server, database: str, tmp_path: Path, width: int
) -> None:
    """The terminal sends Ctrl-C to all processes."""
    live_server.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, v INT)",
        "INSERT INTO orders VALUES (1, 1), (2, 2)",
        database=database,
    )
    terminal, process_end = pty.openpty()
    termios.tcsetwinsize(process_end, (30, width))
    # The terminal becomes the process's controlling terminal, so that it sends Ctrl-C.
    take = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY);"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", take, *arguments(live_server, database, tmp_path)]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": str(width)}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=process_end,
        stdout=process_end,
        stderr=process_end,
        start_new_session=True,
    )
    os.close(process_end)
    shown = Shown(terminal)
    try:
        shown.wait_for(database, "in sync", "2", process)
        live_server.execute("INSERT INTO orders VALUES (3, 3)", database=database)
        shown.wait_for(database, "in sync", "3", process)
        os.write(terminal, b"\x03")
        assert process.wait(patience(120)) == 0, shown.text
    finally:
        process.kill()
        process.wait()
        shown.wait_for_end()
        os.close(terminal)
    assert "Traceback" not in shown.text
    assert "Exception" not in shown.text
    expected = rows_of_server(live_server, database, "orders")
    assert rows_of_delta(tmp_path, database, "orders") == expected


class Shown:
    """The text sent to a terminal, without its control characters."""

    def __init__(self, end: int) -> None:
        self._sent = b""
        self._thread = Thread(target=self._read, args=[end], daemon=True)
        self._thread.start()

    def _read(self, end: int) -> None:
        # Reading fails when the last writer has closed the terminal.
        with contextlib.suppress(OSError):
            while chunk := os.read(end, 65536):
                self._sent += chunk

    def wait_for_end(self) -> None:
        self._thread.join(patience(60))

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._sent.decode("utf-8", "replace"))

    def wait_for(
        self, database: str, state: str, rows: str, process: subprocess.Popen[bytes]
    ) -> None:
        """Wait until the table's line shows this state and this number of rows."""
        # A narrow terminal leaves out the middle of long names.
        line = re.compile(rf"{database[:5]}\S*\.orders +{state} +{rows} ")
        wait_until(
            lambda: process.poll() is not None or line.search(self.text),
            lambda: f"{line.pattern} in {self.text}",
            every=0.1,
        )


def test_ingest_errors_are_one_line(live_server: Server, database: str, tmp_path: Path) -> None:
    command = arguments(live_server, database, tmp_path)
    for more, words in (
        (["--option", "colour=red"], "colour"),
        (["--option", "host=other"], "use this command's own option for it"),
        (["--option", "host"], "expected name=value"),
        (["--engine", "delta"], "expected one of deltalake"),
    ):
        found = run([*command, *more])
        assert found.returncode == 2, found.stderr
        assert words in found.stderr
        assert "Traceback" not in found.stderr
    into = command.index("--target")
    found = run([*command[:into], *command[into + 2 :]])
    assert found.returncode == 2
    assert "target: expected target, change_log or both, found neither" in found.stderr
    found = run([*command, "--available-now"])
    assert found.returncode == 1
    # One line of the package, one of Spark, and no stack trace.
    *_, last = found.stderr.splitlines()
    assert last.startswith("UnknownTableError: "), found.stderr
    assert "\tat " not in found.stderr
    assert len(found.stderr.splitlines()) < 5, found.stderr


def test_ingest_with_a_stopped_table_exits_with_1(
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
    found = run([*command, "--tables", f"{database}.*", "--soft-delete", "--available-now"])
    assert found.returncode == 1, found.stderr
    assert f"{database}.keyless: replication stopped: the table has no key" in found.stderr
    assert rows_of_delta(tmp_path, database, "orders") == [(1, False)]
