"""The command `ingest`, repeatedly started and stopped while a client writes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest
from deltalake import DeltaTable

from e2e.conftest import SECRET
from e2e.tools.test_ingest import COMMAND
from helpers.servers import Server
from helpers.waiting import patience, wait_until

USER = "ingest_starts"
HEARTBEAT = 1.0
# A log line has a timestamp, and is a record of the package or the line of a batch.
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    r"(,\d{3} (INFO|WARNING|ERROR) pyspark_mysqlbinlog[\w.]*: \S| batch \d+: [\d,]+ rows? in )"
)


class Writing:
    """A thread that inserts rows one by one and updates them during a block."""

    def __init__(self, server: Server, database: str) -> None:
        self._server, self._database = server, database
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.rows = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(patience(60))

    def _run(self) -> None:
        with self._server.connect(database=self._database) as connection:
            cursor = connection.cursor()
            while not self._stopped.wait(0.02):
                cursor.execute("INSERT INTO orders (v) VALUES (0)")
                cursor.execute("UPDATE orders SET v = v + 1 ORDER BY id DESC LIMIT 3")
                self.rows += 1


class Command:
    """The command on one table; all of its runs append to one log."""

    def __init__(self, server: Server, database: str, folder: Path) -> None:
        self.log = folder / "log"
        password = folder / "password"
        password.write_text(SECRET, encoding="utf-8")
        self.arguments = [
            *COMMAND,
            *("--host", server.host, "--port", str(server.port), "--user", USER),
            *("--password-file", str(password), "--tables", f"{database}.orders"),
            *("--target", f"{folder}/lake/{{database}}/{{table}}"),
            *("--checkpoint", str(folder / "checkpoint"), "--conf", "spark.master=local[2]"),
            *("--option", f"heartbeatInterval={HEARTBEAT:g}s"),
        ]

    def start_and_stop(self, words: str, how: signal.Signals, *, group: bool) -> str:
        """Stop the command when its log contains `words`; return the log of this run."""
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.arguments, stdout=log, stderr=log, start_new_session=True
            )

        def output() -> str:
            return self.log.read_bytes()[before:].decode()

        try:
            wait_until(
                lambda: process.poll() is not None or words in output(),
                f"{words!r} is printed",
                300,
            )
            assert process.poll() is None, output()
            # Ctrl-C and systemd signal all processes, `kill` and Docker only the first one.
            (os.killpg if group else os.kill)(process.pid, how)
            assert process.wait(patience(120)) == 0, output()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return output()


@pytest.fixture
def shop(live_server: Server, database: str) -> Iterator[str]:
    """Yield a database with a table, and create an account that only the command uses."""
    live_server.execute(
        f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{SECRET}'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO '{USER}'@'%'",
        f"GRANT SELECT ON `{database}`.* TO '{USER}'@'%'",
        "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
        "INSERT INTO orders (v) VALUES (1), (2), (3)",
        database=database,
    )
    yield database
    live_server.execute(f"DROP USER '{USER}'@'%'")


def _commits(table: Path) -> Iterator[dict[str, Any]]:
    """Yield the actions of each commit by kind; transactions as identifier -> version."""
    for path in sorted((table / "_delta_log").glob("*.json")):
        actions: dict[str, Any] = {"txn": {}}
        for line in path.read_text().splitlines():
            ((kind, value),) = json.loads(line).items()
            if kind == "txn":
                actions["txn"][value["appId"]] = value["version"]
            else:
                actions[kind] = value
        yield actions


def _assert_each_change_once(table: Path, rows: int) -> None:
    output = [(each["commitInfo"]["operation"], each["txn"]) for each in _commits(table)]
    # Rows are written with a merge, or without one.
    writes = [marks for operation, marks in output if operation in {"MERGE", "WRITE"}]
    counted = Counter(
        (name, version)
        for marks in writes
        for name, version in marks.items()
        if name.startswith("mysqlbinlog:query:")
    )
    assert writes
    assert len(counted) == len(writes)
    assert set(counted.values()) == {1}
    # Rows are never written twice and never removed.
    held: set[int] = set()
    for number in range(len(output)):
        found = DeltaTable(table, version=number).to_pyarrow_table()
        ids: list[Any] = found.column("id").to_pylist() if "id" in found.column_names else []
        assert len({*ids}) == len(ids)
        assert held <= {*ids}
        held = {*ids}
    assert len(held) == rows


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize(
    "starts",
    [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_restarted_ingest_has_each_change_once(
    live_server: Server, shop: str, tmp_path: Path, starts: int
) -> None:
    command = Command(live_server, shop, tmp_path)
    # The text to wait for, the signal, and whether all processes get it. The short test uses only
    # the first two. A snapshot that is stopped between Delta's commit of its first rows and Spark's
    # starts again, so the first stop is after it. Only the first run has a batch 3.
    ways = [
        (" batch 3: ", signal.SIGTERM, True),
        (": reading ", signal.SIGTERM, False),
        (" rows in ", signal.SIGINT, True),
        (" rows in ", signal.SIGTERM, False),
        (": reading ", signal.SIGINT, True),
    ]
    chances = random.Random(20)
    logs = []
    with Writing(live_server, shop):
        for number in range(starts):
            words, how, group = ways[number] if number < len(ways) else chances.choice(ways[1:])
            logs.append(command.start_and_stop(words, how, group=group))

    def connections() -> list[Any]:
        return [row for row in live_server.execute("SHOW PROCESSLIST") if row[1] == USER]

    # Three heartbeats are the rule; a busy machine may need longer.
    wait_until(lambda: not connections(), "no connection is left", 60)
    once = [*command.arguments, "--available-now"]
    found = subprocess.run(once, capture_output=True, text=True, check=False, timeout=patience(300))
    assert found.returncode == 0, found.stderr

    for log in [*logs, found.stdout + found.stderr]:
        assert [line for line in log.splitlines() if not LINE.match(line)] == []
        # At most one page, apart from the batches.
        assert len([line for line in log.splitlines() if " batch " not in line]) < 25
    expected = live_server.execute("SELECT id, v FROM orders ORDER BY id", database=shop)
    table = tmp_path / "lake" / shop / "orders"
    rows = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["v"]) for row in rows] == expected
    _assert_each_change_once(table, len(expected))
