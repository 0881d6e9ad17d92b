"""How long it takes until the first rows are there: from the start of a query, into noop.

A batch with rows counts when it is committed, so the first rows are there a little earlier. Beside
it the same query over a prepared batch: what Spark itself takes. The target is about what comes on
top of that, in the same round.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import LongType, StructType

from benchmarks.decode.source_options import Options, server_options
from benchmarks.harness.interleaved import Measure, Sample, Series, run_rounds
from benchmarks.harness.workers import Worker
from benchmarks.snapshot.fixture import Bench, Found
from benchmarks.workload.orders import DATABASE, TABLE

__all__ = ["time_to_first_row"]

_TARGET_SECONDS = 2.0
_ROUNDS = 5
_SMALL = "small"
_READY = "prepared batch: Spark itself"
_READY_ROWS = 1000


def time_to_first_row(bench: Bench) -> Found:
    """Seconds, of a large table and of many small ones."""
    scale = bench.scale
    bench.fill(TABLE, scale.rows)
    bench.small_tables(_SMALL)
    with ExitStack() as stack:
        spark = stack.enter_context(bench.worker("spark.spark_worker"))
        measures = list(_measures(bench, spark))
        rounds = _ROUNDS if scale.warm_up else 1
        series = run_rounds(measures, rounds, warm=scale.warm_up)
    found = Found(
        told=(
            "Seconds from the start of a query to the commit of its first batch with rows, noop"
            f" sink, payload struct (json for the small tables), {rounds} interleaved rounds in a"
            " session that has run each before; medians."
        ),
        head=(
            "table",
            "seconds",
            "in the rounds",
            "above Spark itself",
            "in the rounds",
            "until the first trigger",
            "rows in it",
        ),
        cells=[_cells(name, each, series[_READY]) for name, each in series.items()],
        notes=[
            _note(name, each, series[_READY]) for name, each in series.items() if name != _READY
        ],
    )
    found.keep(series)
    return found


def _cells(name: str, series: Series, ready: Series) -> list[str]:
    seconds = [sample.seconds for sample in series.samples]
    beyond = _beyond(series, ready)
    started = statistics.median(sample.more["started"] for sample in series.samples)
    return [
        name,
        f"{statistics.median(seconds):.2f}",
        f"{min(seconds):.2f} … {max(seconds):.2f}",
        "" if name == _READY else f"{statistics.median(beyond):.2f}",
        "" if name == _READY else f"{min(beyond):.2f} … {max(beyond):.2f}",
        f"{started:.2f}",
        f"{series.samples[-1].more['rows']:,}",
    ]


def _beyond(series: Series, ready: Series) -> list[float]:
    """Seconds that Spark itself does not take, round by round."""
    rounds = zip(series.samples, ready.samples, strict=True)
    return [ours.seconds - spark.seconds for ours, spark in rounds]


def _note(name: str, series: Series, ready: Series) -> str:
    found = statistics.median(_beyond(series, ready))
    met = "met" if found < _TARGET_SECONDS else "not met"
    target = f"target less than {_TARGET_SECONDS:g} s"
    return f"{name}: {found:.2f} s above Spark's own start, {target}: {met}"


def _measures(bench: Bench, spark: Worker) -> Iterator[Measure]:
    def measure(name: str, source: str, options: Options, schema: str = "") -> Measure:
        def run() -> Sample:
            answer = spark.ask("first_rows", source, json.dumps(options), schema)
            return Sample(answer.pop("seconds"), more=answer)

        return Measure(name, run)

    path, schema = _ready(bench.folder)
    yield measure(_READY, "ready", {"path": str(path), "parts": "1"}, schema)
    large = server_options(bench.server, "struct", "snapshot")
    yield measure(
        f"a table of {bench.scale.rows:,} rows",
        "mysqlbinlog",
        large | {"tables": f"{DATABASE}.{TABLE}"},
    )
    many = server_options(bench.server, "json", "snapshot")
    yield measure(
        f"{bench.scale.small_tables:,} tables of 10 rows",
        "mysqlbinlog",
        many | {"tables": f"{_SMALL}.*"},
    )


def _ready(folder: Path) -> tuple[Path, str]:
    """An Arrow file of one batch, and its schema for Spark."""
    path = folder / "first.arrow"
    batch = pa.record_batch({"id": pa.array(range(_READY_ROWS), pa.int64())})
    with pa.ipc.new_file(str(path), batch.schema) as file:
        file.write_batch(batch)
    return path, StructType().add("id", LongType()).json()
