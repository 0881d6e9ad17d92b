"""A large table, read from its beginning to its end: this project and those who do the same.

The rows go to Spark's noop sink, or to Arrow where there is no Spark. Each read is timed as its
user sees it: from the start of the query to its end, in a session that has run one before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec

from benchmarks.decode.source_options import server_options
from benchmarks.harness.interleaved import Measure, Sample, Series, run_rounds
from benchmarks.harness.targets import PerformanceTarget, ratio
from benchmarks.harness.workers import Worker
from benchmarks.snapshot.fixture import PYTHON_KINDS, Bench, Found, jdbc_options, peaks
from benchmarks.snapshot.select_cost import read_apart, url_of
from benchmarks.spark.spark_reads import check_rows
from benchmarks.workload.orders import DATABASE, TABLE

__all__ = ["said_ratio", "snapshot_throughput"]

_TARGET = 2.0
_OURS = ("pyspark-mysqlbinlog, stream", "pyspark-mysqlbinlog, batch")
# Parts of this package alone, over one connection and without Spark.
_ALONE = {"bytes": "only the SELECT's bytes", "struct": "only decoded to Arrow"}
_JDBC = "Spark JDBC"
# A small table that a session reads before it is measured.
_WARM, _WARM_ROWS = "warm", 5_000


def snapshot_throughput(bench: Bench) -> Found:
    """Rows a second, ratios and memory."""
    rows = bench.scale.rows
    bench.fill(TABLE, rows)
    bench.fill(_WARM, min(_WARM_ROWS, rows))
    with ExitStack() as stack:
        ours = stack.enter_context(bench.worker("spark.spark_worker"))
        others = stack.enter_context(bench.worker("spark.spark_worker", **bench.connector_j()))
        measures = [
            *_our_reads(bench, ours),
            *_jdbc(bench, others),
            *_without_spark(bench),
        ]
        series = run_rounds(measures, bench.scale.rounds)
    peers = series.keys() - {*_OURS, *_ALONE.values()}
    best = max(peers, key=lambda name: _rate(series[name]))
    # The others give Arrow to one process, and no rows to Spark.
    best_of_spark = max(
        (name for name in peers if name.startswith(_JDBC)), key=lambda name: _rate(series[name])
    )
    found = Found(
        told=(
            f"{rows:,} rows of 12 columns on MySQL 5.6, payload struct, {bench.scale.rounds} rounds"
            f" interleaved; pymysql reads {bench.scale.slow_rows:,} of them. Whole queries, with"
            " their planning and their start; medians. MB: the peak of one process of each kind."
        ),
        head=("read", "rows/s", "ratio to the best peer", "memory"),
        cells=[
            [name, f"{_rate(each):,.0f}", f"{_rate(each) / _rate(series[best]):.2f}", _said(each)]
            for name, each in series.items()
        ],
        notes=[
            *(
                said_ratio(series, ours, peer, _TARGET)
                for peer in dict.fromkeys((best, best_of_spark))
                for ours in _OURS
            ),
            _stream_seconds(series[_OURS[0]].samples[-1]),
        ],
    )
    found.keep(series)
    return found


def _rate(series: Series) -> float:
    return series.rows_per_second


def _stream_seconds(sample: Sample) -> str:
    more = sample.more
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in more["phases"].items())
    return (
        f"{_OURS[0]}, seconds of its last round: {more['whole']:.1f}, of which {more['batches']}"
        f" batches with rows {more['seconds']:.1f} ({phases})"
    )


def _said(series: Series) -> str:
    most: dict[str, int] = {}
    for sample in series.samples:
        for kind, size in sample.more.get("memory", {}).items():
            most[kind] = max(size, most.get(kind, 0))
    return ", ".join(f"{kind} {size:,} MB" for kind, size in most.items())


def said_ratio(series: dict[str, Series], ours: str, best: str, target: float) -> str:
    """A sentence on how often as fast one measure was as another."""
    middle, low, high = ratio(PerformanceTarget(ours, ours, best, target), series)
    met = "met" if middle >= target else "not met"
    found = f"{middle:.2f} ({low:.2f} … {high:.2f} in the rounds)"
    return f"{ours} / {best}: {found}, target {target}: {met}"


def _our_reads(bench: Bench, spark: Worker) -> Iterator[Measure]:
    def options(table: str) -> str:
        found = server_options(bench.server, "struct", "snapshot")
        return json.dumps(found | {"tables": f"{DATABASE}.{table}"})

    def stream() -> Sample:
        return _read(bench, spark, "stream", "mysqlbinlog", options(TABLE), "", bench.scale.rows)

    spark.ask("stream", "mysqlbinlog", options(_WARM), "", bench.filled[_WARM])
    yield Measure(_OURS[0], stream, 0)
    yield Measure(_OURS[1], _batch(bench, spark, "mysqlbinlog", options), 0)


def _jdbc(bench: Bench, spark: Worker) -> Iterator[Measure]:
    for cursor, name in (True, "with a cursor"), (False, "whole results"):

        def options(table: str, cursor: bool = cursor) -> str:
            found = jdbc_options(bench.server, table, bench.filled[table], cursor=cursor)
            return json.dumps(found)

        yield Measure(f"{_JDBC}, {name}", _batch(bench, spark, "jdbc", options), 0)


def _batch(
    bench: Bench, spark: Worker, source: str, options: Callable[[str], str]
) -> Callable[[], Sample]:
    """options : of a table."""
    # Noop, which is timed, counts none.
    for table in (_WARM, TABLE):
        check_rows(spark, (source, options(table), ""), bench.filled[table])
    spark.ask("batch", source, options(_WARM), "")
    return lambda: _read(bench, spark, "batch", source, options(TABLE), "")


def _read(bench: Bench, spark: Worker, *words: object) -> Sample:
    with peaks(spark, PYTHON_KINDS) as memory:
        answer = spark.ask(*words)
    return Sample(answer["whole"], bench.scale.rows, 0, answer | {"memory": memory})


def _without_spark(bench: Bench) -> Iterator[Measure]:
    url, rows = url_of(bench.server), bench.scale.rows

    def read(name: str, rows: int) -> Callable[[], Sample]:
        def run() -> Sample:
            answer = read_apart(name, url, rows)
            memory = {"process": round(answer["memory"])}
            return Sample(answer["wall"], rows, 0, {**answer, "memory": memory})

        return run

    if find_spec("connectorx"):
        yield Measure("connectorx", read("connectorx", rows), 0)
        split = "connectorx, 4 connections"
        yield Measure(split, read(split, rows), 0)
    else:
        sys.stderr.write("connectorx is not installed, and left out (pip install connectorx)\n")
    for kind, name in _ALONE.items():
        yield Measure(name, read(kind, rows), 0)
    yield Measure("pymysql, SSCursor", read("pymysql", bench.scale.slow_rows), 0)
