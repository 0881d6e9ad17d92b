"""A 5.7 binlog full of DDL: every change has the columns that its table had at that time.

It is read from files as a batch, and streamed from a real server that never had these tables: the
names can come only from the binlog.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import CAPTURED
from helpers.replay import Number, captured_schemas, payload_token, select_tokens
from helpers.servers import Server
from helpers.streams.source_runner import Spark, new_reader
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema

DATABASE = "fx_ddl_history"
SCENARIO = describe("ddl_history")

A = "first_col id full_name mid"
# (table, its columns, the operations), in binlog order, derived from the statements.
EXPECTED = [
    ("a", "id name age", "cc"),
    ("a", "first_col id name mid age", "c"),
    ("a", A, "u"),
    ("a", f"{A} e", "cc"),
    ("b", f"{A} e", "c"),
    ("c", f"{A} e", "cccccc"),
    ("ctas", "pk full_name", "cccccc"),
    ("swap_new", "id only_col", "c"),
    ("b", "id only_col", "c"),
    ("swap_old", f"{A} e", "uuuuuu"),
    ("tr", "id v", "cctc"),
    ("dr", "id v", "c"),
    ("dr", "v id", "c"),
    ("pt", "id d v", "cctc"),
    ("tr", "id v", "c"),
    ("tr", "id v we`ird_name select", "c"),
    ("gen", "id w h area per", "ccu"),
]


def in_words(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the rows in the form of EXPECTED; rows without images belong to those before them."""
    found: list[tuple[str, str, str]] = []
    for row in rows:
        names = None
        for image in (row["before"], row["after"]):
            if image is not None:
                names = " ".join(name.replace(" ", "_") for name in json.loads(image))
        if names is None:
            assert row["op"] == "t"
            names = found[-1][1]
        if found and found[-1][:2] == (row["table"], names):
            found[-1] = (row["table"], names, found[-1][2] + row["op"])
        else:
            found.append((row["table"], names, row["op"]))
    return found


def check(rows: list[dict[str, Any]]) -> None:
    assert in_words(rows) == EXPECTED
    # 'q' was the second label, then the third: the table map is the same.
    images = [json.loads(row["after"]) for row in rows if row["table"] == "a"]
    assert [(each["full_name"], each["e"]) for each in images if "e" in each] == [
        ("four", "p"),
        ("five", "q"),
    ]
    # The last rows of tables that were not altered afterwards equal those of SELECT.
    for schema in captured_schemas(SCENARIO):
        columns = {column.name: column for column in schema.columns}
        shown = select_tokens(schema, SCENARIO["tables"][schema.table]["rows"])
        last = [row for row in rows if row["table"] == schema.table and row["after"]][-1]
        loaded = json.loads(last["after"], parse_int=Number, parse_float=Number)
        image = [payload_token(columns[name], value) for name, value in loaded.items()]
        assert image in shown


def test_rows_read_from_files_have_the_columns_of_their_position() -> None:
    options = {"path": str(CAPTURED / "ddl_history.*.binlog"), "payload": "json"}
    reader = MySQLBinlogReader(parse_options(options), output_schema(StringType()))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    check(pa.Table.from_batches(batches).to_pylist())


@pytest.mark.parametrize("batch", ["one batch", "one transaction a batch", "and a restart"])
def test_streamed_rows_have_the_columns_of_their_position(
    serve_captured: Callable[[str], Server], batch: str
) -> None:
    server = serve_captured("ddl_history")

    def new_process() -> Spark:
        return Spark(
            new_reader(
                server,
                f"{DATABASE}.*",
                startingOffset="earliest",
                maxBytesPerTrigger="1g" if batch == "one batch" else "1",
            )
        )

    spark = new_process()
    offset = spark.initial()
    spark.reader.prepareForTriggerAvailableNow()
    rows: list[dict[str, Any]] = []
    batches = 0
    while (end := spark.latest(offset)) != offset or batches == 0:
        found = spark.rows(offset, end)
        rows += sorted(found, key=lambda row: tuple(row["seq"].values()))
        offset = end
        batches += 1
        if batch == "and a restart":
            spark.reader.stop()
            spark = new_process()
            spark.reader.prepareForTriggerAvailableNow()
    spark.reader.stop()
    check(rows)
    assert (batches > 20) == (batch != "one batch")
