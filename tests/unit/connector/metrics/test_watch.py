"""The state of a query at a given time, above all its lag, from its last progress."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.tools.metrics import NOW, FakeQuery, progress, source
from pyspark_mysqlbinlog.connector.delta.query.progress import (
    BatchProgress,
    MirrorProgress,
    TableBatch,
    TableProgress,
)
from pyspark_mysqlbinlog.connector.metrics.model import BatchTotals, QueryMetrics, SnapshotMetrics
from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch

AHEAD = ("bin.000008", 300)
BEFORE_END = ("bin.000007", 4000)


def observed(query: FakeQuery, at: float) -> QueryMetrics:
    watch = QueryWatch("q")
    watch.observe(query)
    (found,) = watch.metrics(at)
    return found


@pytest.mark.parametrize(
    ("reported", "runs", "seconds_later", "lag"),
    [
        # Idle, and everything was applied at the last progress.
        (source(0), False, 0, 0.0),
        (source(0), False, 30, 0.0),
        # Only tables that are not captured changed.
        (source(0, server=AHEAD), False, 30, 0.0),
        # The last progress is too old.
        (source(0), False, 61, None),
        # The running batch may have events since the progress.
        (source(0), True, 5, 5.0),
        (source(0), True, 500, 500.0),
        # The batch of this progress applied everything, and no batch runs.
        (source(7), False, 3, 0.0),
        (source(7), False, 61, None),
        # The running batch may have events since the progress, or since the end was observed.
        (source(7), True, 3, 3.0),
        (source(7, observed_at=NOW - 4), True, 3, 7.0),
        # The server had more events than were applied.
        (source(7, end=BEFORE_END), False, 3, 10.0),
        (source(7, end=BEFORE_END), True, 3, 10.0),
        (source(7, server=AHEAD), False, 300, 307.0),
        # The end of the server's binlog is not known.
        (source(None, server=None), False, 1, None),
        (source(None, server=None), True, 1, None),
    ],
)
def test_lag_is_computed_from_last_progress_and_query_state(
    reported: dict[str, Any], runs: bool, seconds_later: float, lag: float | None
) -> None:
    query = FakeQuery()
    query.has(progress(reported))
    if runs:
        query.runs()
    assert observed(query, NOW + seconds_later).lag_seconds == lag


def test_idle_query_that_is_getting_offsets_has_zero_lag() -> None:
    query = FakeQuery()
    query.has(progress(source(0)))
    query.runs("Getting offsets from MySQLBinlog")
    assert observed(query, NOW + 5).lag_seconds == 0


def test_ended_query_is_inactive_with_unknown_lag() -> None:
    query = FakeQuery()
    query.has(progress(source(7, end=BEFORE_END)))
    query.isActive = False
    found = observed(query, NOW)
    assert not found.is_active
    assert found.lag_seconds is None


def test_clock_set_back_gives_zero_lag() -> None:
    query = FakeQuery()
    query.has(progress(source(0)))
    query.runs()
    assert observed(query, NOW - 100).lag_seconds == 0


def test_query_without_progress_of_a_binlog_source_has_no_metrics() -> None:
    watch = QueryWatch("q")
    watch.observe(FakeQuery())
    assert watch.metrics() == ()
    watch.add(progress({"latestOffset": "7", "endOffset": "7", "numInputRows": 3}, batch_ms=5))
    assert watch.metrics() == ()


def test_source_metrics_are_read_from_query_progress() -> None:
    snapshot = {
        "tables_completed": 1,
        "tables_remaining": 2,
        "rows_read": 300,
        "rows_per_second": None,
        "estimated_seconds_left": None,
    }
    watch = QueryWatch("q")
    latest: dict[str, Any] = {
        "retention_left": 0.5,
        "seconds_until_purge": 43200,
        "reconnects": 2,
        "failovers": 1,
    }
    watch.add(progress(source(3, snapshot=snapshot, **latest)))
    (found,) = watch.metrics(NOW)
    assert found.source is not None
    assert (found.source.lag_bytes, found.source.lag_files) == (300, 0)
    assert (found.source.retention_left, found.source.seconds_until_purge) == (0.5, 43200)
    assert (found.source.reconnects, found.source.failovers) == (2, 1)
    assert found.source.snapshot == SnapshotMetrics(1, 2, 300, None)
    assert (found.source.file, found.source.pos) == ("bin.000007", 4711)


def test_batch_reported_by_two_progresses_is_counted_once() -> None:
    watch = QueryWatch("q")
    for number, rows, took in ((0, 0, 100), (1, 5, 200), (1, 5, 200), (2, 7, 400)):
        watch.add(progress(source(rows=rows), number=number, batch_ms=took))
    watch.add(progress(source(), number=3))
    (found,) = watch.metrics(NOW)
    assert found.rows == 12
    assert found.batches == BatchTotals(3, 0.1 + 0.2 + 0.4, 0.4)


def test_an_older_progress_does_not_replace_a_newer_one() -> None:
    watch, query = QueryWatch("q"), FakeQuery()
    query.has(progress(source(0), number=2, at=NOW + 10))
    watch.observe(query)
    watch.add(progress(source(9, rows=4, end=BEFORE_END), batch_ms=7, at=NOW))
    (found,) = watch.metrics(NOW + 11)
    assert (found.lag_seconds, found.rows) == (0, 4)


def test_two_binlog_sources_of_a_query_have_separate_metrics() -> None:
    watch = QueryWatch("q")
    other = {"latestOffset": None, "endOffset": "7", "numInputRows": 100}
    sources = (source(0, rows=1), other, source(9, end=BEFORE_END, rows=2))
    watch.add(progress(*sources, batch_ms=7))
    found = watch.metrics(NOW)
    assert [(each.query, each.rows, each.lag_seconds) for each in found] == [
        ("q/1", 1, 0),
        ("q/2", 2, 9),
    ]


def test_mirror_metrics_have_tables_and_stop_reasons() -> None:
    tables = {
        "shop.orders": TableProgress(30, 300, 1.5, True, 20, 40),
        "shop.a.b": TableProgress(stopped="no key"),
    }
    part = {"shop.orders": TableBatch(30, 20, 300, 1.0, 1.5)}
    batch = BatchProgress(4, 30, 2.0, NOW - 1, "bin.000007", 4711, 1, part)
    mirror = SimpleNamespace(
        progress=MirrorProgress(tables, (batch,), 5, 10.0),
        stopped={
            "shop.a.b": "no key",
            "the change log of shop.orders": "a gap",
            "shop.unopened": "damaged",
        },
    )
    (found,) = QueryWatch("q", mirror).metrics(NOW)
    orders, other, unopened = found.tables
    assert (orders.database, orders.table, orders.rows, orders.bytes) == ("shop", "orders", 30, 300)
    assert orders.rows_per_second == 3.0
    assert (orders.commit_lag_seconds, orders.in_snapshot) == (1.5, True)
    assert (orders.snapshot_rows, orders.snapshot_rows_estimate) == (20, 40)
    assert (orders.stopped, orders.change_log_stopped) == (None, "a gap")
    assert (other.database, other.table, other.stopped) == ("shop", "a.b", "no key")
    assert (unopened.name, unopened.stopped) == ("shop.unopened", "damaged")
    assert found.stopped == (orders, other, unopened)
    assert found.rows == 30
    assert found.batches == BatchTotals(5, 10.0, 2.0)
    # Nothing is known of the source yet.
    assert (found.source, found.lag_seconds) == (None, None)
