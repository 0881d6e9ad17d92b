"""Drives a stream reader as Spark's source runner does, without a JVM; offsets travel as JSON."""

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
    """A reader of these tables; of all without any.

    Its offset does not move on its own, however long a test takes, unless `options` say so.
    """
    named = {} if tables is None else {"tables": tables}
    given = {"heartbeatInterval": "1s", "idleOffsetInterval": "1d", "payload": "json"} | options
    texts = server.options(**named, **given)
    return MySQLBinlogStreamReader(parse_options(texts), output_schema(StringType()))


class Spark:
    """Calls the reader as the source runner does; offsets travel as JSON."""

    def __init__(self, reader: MySQLBinlogStreamReader) -> None:
        self.reader = reader
        self.limit = reader.getDefaultReadLimit()

    def initial(self) -> Offset:
        return _through_json(self.reader.initialOffset())

    def latest(self, start: Offset) -> Offset:
        return _through_json(self.reader.latestOffset(start, self.limit))

    def wait_for_tail(self, server: Server) -> None:
        """Until the tail, which begins with the first `latest`, has come to the log's end."""
        tail = self.reader.tail
        assert tail is not None
        end = Position.of(*server.position())
        wait_until(lambda: tail.scanned >= end, "the tail has come to the log's end")

    def rows(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        parts = self.reader.partitions(start, end)
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return pa.Table.from_batches(batches).to_pylist() if batches else []

    def next_batch(self, start: Offset) -> Offset:
        """The end of the next batch that is not the start."""
        return wait_until(lambda: _other_than(start, self.latest(start)), "a new offset comes")

    def carried(self, start: Offset, end: Offset) -> list[bool]:
        """Whether each range of the batch travels in its task."""
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
