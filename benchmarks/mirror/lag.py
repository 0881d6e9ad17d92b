"""Time from commit to visibility in Delta: a mirror of small transactions at a constant rate.

The writer records when each commit returned. A transaction is visible when the first batch that
ends after its position in the binlog is in Delta; its position is read from the log afterwards.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from typing import Any

from benchmarks.decode.source_options import address
from benchmarks.harness.interleaved import Sample, Series, percentile
from benchmarks.harness.workers import WorkerError
from benchmarks.mirror.batches import mirrored_tables
from benchmarks.mirror.snapshot_to_delta import mirror_options
from benchmarks.snapshot.fixture import Bench, Found
from benchmarks.workload.orders import DATABASE

__all__ = ["mirror_lag"]

_TARGET_SECONDS = 5.0
_INTERVAL = "1 second"
# Each update sets it to a number of its own.
_COLUMN = "customer"
# Seconds at the beginning that do not count.
_WARM_UP = 5.0
_PHASES = ("triggerExecution", "latestOffset", "queryPlanning", "walCommit", "addBatch")


def mirror_lag(bench: Bench) -> Found:
    """Seconds from commit to visible."""
    scale, tables = bench.scale, mirrored_tables(bench)
    options = mirror_options(bench, f"{DATABASE}.mirrored*")
    with (
        bench.worker("mirror.delta_worker") as child,
        bench.worker("workload.writer_worker") as writer,
    ):
        child.ask("begin", options, "no")
        child.ask("go_on", _INTERVAL)
        file, pos = bench.server.position()
        commits = writer.ask(
            "update",
            address(bench.server),
            " ".join(f"{DATABASE}.{table}" for table in tables),
            scale.mirror_rows,
            scale.lag_rate,
            scale.lag_seconds,
        )["commits"]
        answer = child.ask("applied", *bench.server.position())
        places = child.ask("places", options, f"{file}:{pos}", _COLUMN)["places"]
        child.ask("end")
    lags = _lags(commits, places, answer["batches"])
    begin, ended = commits[0][1], commits[-1][1]
    warm_up = min(_WARM_UP, (ended - begin) / 2)
    counted = [lag for at, lag in lags if at >= begin + warm_up]
    return _found(bench, counted, len(commits) / (ended - begin), answer)


def _lags(commits: list[Any], places: list[Any], batches: list[Any]) -> list[tuple[float, float]]:
    """(moment of the commit, seconds until it was visible) of each transaction."""
    positions = {number: (file, pos) for number, file, pos in places}
    ends = [(each["file"], each["pos"]) for each in batches]
    found = []
    for number, at in commits:
        if number not in positions:
            raise WorkerError(f"the log has no transaction {number}")
        batch = bisect_left(ends, positions[number])
        if batch == len(ends):
            raise WorkerError(f"no batch reaches to transaction {number}")
        found.append((at, batches[batch]["committed_at"] - at))
    return found


def _found(bench: Bench, lags: list[float], rate: float, answer: dict[str, Any]) -> Found:
    scale, batches = bench.scale, answer["batches"]
    p50, p99 = (percentile(lags, at) for at in (50, 99))
    met = "met" if p99 < _TARGET_SECONDS else "not met"
    phases = {
        name: statistics.mean(each["durations"].get(name, 0.0) for each in batches)
        for name in _PHASES
    } | {name: seconds / len(batches) for name, seconds in answer["spent"].items()}
    rows = statistics.mean(each["rows"] for each in batches)
    found = Found(
        told=(
            f"{scale.lag_rate} transactions of one row a second ({rate:.0f} reached), over"
            f" 3 tables of {scale.mirror_rows:,} rows, for {scale.lag_seconds:.0f} s, with a"
            f" trigger of {_INTERVAL}. Files of earlier versions are removed during the run."
        ),
        head=("", "seconds"),
        cells=[
            *([name, f"{value:.2f}"] for name, value in (("p50", p50), ("p99", p99))),
            ["most", f"{max(lags):.2f}"],
            *([f"per batch: {name}", f"{seconds:.3f}"] for name, seconds in phases.items()),
        ],
        notes=[
            f"p99: {p99:.2f} s, target less than {_TARGET_SECONDS:g} s: {met}",
            f"{len(batches)} batches of {rows:,.0f} changes; {len(lags):,} transactions counted",
        ],
    )
    found.keep({"lag": Series([Sample(sum(lags), more={"latencies": lags})])})
    return found
