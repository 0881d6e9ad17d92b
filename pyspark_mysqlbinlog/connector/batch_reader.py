"""The batch source: a server's log or files from one boundary to another, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.columns import arrow_schema
from pyspark_mysqlbinlog.connector.log import FileLog
from pyspark_mysqlbinlog.connector.options import Options
from pyspark_mysqlbinlog.connector.range_reader import read_range
from pyspark_mysqlbinlog.connector.ranges import RangePartition
from pyspark_mysqlbinlog.connector.start import (
    LogStart,
    resolve_end,
    start_of_files,
    start_of_server,
)
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MySQLBinlogReader"]


class MySQLBinlogReader(DataSourceReader):
    """Reads a stretch of log as a batch."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """A range per file of the log."""
        options = self._options
        if options.path is not None:
            start = start_of_files(options)
        else:
            start = start_of_server(options, streaming=False)
        end = resolve_end(start, options.ending_offset)
        if end < start.position:
            raise OptionError(
                f"option endingOffset: {end} lies before the start {start.position}; give a later"
                " one"
            )
        schemas = start.history.pack()
        return [
            RangePartition(
                start=begin,
                end=behind,
                schemas=schemas,
                pending_xa=(),
                case_sensitive=start.facts.case_sensitive,
                server_uuid=start.server_uuid,
                server_version=start.facts.version,
                blocks=None,
            )
            for begin, behind in _stretches(start, end)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches of one range; runs on an executor."""
        if not isinstance(partition, RangePartition):
            # Spark makes one partition of its own when there are none.
            return iter(())
        return read_range(self._options, partition, arrow_schema(self._schema))


def _stretches(start: LogStart, end: Position) -> list[tuple[Position, Position]]:
    """Cut at the beginnings of files: no transaction crosses one."""
    if start.position >= end:
        return []
    if not isinstance(start.log, FileLog):
        return [(start.position, end)]
    cuts = [begin for begin in start.log.begins() if start.position < begin < end]
    assert all(begin.pos == FIRST_EVENT for begin in cuts)
    bounds = [start.position, *cuts, end]
    return list(pairwise(bounds))
