"""A server that is upgraded in place: one stream of 5.7's last files and 9.x's first one.

9.x serves the files of 5.7.41 that its index lists, as after an upgrade, which keeps the server's
UUID. The tables are created on 9.x without the binlog. Then the statements that 5.7 executed are
executed again; the same statements give the same rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.events import rotate_body
from helpers.logs.later_logs import read
from helpers.logs.recorded_logs import describe
from helpers.needed_servers import need
from helpers.servers import MySQL9Server, MySQL56Server, captured_files, serve_binlogs
from helpers.servers.base import LocalServer
from helpers.servers.recorded import original_name
from helpers.streams.source_runner import Offset, Spark, new_reader

# Columns in which the same statements give other values on 9.x: 1/3 as FLOAT and DOUBLE.
SCENARIOS: dict[str, tuple[str, ...]] = {"numbers": ("f", "d"), "charsets": (), "rotations": ()}


@pytest.fixture(autouse=True)
def _servers() -> None:
    for kind in (MySQL56Server, MySQL9Server):
        need(kind)


@contextmanager
def upgraded(files: list[Path], uuid: str) -> Iterator[LocalServer]:
    """Yield a 9.x server that has these files before its own, and this UUID."""
    server = MySQL9Server(["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"])
    server.prepare()
    assert server.datadir is not None
    try:
        names = [original_name(file) for file in files]
        for file, name in zip(files, names, strict=True):
            shutil.copyfile(file, server.datadir / name)
        (server.datadir / "mysql-bin.index").write_text("".join(f"./{name}\n" for name in names))
        (server.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={uuid}\n")
        yield server.start()
    finally:
        server.stop()


def statements(scenario: str, *verbs: str) -> list[str]:
    found = [each for each in describe(scenario)["statements"] if not each.get("error")]
    return [each["sql"] for each in found if each["sql"].lower().startswith(verbs)]


def rows_until(spark: Spark, offset: Offset, count: int) -> tuple[list[dict[str, Any]], Offset]:
    """Return at least `count` rows of the next batches, and the offset after them."""
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        end = spark.next_batch(offset)
        rows += sorted(spark.rows(offset, end), key=lambda row: tuple(row["seq"].values()))
        offset = end
    return rows, offset


def images(rows: list[dict[str, Any]], ignored: tuple[str, ...] = ()) -> list[Any]:
    found = []
    for row in rows:
        sides = [json.loads(row[side] or "{}") for side in ("before", "after")]
        for side in sides:
            for name in ignored:
                side.pop(name, None)
        found.append((row["op"], row["table"], *sides))
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_stream_continues_on_upgraded_server(scenario: str, tmp_path: Path) -> None:
    database = describe(scenario)["database"]
    files = captured_files(scenario)
    expected = read(str(files[0]).replace(".001.", ".*."), "json", tables=f"{database}.*")
    options = {"startingOffset": "earliest", "maxBytesPerTrigger": "2k"}
    with serve_binlogs(files) as old:
        uuid = str(old.execute("SELECT @@server_uuid")[0][0])
        spark = Spark(new_reader(old, f"{database}.*", **options))
        first, checkpoint = rows_until(spark, spark.initial(), 5)
        spark.reader.stop()
    create = statements(scenario, "create table", "set names", "create database")
    changes = statements(scenario, "insert", "update", "delete", "replace")
    with upgraded(files, uuid) as new:
        assert new.version().startswith("9.")
        with new.connect(database=None) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = ''")
            for sql in create:
                if "create database" not in sql:
                    cursor.execute(f"USE {database}")
                cursor.execute(sql)
        spark = Spark(new_reader(new, f"{database}.*", **options))
        rest, offset = rows_until(spark, checkpoint, len(expected) - len(first))
        old_rows = [*first, *rest]
        assert images(old_rows) == images(expected)
        assert len({tuple(row["seq"].values()) for row in old_rows}) == len(old_rows)
        with new.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = ''")
            for sql in changes:
                cursor.execute(sql)
        new_rows, offset = rows_until(spark, offset, len(old_rows))
        ignored = SCENARIOS[scenario]
        assert images(new_rows, ignored) == images(old_rows, ignored)
        table = new_rows[-1]["table"]
        new.execute(
            f"ALTER TABLE {database}.{table} ADD COLUMN added INT NOT NULL DEFAULT 7",
            f"DELETE FROM {database}.{table} ORDER BY id LIMIT 1",
        )
        (last,), _ = rows_until(spark, offset, 1)
        assert last["before"].endswith(',"added":7}')
        spark.reader.stop()
        # The files alone: a server that stops, as the old one did, leaves no ROTATE.
        assert new.datadir is not None
        for path in sorted(new.datadir.glob("mysql-bin.0*")):
            shutil.copy(path, tmp_path)
        old_file = tmp_path / original_name(files[-1])
        data = old_file.read_bytes()
        old_file.write_bytes(data[: -len(rotate_body("mysql-bin.000001")) - 19 - 4])
        rows = read(str(tmp_path), "json", tables=f"{database}.*")
        assert images(rows) == images([*old_rows, *new_rows, last])
