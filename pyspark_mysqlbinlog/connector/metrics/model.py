"""The known values of one query at one moment, which all metrics, lines and pages show.

They are made by `watch` from the query's progress and the mirror's. None is a value that is not
known, or that does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["BatchTotals", "QueryMetrics", "SnapshotMetrics", "SourceMetrics", "TableMetrics"]


@dataclass(frozen=True, slots=True)
class SnapshotMetrics:
    """A query's snapshot, by the server's estimates.

    Attributes
    ----------
    tables_completed, tables_remaining : numbers of tables.
    rows : approximate rows read.
    seconds_left : estimated; None if unknown.
    """

    tables_completed: int
    tables_remaining: int
    rows: int
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """A query's source, at its last progress.

    Attributes
    ----------
    lag_bytes, lag_files : binlog between what is delivered and the server's end, and how many files
        begin there.
    seconds_until_purge, retention_left : see `latestOffset` in docs/reference/progress.md.
    reconnects, failovers : since the query's process started.
    file, pos : up to which the sink has everything.
    """

    lag_bytes: int | None = None
    lag_files: int | None = None
    seconds_until_purge: float | None = None
    retention_left: float | None = None
    reconnects: int = 0
    failovers: int = 0
    snapshot: SnapshotMetrics | None = None
    file: str = ""
    pos: int = 0


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """The batches of this process.

    Attributes
    ----------
    count, seconds : of all of them.
    last_seconds : of the last one; None before.
    """

    count: int = 0
    seconds: float = 0.0
    last_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TableMetrics:
    """One mirrored table, since this process started; see `TableProgress`.

    Attributes
    ----------
    rows_per_second : of the last seconds.
    commit_lag_seconds : of the last batch with changes of the table.
    stopped, change_log_stopped : why replication of the table or its change log stopped.
    """

    database: str
    table: str
    rows: int = 0
    bytes: int = 0
    rows_per_second: float = 0.0
    commit_lag_seconds: float | None = None
    in_snapshot: bool = False
    snapshot_rows: int = 0
    snapshot_rows_estimate: int | None = None
    stopped: str | None = None
    change_log_stopped: str | None = None

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def is_stopped(self) -> bool:
        """Whether the table or its change log is stopped."""
        return self.stopped is not None or self.change_log_stopped is not None


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """One query at one moment.

    Attributes
    ----------
    query : its name, or its identifier; with the number of the source if it has several.
    at : the moment, in seconds since 1970 UTC.
    is_active : whether it runs.
    lag_seconds : age of the oldest change that is not applied; 0 if there is none. See
        `Reading.lag_at`.
    source : None before the first progress.
    rows : changes and snapshot rows that were applied by this process.
    tables : of a mirror; empty for a stream.
    """

    query: str
    at: float
    is_active: bool = True
    lag_seconds: float | None = None
    source: SourceMetrics | None = None
    rows: int = 0
    batches: BatchTotals = field(default_factory=BatchTotals)
    tables: tuple[TableMetrics, ...] = ()

    @property
    def stopped(self) -> tuple[TableMetrics, ...]:
        """The tables that are stopped, or whose change log is."""
        return tuple(each for each in self.tables if each.is_stopped)
