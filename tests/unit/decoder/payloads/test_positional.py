"""Rows without a schema: values as in SELECT, as far as a table map describes them."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from helpers.logs.recorded_logs import load
from helpers.parity.decoding import captured_ordinal, decoder, rows_of
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.tables import ColumnSchema

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

SIZES = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")


def same(named: Any, found: Any, column: ColumnSchema) -> bool:
    """Return whether a value read without a schema is equal to the one read with it."""
    if named is None or found is None:
        return named is found
    if column.type in SIZES and column.unsigned:
        return bool(found % (1 << SIZES[column.type]) == named)
    if column.type in TEXTS:
        codec = {"utf8": "utf-8", "utf8mb4": "utf-8", "latin1": "cp1252"}[column.charset or ""]
        return bool(base64.b64decode(found).decode(codec) == named)
    if column.type in BINARY:
        raw, stored = base64.b64decode(named), base64.b64decode(found)
        return (
            stored.ljust(column.length or 0, b"\0") == raw
            if column.type == "binary"
            else (raw == stored)
        )
    if column.type == "enum":
        return bool((["", *column.labels])[found] == named)
    if column.type == "set":
        labels = [label for at, label in enumerate(column.labels) if found >> at & 1]
        return bool(",".join(labels) == named)
    return bool(named == found)


@pytest.mark.parametrize(
    "scenario", ["numbers", "temporals", "strings", "json_docs", "geometry", "transactions", "wide"]
)
def test_rows_without_a_schema_equal_rows_with_one(scenario: str) -> None:
    """Rows with a schema equal SELECT (see test_binlogs57), so they are the expected rows here."""
    described, events = load(scenario)
    schemas = captured_schemas(described)
    columns = {schema.table: schema.columns for schema in schemas}
    named = list(rows_of(decoder(schemas, file_ordinal=captured_ordinal).decode(events)))
    made = decoder([], file_ordinal=captured_ordinal, positional=True)
    found = list(rows_of(made.decode(events)))
    assert len(found) == len(named) > 0
    for found_row, named_row in zip(found, named, strict=True):
        assert (found_row["op"], found_row["seq"]) == (named_row["op"], named_row["seq"])
        if found_row["op"] != "t":
            assert found_row["source"]["key"] is None
        for side in ("before", "after"):
            if named_row[side] is None:
                assert found_row[side] is None
                continue
            one, other = _exact(found_row[side]), _exact(named_row[side])
            table = columns[named_row["table"]]
            assert list(one) == [f"@{at + 1}" for at in range(len(table))]
            for at, column in enumerate(table):
                assert same(other[column.name], one[f"@{at + 1}"], column), (column, one)


def _exact(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, strict=False)
