"""Whole tables read at an exact binlog position: concurrent writes and failed attempts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, VariantType

from helpers.logs.live_log import new_database
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.keyless_snapshot import find_keyless_snapshot
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.snapshot.reading import chunk_reader
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.decoder.result_rows import read as result_rows
from pyspark_mysqlbinlog.errors import LostConnectionError, UnrepresentableValueError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

pytestmark = pytest.mark.one_server

DATABASE = "exact"
ENGINES = pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found: Server = request.getfixturevalue(request.param)
    with new_database(found, DATABASE):
        yield found


@pytest.fixture(params=dict.fromkeys(("live_server", "mysql9")))
def json_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found: Server = request.getfixturevalue(request.param)
    if found.version().startswith("5.6"):
        pytest.skip(f"{found.name} has no JSON")
    with new_database(found, DATABASE):
        yield found


def read(server: Server, table: str = "t", **options: str) -> pa.Table:
    """Return the rows that a task gives of a table, by default in the mirror's form."""
    given = {"payload": "json", "snapshotExactKeyless": "true"} | options
    texts = server.options(tables=f"{DATABASE}.*", sslMode="DISABLED", **given)
    since = Position.of(*server.position())
    partition = ChunkPartition((Chunk((DATABASE, table)),), case_sensitive=True, since=since)
    kind = VariantType() if given["payload"] == "variant" else StringType()
    schema = to_arrow_schema(output_schema(kind), timezone="UTC")
    rows = pa.Table.from_batches(list(read_chunks(parse_options(texts), partition, schema)), schema)
    query: Any = pa.compute.struct_field(rows.column("source"), "query")
    return rows.append_column("query", query)


def values(server: Server, rows: pa.Table) -> list[int]:
    """Return the values of the last attempt's rows."""
    load = find_keyless_snapshot(rows, "t")
    assert load is not None
    images: list[Any] = load.rows.column("after").to_pylist()
    return sorted(json.loads(image)["a"] for image in images)


@ENGINES
def test_row_written_after_exact_position_is_not_in_the_snapshot(
    server: Server, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that comes after the read of the position waits, or its row is not visible."""
    server.execute(
        f"CREATE TABLE {DATABASE}.t (a INT) ENGINE={engine}",
        f"INSERT INTO {DATABASE}.t VALUES (1), (1), (2)",
    )
    place = server.position()
    insert = f"INSERT INTO {DATABASE}.t VALUES (3)"
    with ThreadPoolExecutor(1) as writers:
        writing: list[Any] = []
        real = Watermark.read

        def is_blocked_or_done() -> bool:
            shown = server.execute("SELECT INFO FROM information_schema.PROCESSLIST")
            return writing[0].done() or (insert,) in shown

        def reading(client: ReplicaClient, proof: Any) -> Watermark:
            found = real(client, proof)
            writing.append(writers.submit(server.execute, insert))
            wait_until(is_blocked_or_done, "the writer waits for the table, or has written")
            return found

        monkeypatch.setattr(Watermark, "read", reading)
        rows = read(server)
        writing[0].result()
    load = find_keyless_snapshot(rows, "t")
    assert load is not None
    assert (load.seq["pos"], load.seq["row"]) == (place[1], -2)
    assert values(server, rows) == [1, 1, 2]


@ENGINES
def test_retried_keyless_snapshot_counts_only_the_last_attempt(
    server: Server, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the rows of the second attempt count, although both have the same position."""
    server.execute(
        f"CREATE TABLE {DATABASE}.t (a INT) ENGINE={engine}",
        f"INSERT INTO {DATABASE}.t VALUES (1), (1), (2)",
    )
    real = chunk_reader._decoded
    tries: list[str] = []

    def breaking(*arguments: Any) -> Iterator[pa.RecordBatch]:
        tries.append("")
        yield from real(*arguments)
        if len(tries) == 1:
            raise LostConnectionError("broken off")

    monkeypatch.setattr(chunk_reader, "_decoded", breaking)
    rows = read(server)
    assert [*rows.column("op").to_pylist()] == ["t", *"rrr"] * 2
    assert values(server, rows) == [1, 1, 2]
    # No lock is left.
    server.execute(f"ALTER TABLE {DATABASE}.t ADD b INT")


def test_keyless_snapshot_is_empty_without_rows_and_absent_with_a_key(server: Server) -> None:
    server.execute(
        f"CREATE TABLE {DATABASE}.t (a INT)",
        f"CREATE TABLE {DATABASE}.u (a BLOB NOT NULL, PRIMARY KEY (a(9)))",
        f"INSERT INTO {DATABASE}.u VALUES ('x')",
    )
    assert values(server, read(server)) == []
    rows = read(server, "u")
    assert rows.column("op").to_pylist() == ["r"]
    assert find_keyless_snapshot(rows, "u") is None


MANY = (
    "CREATE TABLE {t} (a INT, j JSON, k JSON) ENGINE={engine}",
    "INSERT INTO {t} VALUES (0, JSON_OBJECT('s', REPEAT('x', 50)), NULL)",
    *(f"INSERT INTO {{t}} SELECT a + {1 << power}, j, k FROM {{t}}" for power in range(12)),
    """INSERT INTO {t} VALUES (4096, '{{"d": 0.00001}}', '{{"e": 0.00001}}')""",
    """INSERT INTO {t} VALUES (4097, '{{"f": 5.0}}', '{{"g": [5.0, 1e-7]}}')""",
)


@pytest.mark.parametrize("kind", ["json", "variant"])
@pytest.mark.parametrize("exact", ["false", "true"])
@ENGINES
def test_keyless_rows_are_read_once_whatever_types_the_numbers_of_their_documents_have(
    json_server: Server, engine: str, exact: str, kind: str
) -> None:
    """Most documents need no number types; those of the last rows do, in both columns."""
    json_server.execute(*(each.format(t=f"{DATABASE}.t", engine=engine) for each in MANY))
    rows = read(json_server, payload=kind, snapshotExactKeyless=exact)
    assert rows.column("op").to_pylist().count("r") == 4098
    images = [image for image in rows.column("after").to_pylist() if image is not None]
    if kind == "json":
        assert sorted(json.loads(image)["a"] for image in images) == [*range(4098)]


def test_keyless_snapshot_is_retried_if_documents_change_after_their_numbers_were_found(
    json_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search finds none, as if the documents were inserted after it."""
    json_server.execute(*(each.format(t=f"{DATABASE}.t", engine="InnoDB") for each in MANY))
    real = result_rows._with_number_types
    tries: list[str] = []

    def late(client: Any, plan: Any, *arguments: Any) -> Any:
        tries.append("")
        return plan if len(tries) == 1 else real(client, plan, *arguments)

    monkeypatch.setattr(result_rows, "_with_number_types", late)
    rows = read(json_server)
    assert rows.column("op").to_pylist().count("t") == len(tries) == 2
    assert values(json_server, rows) == [*range(4098)]


def test_documents_that_change_at_each_attempt_raise_unrepresentable_value_error(
    json_server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    json_server.execute(*(each.format(t=f"{DATABASE}.t", engine="InnoDB") for each in MANY))
    monkeypatch.setattr(chunk_reader, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(result_rows, "_with_number_types", lambda client, plan, *_: plan)
    with pytest.raises(UnrepresentableValueError, match="documents changed while they") as caught:
        read(json_server)
    assert caught.value.table == f"{DATABASE}.t"
    assert f"documents of {DATABASE}.t changed while they were read" in caplog.text
    assert "was altered" not in caplog.text
