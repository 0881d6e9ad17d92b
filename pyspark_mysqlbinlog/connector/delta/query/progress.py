"""Progress of a mirror, for display and monitoring.

Batches run on one of Spark's threads, and readers are on others. So progress is published as
immutable values: after each sub-batch there is a new `MirrorProgress`.

The lag is this machine's clock minus the server's, which each change has in whole seconds: it is up
to a second too large, and wrong by the difference of the two clocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic, time

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table

__all__ = [
    "BatchProgress",
    "BatchTracker",
    "MirrorProgress",
    "ProgressTracker",
    "TableBatch",
    "TableProgress",
    "recent_rates",
]


_LOG = logging.getLogger(__name__)
_KEPT_BATCHES = 100
# Seconds over which rates are measured.
_RATE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TableBatch:
    """One table's part of a batch.

    Attributes
    ----------
    rows : changes and snapshot rows that were applied.
    snapshot_rows : how many of them are snapshot rows.
    bytes : their size as Arrow.
    duration_seconds : time to apply them.
    lag : seconds from the newest change to its commit in Delta; None without changes.
    """

    rows: int
    snapshot_rows: int
    bytes: int
    duration_seconds: float
    lag: float | None

    @classmethod
    def of(cls, changes: pa.Table, new: int, seconds: float, images: int = 0) -> TableBatch:
        """Measure changes of which `new` were applied just now.

        images : bytes that belong to the changes but are stored separately.
        """
        if not new:
            return cls(0, 0, 0, seconds, None)
        is_loaded = pc.equal(changes.column("op"), "r")
        loaded = pc.sum(is_loaded).as_py()
        moments = changes.column("ts")
        newest = pc.max(moments.filter(pc.invert(is_loaded)) if loaded else moments).as_py()
        return cls(
            rows=new,
            snapshot_rows=min(loaded, new),
            bytes=changes.nbytes + images,
            duration_seconds=seconds,
            lag=None if newest is None else time() - newest.timestamp(),
        )

    def with_next(self, step: TableBatch) -> TableBatch:
        """Return the sum of this part and the next sub-batch's."""
        return TableBatch(
            self.rows + step.rows,
            self.snapshot_rows + step.snapshot_rows,
            self.bytes + step.bytes,
            self.duration_seconds + step.duration_seconds,
            self.lag if step.lag is None else step.lag,
        )


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One batch that was committed to Delta.

    Attributes
    ----------
    number : Spark's number of the batch.
    rows : changes and snapshot rows of the batch, including those that Delta already had.
    duration_seconds : time to read and apply the batch.
    committed_at : time of the last commit, in seconds since 1970 UTC.
    file, pos : position in the server's binlog up to which everything is in Delta.
    tables_in_snapshot : how many tables have a snapshot in progress or pending.
    tables : ``database.table`` -> its part, for tables with changes or rows.
    """

    number: int
    rows: int
    duration_seconds: float
    committed_at: float
    file: str
    pos: int
    tables_in_snapshot: int
    tables: Mapping[str, TableBatch]


@dataclass(frozen=True, slots=True)
class TableProgress:
    """One table, since this process started.

    Attributes
    ----------
    rows, bytes : changes and snapshot rows that were applied, and their size as Arrow.
    lag : lag of the last batch with changes of the table; see `TableBatch`.
    in_snapshot : whether the table's snapshot is in progress or pending.
    snapshot_rows : approximate rows of its snapshot so far, including those of earlier processes.
    snapshot_rows_estimate : the server's estimate of the table's rows at the beginning of the
        snapshot; None if unknown.
    stopped : why replication of the table stopped; None while it runs.
    """

    rows: int = 0
    bytes: int = 0
    lag: float | None = None
    in_snapshot: bool = False
    snapshot_rows: int = 0
    snapshot_rows_estimate: int | None = None
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class MirrorProgress:
    """Progress of a mirror since this process started.

    Attributes
    ----------
    tables : ``database.table`` -> its progress.
    batches : the last 100 batches, ascending.
    batch_count, batch_seconds : how many batches were committed, and the time that they took.
    """

    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    batches: tuple[BatchProgress, ...] = ()
    batch_count: int = 0
    batch_seconds: float = 0.0


def recent_rates(progress: MirrorProgress, now: float) -> dict[str, float]:
    """Return the recent rows per second of each table."""
    rows: dict[str, int] = {}
    since = now - _RATE_SECONDS
    for batch in progress.batches:
        if batch.committed_at > since:
            # A longer batch counts with all of its time.
            since = min(since, batch.committed_at - batch.duration_seconds)
            for name, part in batch.tables.items():
                rows[name] = rows.get(name, 0) + part.rows
    return {name: count / (now - since) for name, count in rows.items()}


class ProgressTracker:
    """Records a mirror's progress, batch by batch.

    Attributes
    ----------
    progress : after the last batch.
    """

    def __init__(self) -> None:
        self.progress = MirrorProgress()
        self._totals: dict[Table, int] = {}
        self._estimated: set[Table] = set()

    def begin(
        self, number: int, end: Offset, ask: Callable[[Collection[Table]], Mapping[Table, int]]
    ) -> BatchTracker:
        """Begin to record the batch that ends at an offset.

        ask : returns the estimated row counts of tables on the server.
        """
        load = end.snapshot_state or SnapshotState()
        pending = frozenset(each.table for each in load.pending)
        new = pending - self._estimated
        if new:
            # Queried once, even if that fails: a progress bar without a total does no harm.
            self._estimated |= new
            try:
                self._totals |= ask(new)
            except MySQLBinlogError as error:
                _LOG.info("cannot estimate the rows of the snapshot: %s", error.message)
        return BatchTracker(self, number, end, pending)

    def total(self, table: Table) -> int | None:
        """Return the estimated rows of a table when its snapshot began."""
        return self._totals.get(table)


class BatchTracker:
    """Records one batch while it is applied."""

    def __init__(
        self, recorder: ProgressTracker, number: int, end: Offset, pending: frozenset[Table]
    ) -> None:
        self._recorder = recorder
        self._number, self._end, self._waiting = number, end, pending
        self._tables = dict(recorder.progress.tables)
        self._were_in_snapshot = {name for name, each in self._tables.items() if each.in_snapshot}
        self._parts: dict[str, TableBatch] = {}
        self._rows = 0
        self._began = monotonic()

    def add(
        self,
        table: Table,
        changes: pa.Table,
        new: int,
        seconds: float,
        held: Callable[[], int],
        *,
        images: int = 0,
    ) -> None:
        """Record one table's changes of a sub-batch, of which `new` were applied.

        held : returns the row count of the Delta table.
        images : bytes that belong to the changes but are stored separately.
        """
        name = ".".join(table)
        part = TableBatch.of(changes, new, seconds, images)
        known = self._tables.get(name)
        before = known or TableProgress()
        in_snapshot = table in self._waiting
        if (in_snapshot or part.snapshot_rows) and not before.in_snapshot:
            # An earlier process's snapshot rows are in Delta. After a reload they cannot be
            # separated from the other rows.
            is_resumed = known is None and self._number and not self._reloads
            before = replace(before, snapshot_rows=held() - part.snapshot_rows if is_resumed else 0)
        self._tables[name] = replace(
            before,
            rows=before.rows + part.rows,
            bytes=before.bytes + part.bytes,
            lag=before.lag if part.lag is None else part.lag,
            in_snapshot=in_snapshot,
            snapshot_rows=before.snapshot_rows + part.snapshot_rows,
            snapshot_rows_estimate=self._recorder.total(table),
        )
        self._rows += changes.num_rows
        if changes.num_rows:
            known_part = self._parts.get(name)
            self._parts[name] = part if known_part is None else known_part.with_next(part)

    @property
    def _reloads(self) -> bool:
        return self._end.snapshot_state is not None and bool(self._end.snapshot_state.reload)

    @property
    def size(self) -> int:
        """Applied bytes, as Arrow."""
        return sum(part.bytes for part in self._parts.values())

    def end_step(self, stopped: Mapping[str, str]) -> None:
        """Publish the progress: a sub-batch is in Delta."""
        self._recorder.progress = replace(
            self._recorder.progress, tables=self._tables_with(stopped)
        )

    def end(self, stopped: Mapping[str, str]) -> None:
        """Publish the progress: the batch is in Delta."""
        batch = BatchProgress(
            number=self._number,
            rows=self._rows,
            duration_seconds=monotonic() - self._began,
            committed_at=time(),
            file=self._end.position.file,
            pos=self._end.position.pos,
            tables_in_snapshot=len(self._waiting),
            tables=self._parts,
        )
        before = self._recorder.progress
        self._recorder.progress = MirrorProgress(
            self._tables_with(stopped),
            (*before.batches, batch)[-_KEPT_BATCHES:],
            before.batch_count + 1,
            before.batch_seconds + batch.duration_seconds,
        )
        self._log_completed(stopped)

    def _log_completed(self, stopped: Mapping[str, str]) -> None:
        """Log one line for all snapshots that ended with this batch: there may be hundreds."""
        read = {name for name, part in self._parts.items() if part.snapshot_rows}
        ended = {
            name
            for name in read | self._were_in_snapshot
            if not self._tables[name].in_snapshot and name not in stopped
        }
        if ended:
            what = min(ended) if len(ended) == 1 else f"{len(ended)} tables"
            _LOG.info("snapshot of %s completed, %d remaining", what, len(self._waiting))

    def _tables_with(self, stopped: Mapping[str, str]) -> dict[str, TableProgress]:
        return {
            name: replace(table, stopped=stopped.get(name)) for name, table in self._tables.items()
        }
