"""The batch source: reads the binlog of a server or of files between two boundaries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.file_order import Stretch
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.options.logging_setup import configure_logging
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.values import FilePosition
from pyspark_mysqlbinlog.connector.ranges.files import split_files
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition, RangePlan
from pyspark_mysqlbinlog.connector.snapshot.coordinator import SnapshotCoordinator
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.start_offset import (
    ResolvedStart,
    resolve_end,
    start_of_files,
    start_of_server,
)
from pyspark_mysqlbinlog.connector.source.task_reader import TaskReader
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MySQLBinlogReader"]


class MySQLBinlogReader(DataSourceReader):
    """Reads a part of the binlog as a batch."""

    def __init__(self, options: Options, schema: StructType) -> None:
        configure_logging()
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges to read, in binlog order."""
        options = self._options
        if options.starts_with_snapshot:
            return self._load_tasks()
        if options.path is not None:
            start = start_of_files(options)
        else:
            start = start_of_server(options, streaming=False)
        # A time is looked up in the binlog, over another connection.
        end = initial_retry()(resolve_end, start, options.ending_offset)
        if end < start.position:
            raise OptionError(
                f"option endingOffset: {end} is before the start {start.position}; set a later"
                " position"
            )
        log, schemas = start.log, start.history.pack()
        if not isinstance(log, FileLog):
            return list(_ranges_of_server(start, end))
        return [
            replace(
                _range(start, part.start, part.end, schemas),
                pending_xa=part.pending_xa,
                prelude=part.prelude,
                ends_inside=part.ends_inside,
                offset=part.offset,
                end_offset=part.end_offset,
                log=_files_of(log, part),
            )
            for part in self._cut(start, log, end)
        ]

    def _load_tasks(self) -> list[ChunkPartition]:
        """Plan the snapshot of the tables, without any binlog."""
        options = self._options
        start = start_of_server(options, streaming=False)
        case_sensitive = start.facts.case_sensitive
        load = SnapshotCoordinator.of(options, case_sensitive=case_sensitive)
        try:
            state = load.planned(
                start.load(options.table_filter(case_sensitive).captures), BatchLimits()
            )
        finally:
            load.close()
        last = replace(start.offset, snapshot=state.pack())
        return load.tasks(last, options.max_connections)

    def _cut(self, start: ResolvedStart, log: FileLog, end: Position) -> list[RangePlan]:
        if start.position >= end:
            return []
        options = self._options
        is_chosen = isinstance(options.ending_offset, FilePosition)
        return split_files(
            log,
            start.position,
            end,
            options.table_filter(start.facts.case_sensitive).captures,
            operations=options.operations,
            server_version=_version(start, start.position),
            target_bytes=options.target_partition_bytes,
            is_open=not is_chosen and end == start.end,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of one task, as executors do."""
        return TaskReader(self._options, self._schema).read(partition)

    def __reduce__(self) -> tuple[type[TaskReader], tuple[Options, StructType]]:
        """Pickle what executors need."""
        return TaskReader, (self._options, self._schema)


def _ranges_of_server(start: ResolvedStart, end: Position) -> Iterator[RangePartition]:
    """Return one range per sequence of files: a scan for split points would send all data twice.

    As in a stream, the epoch increases from one sequence to the next.
    """
    begin = start.position
    stretches = [Stretch(0, begin, begin, end)] if begin < end else []
    if start.order is not None:
        stretches = start.order.stretches(begin, end)
    for each in stretches:
        schemas = start.history.in_sequence(each.begin, each.sequence).pack()
        known = start.fingerprint if each.begin == start.position else None
        part = _range(start, each.start, each.end, schemas)
        yield replace(part, epoch=each.sequence, fingerprint=known)


def _range(start: ResolvedStart, begin: Position, end: Position, schemas: str) -> RangePartition:
    return RangePartition(
        start=begin,
        end=end,
        schemas=schemas,
        pending_xa=(),
        case_sensitive=start.facts.case_sensitive,
        blocks=None,
        server_uuid=start.server_uuid,
        server_version=_version(start, begin),
    )


def _files_of(log: FileLog, part: RangePlan) -> FileLog:
    """Return the files of a range, up to the one whose beginning shows the range's end.

    From the first one with rows of a transaction that is prepared at its start.
    """
    begin = first_needed(part.start, part.pending_xa, log.position)
    first = bisect_left(log.numbers, begin.number)
    stop = bisect_left(log.numbers, part.end.number) + 1
    return FileLog(log.paths[first:stop], log.numbers[first:stop])


def _version(start: ResolvedStart, position: Position) -> str:
    """Return the version of the server that wrote the binlog after a position."""
    if isinstance(start.log, FileLog):
        return start.log.server_version(position.file)
    return start.facts.version
