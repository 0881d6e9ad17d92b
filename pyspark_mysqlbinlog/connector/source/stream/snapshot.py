"""The snapshot of a stream, as Spark's offset calls see it.

A query without a snapshot never imports the snapshot planner. This makes its workers, which import
the stream's reader, start sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.connector.tail.tail import OnStatement

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.snapshot.coordinator import SnapshotCoordinator
    from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits

__all__ = ["StreamSnapshot"]


class StreamSnapshot:
    """The snapshot's state at an offset, and the chunks of the next batch.

    Parameters
    ----------
    in_packets : Spark gets the rows as IPC messages.
    max_sub_batches : the maximum number of sub-batches of a batch with snapshot rows.
    is_case_sensitive : whether the server distinguishes names by case; may query the server.
    history_of : returns the history of an offset that contains the tables captured now.
    """

    def __init__(
        self,
        options: Options,
        *,
        in_packets: bool,
        max_sub_batches: Callable[[], int],
        is_case_sensitive: Callable[[], bool],
        history_of: Callable[[Offset], SchemaHistory],
    ) -> None:
        self._options = options
        self._in_packets = in_packets
        self._max_sub_batches = max_sub_batches
        self._is_case_sensitive = is_case_sensitive
        self._history_of = history_of
        self._load: SnapshotCoordinator | None = None
        # An offset that was written with other options, and its state for the current options.
        self._resumed: tuple[Offset, SnapshotState | None] | None = None

    def at(
        self, offset: Offset, end_of_log: Callable[[], Position] | None = None
    ) -> SnapshotState | None:
        """Return the state at an offset, for the current options; None if there is no snapshot.

        end_of_log : if given, the state records what the chunks of the batch may have seen.
        """
        if offset.tables == self._options.table_filter_hash and self._options.reload is None:
            state = offset.snapshot_state
        else:
            if self._resumed is None or self._resumed[0] != offset:
                state = self._the_load().resume(offset, lambda: self._history_of(offset))
                self._resumed = offset, state
            state = self._resumed[1]
        if state is None or end_of_log is None:
            return state
        return self._the_load().with_high_watermarks(state, offset, end_of_log)

    def begin_ahead(self, offset: Offset, most_bytes: int | None) -> None:
        """Start planning the next chunks, if there are any, while Spark does other work.

        Errors are raised when the chunks are requested.
        """
        state = self.at(offset)
        if state is not None and not state.is_done:
            self._the_load().plan_ahead(state, self._limits(most_bytes, self._max_sub_batches()))

    def step(
        self,
        tail: LogTail,
        state: SnapshotState,
        position: Position,
        most_bytes: int | None,
        target: Position | None,
    ) -> tuple[SnapshotState, BoundaryState | None]:
        """Return the state after a batch with the next chunks, and the end of its binlog part.

        Half of the limits is for the binlog, which must not lag during a snapshot of hours. So a
        batch with all the binlog that it may have, or in which tables change, is one sub-batch.

        position : where the batch begins.
        target : the boundary that the batch must not cross; None if there is none.
        """
        # If the binlog was replaced or belongs to another server, the stream must not continue.
        tail.buffer.wait(lambda: tail.compared)
        limits = self._limits(most_bytes)
        side_by_side = self._options.max_connections > 1
        may_have_log = side_by_side or bool(state.chunks)
        boundary = None
        while True:
            if may_have_log:
                boundary = tail.buffer.last_boundary_within(
                    position, limits.bytes, target, limits.rows
                )
            if boundary is None and tail.next_sequence is not None:
                # After all captured rows; the next sequence begins with a batch of its own.
                boundary = tail.buffer.advance_to_tip(until=target)
                if boundary is not None and boundary.position <= position:
                    # Nothing is left to deliver: an empty batch would end an AvailableNow run.
                    boundary = None
            elif boundary is None and tail.buffer.error is not None:
                raise tail.buffer.error
            followed = state
            if boundary is not None:
                followed = self.advanced(tail, state, position, boundary) or state
            if boundary is None or side_by_side:
                is_one = boundary is not None and (
                    # Events after the target are not for this run.
                    (
                        boundary.position != target
                        and tail.buffer.exceeds(position, limits.bytes, limits.rows)
                    )
                    or self.changes_tables(tail.buffer, position, boundary.position)
                )
                of_load = self._limits(most_bytes, 1 if is_one else self._max_sub_batches())
                # A keyless table that this batch adds is planned with the next batch, whose caller
                # has checked the end of the binlog.
                history = (boundary or tail.buffer.tip).history
                if self.reads_exactly(state, history) or not self.reads_exactly(followed, history):
                    planned = self._the_load().try_planned(followed, of_load)
                    if planned is not None:
                        return planned, boundary
            # Binlog rows do not wait for chunks; the chunks come with a later batch.
            may_have_log = True
            if boundary is not None:
                return followed, boundary

    def reads_exactly(self, state: SnapshotState, history: SchemaHistory) -> bool:
        """Whether a pending table without a key is read at an exact binlog position.

        That position must be in the batch's sequence of files.
        """
        if not self._options.snapshot_exact_keyless:
            return False
        schemas = (history.at(END_OF_SEQUENCE, *load.table) for load in state.pending)
        return any(schema is None or not schema.row_key for schema in schemas)

    def advanced(
        self, tail: LogTail, state: SnapshotState | None, start: Position, boundary: BoundaryState
    ) -> SnapshotState | None:
        """Return the state at a batch's end, after what the binlog contained."""
        if state is None and not self._options.reload_after_ddl:
            return None
        end = boundary.position
        return self._the_load().advanced(
            state,
            boundary.history,
            start,
            end,
            created=tail.created(start, end),
            renamed=tail.renamed(start, end),
        )

    def next_sequence(
        self, offset: Offset, begin: Position, end_of_log: Callable[[], Position]
    ) -> SnapshotState | None:
        """Return the state at the beginning of the next sequence of files, after an offset.

        For the options with which the offset was made: new options apply from the next batch.
        """
        state = offset.snapshot_state
        if self._load is None and state is None:
            return None
        load = self._the_load()
        return load.next_sequence(
            state and load.with_high_watermarks(state, offset, end_of_log), begin
        )

    def after_gap(
        self,
        state: SnapshotState | None,
        history: SchemaHistory,
        position: Position,
        *,
        reloads: bool,
    ) -> SnapshotState | None:
        """Return the state at a position before which a part of the binlog is lost, or None.

        reloads : whether all captured tables are read.
        """
        if state is None and not reloads:
            return None
        load = self._the_load()
        return load.after_gap(state or SnapshotState(), history, position, reloads=reloads)

    def changes_tables(self, buffer: LogBuffer, start: Position, end: Position) -> bool:
        """Whether tables change between two positions, or must be snapshotted again."""
        if buffer.has_changes(start, end):
            return True
        if not self._options.reload_after_ddl:
            return False
        unknown_rows = self._the_load().unknown_rows
        return unknown_rows is not None and bool(unknown_rows.between(start, end))

    def on_statement(self) -> OnStatement | None:
        """Return the callback for statements that change tables; None if there is none."""
        if not self._options.reload_after_ddl:
            return None
        unknown_rows = self._the_load().unknown_rows
        return None if unknown_rows is None else unknown_rows.note

    def tasks(self, last: Offset, most: int) -> Sequence[ChunkPartition]:
        """Return at most `most` tasks that read the chunks of the batch that ends there."""
        return self._the_load().tasks(last, most)

    def report(self) -> dict[str, Any] | None:
        """Return the snapshot's part of the query's progress."""
        return None if self._load is None else self._load.report()

    def close(self) -> None:
        """Close the connection."""
        if self._load is not None:
            self._load.close()

    def _limits(self, most_bytes: int | None, sub_batches: int = 1) -> BatchLimits:
        return self._the_load().limits(
            most_bytes, in_packets=self._in_packets, sub_batches=sub_batches
        )

    def _the_load(self) -> SnapshotCoordinator:
        if self._load is None:
            from pyspark_mysqlbinlog.connector.snapshot.coordinator import SnapshotCoordinator

            self._load = SnapshotCoordinator.of(
                self._options, case_sensitive=self._is_case_sensitive()
            )
        return self._load
