"""A large table into Delta: by a mirror, and by what its user would write by hand.

Delta's own jars can't be had from the registries. Spark's JDBC source to Parquet stands in for
them: it does the same work but for the transaction log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from benchmarks.decode.source_options import address
from benchmarks.harness.interleaved import Measure, Sample, Series, run_rounds
from benchmarks.harness.workers import Worker
from benchmarks.snapshot.fixture import PYTHON_KINDS, Bench, Found, jdbc_options, peaks
from benchmarks.snapshot.throughput import said_ratio
from benchmarks.workload.orders import DATABASE, TABLE

__all__ = ["mirror_options", "snapshot_to_delta"]

_TARGET = 1.5
_OURS = "DeltaMirror"
_KINDS = {"python": "delta_worker.py", **PYTHON_KINDS}
# A frame of so many rows is collected and appended at a time.
_PIECE = 500_000
_MOST_ROUNDS = 2


def snapshot_to_delta(bench: Bench) -> Found:
    """Rows a second, ratios and memory."""
    rows = bench.scale.rows
    bench.fill(TABLE, rows)
    rounds = min(_MOST_ROUNDS, bench.scale.rounds)
    with ExitStack() as stack:
        ours = stack.enter_context(bench.worker("mirror.delta_worker"))
        others = stack.enter_context(bench.worker("mirror.delta_worker", **bench.connector_j()))
        plain = stack.enter_context(bench.worker("mirror.delta_worker"))
        measures = list(_measures(bench, ours, others, plain))
        series = run_rounds(measures, rounds)
    peers = [name for name in series if name != _OURS]
    best = max(peers, key=lambda name: series[name].rows_per_second)
    by_hand = max(
        (name for name in peers if "Parquet" not in name),
        key=lambda name: series[name].rows_per_second,
    )
    found = Found(
        told=(
            f"{rows:,} rows of 12 columns, {rounds} interleaved rounds; pymysql reads"
            f" {bench.scale.slow_rows:,} of them. Whole queries with their start; medians."
            " MB: the peak of one process of each kind."
        ),
        head=("way", "rows/s", "ratio to the best by hand", "memory"),
        cells=[_cells(name, each, series[by_hand]) for name, each in series.items()],
        notes=[said_ratio(series, _OURS, name, _TARGET) for name in dict.fromkeys((by_hand, best))],
    )
    found.keep(series)
    phases = series[_OURS].samples[-1].more["phases"]
    found.notes.append(f"{_OURS}, seconds of its last round: {_said(phases)}")
    return found


def _cells(name: str, series: Series, best: Series) -> list[str]:
    rate = series.rows_per_second
    memory = series.samples[-1].more["memory"]
    return [
        name,
        f"{rate:,.0f}",
        f"{rate / best.rows_per_second:.2f}",
        ", ".join(f"{kind} {size:,} MB" for kind, size in memory.items()),
    ]


def _said(phases: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases.items())


def mirror_options(bench: Bench, tables: str) -> str:
    """The options of a mirror, as JSON: one word of a command."""
    server = bench.server
    return json.dumps(server.options(tables=tables))


def _measures(bench: Bench, ours: Worker, others: Worker, plain: Worker) -> Iterator[Measure]:
    def measure(name: str, child: Worker, rows: int, *words: object) -> Measure:
        def run() -> Sample:
            with peaks(child, _KINDS) as memory:
                answer = child.ask(*words)
            assert answer.pop("rows") == rows
            return Sample(answer.pop("seconds"), rows, 0, answer | {"memory": memory})

        return Measure(name, run, 0)

    rows, slow = bench.scale.rows, bench.scale.slow_rows
    warm = "warm"
    bench.fill(warm, min(5_000, rows))
    jdbc = {
        table: json.dumps(jdbc_options(bench.server, table, bench.filled[table], cursor=True))
        for table in (TABLE, warm)
    }
    for child, *words in (
        (ours, "load", mirror_options(bench, f"{DATABASE}.{warm}")),
        (others, "jdbc_parquet", jdbc[warm]),
    ):
        child.ask(*words)
    yield measure(_OURS, ours, rows, "load", mirror_options(bench, f"{DATABASE}.{TABLE}"))
    yield measure(
        "Spark JDBC, toArrow, write_deltalake", others, rows, "jdbc_arrow", jdbc[TABLE], _PIECE
    )
    yield measure("Spark JDBC to Parquet, no Delta", others, rows, "jdbc_parquet", jdbc[TABLE])
    yield measure(
        "pymysql, pyarrow, write_deltalake", plain, slow, "pymysql", address(bench.server), slow
    )
