"""Pending rows of a dropped table, and the ways in which a query of structs can read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from helpers.servers import Server
from helpers.streams.stream_query import Query, images, run
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.errors import UnknownTableError

pytestmark = pytest.mark.one_server


@pytest.fixture
def pending(any_server: Server, table: str, queries: list[Query]) -> tuple[Query, str, StructType]:
    """Return a query before a dropped table's rows, with the table's CREATE and its struct."""
    query = Query(any_server, table, payload="struct").start()
    queries.append(query)
    run(
        any_server,
        table,
        "INSERT INTO {t} VALUES (1, 10, 100)",
        "ALTER TABLE {t} CHANGE a a INT UNSIGNED",
        "INSERT INTO {t} VALUES (2, 4294967295, 200)",
    )
    query.stop()
    _, create = any_server.execute(f"SHOW CREATE TABLE {table}")[0]
    struct = read_payload_type(parse_options(query.texts))
    run(any_server, table, "DROP TABLE {t}")
    return query, create, struct


ROWS: list[dict[str, Any]] = [
    {"id": 1, "a": 10, "b": 100},
    {"id": 2, "a": 4294967295, "b": 200},
]


def test_error_for_dropped_table_names_the_remedies(pending: tuple[Query, str, StructType]) -> None:
    query, _, _ = pending
    with pytest.raises(UnknownTableError) as caught:
        query.start()
    for way in ("schemaDdl", ".schema(…)", "payload=json"):
        assert way in caught.value.message


def test_schema_ddl_option_supplies_columns_of_dropped_table(
    table: str, pending: tuple[Query, str, StructType], tmp_path: Path
) -> None:
    query, create, _ = pending
    (tmp_path / "tables.sql").write_text(f"USE {table.partition('.')[0]};\n{create};\n")
    query.texts["schemaDdl"] = str(tmp_path / "tables.sql")
    assert images(query.restarted_rows()) == ROWS


def test_explicit_schema_makes_rows_of_dropped_table_readable(
    pending: tuple[Query, str, StructType],
) -> None:
    query, _, struct = pending
    assert images(query.restarted_rows(struct)) == ROWS


def test_json_payload_reads_rows_of_dropped_table(pending: tuple[Query, str, StructType]) -> None:
    query, _, _ = pending
    query.texts["payload"] = "json"
    assert [json.loads(row) for row in images(query.restarted_rows())] == ROWS
