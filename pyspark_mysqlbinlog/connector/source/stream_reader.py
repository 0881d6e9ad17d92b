"""The streaming source: Spark's offset calls, answered from the tail's buffer.

Spark calls these methods in one long-lived process per query (`partitions` and offsets) and in the
executors (`read`). It also creates a reader in a planner process that is only pickled. So the
constructor keeps plain data, and the first `latestOffset` starts the tail.

Three rules, each found by losing rows:

* `initialOffset` is not durable: Spark calls it again when batch 0 is replayed in a new process.
  So batch 0 is always empty; it only makes the position durable.
* With Trigger.AvailableNow, "nothing new" returned too early would end the query with rows
  missing. So `latestOffset` waits for the tail.
* Traffic of tables that are not captured advances the offset rarely; otherwise a busy server would
  cause an empty batch every few milliseconds.

If the binlog continues in another sequence of files (see checkpoints/position.py), an empty batch
leads from the end of one sequence to the beginning of the next, with a greater epoch. Such a batch
also leads to another server, and past a lost part of the binlog (see `stream_failover` and
`stream_gaps`). Everything else (batches, ranges, the tail and its buffer) is within one sequence,
and orders positions by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import (
    BEGINNING,
    END_OF_SEQUENCE,
    Position,
)
from pyspark_mysqlbinlog.checkpoints.snapshot_state import UNKNOWN_END, SnapshotState
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER, configure_logging
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.reader import read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.sub_batches import (
    max_snapshot_sub_batches,
    max_sub_batches,
)
from pyspark_mysqlbinlog.connector.schemas.evolution import Evolution
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.arrow_ipc import SLIM_IPC_ROWS, packets
from pyspark_mysqlbinlog.connector.source.file_snapshot import FileSnapshot
from pyspark_mysqlbinlog.connector.source.gap_rows import GapPartition, gap_rows
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.connector.source.stream_failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream_files import StreamFiles
from pyspark_mysqlbinlog.connector.source.stream_gaps import StreamGaps
from pyspark_mysqlbinlog.connector.source.stream_offsets import StreamOffsets
from pyspark_mysqlbinlog.connector.source.stream_server import StreamServer, end_and_files
from pyspark_mysqlbinlog.connector.source.stream_snapshot import StreamSnapshot
from pyspark_mysqlbinlog.connector.source.stream_tails import file_tail, server_tail
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Span
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.connector.tail.retention import RetentionWatch
from pyspark_mysqlbinlog.decoder.kernel.implementation import described
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    ConnectionFailedError,
    MySQLBinlogError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server_errors import log_replaced

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MySQLBinlogStreamReader"]


class MySQLBinlogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one server's changes as a stream.

    schema : of the changes.
    packed : if set, Spark gets the changes as IPC messages of this kind (see `arrow_ipc`).
    handoff : where a mirror reads batches with inline ranges (see `BatchHandoff`).
    """

    def __init__(
        self,
        options: Options,
        schema: StructType,
        *,
        packed: StructType | None = None,
        handoff: BatchHandoff | None = None,
    ) -> None:
        configure_logging()
        self._schema = schema
        self._packing = packed
        self._handoff = handoff
        self._failover = StreamFailover(options, for_mirror=packed is not None)
        self._unbound = options
        self._read_with(options)
        self._initial: Offset | None = None
        self._batch_zero_done = False
        self._tail: LogTail | None = None
        # Of the tails before it.
        self._reconnects = 0
        # The sequence of files that the tail reads.
        self._epoch = 0
        # The end of the run, and the server's files at that time.
        self._target: tuple[Position, Mapping[str, int]] | None = None
        # The run's end is still unknown: the server did not answer when Spark asked.
        self._target_due = False
        # By the clock of `time`: when the target was determined.
        self._noted_at = 0.0
        self._moved_at = monotonic()
        # The sink has committed everything up to here; and the last known end of the binlog.
        self._committed: Position | None = None
        self._retention: RetentionWatch | None = None
        # Everything from here on is needed, also by a later start of the query.
        self._needed: Position | None = None
        self._end: EndOfLog | None = None

    def _read_with(self, options: Options) -> None:
        """Use options, which may be bound to another server than before."""
        self._options = options
        self._server: StreamServer | StreamFiles
        self._load: StreamSnapshot | FileSnapshot
        if options.path is not None:
            self._server, self._load = StreamFiles(options), FileSnapshot()
            self._offsets = StreamOffsets(options, self._server)
            return
        self._server = StreamServer(options)
        self._offsets = StreamOffsets(options, self._server)
        self._gaps = StreamGaps(options, self._server, reloads=self._reloads_after_gap)
        self._load = StreamSnapshot(
            options,
            in_packets=self._packing is not None,
            # With change logs such a batch is applied as a whole.
            max_sub_batches=self._max_snapshot_sub_batches,
            is_case_sensitive=self._server.is_case_sensitive,
            history_of=self._offsets.history,
        )

    @property
    def _reloads_after_gap(self) -> bool:
        """Whether all tables are reloaded where changes of them are lost: by a mirror, always."""
        return self._packing is not None or self._options.reload_after_ddl

    def _max_snapshot_sub_batches(self) -> int:
        return max_snapshot_sub_batches() if self._packing == SLIM_IPC_ROWS else 1

    def _bind(self, offset: Offset) -> None:
        """Read the server of an offset, if there are several."""
        options = self._options.bound_to(offset.server_uuid)
        if options is not self._options:
            self._read_with(options)
            if self._target is not None:
                # It was a position of another server.
                self._target, self._target_due = None, True

    # --- offsets

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a query without a checkpoint; the same value every time."""
        if self._initial is None:
            start = self._server.start()
            self._server.note_facts(start.facts)
            self._end = EndOfLog(start.end, time())
            initial = replace(
                start.offset,
                payload=self._options.payload_kind,
                tables=self._options.table_filter_hash,
                transforms=self._options.transforms_hash,
            )
            if self._options.starts_with_snapshot:
                tables = self._options.table_filter(start.facts.case_sensitive)
                initial = replace(initial, snapshot=start.load(tables.captures).pack())
            self._initial = initial
            self._failover.note_start()
        return self._initial.to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to maxBytesPerTrigger of binlog."""
        return ReadMaxBytes(self._options.max_bytes_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Record the end of the binlog as the end of this run.

        Spark calls this before it is known whether there is a checkpoint. If the server does not
        answer, `initialOffset` raises at once without a checkpoint; with one, the stream waits.
        """
        if self._failover.is_possible:
            # Which of the servers is meant depends on the checkpoint.
            self._target_due = True
            return
        if self._options.path is not None:
            self._note_target(self._server.end())
            return
        try:
            with initial_retry()(ReplicaClient.connect, self._options.server_settings()) as client:
                self._note_target(end_and_files(client))
        except ConnectionFailedError:
            self._target_due = True

    def _note_target(self, target: tuple[Position, Mapping[str, int]]) -> None:
        self._target = target
        self._target_due, self._noted_at = False, time()
        if self._tail is not None:
            # Before any later event arrives.
            self._cut_at_target(self._tail, self._tail.buffer.tip.position)

    def _cut_at_target(self, tail: LogTail, position: Position) -> Position | None:
        """Prevent batches from crossing the run's end; returns it, as `position` sees it."""
        target = self._target_seen_from(position)
        if target is not None:
            tail.buffer.force_boundary_at(target)
        return target

    def _target_seen_from(self, position: Position) -> Position | None:
        """Return the run's end, as the file of a position orders it; None if the run has no end."""
        if self._target is None:
            return None
        target, sizes = self._target
        if self._initial is not None and position.file not in sizes:
            # The start was resolved in this run, after the target.
            return target if target.file == position.file else BEGINNING
        return FileOrder(lambda: sizes, position.file, sizes).position(target.file, target.pos)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the last boundary within the limit: at least one whole transaction."""
        try:
            return self._latest_offset(start, limit)
        except ConnectionFailedError:
            offset = Offset.from_dict(start)
            if not self._failover.is_lost(offset):
                raise
            # It was lost while it was asked.
            return self._fail_over(offset, limit)
        except (BinlogPurgedError, UnsupportedTransactionError) as error:
            return self._after_loss(Offset.from_dict(start), error)

    def _latest_offset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        offset = self._offsets.parse(start)
        self._bind(offset)
        if not self._reads(offset) and self._failover.is_lost(offset):
            # Nothing can be asked, and nothing has been read ahead.
            return self._fail_over(offset, limit)
        if (moved := self._failover.after_replay(offset)) is not None:
            return moved.to_dict()
        if not self._options.fail_on_data_loss and not self._reads(offset):
            known = self._gaps.without_purged(offset)
            if known != offset:
                return known.to_dict()
        # Before the tail starts: it must not pass a boundary at the target.
        if self._target_due:
            self._note_target(self._server.end())
        if not self._batch_zero_done:
            self._batch_zero_done = True
            if self._initial is not None and offset == self._initial:
                # Start what batch 1 needs while Spark runs batch 0. Errors are raised when batch 1
                # is requested.
                self._tail_from(offset)
                self._load.begin_ahead(offset, self._most(limit))
                return start
        tail = self._tail_from(offset)
        if tail.is_superseded():
            return self._fail_over(offset, limit)
        buffer = tail.buffer
        target = self._cut_at_target(tail, offset.position)
        position = self._committed = offset.position
        self._needed = first_needed(position, offset.prepared_xa)
        buffer.release(position)
        most = self._most(limit)
        load = self._load.at(offset, lambda: self._server.end_of_log(offset))
        if self._is_at_next_sequence(tail, position, target):
            return self._begin_sequence(tail, offset).to_dict()
        may_load = load is not None and not load.is_done
        if (
            load is not None
            and may_load
            and self._load.reads_exactly(load, buffer.tip.history)
            and not self._server.end_of_log(offset).is_in_sequence_of(position)
        ):
            # Its position would be in a later sequence: the stream must get there first.
            may_load = False
            if target is not None and target.is_in_sequence_of(position):
                self._note_target(self._server.end())
                target = self._target_seen_from(position)
        if load is not None and may_load:
            load, boundary = self._load.step(tail, load, position, most, target)
            self._moved_at = monotonic()
            boundary = boundary or self._offsets.boundary(offset, self._load.at)
            return self._offsets.at_end(offset, boundary, load).to_dict()
        if target is not None and target < position and self._initial is None:
            # To wait for nothing would end the query as if it had succeeded. (A start that was
            # resolved in this run may be after the target.)
            self._server.check_identity(offset)
            raise log_replaced(f"it ends at {target}, before it", position.file, position.pos)
        # Trigger.Once requests everything in this sequence, once; events that arrive meanwhile may
        # be included.
        end = self._server.end_of_log(offset) if target is None and most is None else target
        if most is None:
            buffer.take_all()
        rows = None if most is None else self._options.max_rows_per_trigger
        if end is not None:
            # Another binlog may end at the same position.
            buffer.wait(
                lambda: (
                    tail.compared and (tail.scanned >= end or buffer.exceeds(position, most, rows))
                )
            )
        # Otherwise this batch changes the snapshot's state: chunks recorded there are dropped.
        is_settled = load == offset.snapshot_state and (
            load is None or not (load.chunks or load.empty or load.invalidated_at)
        )
        # A batch that another server has to repeat is applied as a whole, or not at all.
        may_be_long = self._packing is not None and is_settled and not self._failover.is_possible
        sub_batches = max_sub_batches() if may_be_long else 1
        boundary = buffer.last_boundary_within(position, most and most * sub_batches, target, rows)
        # A batch in which tables change is one sub-batch.
        if (
            boundary is not None
            and sub_batches > 1
            and self._load.changes_tables(buffer, position, boundary.position)
        ):
            boundary = buffer.last_boundary_within(position, most, target, rows)
        # Events after the end of this run belong to the next one.
        is_short = end is None or tail.scanned < end or not tail.compared
        has_ended = tail.next_sequence is not None
        if boundary is None and tail.is_superseded():
            return self._fail_over(offset, limit)
        if boundary is None and buffer.error is not None and is_short and not has_ended:
            raise buffer.error
        if boundary is None:
            boundary = self._idle_move(buffer, position, target, at_once=has_ended)
        if boundary is None and self._is_at_next_sequence(tail, position, target):
            return self._begin_sequence(tail, offset).to_dict()
        if boundary is None:
            return self._settled(offset, load).to_dict()
        self._moved_at = monotonic()
        load = self._load.advanced(tail, load, position, boundary)
        return self._offsets.at_end(offset, boundary, load).to_dict()

    def _settled(self, offset: Offset, load: SnapshotState | None) -> Offset:
        """Return an offset, or the end of an empty batch that records its high watermarks.

        The tables of the last chunks would be regarded as read ahead of the stream until the next
        change, and another server could not continue with them.
        """
        known = offset.snapshot_state
        if load is None or known is None or UNKNOWN_END not in known.high_watermarks.values():
            return offset
        boundary = self._offsets.boundary(offset, self._load.at)
        return self._offsets.at_end(offset, boundary, load.without_batch())

    def _fail_over(self, offset: Offset, limit: ReadLimit) -> dict[str, Any]:
        """Return where another server continues; what was read ahead is read again there."""
        moved = self._failover.next_epoch(offset)
        if moved is None:
            # The server is back.
            self._end_tail()
            return self.latestOffset(offset.to_dict(), limit)
        self._moved_at = monotonic()
        return moved.to_dict()

    def _after_loss(self, offset: Offset, error: MySQLBinlogError) -> dict[str, Any]:
        """Return where the stream continues after a part of the binlog that can't be read.

        Raises the error if it does not continue.
        """
        moved = None
        if isinstance(error, BinlogPurgedError):
            moved = self._failover.after_purge(offset)
        if moved is None:
            if self._options.fail_on_data_loss or not isinstance(self._load, StreamSnapshot):
                raise error
            after = partial(self._load.after_gap, reloads=self._reloads_after_gap)
            moved = self._gaps.after(offset, error, after)
            if self._target is not None:
                # It may be in the lost part.
                self._target_due = True
        self._moved_at = monotonic()
        return moved.to_dict()

    @staticmethod
    def _is_at_next_sequence(tail: LogTail, position: Position, target: Position | None) -> bool:
        """Whether the tail's sequence of files is consumed, and the run continues after it."""
        if target is not None and target <= END_OF_SEQUENCE:
            return False
        at_end = tail.compared and tail.next_sequence is not None
        return at_end and tail.buffer.tip.position == position

    def _begin_sequence(self, tail: LogTail, offset: Offset) -> Offset:
        """Return the beginning of the next sequence of files, which starts a new epoch.

        offset : the end of the previous one; the batch between the two is empty. So the snapshot
            of newly captured tables begins with the batch after it.
        """
        assert tail.next_sequence is not None
        # As the tail saw it: the binlog may have been replaced since; the next tail detects that.
        begin, fingerprint = tail.next_sequence
        last = tail.buffer.tip
        # What is valid there is valid from the beginning, in positions of either sequence.
        history = last.history.from_position(last.position).until(BEGINNING)
        LOGGER.warning(
            "the server's binlog has another base name, or its numbers restarted: after %s"
            " the stream continues in %s, with epoch %d",
            last.position.file,
            begin.file,
            offset.epoch + 1,
        )
        self._moved_at = monotonic()
        boundary = BoundaryState(begin, history, last.pending_xa, fingerprint)
        state = self._load.next_sequence(offset, begin, lambda: self._server.end_of_log(offset))
        return replace(
            self._offsets.at_end(offset, boundary, state),
            epoch=offset.epoch + 1,
            tables=offset.tables,
        )

    def _idle_move(
        self, buffer: LogBuffer, position: Position, target: Position | None, *, at_once: bool
    ) -> BoundaryState | None:
        """Return a boundary after traffic of uncaptured tables only, once per interval."""
        tip = buffer.tip.position
        if tip <= position:
            return None
        if at_once or target is not None:
            # The run ends at its target: the next run need not read this traffic again.
            return buffer.advance_to_tip(until=target)
        if monotonic() - self._moved_at < self._options.idle_offset_interval:
            return None
        return buffer.advance_to_tip()

    def _most(self, limit: ReadLimit) -> int | None:
        """Return the limit of bytes in a batch; None is unlimited."""
        if isinstance(limit, ReadAllAvailable):
            return None
        given = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return min(
            given or self._options.max_bytes_per_trigger, self._options.max_bytes_per_trigger
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the tail's position and the sink's lag, for the query's progress.

        Short, without the schemas. Spark calls this with each offset: answered from memory.
        """
        if self._tail is None or self._committed is None:
            return None
        tip = self._tail.buffer.tip
        offset = Offset(tip.position, fingerprint=tip.fingerprint, epoch=self._epoch)
        load = self._load.report()
        told: dict[str, Any] = {} if load is None else {"snapshot": load}
        watch = self._retention
        left = None if watch is None else watch.left
        seconds = None if watch is None else watch.seconds_left
        told["retention_left"] = None if left is None else round(left, 4)
        told["seconds_until_purge"] = None if seconds is None else round(seconds)
        told["reconnects"] = self._reconnects + self._tail.reconnects
        told["failovers"] = self._failover.count
        return offset.to_dict() | self._tail.lag.report(self._committed) | told

    def commit(self, end: dict[str, Any]) -> None:
        """Release what is delivered."""
        offset = Offset.from_dict(end)
        if self._tail is not None and offset.epoch == self._epoch:
            self._tail.buffer.release(offset.position)

    def stop(self) -> None:
        """End the tail. Spark usually ends the process instead."""
        if self._tail is not None:
            self._tail.stop()
        if self._retention is not None:
            self._retention.stop()
        self._load.close()

    # --- partitions

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the ranges of one batch. Everything they need is in the offsets and the buffer."""
        first, last = self._offsets.parse(start), self._offsets.parse(end)
        self._bind(first)
        replays_batch_zero = (
            self._initial is not None and first == self._initial and not self._batch_zero_done
        )
        # Whichever batch this is, batch 0 is done.
        self._batch_zero_done = True
        # Batch 0 of an earlier process was empty, wherever this process would begin.
        if replays_batch_zero:
            return []
        loads = last.reads_chunks_since(first)
        most = self._options.max_connections
        gap = GapPartition.at(last) if last.gap else None
        batch: tuple[Offset, Offset] | None = first, last
        if gap is None and self._is_replay(first, last):
            batch = self._replayed(first, last)
            gap = GapPartition.of_batch(first, last) if batch is None else None
        marks = [gap] if gap is not None and "gap" in self._options.operations else []
        ranges = [] if batch is None else self._ranges(*batch, max(most - 1, 1) if loads else most)
        if self._handoff is not None:
            self._handoff.write(first, last, ranges)
        if not loads:
            return [*marks, *ranges]
        pulls = sum(part.blocks is None for part in ranges)
        return [*marks, *ranges, *self._load.tasks(last, most - pulls)]

    def _is_replay(self, first: Offset, last: Offset) -> bool:
        """Whether a batch has a part of the binlog that this process has not read ahead."""
        has_log = first.epoch == last.epoch and first.order < last.order
        return has_log and self._spans(first, last) is None

    def _spans(self, first: Offset, last: Offset) -> Sequence[Span] | None:
        """Return what the buffer has between two offsets; None if it does not have that."""
        if self._tail is None or first.epoch != self._epoch:
            return None
        return self._tail.buffer.spans(first.position, last.position)

    def _replayed(self, first: Offset, last: Offset) -> tuple[Offset, Offset] | None:
        """Return the offsets of a batch that an earlier process planned, where it can be read.

        None if its binlog was purged; then all of it is lost. A mirror itself reads such a batch
        elsewhere, or has it planned again (see replay.py and lost_batch.py in connector/delta).
        """
        is_only = self._options.fail_on_data_loss and not self._failover.is_possible
        if is_only or self._packing is not None:
            return first, last
        if self._failover.is_lost(last):
            return self._failover.replayed(first, last)
        if not self._gaps.is_lost(first, last):
            return first, last
        moved = self._failover.replayed_after_purge(first, last)
        if moved is not None or self._options.fail_on_data_loss:
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
        self._bind(last)
        if last.tables != self._options.table_filter_hash:
            # Planned by a query that captured other tables.
            last = replace(last, schemas=self._offsets.history(last, first).pack())
        spans, server = self._spans(first, last), self._server
        if spans is None and self._failover.is_left_to_mirror(last):
            server = StreamServer(self._unbound)
        parts = range_partitions(
            replace(first, prepared_xa=self._offsets.prepared_xa(first)),
            last,
            spans,
            facts=server.facts(first),
            target_bytes=self._options.target_partition_bytes,
            max_fetches=max_fetches,
        )
        if all(part.blocks is not None for part in parts):
            return parts
        log = self._server.range_log(first, last)
        return [part if part.blocks is not None else replace(part, log=log) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of one task; runs on an executor."""
        batches = self._read(partition)
        return batches if self._packing is None else packets(batches, self._packing)

    def _read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ChunkPartition):
            from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks

            schema = arrow_schema(self._schema)
            return read_chunks(
                self._options, partition, schema, typed=self._packing == SLIM_IPC_ROWS
            )
        if isinstance(partition, GapPartition):
            return gap_rows(partition, arrow_schema(self._schema))
        assert isinstance(partition, RangePartition)
        if self._packing == SLIM_IPC_ROWS:
            from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_range

            return read_typed_range(self._options, partition, arrow_schema(self._schema))
        return read_range(self._options, partition, arrow_schema(self._schema))

    # --- the tail

    def _reads(self, offset: Offset) -> bool:
        """Whether a tail has started in an offset's epoch."""
        return self._tail is not None and self._epoch == offset.epoch

    def _tail_from(self, offset: Offset) -> LogTail:
        """Return the tail of this process; starts it at the offset if its epoch has none yet."""
        if self._tail is not None:
            if self._epoch == offset.epoch:
                return self._tail
            self._end_tail()
            # It was ordered as the previous sequence sees it.
            self._end = None
        self._epoch = offset.epoch
        target = self._target_seen_from(offset.position)
        if target is not None:
            self._end = EndOfLog(target, self._noted_at)
        boundary = self._offsets.boundary(offset, self._load.at)
        self._tail = self._new_tail(offset, boundary)
        if target is not None:
            self._tail.buffer.force_boundary_at(target)
        self._tail.start()
        if self._retention is not None:
            self._retention.start()
        self._log_start(offset)
        return self._tail

    def _end_tail(self) -> None:
        if self._tail is not None:
            self._tail.stop()
            self._reconnects += self._tail.reconnects
            self._tail = None

    def _new_tail(self, offset: Offset, boundary: BoundaryState) -> LogTail:
        watch = SchemaGuard(
            None if self._options.path is not None else self._options.server_settings(),
            case_sensitive=self._server.is_case_sensitive(),
            evolution=self._evolution(),
            positional=self._options.on_unknown_schema == "positional",
        )
        if isinstance(self._server, StreamFiles):
            return file_tail(self._options, boundary, watch, end=self._end)
        return server_tail(
            self._options,
            boundary,
            watch,
            end=self._end,
            server_uuid=offset.server_uuid,
            case_sensitive=self._server.is_case_sensitive(),
            retention=self._watch_retention(offset),
            # A mirror warns of foreign keys in its own process, also of new ones.
            with_cascades=self._packing is None,
            check_successor=(
                partial(self._failover.check_successor, offset.server_uuid)
                if self._failover.is_possible
                else None
            ),
            on_statement=self._load.on_statement(),
        )

    def _watch_retention(self, offset: Offset) -> RetentionWatch:
        if self._retention is not None:
            self._retention.stop()
        start = first_needed(offset.position, offset.prepared_xa)
        self._needed = start
        self._retention = RetentionWatch(
            self._options.server_settings(),
            warn_below=self._options.retention_warning,
            needed=lambda: self._needed or start,
        )
        return self._retention

    def _log_start(self, offset: Offset) -> None:
        options = self._options
        tables = "all tables" if options.tables is None else f"tables {options.tables}"
        if options.exclude_tables is not None:
            tables += f" without {options.exclude_tables}"
        LOGGER.info(
            "reading %s from %s: %s, payload %s, decoder %s",
            self._server,
            offset.position,
            tables,
            options.payload_kind,
            described(),
        )

    def _evolution(self) -> Evolution | None:
        if self._options.payload_kind != "struct":
            return None
        struct = arrow_schema(self._schema).field("after").type
        if isinstance(self._server, StreamFiles):
            return Evolution(
                self._options, struct, case_sensitive=True, server_table=self._server.last_table
            )
        return Evolution.of(self._options, struct, case_sensitive=self._server.is_case_sensitive())
