"""CONVERT TO and random DDL in binlogs of MySQL 5.7.41, read from files and from a 5.6 server.

The server that serves the files is not the one that wrote them. The version in the file determines
what a statement means, also for a stream that starts in the middle of the file.
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
from helpers.schemas.random_ddl import SCENARIOS, check_labelled
from helpers.servers import Server
from helpers.streams.source_runner import Spark, new_reader
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient


def read_files(scenario: str) -> list[dict[str, Any]]:
    options = {"path": str(CAPTURED / f"{scenario}.*.binlog"), "payload": "json"}
    reader = MySQLBinlogReader(parse_options(options), output_schema(StringType()))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches).to_pylist()
    return rows


def stream(server: Server, database: str, *, ends_after: int) -> list[dict[str, Any]]:
    """Return the rows; each reader ends after `ends_after` batches of one transaction."""

    def new_process() -> Spark:
        spark = Spark(
            new_reader(server, f"{database}.*", startingOffset="earliest", maxBytesPerTrigger="1")
        )
        spark.reader.prepareForTriggerAvailableNow()
        return spark

    spark = new_process()
    offset = spark.initial()
    # As if all DDL came later: a start in the past has read the binlog up to its end.
    query = offset["schemas"].partition(":")[0]
    offset["schemas"] = f"{query}:{SchemaHistory().pack()}"
    rows: list[dict[str, Any]] = []
    batches = 0
    while (end := spark.latest(offset)) != offset or batches == 0:
        found = spark.rows(offset, end)
        rows += sorted(found, key=lambda row: tuple(row["seq"].values()))
        offset = end
        batches += 1
        if batches % ends_after == 0:
            spark.reader.stop()
            spark = new_process()
    spark.reader.stop()
    assert batches > 2 * ends_after
    return rows


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_random_ddl_read_from_files_keeps_column_names_correct(scenario: str) -> None:
    check_labelled(describe(scenario), read_files(scenario))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_random_ddl_streamed_with_restarts_keeps_column_names_correct(
    serve_captured: Callable[[str], Server], scenario: str
) -> None:
    rows = stream(serve_captured(scenario), "fx_random_ddl", ends_after=9)
    check_labelled(describe(scenario), rows)


CONVERSIONS = describe("conversions")


def texts(rows: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """Return the text of each row that has one."""
    found = {}
    for row in rows:
        image = json.loads(row["after"])
        text = image.get("note") or image.get("e")
        if text:
            found[row["table"], image["id"]] = text
    return found


def selected() -> dict[tuple[str, int], str]:
    """Return the texts that SELECT showed, under the tables' names when the rows were written."""
    found = {}
    for table, described in CONVERSIONS["tables"].items():
        names = [column["name"] for column in described["columns"]]
        for values in described["rows"]:
            row = dict(zip(names, values, strict=True))
            text = row.get("note") or row.get("e")
            if text:
                was = "t1" if table == "spare" else table
                found[was, int(row["id"])] = text
    return found


def test_charset_conversions_read_from_files_equal_select() -> None:
    assert texts(read_files("conversions")) == selected()
    assert len(selected()) == 7


def test_charset_conversions_streamed_equal_select(serve_captured: Callable[[str], Server]) -> None:
    """The 5.6 server would have kept the defaults, but the file's version is 5.7."""
    server = serve_captured("conversions")
    assert server.version().startswith("5.6.")
    log = ServerLog(server.settings())
    assert log.server_version(server.binlog_files()[0][0]) == "5.7.41-log"
    assert texts(stream(server, "fx_conversions", ends_after=1)) == selected()


def test_schema_history_from_mid_file_follows_the_server_version_of_the_file(
    serve_captured: Callable[[str], Server],
) -> None:
    """DDL after the start is interpreted by the version of the server that wrote the file."""
    server = serve_captured("conversions")
    settings = server.settings()
    file = server.binlog_files()[0][0]
    statements = [
        event
        for event in ServerLog(settings).events(Position.of(file, 4))
        if event.file == file and event.type == EventType.QUERY_EVENT
    ]
    create = next(event for event in statements if b"create table t1" in event.body)
    with ReplicaClient.connect(settings) as client:
        history, _ = history_of_server(
            client,
            ServerLog(settings),
            Position.of(file, create.start),
            lambda database, _: database == "fx_conversions",
            case_sensitive=True,
        )
    schema = history.at(Position.of(file, statements[-1].end), "fx_conversions", "spare")
    assert schema is not None
    assert (schema.charset, schema.columns[-1].charset) == ("utf8mb4", "utf8mb4")
