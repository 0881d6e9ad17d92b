"""A stream reader driven as by Spark's source runner, without a JVM."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType

from helpers.servers import Server
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

__all__ = ["Offset", "Spark", "ids", "insert", "new_reader"]

Offset = dict[str, Any]


def new_reader(server: Server, tables: str | None, **options: str) -> MySQLBinlogStreamReader:
    """Return a reader of these tables, or of all tables for None."""
    named = {} if tables is None else {"tables": tables}
    texts = server.options(**named, heartbeatInterval="1s", payload="json") | options
    return MySQLBinlogStreamReader(parse_options(texts), output_schema(StringType()))


class Spark:
    """A caller of a reader in place of Spark's source runner; offsets are passed through JSON."""

    def __init__(self, reader: MySQLBinlogStreamReader) -> None:
        self.reader = reader
        self.limit = reader.getDefaultReadLimit()

    def initial(self) -> Offset:
        return _through_json(self.reader.initialOffset())

    def latest(self, start: Offset) -> Offset:
        return _through_json(self.reader.latestOffset(start, self.limit))

    def wait_for_tail(self, server: Server) -> None:
        """Wait until the tail, which starts at the first `latest`, is at the end of the binlog."""
        tail = self.reader.tail
        assert tail is not None
        end = Position.of(*server.position())
        wait_until(lambda: tail.scanned >= end, "the tail has come to the log's end")

    def rows(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        parts = self.reader.partitions(start, end)
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return pa.Table.from_batches(batches).to_pylist() if batches else []

    def next_batch(self, start: Offset) -> Offset:
        """Wait for an end offset that differs from the start, and return it."""
        return wait_until(lambda: _other_than(start, self.latest(start)), "a new offset comes")

    def carried(self, start: Offset, end: Offset) -> list[bool]:
        """Return for each range of the batch whether its events are inline in the task."""
        parts = self.reader.partitions(start, end)
        return [isinstance(part, RangePartition) and part.blocks is not None for part in parts]


def _through_json(offset: Offset) -> Offset:
    copy: Offset = json.loads(json.dumps(offset))
    return copy


def _other_than(start: Offset, offset: Offset) -> Offset | None:
    return offset if offset != start else None


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [json.loads(row["after"] or row["before"])["id"] for row in rows]


def insert(server: Server, table: str, *values: int) -> None:
    for value in values:
        server.execute(f"INSERT INTO {table} (id) VALUES ({value})")
