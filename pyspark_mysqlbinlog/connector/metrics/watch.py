"""Observes a query, and returns what is known of it at a moment.

Only `observe` queries Spark, from one thread. Everything else is answered from memory, so a client
that requests metrics cannot slow the query down.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from threading import Lock
from time import time
from typing import Any, Protocol

from pyspark_mysqlbinlog.connector.delta.query.progress import (
    MirrorProgress,
    TableProgress,
    recent_rates,
)
from pyspark_mysqlbinlog.connector.metrics.model import BatchTotals, QueryMetrics, TableMetrics
from pyspark_mysqlbinlog.connector.metrics.reading import Reading, readings

__all__ = ["Query", "QueryWatch", "WatchedMirror"]

_PLANNING = "Getting offsets"
_CHANGE_LOG = "the change log of "


class Query(Protocol):
    """The members of a StreamingQuery that are used here."""

    @property
    def id(self) -> Any: ...

    @property
    def name(self) -> str | None: ...

    @property
    def isActive(self) -> bool: ...  # noqa: N802 (PySpark's name)

    @property
    def lastProgress(self) -> Any: ...  # noqa: N802 (PySpark's name)

    @property
    def status(self) -> Mapping[str, Any]: ...


class WatchedMirror(Protocol):
    """The members of a DeltaMirror that are used here."""

    @property
    def progress(self) -> MirrorProgress: ...

    @property
    def stopped(self) -> Mapping[str, str]: ...


class QueryWatch:
    """One query, and its mirror if it is a mirror's.

    Parameters
    ----------
    name : of the query, in metrics.
    mirror : None for a stream.
    """

    def __init__(self, name: str, mirror: WatchedMirror | None = None) -> None:
        self.name = name
        self.mirror = mirror
        self._lock = Lock()
        self._readings: tuple[Reading, ...] = ()
        # The rows of each source, and the totals of the batches that were added.
        self._rows: dict[int, int] = {}
        self._batches = BatchTotals()
        self._last_counted = -1
        self._is_active = True
        self._is_running = False

    def observe(self, query: Query) -> None:
        """Query Spark for the query's state and last progress."""
        progress = query.lastProgress
        if progress is not None:
            self._note(tuple(readings(json.loads(progress.json))))
        status = query.status
        self._is_running = bool(
            status["isTriggerActive"]
            and status["isDataAvailable"]
            # While Spark plans, isDataAvailable still belongs to the batch before.
            and not status["message"].startswith(_PLANNING)
        )
        self._is_active = bool(query.isActive)

    def add(self, progress: Mapping[str, Any]) -> None:
        """Take one event of the query's progress, and count its batch."""
        found = tuple(readings(progress))
        self._note(found)
        with self._lock:
            for number, each in enumerate(found):
                if each.batch_seconds is not None and each.number > self._last_counted:
                    self._rows[number] = self._rows.get(number, 0) + each.rows
            if found and found[0].batch_seconds is not None:
                self._count(found[0].number, found[0].batch_seconds)

    def _count(self, number: int, seconds: float) -> None:
        if number > self._last_counted:
            self._last_counted = number
            before = self._batches
            self._batches = BatchTotals(before.count + 1, before.seconds + seconds, seconds)

    def end(self) -> None:
        """Record that the query has ended."""
        self._is_active = self._is_running = False

    def _note(self, found: tuple[Reading, ...]) -> None:
        with self._lock:
            # Progress events arrive later than the progress that Spark returns.
            if found and (not self._readings or found[0].at >= self._readings[0].at):
                self._readings = found

    def metrics(self, now: float | None = None) -> tuple[QueryMetrics, ...]:
        """Return what is known now, for each of the query's sources of this package."""
        at = time() if now is None else now
        with self._lock:
            found, rows, batches = self._readings, dict(self._rows), self._batches
        if self.mirror is not None:
            return (self._of_mirror(self.mirror, found[0] if found else None, at),)
        return tuple(
            QueryMetrics(
                query=self.name if len(found) == 1 else f"{self.name}/{number + 1}",
                at=at,
                is_active=self._is_active,
                lag_seconds=self._lag(each, at),
                source=each.source,
                rows=rows.get(number, 0),
                batches=batches,
            )
            for number, each in enumerate(found)
        )

    def _of_mirror(self, mirror: WatchedMirror, found: Reading | None, at: float) -> QueryMetrics:
        progress = mirror.progress
        tables = tuple(_tables(progress, mirror.stopped, at))
        last = progress.batches[-1] if progress.batches else None
        return QueryMetrics(
            query=self.name,
            at=at,
            is_active=self._is_active,
            lag_seconds=None if found is None else self._lag(found, at),
            source=None if found is None else found.source,
            rows=sum(each.rows for each in tables),
            batches=BatchTotals(
                progress.batch_count,
                progress.batch_seconds,
                None if last is None else last.duration_seconds,
            ),
            tables=tables,
        )

    def _lag(self, reading: Reading, at: float) -> float | None:
        return reading.lag_at(at, is_running=self._is_running) if self._is_active else None


def _tables(
    progress: MirrorProgress, stopped: Mapping[str, str], at: float
) -> Iterator[TableMetrics]:
    rates = recent_rates(progress, at)
    logs = {
        name.removeprefix(_CHANGE_LOG): reason
        for name, reason in stopped.items()
        if name.startswith(_CHANGE_LOG)
    }
    others = (name for name in stopped if not name.startswith(_CHANGE_LOG))
    # Tables in the order in which they were first seen.
    for name in dict.fromkeys([*progress.tables, *others, *logs]):
        each = progress.tables.get(name, TableProgress())
        database, _, table = name.partition(".")
        yield TableMetrics(
            database,
            table,
            rows=each.rows,
            bytes=each.bytes,
            rows_per_second=rates.get(name, 0.0),
            commit_lag_seconds=each.lag,
            in_snapshot=each.in_snapshot,
            snapshot_rows=each.snapshot_rows,
            snapshot_rows_estimate=each.snapshot_rows_estimate,
            stopped=stopped.get(name),
            change_log_stopped=logs.get(name),
        )
