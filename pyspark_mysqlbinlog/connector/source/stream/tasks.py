"""The tasks of a stream's batches, as the driver plans them for executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.source.stream.binding import StreamBinding
from pyspark_mysqlbinlog.connector.source.stream.failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.gap_rows import GapPartition
from pyspark_mysqlbinlog.connector.source.stream.running_tail import RunningTail
from pyspark_mysqlbinlog.connector.source.stream.server import StreamServer

__all__ = ["StreamTasks"]


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
        # A batch that leads into another sequence of files has no ranges.
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
