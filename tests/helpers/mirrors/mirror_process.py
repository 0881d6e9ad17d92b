"""The script examples/delta_mirror.py as a process, a writer, and the rows on both sides."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from deltalake import DeltaTable

from helpers.servers import Server
from helpers.snapshots.connect_turn import connect_turn
from helpers.waiting import patience

__all__ = [
    "TABLES",
    "Traffic",
    "committed",
    "delivered",
    "last_offset",
    "mirror",
    "rows_of_delta",
    "rows_of_server",
]

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "delta_mirror.py"
TABLES = ("orders", "lines", "events")


class Traffic:
    """A thread of inserts, updates (also of keys), deletes and TRUNCATEs, for a block."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        self._server, self._database = server, database
        self._random = random.Random(seed)
        self._stopped = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(patience(30))
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with self._server.connect(database=self._database, autocommit=True) as connection:
                cursor = connection.cursor()
                number = 0
                while not self._stopped.wait(0.005):
                    number += 1
                    cursor.execute(self._statement(number))
        except BaseException as error:  # noqa: BLE001 (raised again in __exit__)
            self._error = error

    def _statement(self, number: int) -> str:
        key = self._random.randrange(60)
        text = f"ñ漢{number}"
        if number % 500 == 250:
            return "TRUNCATE TABLE `lines`"
        return self._random.choice(
            [
                f"REPLACE INTO orders (id, v, n) VALUES ({key}, '{text}', {number}.25)",
                f"INSERT IGNORE INTO orders (id, v, n) VALUES ({key}, '{text}', NULL)",
                f"UPDATE IGNORE orders SET id = id + 7, v = '{text}' WHERE id = {key}",
                f"DELETE FROM orders WHERE id = {key}",
                f"REPLACE INTO `lines` (o, `line no`, v) VALUES ({key % 7}, {key}, '{text}')",
                f"REPLACE INTO `lines` (o, `line no`, v) VALUES (9, {key}, NULL)",
                f"UPDATE `lines` SET v = '{text}' WHERE o = {key % 7}",
                f"DELETE FROM `lines` WHERE `line no` = {key}",
                f"INSERT INTO events VALUES ({key % 3}, NULL), ({key % 3}, NULL), ({key}, 'x')",
                f"UPDATE events SET v = 'y' WHERE n = {key % 3} AND v IS NULL LIMIT 1",
                f"DELETE FROM events WHERE n = {key % 3} LIMIT 2",
            ]
        )


@contextlib.contextmanager
def mirror(
    server: Server, database: str, folder: Path, *, connect: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the script's process, and end it and its children with SIGKILL at the end.

    connect : use a Spark Connect session instead of a classic one.
    """
    password = folder / "password"
    password.write_text(server.password, encoding="utf-8")
    arguments = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password-file": password,
        "tables": ",".join(f"{database}.{table}" for table in TABLES),
        "target": folder / "lake",
        "checkpoint": folder / "checkpoint",
        # No snapshot: a table that is altered during one stops, which another test covers.
        "starting-offset": "earliest",
    }
    command = [sys.executable, str(_SCRIPT)]
    for name, value in arguments.items():
        command += [f"--{name}", str(value)]
    environment = os.environ | {
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell",
    }
    if connect:
        environment["SPARK_REMOTE"] = "local[2]"
        environment["PYSPARK_SUBMIT_ARGS"] = "--conf spark.ui.enabled=false pyspark-shell"
    turn = connect_turn() if connect else contextlib.nullcontext()
    with turn, (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield process
        finally:
            # The process may have ended while its JVM still runs.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def committed(folder: Path) -> int:
    """Return the number of the last committed batch; -1 before the first."""
    commits = [path.name for path in (folder / "checkpoint" / "commits").glob("[0-9]*")]
    return max((int(name) for name in commits), default=-1)


def delivered(folder: Path) -> tuple[str, int]:
    """Return the file and position at which the last committed batch ends."""
    offset = last_offset(folder)
    return offset["file"], offset["pos"]


def last_offset(folder: Path) -> dict[str, Any]:
    """Return the end offset of the last committed batch."""
    text = (folder / "checkpoint" / "offsets" / str(committed(folder))).read_text()
    offset: dict[str, Any] = json.loads(text.splitlines()[-1])
    return offset


def rows_of_server(server: Server, database: str, table: str) -> list[tuple[Any, ...]]:
    return sorted(server.execute(f"SELECT * FROM `{table}`", database=database), key=repr)


def rows_of_delta(folder: Path, database: str, table: str) -> list[tuple[Any, ...]]:
    rows = DeltaTable(folder / "lake" / database / table).to_pyarrow_table().to_pylist()
    return sorted(
        (tuple(int(v) if k == "id" else v for k, v in row.items() if k != "_seq") for row in rows),
        key=repr,
    )
