"""Typed snapshot rows equal those read from their JSON, for values of every type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType

from helpers.logs.live_log import new_database, schemas_of
from helpers.mirrors.restored_tables import ALL_SCENARIOS, restore
from helpers.schemas.random_tables import RandomTable
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.values.value_lines import LINES
from live.values.test_result_rows import ODD
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.tables import TableSchema

pytestmark = pytest.mark.one_server

# Columns per table, limited by the maximum row length.
COLUMNS = 6
# Recorded binlogs that each run uses; restoring the others takes a minute.
SHORT = {"numbers", "temporals", "strings", "geometry", "json_docs", "wide"}
CONTENT = to_arrow_schema(output_schema(StringType()), timezone="UTC")


@pytest.fixture(scope="module", params=every_server())
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def scratch(server: Server) -> Iterator[str]:
    with new_database(server, "typed_loads") as database:
        yield database


def images(server: Server, tables: Sequence[TableSchema], *, typed: bool) -> dict[str, Any]:
    """Return the images of each table's rows, as a mirror's task gives them."""
    texts = server.options(
        tables=f"`{tables[0].database}`.*",
        payload="json",
        jsonType="text",
        sslMode="DISABLED",
        snapshotExactKeyless="true",
    )
    chunks = tuple(Chunk((table.database, table.table)) for table in tables)
    since = Position.of(*server.position())
    partition = ChunkPartition(chunks, case_sensitive=True, since=since)
    found: dict[str, list[Any]] = {}
    for batch in read_chunks(parse_options(texts), partition, CONTENT, typed=typed):
        found.setdefault(batch.column("table")[0].as_py(), []).append(batch.column("after"))
    return {name: pa.chunked_array(arrays) for name, arrays in found.items()}


def assert_same(server: Server, tables: Sequence[TableSchema]) -> int:
    """Compare all tables that have a key and rows; return their number."""
    keyed = [table for table in tables if table.row_key]
    if not keyed:
        return 0
    typed, texts = (images(server, keyed, typed=typed) for typed in (True, False))
    assert typed.keys() == texts.keys()
    for table in keyed:
        if table.table in texts and not pa.types.is_string(typed[table.table].type):
            rows = RowImageReader(table.columns, table.full_name)
            adopted, read = (
                rows.from_structs(typed[table.table]),
                rows.from_json(texts[table.table]),
            )
            assert adopted.schema == read.schema, table.full_name
            # As texts, because NaN differs from itself, and -0.0 equals 0.0.
            assert repr(adopted.to_pylist()) == repr(read.to_pylist()), table.full_name
    return len(texts)


def test_typed_snapshot_of_every_type_equals_json(server: Server, scratch: str) -> None:
    literals_of: dict[str, list[str]] = {kind: list(literals) for kind, literals in ODD.items()}
    literals_of["DATETIME"] += ["'0000-05-12 10:00:00'", "'0000-01-01 00:00:00'"]
    for kind, literal in LINES:
        literals_of.setdefault(kind, []).append(literal)
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        for number in range(0, len(literals_of), COLUMNS):
            kinds = [*literals_of][number : number + COLUMNS]
            # Names with a dot must not be taken for paths.
            columns = ", ".join(
                f"`{'.' * (at % 3)}v{at // 3}` {kind}" for at, kind in enumerate(kinds)
            )
            cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, {columns}) ENGINE=MyISAM")
            for row in range(max(len(literals_of[kind]) for kind in kinds)):
                some = (literals_of[kind] for kind in kinds)
                values = ", ".join(literals[row % len(literals)] for literals in some)
                cursor.execute(f"INSERT INTO t{number} VALUES ({row}, {values})")
    assert assert_same(server, schemas_of(server, scratch)) == -(-len(literals_of) // COLUMNS)


@pytest.mark.parametrize(
    "scenario",
    [
        name if name in SHORT else pytest.param(name, marks=pytest.mark.slow)
        for name in ALL_SCENARIOS
    ],
)
def test_typed_snapshot_of_recorded_tables_equals_json(server: Server, scenario: str) -> None:
    described, _ = restore(server, scenario)
    try:
        assert_same(server, schemas_of(server, described["database"]))
    finally:
        server.execute(f"DROP DATABASE IF EXISTS {described['database']}")


@pytest.mark.parametrize("seed", range(4))
def test_typed_snapshot_of_random_tables_equals_json(
    server: Server, scratch: str, seed: int
) -> None:
    choices = Random(f"typed {server.name} {seed}")
    table = RandomTable.make(choices, columns=14)
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in table.statements(choices, rows=300):
            cursor.execute(statement)
    assert assert_same(server, schemas_of(server, scratch)) == 1
