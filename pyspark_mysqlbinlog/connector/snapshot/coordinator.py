"""The snapshot of one stream, as its driver follows it from batch to batch.

Only the offsets record what a snapshot has done. This module returns the state that the next offset
stores, and the tasks of a batch with a given end, planned by this process or by an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import UNKNOWN_END, SnapshotState
from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.options.checks import check_condition_tables
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.delivered_columns import DeliveredColumns
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import engine_of, is_innodb
from pyspark_mysqlbinlog.connector.snapshot.planning.invalidated_tables import InvalidatedTables
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits, ChunkPlanner
from pyspark_mysqlbinlog.connector.snapshot.planning.table_set import (
    advance,
    after_gap,
    altered_tables,
    check_conditions,
    follow_options,
    next_sequence,
    record_high_watermark,
    reload_tables,
    with_tables_read,
    without_snapshot,
)
from pyspark_mysqlbinlog.connector.snapshot.progress import SnapshotProgress
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.snapshot.tasks import chunk_tasks
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import VisibilityChecker
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["SnapshotCoordinator"]


# Seconds that binlog changes wait for the chunks of their batch: a visibility check may take
# minutes.
_PLANNING_SECONDS = 2.0
# A sink of IPC messages holds a batch in memory. A snapshot row takes a quarter of the memory of a
# change: it has one image, and its size is the server's estimate, which includes partly empty
# pages.
_WEIGHT_IN_PACKETS = 0.25


class _VisibilityChecks:
    """Waits until everything in the binlog is visible in a table; queries grants once."""

    def __init__(self, options: Options, *, case_sensitive: bool) -> None:
        self._options = options
        self._case_sensitive = case_sensitive
        self._checker: VisibilityChecker | None = None

    def begin(self) -> Callable[[ReplicaClient, Table], None]:
        """Return a function that waits until the current binlog is visible in a table.

        A check of an InnoDB table that inspects all transactions is valid for the other tables too.
        """
        # Whether a check was valid for every InnoDB table, so that they need no other.
        is_proven = False

        def wait_until_visible(client: ReplicaClient, table: Table) -> None:
            nonlocal is_proven
            engine = engine_of(client, table)
            if engine is None:
                return  # it does not exist
            if is_proven and is_innodb(engine):
                return
            is_proven = self._prove(client, table, engine).of_all_tables or is_proven

        return wait_until_visible

    def _prove(self, client: ReplicaClient, table: Table, engine: str) -> Watermark:
        if self._checker is None:
            requested = self._options.snapshot_visibility_check
            self._checker = VisibilityChecker.ask(
                client, requested, case_sensitive=self._case_sensitive
            )
        connect = partial(ReplicaClient.connect, self._options.server_settings())
        watermark = self._checker.wait_until_visible(client, connect, table, engine)
        LOGGER.info("snapshot of %s: visibility check %s", ".".join(table), watermark.proof)
        return watermark


class SnapshotCoordinator:
    """One query's snapshot, in one process.

    Parameters
    ----------
    planner : finds chunks on the server.

    Attributes
    ----------
    unknown_rows : records statements that make rows unknown; None unless tables are reloaded
        automatically.
    """

    def __init__(self, options: Options, planner: ChunkPlanner, *, case_sensitive: bool) -> None:
        self._options = options
        self._planner = planner
        self._case_sensitive = case_sensitive
        self._tables = options.table_filter(case_sensitive)
        check_condition_tables(options, case_sensitive)
        self._progress = SnapshotProgress()
        self._noted: tuple[Offset, SnapshotState, SnapshotState] | None = None
        self.unknown_rows: InvalidatedTables | None = None
        if options.reload_after_ddl:
            delivered = DeliveredColumns.of(options, case_sensitive=case_sensitive)
            self.unknown_rows = InvalidatedTables(
                self._tables.captures, delivered.renamed, case_sensitive=case_sensitive
            )

    @classmethod
    def of(cls, options: Options, *, case_sensitive: bool) -> SnapshotCoordinator:
        """Create a coordinator for these options, with a planner that connects on first use."""
        transforms = options.transforms(case_sensitive)
        planner = ChunkPlanner(
            options.server_settings(),
            begin_checks=_VisibilityChecks(options, case_sensitive=case_sensitive).begin,
            case_sensitive=case_sensitive,
            chunk_bytes=options.target_partition_bytes,
            retry_timeout=options.retry_timeout,
            hides=None if transforms is None else transforms.hides,
        )
        return cls(options, planner, case_sensitive=case_sensitive)

    def resume(
        self, offset: Offset, history_of: Callable[[], SchemaHistory]
    ) -> SnapshotState | None:
        """Return an offset's snapshot state for the current options; None if there is no snapshot.

        history_of : returns the history with the tables captured now; it may query the server.
        """
        state, options = offset.snapshot_state, self._options
        position, captures = offset.position, self._tables.captures
        if state is not None and offset.tables != options.table_filter_hash:
            state = follow_options(state, history_of(), position, captures)
        if options.reload is None or (state is not None and state.reload == options.reload[0]):
            return state
        name, tables = options.reload
        history = history_of()
        conditions = options.conditions(self._case_sensitive)
        check_conditions(
            conditions,
            history,
            position,
            case_sensitive=self._case_sensitive,
            exists=self._exists,
        )
        if state is None:
            state = without_snapshot(history, position, captures)
        again = options.reload_filter(self._case_sensitive)
        state = reload_tables(
            state,
            name,
            history,
            position,
            lambda *table: captures(*table) and again.captures(*table),
        )
        LOGGER.info("reload %r: %s are snapshotted again", name, tables)
        return state

    def _exists(self, table: Table) -> bool:
        """Whether the server has a table that the history at an offset does not contain yet."""

        def ask() -> bool:
            with ReplicaClient.connect(self._options.server_settings()) as client:
                return engine_of(client, table) is not None

        return call_with_retry(self._options.retry_timeout, ask)

    def advanced(
        self,
        state: SnapshotState | None,
        history: SchemaHistory,
        start: Position,
        position: Position,
        *,
        created: Collection[Table],
        renamed: Collection[Table],
    ) -> SnapshotState | None:
        """Return the state at a batch's end, after its binlog, or None; see `advance`.

        start, position : of the batch.
        created, renamed : tables that got their names in it.
        """
        captures = self._tables.captures
        if any(captures(*table) for table in renamed):
            self._planner.forget()
        if self.unknown_rows is None:
            if state is None:
                return None
            followed = advance(state, history, position, captures, created=created, unknown=renamed)
            if not self._options.can_fail_over:
                return followed
            # A mirror may read the rest of such a table again (snapshotWhere).
            again = dict.fromkeys(altered_tables(state, history, start, position), UNKNOWN_END)
            return replace(followed, high_watermarks={**followed.high_watermarks, **again})
        altered = altered_tables(state or SnapshotState(), history, start, position)
        # An invalidating statement outweighs an ALTER during the reads.
        lost = {
            table: at
            for table, at in {**altered, **self.unknown_rows.between(start, position)}.items()
            if captures(*table)
        }
        if state is None and not lost and not any(captures(*table) for table in renamed):
            return None
        state = state or without_snapshot(history, position, captures)
        if lost:
            self._planner.forget()
        for table in sorted(lost):
            LOGGER.info("%s.%s is snapshotted again: a statement made its rows unknown", *table)
        pending = {load.table for load in state.pending}
        kept = {table: place for table, place in state.invalidated_at.items() if table in pending}
        kept |= {table: (at.number, at.pos) for table, at in lost.items()}
        followed = advance(
            state, history, position, captures, created=created, unknown={*lost, *renamed}
        )
        return replace(followed, invalidated_at=kept)

    def next_sequence(self, state: SnapshotState | None, begin: Position) -> SnapshotState | None:
        """Return the state at the beginning of the next sequence of files, or None."""
        if self.unknown_rows is not None:
            self.unknown_rows.forget()
        return None if state is None else next_sequence(state, begin)

    def after_gap(
        self,
        state: SnapshotState,
        history: SchemaHistory,
        position: Position,
        *,
        reloads: bool,
    ) -> SnapshotState:
        """Return the state at a position before which a part of the binlog is lost."""
        self._planner.forget()
        if self.unknown_rows is not None:
            self.unknown_rows.forget()
        after = after_gap(state, history, position, self._tables.captures, reloads=reloads)
        if not self._options.can_fail_over:
            return after
        ahead = after.completed.intersection(state.read_ahead_of(BEGINNING.order))
        return replace(after, high_watermarks=dict.fromkeys(ahead, UNKNOWN_END))

    def with_high_watermarks(
        self, state: SnapshotState, offset: Offset, end_of_log: Callable[[], Position]
    ) -> SnapshotState:
        """Return the state at an offset, with the binlog end that its chunks may have seen."""
        is_needed = self.unknown_rows is not None or self._options.can_fail_over
        if not is_needed or not (state.chunks or state.high_watermarks):
            return state
        if self._noted is None or self._noted[:2] != (offset, state):
            has_read = state.chunks or UNKNOWN_END in state.high_watermarks.values()
            end = end_of_log() if has_read else offset.position
            self._noted = offset, state, record_high_watermark(state, offset.position, end)
        return self._noted[2]

    def limits(
        self, most_bytes: int | None, *, in_packets: bool = False, sub_batches: int = 1
    ) -> BatchLimits:
        """Return a batch's limits, half for the binlog and half for the tables; None is unlimited.

        in_packets : whether the batch is read as IPC messages.
        sub_batches : the number of sub-batches, each with the bytes that a batch may read of the
            tables.
        """
        options = self._options
        rows = None if most_bytes is None else options.max_rows_per_trigger
        weight = _WEIGHT_IN_PACKETS if in_packets else 1.0
        return BatchLimits.of(
            rows, most_bytes, options.max_connections, weight=weight, sub_batches=sub_batches
        )

    def planned(self, state: SnapshotState, limits: BatchLimits) -> SnapshotState:
        """Return the state at the end of a batch that reads the next chunks; may take long."""
        while True:
            planned = self.try_planned(state, limits)
            if planned is not None:
                return planned

    def try_planned(self, state: SnapshotState, limits: BatchLimits) -> SnapshotState | None:
        """Like `planned`, but return None if planning takes long; then call it again."""
        until, lost = state.high_watermarks, state.invalidated_at
        planned = self._planner.next_batch(
            _without_places(state), limits, patience=_PLANNING_SECONDS
        )
        if planned is None:
            return None
        planned = replace(planned, high_watermarks=until, invalidated_at=lost)
        if self._options.can_fail_over:
            planned = with_tables_read(state, planned)
        self._progress.planned(planned, self._planner.sizes)
        if planned.is_done:
            self._planner.close()
        return planned

    def plan_ahead(self, state: SnapshotState, limits: BatchLimits) -> None:
        """Start planning the batch that `planned` will return."""
        self._planner.plan_ahead(_without_places(state), limits)

    def tasks(self, last: Offset, most: int) -> list[ChunkPartition]:
        """Return at most `most` tasks that read the chunks of the batch that ends there."""
        return chunk_tasks(self._options, last, most, case_sensitive=self._case_sensitive)

    def report(self) -> dict[str, Any] | None:
        """Return the snapshot's part of the query's progress."""
        return self._progress.report()

    def close(self) -> None:
        """Close the connection."""
        self._planner.close()


def _without_places(state: SnapshotState) -> SnapshotState:
    """Remove positions, so that a batch planned ahead stays valid while the binlog grows."""
    return replace(state, high_watermarks={}, invalidated_at={})
