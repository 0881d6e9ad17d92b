"""All metrics, in one table: name, kind, meaning, and the value in a `QueryMetrics`.

Prometheus, OpenTelemetry, the documentation, the dashboard and the alert rules have these and no
others. Names follow Prometheus' conventions: base units, `_total` for counters. Labels are names of
queries and tables only, never texts or positions, and tables after the first 1,000 share one value:
so the number of series is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark_mysqlbinlog.connector.metrics.model import (
    QueryMetrics,
    SnapshotMetrics,
    SourceMetrics,
    TableMetrics,
)

__all__ = ["FAMILIES", "MAX_TABLES", "OTHERS", "Family", "Kind", "Samples"]

MAX_TABLES = 1_000
# The label of the tables after the first ones, both as database and as table.
OTHERS = "*"
QUERY_LABELS = ("query",)
TABLE_LABELS = ("query", "database", "table")

Kind = Literal["gauge", "counter"]
# Label values -> value.
Samples = Mapping[tuple[str, ...], float]
Number = float | None


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes
    ----------
    name : in Prometheus; that of a counter ends with `_total`.
    unit : of the value; empty for counts.
    values : yields label values and the value, for one query.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    values: Callable[[QueryMetrics], Iterator[tuple[tuple[str, ...], float]]]

    def samples(self, queries: Iterable[QueryMetrics]) -> Samples:
        """Return the values of all queries."""
        return {labels: value for query in queries for labels, value in self.values(query)}


def _query(
    name: str, kind: Kind, unit: str, meaning: str, value: Callable[[QueryMetrics], Number]
) -> Family:
    def values(query: QueryMetrics) -> Iterator[tuple[tuple[str, ...], float]]:
        found = value(query)
        if found is not None:
            yield (query.query,), found

    return Family(f"mysqlbinlog_{name}", kind, unit, meaning, QUERY_LABELS, values)


def _source(
    name: str, kind: Kind, unit: str, meaning: str, value: Callable[[SourceMetrics], Number]
) -> Family:
    return _query(
        name,
        kind,
        unit,
        meaning,
        lambda query: None if query.source is None else value(query.source),
    )


def _snapshot(
    name: str, unit: str, meaning: str, value: Callable[[SnapshotMetrics], Number]
) -> Family:
    return _source(
        f"snapshot_{name}",
        "gauge",
        unit,
        meaning,
        lambda source: None if source.snapshot is None else value(source.snapshot),
    )


def _table(
    name: str,
    kind: Kind,
    unit: str,
    meaning: str,
    value: Callable[[TableMetrics], Number],
    *,
    together: Callable[[Iterable[float]], float] = sum,
) -> Family:
    """Return a metric of each table.

    together : combines the values of the tables after the first MAX_TABLES.
    """

    def values(query: QueryMetrics) -> Iterator[tuple[tuple[str, ...], float]]:
        others = []
        for number, table in enumerate(query.tables):
            found = value(table)
            if found is None:
                continue
            if number < MAX_TABLES:
                yield (query.query, table.database, table.table), found
            else:
                others.append(found)
        if others:
            yield (query.query, OTHERS, OTHERS), together(others)

    return Family(f"mysqlbinlog_table_{name}", kind, unit, meaning, TABLE_LABELS, values)


FAMILIES = (
    _query("query_active", "gauge", "", "1 while the query runs.", lambda it: it.is_active),
    _query(
        "lag_seconds",
        "gauge",
        "s",
        "Age of the oldest change that is not applied; 0 if everything is applied.",
        lambda it: it.lag_seconds,
    ),
    _source(
        "lag_bytes",
        "gauge",
        "By",
        "Binlog from what was delivered to the server's end, when the last batch was planned.",
        lambda it: it.lag_bytes,
    ),
    _source(
        "lag_files",
        "gauge",
        "",
        "Binlog files that begin in that part of the binlog.",
        lambda it: it.lag_files,
    ),
    _source(
        "purge_in_seconds",
        "gauge",
        "s",
        "Time until the server may purge a binlog file that the query needs.",
        lambda it: it.seconds_until_purge,
    ),
    _source(
        "retention_left_ratio",
        "gauge",
        "1",
        "Part of the server's retention that is left for that file, from 1 to 0.",
        lambda it: it.retention_left,
    ),
    _source(
        "reconnects_total",
        "counter",
        "",
        "Lost connections to the server that were restored.",
        lambda it: it.reconnects,
    ),
    _source(
        "failovers_total",
        "counter",
        "",
        "How often the query continued on another server.",
        lambda it: it.failovers,
    ),
    _query(
        "rows_total",
        "counter",
        "",
        "Changes and snapshot rows that were applied.",
        lambda it: it.rows,
    ),
    _query("batches_total", "counter", "", "Batches.", lambda it: it.batches.count),
    _query(
        "batch_duration_seconds_total",
        "counter",
        "s",
        "Time that all batches took.",
        lambda it: it.batches.seconds,
    ),
    _query(
        "last_batch_duration_seconds",
        "gauge",
        "s",
        "Time that the last batch took.",
        lambda it: it.batches.last_seconds,
    ),
    _snapshot(
        "tables_completed",
        "",
        "Tables whose snapshot is complete.",
        lambda it: it.tables_completed,
    ),
    _snapshot(
        "tables_remaining",
        "",
        "Tables whose snapshot is in progress or pending.",
        lambda it: it.tables_remaining,
    ),
    _snapshot("rows", "", "Approximate rows read by the snapshot.", lambda it: it.rows),
    _snapshot(
        "remaining_seconds",
        "s",
        "Time left for the snapshot, by the server's estimate of its rows.",
        lambda it: it.seconds_left,
    ),
    _query("tables", "gauge", "", "Tables of the mirror.", lambda it: len(it.tables) or None),
    _query(
        "tables_stopped",
        "gauge",
        "",
        "Tables of the mirror that are stopped, or whose change log is.",
        lambda it: len(it.stopped) if it.tables else None,
    ),
    _table(
        "rows_total",
        "counter",
        "",
        "Changes and snapshot rows of the table that were applied.",
        lambda it: it.rows,
    ),
    _table("bytes_total", "counter", "By", "Their size as Arrow.", lambda it: it.bytes),
    _table(
        "commit_lag_seconds",
        "gauge",
        "s",
        "From the newest change of the table's last batch to its commit in Delta.",
        lambda it: it.commit_lag_seconds,
        together=max,
    ),
    _table(
        "stopped",
        "gauge",
        "",
        "1 if replication of the table, or of its change log, is stopped.",
        lambda it: it.is_stopped,
    ),
    _table(
        "snapshot_rows",
        "gauge",
        "",
        "Approximate rows of the table's snapshot so far, while it is in progress or pending.",
        lambda it: it.snapshot_rows if it.in_snapshot else None,
    ),
    _table(
        "snapshot_rows_estimate",
        "gauge",
        "",
        "The server's estimate of the table's rows when its snapshot began.",
        lambda it: it.snapshot_rows_estimate if it.in_snapshot else None,
    ),
)
