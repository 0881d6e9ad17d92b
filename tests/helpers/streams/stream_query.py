"""A streaming query whose source is driven as Spark's source runner drives it.

See test_offset_rules. Each run has the schema that `load` would return at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StringType, StructType, VariantType

from helpers.servers import Server
from helpers.streams.source_runner import Offset, Spark
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

__all__ = ["THREE_DDLS", "Query", "Rows", "images", "rescued", "run"]

Rows = list[dict[str, Any]]


THREE_DDLS = (
    "INSERT INTO {t} VALUES (1, 10, 100)",
    "ALTER TABLE {t} ADD c INT",
    "INSERT INTO {t} VALUES (2, 20, 200, 2000)",
    "ALTER TABLE {t} DROP a",
    "INSERT INTO {t} VALUES (3, 300, 3000)",
    "ALTER TABLE {t} CHANGE b d INT",
    "INSERT INTO {t} VALUES (4, 400, 4000)",
)


class Query:
    """A query whose checkpoint is kept across its runs."""

    def __init__(self, server: Server, tables: str, **options: str) -> None:
        self.server = server
        self.texts = server.options(tables=tables, heartbeatInterval="1s") | options
        self.checkpoint: Offset | None = None
        self.spark: Spark | None = None
        self.batches: list[tuple[Offset, Offset, Rows]] = []

    def start(self, payload: StructType | None = None) -> Query:
        """Load and start, with the struct of the current tables unless `payload` is given."""
        options = parse_options(self.texts)
        kind: Any = StringType()
        if options.payload_kind == "struct":
            kind = payload or read_payload_type(options)
        elif options.payload_kind == "variant":
            kind = VariantType()
        schema = output_schema(kind, rescued=options.rescues)
        self.spark = Spark(MySQLBinlogStreamReader(options, schema))
        if self.checkpoint is None:
            self.checkpoint = self.spark.initial()
            assert self.spark.latest(self.checkpoint) == self.checkpoint
        return self

    def rows(self) -> Rows:
        """Return all rows up to the end of the binlog, as one run with AvailableNow."""
        assert self.spark is not None
        assert self.checkpoint is not None
        reader = self.spark.reader
        reader.prepareForTriggerAvailableNow()
        found: Rows = []
        while (end := self.spark.latest(self.checkpoint)) != self.checkpoint:
            rows = self.spark.rows(self.checkpoint, end)
            self.batches.append((self.checkpoint, end, rows))
            found += rows
            self.checkpoint = end
        return found

    def stop(self) -> None:
        if self.spark is not None:
            self.spark.reader.stop()

    def restarted_rows(self, payload: StructType | None = None) -> Rows:
        self.stop()
        return self.start(payload).rows()

    def replayed(self) -> Iterator[tuple[Rows, Rows]]:
        """Yield each batch's rows as they were, and as a new reader fetches them."""
        self.stop()
        self.start()
        assert self.spark is not None
        for start, end, rows in self.batches:
            yield rows, self.spark.rows(start, end)


def images(rows: Rows, side: str = "after") -> list[Any]:
    return [row[side] for row in rows]


def rescued(rows: Rows) -> list[Any]:
    texts = [row["_rescued_data"] for row in rows]
    return [None if text is None else json.loads(text) for text in texts]


def run(server: Server, table: str, *statements: str) -> None:
    server.execute(*(statement.format(t=table) for statement in statements))
