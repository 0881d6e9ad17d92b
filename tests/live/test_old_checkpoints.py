"""Checkpoints of version 0.1, which had 5.6's rule for CONVERT TO on every server.

tests/data/checkpoints/default_of_0_1.json is what it wrote behind its statements on a 5.7.41:
latin1 as the default of tables that have utf8mb4, and of a column that has it, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.decoding import CAPTURED
from helpers.live_log import new_database
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.source_runner import Offset, Spark, new_reader
from pyspark_mysqlbinlog.errors import UnknownSchemaError

DATABASE = "old_checkpoint"
WRITTEN: dict[str, Any] = json.loads(
    (CAPTURED.parent / "checkpoints" / "default_of_0_1.json").read_text(encoding="utf-8")
)
TEXT = "é€😀"


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """All servers, with the tables that the checkpoint is of."""
    server: Server = request.getfixturevalue(request.param)
    with new_database(server, DATABASE):
        server.execute(
            f"ALTER DATABASE {DATABASE} CHARSET latin1",
            "SET sql_mode = ''",
            f"USE {DATABASE}",
            *WRITTEN["statements"],
        )
        yield server


def new_process(server: Server) -> Spark:
    return Spark(new_reader(server, f"{DATABASE}.*"))


def old_offset(server: Server) -> Offset:
    """The checkpoint's schemas, at the end of this server's log."""
    spark = new_process(server)
    now = spark.initial()
    spark.reader.stop()
    old = WRITTEN["offset"]
    assert old["schemas"].partition(":")[0] == now["schemas"].partition(":")[0]
    return {**now, "v": 1, "schemas": old["schemas"]}


def insert(server: Server, table: str) -> str | None:
    """A row with text, as SELECT shows it then."""
    rows = server.execute(
        "SET sql_mode = ''",
        f"INSERT INTO {table} (id, note) VALUES (7, '{TEXT}')",
        f"SELECT note FROM {table} WHERE id = 7",
        database=DATABASE,
    )
    note: str | None = rows[0][0]
    return note


def notes(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["table"]: json.loads(row["after"])["note"] for row in rows}


def follow(spark: Spark, start: Offset, count: int) -> tuple[list[dict[str, Any]], Offset]:
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        end = spark.next_batch(start)
        rows += spark.rows(start, end)
        start = end
    return rows, start


def test_what_comes_behind_it(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    start = old_offset(server)
    selected = {table: insert(server, table) for table in ("t_column", "t_right")}
    # DDL that the stream has not seen yet, and DDL that comes later.
    server.execute("ALTER TABLE t_later ADD note TEXT", database=DATABASE)
    selected["t_later"] = insert(server, "t_later")
    spark = new_process(server)
    with caplog.at_level(logging.WARNING, logger="pyspark_mysqlbinlog"):
        rows, start = follow(spark, start, 3)
    server.execute("ALTER TABLE t_default ADD note TEXT", database=DATABASE)
    selected["t_default"] = insert(server, "t_default")
    more, _ = follow(spark, start, 1)
    spark.reader.stop()
    assert notes(rows + more) == selected
    told = [record.getMessage() for record in caplog.records if DATABASE in record.getMessage()]
    if server.version().startswith("5.6."):  # it was right
        assert told == []
    else:
        assert set(selected.values()) == {TEXT}
        assert "t_column: column 'note' in latin1 instead of utf8mb4" in told[0]
        assert "t_default: default character set latin1 instead of utf8mb4" in told[1]
        assert len(told) == 2


def test_a_replayed_batch(server: Server) -> None:
    """Planned by version 0.1, and run by this one."""
    start = old_offset(server)
    selected = {"t_column": insert(server, "t_column")}
    spark = new_process(server)
    end = {**spark.next_batch(start), "v": 1, "schemas": start["schemas"]}
    spark.reader.stop()
    spark = new_process(server)
    rows = spark.rows(start, end)
    spark.reader.stop()
    assert notes(rows) == selected


def test_a_column_that_was_altered_since(server: Server) -> None:
    """Nobody tells what it was; what comes behind the ALTER is known."""
    start = old_offset(server)
    insert(server, "t_column")
    server.execute("ALTER TABLE t_column ADD k INT", database=DATABASE)
    spark = new_process(server)
    if server.version().startswith("5.6."):
        rows, _ = follow(spark, start, 1)
        assert notes(rows) == {
            "t_column": server.execute("SELECT note FROM t_column", database=DATABASE)[0][0]
        }
    else:
        with pytest.raises(UnknownSchemaError, match="column 'note' in latin1 instead of utf8mb4"):
            spark.next_batch(start)
    spark.reader.stop()
