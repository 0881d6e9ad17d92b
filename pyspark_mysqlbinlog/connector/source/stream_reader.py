"""The streaming source: Spark's offset calls, answered from the tail's buffer.

Spark calls these methods in one long-lived process per query (`partitions` and offsets) and in the
executors (`read`, by a `TaskReader`). It also creates a reader in a planner process that is only
pickled. So the constructor keeps plain data, and the first `latestOffset` starts the tail.

Three rules, each found by losing rows:

* `initialOffset` is not durable: Spark calls it again when batch 0 is replayed in a new process.
  So batch 0 is always empty; it only makes the position durable.
* With Trigger.AvailableNow, "nothing new" returned too early would end the query with rows
  missing. So `latestOffset` waits for the tail.
* Traffic of tables that are not captured advances the offset rarely; otherwise a busy server would
  cause an empty batch every few milliseconds.

If the binlog continues in another sequence of files (see checkpoints/position.py), an empty batch
leads from the end of one sequence to the beginning of the next, with a greater epoch. Such a batch
also leads to another server, and past a lost part of the binlog (see `stream/failover.py` and
`stream/gaps.py`). Everything else (batches, ranges, the tail and its buffer) is within one
sequence, and orders positions by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
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
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER, configure_logging
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.sub_batches import (
    max_sub_batches,
)
from pyspark_mysqlbinlog.connector.source.stream.binding import StreamBinding
from pyspark_mysqlbinlog.connector.source.stream.failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.running_tail import RunningTail
from pyspark_mysqlbinlog.connector.source.stream.server import end_and_files
from pyspark_mysqlbinlog.connector.source.stream.snapshot import StreamSnapshot
from pyspark_mysqlbinlog.connector.source.stream.tasks import StreamTasks
from pyspark_mysqlbinlog.connector.source.task_reader import TaskReader
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail, SupersededError
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    ConnectionFailedError,
    MySQLBinlogError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

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
        self._failover = StreamFailover(options, for_mirror=packed is not None)
        self._bound = StreamBinding(options, packed)
        self._tail = RunningTail(self._bound, schema, self._failover)
        self._tasks = StreamTasks(self._bound, self._tail, self._failover, handoff)
        self._initial: Offset | None = None
        self._batch_zero_done = False
        self._moved_at = monotonic()

    @property
    def tail(self) -> LogTail | None:
        """The tail; None until the first batch with changes is requested."""
        return self._tail.current

    # --- offsets

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a query without a checkpoint; the same value every time."""
        if self._initial is None:
            bound = self._bound
            start = bound.server.start()
            bound.server.note_facts(start.facts)
            self._tail.note_end(start.end)
            initial = replace(
                start.offset,
                payload=bound.options.payload_kind,
                tables=bound.options.table_filter_hash,
                transforms=bound.options.transforms_hash,
            )
            if bound.options.starts_with_snapshot:
                tables = bound.options.table_filter(start.facts.case_sensitive)
                initial = replace(initial, snapshot=start.load(tables.captures).pack())
            self._initial = initial
            self._failover.note_start()
        return self._initial.to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to maxBytesPerTrigger of binlog."""
        return ReadMaxBytes(self._bound.options.max_bytes_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Record the end of the binlog as the end of this run.

        Spark calls this before it is known whether there is a checkpoint. If the server does not
        answer, `initialOffset` raises at once without a checkpoint; with one, the stream waits.
        """
        if self._failover.is_possible:
            # The checkpoint determines which of the servers is read.
            self._bound.run_end.is_due = True
            return
        if self._bound.options.path is not None:
            self._note_run_end(self._bound.server.end())
            return
        try:
            with initial_retry()(
                ReplicaClient.connect, self._bound.options.server_settings()
            ) as client:
                self._note_run_end(end_and_files(client))
        except ConnectionFailedError:
            self._bound.run_end.is_due = True

    def _note_run_end(self, end: tuple[Position, Mapping[str, int]]) -> None:
        self._bound.run_end.note(*end)
        if self._tail.current is not None:
            # Set the cut before any later event arrives.
            buffer = self._tail.current.buffer
            self._cut_at_run_end(buffer, buffer.tip.position)

    def _cut_at_run_end(self, buffer: LogBuffer, position: Position) -> Position | None:
        """Prevent batches from crossing the run's end; returns it, as `position` sees it."""
        end = self._run_end_seen_from(position)
        if end is not None:
            buffer.force_boundary_at(end)
        return end

    def _run_end_seen_from(self, position: Position) -> Position | None:
        is_resolved_here = self._initial is not None
        return self._bound.run_end.seen_from(position, is_resolved_here=is_resolved_here)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the last boundary within the limit: at least one whole transaction."""
        try:
            return self._latest_offset(start, limit)
        except ConnectionFailedError:
            offset = Offset.from_dict(start)
            if not self._failover.is_lost(offset):
                raise
            # The server was lost while it was queried.
            return self._fail_over(offset, limit)
        except SupersededError:
            # The tail ended while the batch was planned.
            return self._fail_over(Offset.from_dict(start), limit)
        except (BinlogPurgedError, UnsupportedTransactionError) as error:
            return self._after_loss(Offset.from_dict(start), error)

    def _latest_offset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        bound = self._bound
        offset = bound.offsets.parse(start)
        bound.bind(offset)
        if not self._tail.reads(offset) and self._failover.is_lost(offset):
            # The server cannot be queried, and nothing has been read ahead.
            return self._fail_over(offset, limit)
        if (moved := self._failover.after_replay(offset)) is not None:
            return moved.to_dict()
        if not bound.options.fail_on_data_loss and not self._tail.reads(offset):
            known = bound.gaps.without_purged(offset)
            if known != offset:
                return known.to_dict()
        # Determine the run's end before the tail starts: the tail must not pass a boundary there.
        if bound.run_end.is_due:
            self._note_run_end(bound.server.end())
        if not self._batch_zero_done:
            self._batch_zero_done = True
            if self._is_start(offset):
                # Start what batch 1 needs while Spark runs batch 0. Errors are raised when batch 1
                # is requested.
                self._start_tail(offset)
                bound.snapshot.begin_ahead(offset, self._most(limit))
                return start
        tail = self._start_tail(offset)
        if tail.is_superseded():
            return self._fail_over(offset, limit)
        buffer = tail.buffer
        position = offset.position
        target = self._cut_at_run_end(buffer, position)
        self._tail.commit(offset)
        most = self._most(limit)
        load = bound.snapshot.at(offset, lambda: bound.server.end_of_log(offset))
        if self._is_at_next_sequence(tail, position, target):
            return self._begin_sequence(tail, offset).to_dict()
        may_load = load is not None and not load.is_done
        if (
            load is not None
            and may_load
            and bound.snapshot.reads_exactly(load, buffer.tip.history)
            and not bound.server.end_of_log(offset).is_in_sequence_of(position)
        ):
            # The exact position would be in a later sequence, which the stream must reach first.
            may_load = False
            if target is not None and target.is_in_sequence_of(position):
                self._note_run_end(bound.server.end())
                target = self._run_end_seen_from(position)
        if load is not None and may_load:
            load, boundary = bound.snapshot.step(tail, load, position, most, target)
            self._moved_at = monotonic()
            boundary = boundary or bound.offsets.boundary(offset, bound.snapshot.at)
            return bound.offsets.at_end(offset, boundary, load).to_dict()
        if target is not None and target < position and self._initial is None:
            # Without this error the query would end as if it had succeeded. (A start that was
            # resolved in this run may be after the target.)
            bound.server.check_identity(offset)
            raise log_replaced(f"it ends at {target}, before it", position.file, position.pos)
        # Trigger.Once requests everything in this sequence, once; events that arrive meanwhile may
        # be included.
        end = bound.server.end_of_log(offset) if target is None and most is None else target
        if most is None:
            buffer.take_all()
        rows = None if most is None else bound.options.max_rows_per_trigger
        if end is not None:
            # Another binlog may end at the same position.
            buffer.wait(
                lambda: (
                    tail.compared and (tail.scanned >= end or buffer.exceeds(position, most, rows))
                )
            )
        # If it is not settled, this batch changes the snapshot's state: recorded chunks are
        # dropped.
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
            and bound.snapshot.changes_tables(buffer, position, boundary.position)
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
        load = bound.snapshot.advanced(tail, load, position, boundary)
        return bound.offsets.at_end(offset, boundary, load).to_dict()

    def _settled(self, offset: Offset, load: SnapshotState | None) -> Offset:
        """Return an offset, or the end of an empty batch that records its high watermarks.

        The tables of the last chunks would be regarded as read ahead of the stream until the next
        change, and another server could not continue with them.
        """
        known = offset.snapshot_state
        if load is None or known is None or UNKNOWN_END not in known.high_watermarks.values():
            return offset
        boundary = self._bound.offsets.boundary(offset, self._bound.snapshot.at)
        return self._bound.offsets.at_end(offset, boundary, load.without_batch())

    def _fail_over(self, offset: Offset, limit: ReadLimit) -> dict[str, Any]:
        """Return where another server continues; what was read ahead is read again there."""
        moved = self._failover.next_epoch(offset)
        if moved is None:
            # The server is back.
            self._tail.end()
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
            if self._bound.options.fail_on_data_loss or not isinstance(
                self._bound.snapshot, StreamSnapshot
            ):
                raise error
            after = partial(self._bound.snapshot.after_gap, reloads=self._bound.reloads_after_gap)
            moved = self._bound.gaps.after(offset, error, after)
            # The run's end may be in the lost part.
            self._bound.run_end.forget()
        self._moved_at = monotonic()
        return moved.to_dict()

    def _is_start(self, offset: Offset) -> bool:
        """Whether an offset is the start that this process has resolved."""
        return self._initial is not None and offset == self._initial

    def _start_tail(self, offset: Offset) -> LogTail:
        return self._tail.start_at(offset, is_resolved_here=self._initial is not None)

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
        # The schemas at the end are valid from the beginning, in positions of either sequence.
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
        state = self._bound.snapshot.next_sequence(
            offset, begin, lambda: self._bound.server.end_of_log(offset)
        )
        return replace(
            self._bound.offsets.at_end(offset, boundary, state),
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
        if monotonic() - self._moved_at < self._bound.options.idle_offset_interval:
            return None
        return buffer.advance_to_tip()

    def _most(self, limit: ReadLimit) -> int | None:
        """Return the limit of bytes in a batch; None is unlimited."""
        if isinstance(limit, ReadAllAvailable):
            return None
        given = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return min(
            given or self._bound.options.max_bytes_per_trigger,
            self._bound.options.max_bytes_per_trigger,
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the tail's position and the sink's lag, for the query's progress.

        The result is short (no schemas) and comes from memory, because Spark calls this with each
        offset.
        """
        return self._tail.report()

    def commit(self, end: dict[str, Any]) -> None:
        """Release everything up to the end of a delivered batch."""
        offset = Offset.from_dict(end)
        if self._tail.current is not None and self._tail.reads(offset):
            self._tail.current.buffer.release(offset.position)

    def stop(self) -> None:
        """End the tail. Spark usually ends the process instead."""
        self._tail.stop()
        self._bound.snapshot.close()

    # --- partitions

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of one batch. Everything they need is in the offsets and the buffer."""
        first, last = self._bound.offsets.parse(start), self._bound.offsets.parse(end)
        self._bound.bind(first)
        replays_batch_zero = self._is_start(first) and not self._batch_zero_done
        # Whichever batch this is, batch 0 is done.
        self._batch_zero_done = True
        # Batch 0 of an earlier process was empty, wherever this process would begin.
        return [] if replays_batch_zero else self._tasks.plan(first, last)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of one task, as executors do."""
        return TaskReader(*self._read_by()).read(partition)

    def __reduce__(self) -> tuple[type[TaskReader], tuple[Options, StructType, StructType | None]]:
        """Pickle what executors need."""
        return TaskReader, self._read_by()

    def _read_by(self) -> tuple[Options, StructType, StructType | None]:
        return self._bound.options, self._schema, self._packing
