"""Rows read by SELECT are the rows that the log has of them: the same images, the same values.

Each table is copied by one INSERT … SELECT, whose events are the server's own idea of the rows; the
copy is then read by a prepared SELECT.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from helpers.decode_twins import PAYLOADS
from helpers.live_log import new_database, schemas_of, selected
from helpers.loaded_rows import (
    assert_same_rows,
    copied,
    events_of,
    logged_images,
    select_images,
)
from helpers.random_tables import RandomTable
from helpers.replay import select_tokens
from helpers.restored import ALL_SCENARIOS, restore
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.value_lines import LINES
from pyspark_mysqlbinlog.tables import TableSchema

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.fixture(scope="module", params=every_server())
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def scratch(server: Server) -> Iterator[str]:
    with new_database(server, "result_rows") as database:
        yield database


def assert_loaded_as_streamed(server: Server, database: str, *names: str) -> list[TableSchema]:
    """Images byte for byte, and what both decoders make of them in three payloads."""
    schemas, events = copied(server, database, names)
    assert len(schemas) == len(names)
    for schema in schemas:
        own = events_of(schema, events)
        if not any(column.type == "json" for column in schema.columns):
            images = select_images(server, schema)
            assert b"".join(images) == logged_images(own), schema.full_name
        for kind in ("json", "struct", "variant", "struct-micros"):
            images = select_images(server, schema, PAYLOADS[kind])
            assert_same_rows(schema, own, images, PAYLOADS[kind])
    return schemas


def test_every_type_and_value(server: Server, scratch: str) -> None:
    kinds = list(dict.fromkeys(kind for kind, _ in LINES))
    names = [f"t{number}" for number in range(len(kinds))]
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for name, kind in zip(names, kinds, strict=True):
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v {kind}) ENGINE=MyISAM")
            literals = [literal for its_kind, literal in LINES if its_kind == kind]
            values = ", ".join(f"({at}, {literal})" for at, literal in enumerate(literals))
            cursor.execute(f"INSERT INTO {name} VALUES {values}")
    assert_loaded_as_streamed(server, scratch, *names)


# What MySQL 5.6 and MariaDB can't have, or have otherwise: JSON, gb18030, generated columns.
MISSING_ELSEWHERE = {
    "charsets.t_gb18030",
    "conversions.t6",
    "ddl_history.gen",
    "ddl_history.swap_old",
    "json_docs.t",
    "virtual_columns.plain",
    "virtual_columns.stamped",
    "virtual_columns.triggered",
}
# The time when it was written is in it.
WRITTEN_NOW = {"virtual_columns.stamped"}


@pytest.mark.parametrize("scenario", ALL_SCENARIOS)
def test_captured_tables(server: Server, scenario: str) -> None:
    described, refused = restore(server, scenario)
    database = described["database"]
    with_rows = {name for name, table in described["tables"].items() if table["rows"]}
    try:
        there = {schema.table: schema for schema in schemas_of(server, database)}
        missing = {f"{scenario}.{name}" for name in with_rows - set(there)}
        if server.version().startswith("5.7"):
            assert not refused and not missing
            for name in with_rows:
                if f"{scenario}.{name}" not in WRITTEN_NOW:
                    (found,) = selected(server, there[name])
                    rows = described["tables"][name]["rows"]
                    expected = select_tokens(there[name], rows)
                    assert select_tokens(there[name], found) == expected, name
        else:
            assert missing <= MISSING_ELSEWHERE
        if missing != {f"{scenario}.{name}" for name in with_rows}:
            assert_loaded_as_streamed(server, database, *sorted(with_rows & set(there)))
    finally:
        server.execute(f"DROP DATABASE {database}")


@pytest.mark.parametrize("seed", range(4))
def test_random_tables(server: Server, scratch: str, seed: int) -> None:
    choices = random.Random(f"{server.name} {seed}")
    table = RandomTable.make(choices, columns=14)
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in table.statements(choices, rows=1000):
            cursor.execute(statement)
    assert_loaded_as_streamed(server, scratch, "t")
