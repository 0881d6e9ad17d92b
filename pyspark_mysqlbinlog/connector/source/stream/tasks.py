"""The tasks of a stream's batches: what is planned in the driver, and read by executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.reader import read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.arrow_ipc import SLIM_IPC_ROWS
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.connector.source.stream.binding import StreamBinding
from pyspark_mysqlbinlog.connector.source.stream.failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.gap_rows import GapPartition, gap_rows
from pyspark_mysqlbinlog.connector.source.stream.running_tail import RunningTail
from pyspark_mysqlbinlog.connector.source.stream.server import StreamServer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StreamTasks", "read_task"]


class StreamTasks:
    """Plans the tasks of batches between two offsets of one epoch.

    handoff : where a mirror reads batches with inline ranges (see `BatchHandoff`).
    """

    def __init__(
        self,
        bound: StreamBinding,
        tail: RunningTail,
        failover: StreamFailover,
        handoff: BatchHandoff | None,
    ) -> None:
        self._bound = bound
        self._tail = tail
        self._failover = failover
        self._handoff = handoff

    def plan(self, first: Offset, last: Offset) -> Sequence[InputPartition]:
        """Return the tasks of one batch: ranges, gaps and chunks.

        Everything they need is in the offsets and the buffer.
        """
        loads = last.reads_chunks_since(first)
        most = self._bound.options.max_connections
        gap = GapPartition.at(last) if last.gap else None
        batch: tuple[Offset, Offset] | None = first, last
        if gap is None and self._is_replay(first, last):
            batch = self._replayed(first, last)
            gap = GapPartition.of_batch(first, last) if batch is None else None
        marks = [gap] if gap is not None and "gap" in self._bound.options.operations else []
        ranges = [] if batch is None else self._ranges(*batch, max(most - 1, 1) if loads else most)
        if self._handoff is not None:
            self._handoff.write(first, last, ranges)
        if not loads:
            return [*marks, *ranges]
        pulls = sum(part.blocks is None for part in ranges)
        return [*marks, *ranges, *self._bound.snapshot.tasks(last, most - pulls)]

    def _is_replay(self, first: Offset, last: Offset) -> bool:
        """Whether a batch has a part of the binlog that this process has not read ahead."""
        has_log = first.epoch == last.epoch and first.order < last.order
        return has_log and self._tail.spans(first, last) is None

    def _replayed(self, first: Offset, last: Offset) -> tuple[Offset, Offset] | None:
        """Return the offsets of a batch that an earlier process planned, where it can be read.

        None if its binlog was purged; then all of it is lost. A mirror itself reads such a batch
        elsewhere, or has it planned again (see replay.py and lost_batch.py in connector/delta).
        """
        fails_on_loss = self._bound.options.fail_on_data_loss
        is_only = fails_on_loss and not self._failover.is_possible
        if is_only or self._bound.packing is not None:
            return first, last
        if self._failover.is_lost(last):
            return self._failover.replayed(first, last)
        if not self._bound.gaps.is_lost(first, last):
            return first, last
        moved = self._failover.replayed_after_purge(first, last)
        if moved is not None or fails_on_loss:
            return moved or (first, last)
        LOGGER.warning(
            "changes are lost: the batch from %s to %s was planned before, and the server has"
            " purged its binlog since",
            first.position,
            last.position,
        )
        return None

    def _ranges(self, first: Offset, last: Offset, max_fetches: int) -> list[RangePartition]:
        """Return the binlog ranges of a batch, for at most `max_fetches` connections."""
        # A batch that leads into another sequence of files is empty.
        if first.epoch != last.epoch or first.order >= last.order:
            return []
        self._bound.bind(last)
        options, offsets = self._bound.options, self._bound.offsets
        if last.tables != options.table_filter_hash:
            # Planned by a query that captured other tables.
            last = replace(last, schemas=offsets.history(last, first).pack())
        spans, server = self._tail.spans(first, last), self._bound.server
        if spans is None and self._failover.is_left_to_mirror(last):
            server = StreamServer(self._bound.unbound)
        parts = range_partitions(
            replace(first, prepared_xa=offsets.prepared_xa(first)),
            last,
            spans,
            facts=server.facts(first),
            target_bytes=options.target_partition_bytes,
            max_fetches=max_fetches,
        )
        if all(part.blocks is not None for part in parts):
            return parts
        log = self._bound.server.range_log(first, last)
        return [part if part.blocks is not None else replace(part, log=log) for part in parts]


def read_task(
    options: Options, schema: StructType, partition: InputPartition, packing: StructType | None
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one task, in the order of the binlog; runs on an executor.

    Parameters
    ----------
    schema : of the changes.
    packing : the kind of IPC messages that they become; None if Spark gets them as they are.
    """
    if isinstance(partition, ChunkPartition):
        from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks

        return read_chunks(options, partition, arrow_schema(schema), typed=packing == SLIM_IPC_ROWS)
    if isinstance(partition, GapPartition):
        return gap_rows(partition, arrow_schema(schema))
    assert isinstance(partition, RangePartition)
    if packing == SLIM_IPC_ROWS:
        from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_range

        return read_typed_range(options, partition, arrow_schema(schema))
    return read_range(options, partition, arrow_schema(schema))
