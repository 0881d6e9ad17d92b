"""DDL of a table without a key: the binlog reads of a stream that reloads tables after DDL."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import ids
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.schemas import schema_guard
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server


@pytest.mark.parametrize(
    ("definition", "statements", "is_read"),
    [
        ("id INT, b INT", ["ADD c INT DEFAULT 7", "ADD d INT NOT NULL DEFAULT 8"], False),
        # A unique key with a column that can be NULL does not identify rows.
        ("id INT, b INT, UNIQUE (id)", ["ADD c INT"], False),
        ("id INT, b INT, UNIQUE (id)", ["MODIFY id INT NOT NULL"], True),
        ("id INT PRIMARY KEY, b INT NOT NULL, UNIQUE (b)", ["DROP PRIMARY KEY"], True),
    ],
)
def test_binlog_is_searched_for_a_key_only_if_the_server_shows_one(
    any_server: Server,
    any_database: str,
    new_stream: NewStream,
    monkeypatch: pytest.MonkeyPatch,
    *,
    definition: str,
    statements: list[str],
    is_read: bool,
) -> None:
    """The search for one key reads the whole binlog from a statement on."""
    read: list[Any] = []

    def reading(*arguments: Any, **more: Any) -> Any:
        read.append(arguments)
        return history_of_server(*arguments, **more)

    monkeypatch.setattr(schema_guard, "history_of_server", reading)
    table = f"{any_database}.keyless"
    stream = new_stream(any_server, f"{any_database}.key*", reloadAfterDdl="true")
    start = stream.initial()
    assert stream.latest(start) == start
    any_server.execute(
        f"CREATE TABLE {table} ({definition})",
        *(f"ALTER TABLE {table} {each}" for each in statements),
        f"INSERT INTO {table} SET id = 1, b = 1",
    )
    end = stream.next_batch(start)
    rows = stream.rows(start, end)
    while 1 not in ids([row for row in rows if row["op"] == "c"]):
        start, end = end, stream.next_batch(end)
        rows += stream.rows(start, end)
    assert bool(read) == is_read
    schema = SchemaHistory.unpack(Offset.from_dict(end).schemas)
    known = [each for name in schema.tables() for _, each in schema.versions(*name)][-1]
    assert bool(getattr(known, "row_key", ())) == is_read
