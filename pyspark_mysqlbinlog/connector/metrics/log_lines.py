"""Metrics as one log line for each query."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics, SourceMetrics

__all__ = ["duration_text", "line_of"]

_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def line_of(query: QueryMetrics) -> str:
    """Return one line; values that are not known or not of interest are left out."""
    return f"{query.query}: " + ", ".join(_parts(query))


def duration_text(seconds: float) -> str:
    """Return a duration in the unit that fits it."""
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _parts(query: QueryMetrics) -> Iterator[str]:
    if not query.is_active:
        yield "not running"
    elif query.lag_seconds is None:
        yield "lag unknown"
    else:
        yield f"lag {duration_text(query.lag_seconds)}"
    if query.source is not None:
        yield from _source_parts(query.source)
    yield f"{query.rows:,} rows in {query.batches.count:,} batches"
    if query.batches.last_seconds is not None:
        yield f"the last in {query.batches.last_seconds:.1f} s"
    if query.tables:
        yield f"{len(query.tables):,} tables"
    if query.stopped:
        names = [table.name for table in query.stopped]
        more = "" if len(names) == 1 else f" and {len(names) - 1:,} more"
        yield f"stopped: {names[0]}{more}"


def _source_parts(source: SourceMetrics) -> Iterator[str]:
    if source.lag_bytes:
        yield f"{source.lag_bytes:,} bytes in {(source.lag_files or 0) + 1:,} files to read"
    if source.seconds_until_purge is not None:
        yield f"purge in {duration_text(source.seconds_until_purge)}"
    if source.reconnects:
        yield f"reconnects: {source.reconnects:,}"
    if source.failovers:
        yield f"failovers: {source.failovers:,}"
    snapshot = source.snapshot
    if snapshot is not None and snapshot.tables_remaining:
        left = (
            ""
            if snapshot.seconds_left is None
            else f" ({duration_text(snapshot.seconds_left)} left)"
        )
        yield (
            f"snapshot of {snapshot.tables_remaining:,} tables with {snapshot.rows:,} rows so far"
            f"{left}"
        )
