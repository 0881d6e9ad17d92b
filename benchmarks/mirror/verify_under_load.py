"""`verify` under load: what it finds of planted differences, what else, its speed and its memory.

    python -m benchmarks.mirror.verify_under_load --url mysql://user:password@host:3306

Three tables are mirrored by `ingest`, which keeps running, while threads write to them: updates
there and back again, deletes with inserts of the same keys, new rows. `verify` runs several times
without differences, then once with 100 planted ones of 10 kinds: statements with sql_log_bin = 0.
It prints a line of JSON for each run, and the time to read the tables by SELECT … ORDER BY through
pymysql.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import SSCursor

__all__: list[str] = []

_TABLES = ("orders", "customers", "items")
_CLI = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main"]
_CREATE = (
    "CREATE TABLE {table} (id BIGINT NOT NULL, region CHAR(2) NOT NULL, amount DECIMAL(12,2),"
    " note VARCHAR(60), weight DOUBLE, code VARBINARY(9), placed DATETIME(3), status"
    " ENUM('new','paid','sent'), flag TINYINT, {key}, KEY (id)) ENGINE=InnoDB CHARSET utf8mb4"
    " COLLATE utf8mb4_general_ci"
)
_KEYS = {
    "orders": "PRIMARY KEY (id)",
    "customers": "PRIMARY KEY (region, id)",
    "items": "PRIMARY KEY (placed, id)",
}
_ROW = (
    "n, ELT(1 + n % 3, 'de', 'fr', 'it'), n * 1.01, IF(n % 20 = 17, NULL, CONCAT('note of ', n)),"
    " n / 7, UNHEX(LPAD(HEX(n), 16, '0')), '2026-01-01' + INTERVAL n SECOND, 1 + n % 3, n % 2"
)
# Rows whose number ends with this are not written by the load.
_PLANTED_DIGIT = 7
_COPY = (
    "INSERT INTO {t} SELECT id + 100000000, region, amount, note, weight, code, placed, status,"
    " flag FROM {t} WHERE id = {n}"
)
# What is done to a row without the binlog, and what `verify` must say of it.
_KINDS: list[tuple[str, list[str]]] = [
    ("DELETE FROM {t} WHERE id = {n}", ["extra"]),
    (_COPY, ["missing"]),
    ("UPDATE {t} SET note = IF(note IS NULL, '', NULL) WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET weight = -weight WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET note = IFNULL(UPPER(note), '') WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET note = CONCAT(IFNULL(note, ''), ' ') WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET amount = amount + 0.01 WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET code = CONCAT(code, UNHEX('00')) WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET status = 1 + status % 3 WHERE id = {n}", ["different"]),
    ("UPDATE {t} SET id = id + 200000000 WHERE id = {n}", ["extra", "missing"]),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--database", default="bench_verify", help="is dropped")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=20, help="without differences")
    parser.add_argument("--planted", type=int, default=100)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two writes")
    parser.add_argument("--parallel", type=int, default=2)
    arguments = parser.parse_args()
    server = _Server(arguments.url, arguments.database)
    server.execute(
        f"DROP DATABASE IF EXISTS {server.database}", f"CREATE DATABASE {server.database}"
    )
    _fill(server, arguments.rows)
    with tempfile.TemporaryDirectory(prefix="bench-verify-") as name:
        folder = Path(name)
        _print(_select(server))
        began = time.monotonic()
        subprocess.run([*_ingest(server, folder), "--available-now"], check=True, stdout=sys.stderr)
        _print({"snapshot_seconds": round(time.monotonic() - began, 1)})
        _print({"load": "none"} | _verify(server, folder, arguments.parallel)[0])
        with _running(_ingest(server, folder)), _load(server, arguments) as counts:
            for number in range(arguments.runs):
                told, _ = _verify(server, folder, arguments.parallel)
                _print({"run": number + 1, "writes": sum(counts)} | told)
            expected = _plant(server, arguments.planted, arguments.rows)
            told, found = _verify(server, folder, arguments.parallel)
            missed, false = expected - found, found - expected
            _print(
                {"planted": len(expected), "missed": sorted(missed), "false": sorted(false)}
                | {"writes": sum(counts)}
                | told
            )
    server.execute(f"DROP DATABASE {server.database}")


class _Server:
    def __init__(self, url: str, database: str) -> None:
        self.database = database
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 3306
        self.user, self.password = parts.username or "", parts.password or ""

    def connect(self, **more: Any) -> Connection[Any]:
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            charset="utf8mb4",
            autocommit=True,
            **more,
        )

    def execute(self, *statements: str, database: str | None = None) -> None:
        with self.connect(database=database) as connection:
            for statement in statements:
                connection.cursor().execute(statement)


def _fill(server: _Server, rows: int) -> None:
    server.execute(
        "SET sql_log_bin = 0",
        "CREATE TABLE numbers (n INT PRIMARY KEY)",
        "INSERT INTO numbers VALUES " + ", ".join(f"({n})" for n in range(1000)),
        *(_CREATE.format(table=table, key=_KEYS[table]) for table in _TABLES),
        *(
            f"INSERT INTO {table} SELECT {_ROW} FROM (SELECT a.n * 1000 + b.n + 1 AS n FROM numbers"
            f" AS a, numbers AS b WHERE a.n < {-(-rows // 1000)}) AS some WHERE n <= {rows}"
            for table in _TABLES
        ),
        "DROP TABLE numbers",
        database=server.database,
    )


def _select(server: _Server) -> dict[str, float]:
    """Read the tables as a script would; return the time, and that of this process's CPU."""
    began, cpu = time.monotonic(), time.process_time()
    for table in _TABLES:
        with server.connect(database=server.database) as connection:
            cursor = connection.cursor(SSCursor)
            order = _KEYS[table].partition("(")[2].rstrip(")")
            cursor.execute(f"SELECT * FROM {table} ORDER BY {order}")
            while cursor.fetchmany(10_000):
                pass
    return {
        "select_order_by_seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def _common(server: _Server, folder: Path) -> list[str]:
    password = folder / "password"
    password.write_text(server.password, encoding="utf-8")
    return [
        *("--host", server.host, "--port", str(server.port), "--user", server.user),
        *("--password-file", str(password), "--tables", f"{server.database}.*"),
        *("--target", f"{folder}/lake/{{database}}/{{table}}"),
    ]


def _ingest(server: _Server, folder: Path) -> list[str]:
    checkpoint = ["--checkpoint", str(folder / "checkpoint"), "--conf", "spark.master=local[2]"]
    return [*_CLI, "ingest", *_common(server, folder), *checkpoint]


def _verify(
    server: _Server, folder: Path, parallel: int
) -> tuple[dict[str, Any], set[tuple[str, str, int]]]:
    """Return the figures of one run, and its differences: table, kind, id."""
    command = [*_CLI, "verify", *_common(server, folder), "--json", "--show", "1000"]
    command += ["--parallel", str(parallel), "--timeout", "300"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [json.loads(line) for line in process.stdout]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    found = {
        (line["table"].partition(".")[2], each["kind"], each["row"]["id"])
        for line in lines
        for each in line["shown"]
    }
    told = {
        "exit_code": process.returncode,
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "max_rss_mb": usage.ru_maxrss >> 10,
        "rows": sum(line["rows"] for line in lines),
        "differences": sum(sum(line["differences"].values()) for line in lines),
        "not_confirmed": sum(line["not_confirmed"] for line in lines),
        "reasons": [line["reason"] for line in lines if line["reason"]],
    }
    return told, found


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "ingest has ended"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _load(server: _Server, arguments: argparse.Namespace) -> Iterator[list[int]]:
    """Write in threads; gives how often each has written."""
    stopped, counts = Event(), [0] * arguments.writers
    threads = [
        Thread(target=_write, args=(server, number, arguments, stopped, counts), daemon=True)
        for number in range(arguments.writers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield counts
        assert all(thread.is_alive() for thread in threads), "a writer has failed"
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _write(
    server: _Server,
    number: int,
    arguments: argparse.Namespace,
    stopped: Event,
    counts: list[int],
) -> None:
    made, chosen = arguments.rows, random.Random(number)
    with server.connect(database=server.database) as connection:
        cursor = connection.cursor()
        while not stopped.wait(arguments.pause):
            table = chosen.choice(_TABLES)
            # The writers have rows of their own; a few of these are written often.
            few = chosen.random() < 0.3
            row = 10 * chosen.randrange(10 if few else arguments.rows // 10) + 1 + number
            match chosen.randrange(4):
                case 0:
                    cursor.execute(f"UPDATE {table} SET flag = 1 - flag WHERE id = {row}")
                case 1:
                    cursor.execute(f"UPDATE {table} SET weight = -weight WHERE id = {row}")
                    cursor.execute(f"UPDATE {table} SET weight = -weight WHERE id = {row}")
                case 2:
                    cursor.execute(f"DELETE FROM {table} WHERE id = {row}")
                    cursor.execute(
                        f"INSERT INTO {table} SELECT {_ROW} FROM (SELECT {row} AS n) AS x"
                    )
                case _:
                    made += 10
                    new = made + 1 + number
                    cursor.execute(
                        f"INSERT INTO {table} SELECT {_ROW} FROM (SELECT {new} AS n) AS x"
                    )
            counts[number] += 1


def _plant(server: _Server, count: int, rows: int) -> set[tuple[str, str, int]]:
    """Plant so many differences; gives table, kind and id of each."""
    statements = ["SET sql_log_bin = 0"]
    expected: set[tuple[str, str, int]] = set()
    number, step = 0, max(rows // count // 10, 1) * 10
    while len(expected) < count:
        table = _TABLES[number % len(_TABLES)]
        statement, kinds = _KINDS[number % len(_KINDS)]
        row = step * number + _PLANTED_DIGIT
        number += 1
        # A change of the key counts twice.
        kinds = kinds[: count - len(expected)]
        if len(kinds) == 1 and "200000000" in statement:
            statement = "DELETE FROM {t} WHERE id = {n}"
        statements.append(statement.format(t=table, n=row))
        for kind in kinds:
            moved = 0
            if kind == "missing":
                moved = 200_000_000 if "200000000" in statement else 100_000_000
            expected.add((table, kind, row + moved))
    server.execute(*statements, database=server.database)
    return expected


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
