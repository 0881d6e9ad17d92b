"""Binlog files scanned, filtered and decoded into batches by both implementations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StringType, VariantType

from helpers.parity.decode_parity import Decoded, assert_same
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.reader import read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.schemas.struct_schema import payload_type
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Chain"]


@dataclass(frozen=True)
class Chain:
    """Binlog files, and the options of a query that reads them.

    Attributes
    ----------
    folder : contains the files and nothing else.
    schemas : of the tables, from the start of the files; other tables are unknown.
    options : of the query, except `path`.
    """

    folder: Path
    schemas: Sequence[TableSchema]
    options: Mapping[str, str]

    def assert_same(self) -> Decoded:
        """Check that both implementations give the same rows and error; return the kernel's.

        Checked with ranges that are read from the files, and with inline events: all of them, or
        those before the filter raises an error.
        """
        options = parse_options({"path": str(self.folder), **self.options})
        schema = self._arrow_schema(options)
        partition = self._partition(None)
        expected, found = (
            _read(implementation, options, partition, schema) for implementation in ("python", "c")
        )
        assert_same(schema, expected, found)
        partition = self._partition(self._inline_blocks(options))
        inline = (
            _read(implementation, options, partition, schema) for implementation in ("python", "c")
        )
        assert_same(schema, *inline)
        return found

    def _partition(self, blocks: tuple[EventBlock, ...] | None) -> RangePartition:
        log = FileLog.find(str(self.folder))
        start = log.begins()[0]
        history = SchemaHistory()
        for schema in self.schemas:
            history = history.with_table(start, schema)
        return RangePartition(start, log.end(), history.pack(), (), True, blocks, log=log)

    def _inline_blocks(self, options: Options) -> tuple[EventBlock, ...]:
        """Return the captured events in blocks of at most three, until the filter raises."""
        log = FileLog.find(str(self.folder))
        filtering = EventFilter(options.table_filter(True).captures, operations=options.operations)
        kept = []
        with suppress(MySQLBinlogError):
            for event in log.events(log.begins()[0]):
                kept.extend(filtering.feed(event))
        parts = (kept[at : at + 3] for at in range(0, len(kept), 3))
        return tuple(block for part in parts for block in pack_events(part))

    def _arrow_schema(self, options: Options) -> pa.Schema:
        kind: DataType
        match options.payload_kind:
            case "json":
                kind = StringType()
            case "variant":
                kind = VariantType()
            case "struct":
                columns = options.column_filter(True)
                captures = options.table_filter(True).captures
                captured = [one for one in self.schemas if captures(one.database, one.table)]
                nested = options.table_filter(True).nests
                kind = payload_type(captured, options.struct_options, columns, nested=nested)
        return arrow_schema(output_schema(kind, rescued=options.rescues))


def _read(
    implementation: Any, options: Options, partition: RangePartition, schema: pa.Schema
) -> Decoded:
    chosen: Implementation = implementation
    batches: list[pa.RecordBatch] = []
    with using(chosen):
        try:
            batches.extend(read_range(options, partition, schema))
        except MySQLBinlogError as error:
            return Decoded(batches, error)
    return Decoded(batches, None)
