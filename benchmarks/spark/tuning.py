"""The plan of a batch: each choice and what it was chosen over, in interleaved rounds.

``make bench BENCH_ARGS=--tuning`` writes tuning.json, and the table in
docs/explanation/benchmarks.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.decode.source_options import Options, folder_options, server_options
from benchmarks.harness.interleaved import Measure, Sample, Series, percentile, run_rounds
from benchmarks.harness.scale import Scale
from benchmarks.harness.workers import Worker
from benchmarks.spark.latency import latency_measures
from benchmarks.spark.spark_reads import Ready, check_rows
from benchmarks.workload.workload import Workload

__all__ = ["Children", "measure"]


@dataclass(frozen=True, slots=True)
class Children:
    """The child processes; `spark_python` is Spark with the reference implementation."""

    tuning: Worker
    spark: Worker
    spark_python: Worker
    writer: Worker


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting of one thing.

    Attributes
    ----------
    is_ours : whether it is the default of this project.
    """

    what: str
    setting: str
    run: Callable[[], Sample]
    is_ours: bool = False

    @property
    def measure(self) -> Measure:
        return Measure(f"{self.what}: {self.setting}", self.run)


def measure(
    children: Children, workload: Workload, ready: Ready, folder: Path, scale: Scale
) -> list[dict[str, Any]]:
    """One entry a choice, in the order of the table."""
    choices = [
        *_batch_sizes(children, workload, ready, folder),
        *_task_sizes(children, workload),
        *_backlogs(children, workload),
        *_fetching(children, workload),
    ]
    series = run_rounds([choice.measure for choice in choices], scale.rounds, warm=scale.warm_up)
    # What follows writes to the log.
    late = list(_latencies(children, workload, ready, scale))
    series |= run_rounds([choice.measure for choice in late], scale.rounds, warm=scale.warm_up)
    return [_entry(choice, series[choice.measure.name]) for choice in [*choices, *late]]


def _batch_sizes(
    children: Children, workload: Workload, ready: Ready, folder: Path
) -> Iterator[Choice]:
    what = "rows of a record batch, prepared, into Spark"
    for rows in (1_024, 4_096, 16_384, 65_536):
        path = folder / f"ready-{rows}.arrow"
        children.tuning.ask("cut", ready.path, path, rows)
        options = ready.options | {"path": str(path)}
        run = _batch(children.spark, workload, "ready", options, ready.schema)
        yield Choice(what, f"{rows:,}", run, rows == 16_384)


def _task_sizes(children: Children, workload: Workload) -> Iterator[Choice]:
    what = "binlog per task, from files"
    for size in ("4m", "16m", "32m", "64m", "1g"):
        options = folder_options(workload, "struct") | {"targetPartitionBytes": size}
        run = _batch(children.spark, workload, "mysqlbinlog", options, "")
        name = "all of it" if size == "1g" else size
        yield Choice(what, name, run, size == "64m")


def _backlogs(children: Children, workload: Workload) -> Iterator[Choice]:
    what = "a live server's backlog"
    start = f"{workload.bulk.file}:4"
    for setting, more in {
        "batches of 3 MB, inline in four tasks": {"maxBytesPerTrigger": "3m"},
        "batches of 3 MB, fetched": {"maxBytesPerTrigger": "3m", "bufferBytes": "1m"},
        "one batch, fetched by one task": {"maxConnections": "1"},
        "one batch, fetched by two": {},
        "one batch, fetched by four": {"targetPartitionBytes": "32m"},
    }.items():
        options = server_options(workload.server, "struct", start) | more
        run = _stream(children.spark, workload, options)
        yield Choice(what, setting, run, not more)


def _fetching(children: Children, workload: Workload) -> Iterator[Choice]:
    what = "decode of files in one process, on all cores"
    options = json.dumps(folder_options(workload, "struct"))
    for setting, is_ahead in (
        ("alternating with the scan", "no"),
        ("while another thread scans", "yes"),
    ):

        def run(is_ahead: str = is_ahead) -> Sample:
            answer = children.tuning.ask("decode", options, is_ahead)
            assert answer["rows"] == workload.rows
            return Sample(answer["seconds"], answer["rows"], workload.size)

        yield Choice(what, setting, run, is_ahead == "yes")


def _latencies(
    children: Children, workload: Workload, ready: Ready, scale: Scale
) -> Iterator[Choice]:
    what = f"commit to foreachBatch at {scale.latency_rate} transactions a second"
    for setting, spark in ("in pure Python", children.spark_python), ("compiled", children.spark):
        ours, made = latency_measures(spark, children.writer, workload, ready, scale)
        if spark is children.spark:
            yield Choice(what, "prepared rows: Spark itself", made.run)
        yield Choice(what, setting, ours.run, spark is children.spark)


def _batch(
    spark: Worker, workload: Workload, source: str, options: Options, schema: str
) -> Callable[[], Sample]:
    words = (source, json.dumps(options), schema)
    check_rows(spark, words, workload.rows)

    def run() -> Sample:
        answer = spark.ask("batch", *words)
        return Sample(answer["seconds"], workload.rows, workload.size)

    return run


def _stream(spark: Worker, workload: Workload, options: Options) -> Callable[[], Sample]:
    def run() -> Sample:
        answer = spark.ask("stream", "mysqlbinlog", json.dumps(options), "", workload.rows)
        return Sample(answer["seconds"], workload.rows, workload.size, answer)

    return run


def _entry(choice: Choice, found: Series) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "what": choice.what,
        "setting": choice.setting,
        "is_ours": choice.is_ours,
        "seconds": [round(sample.seconds, 4) for sample in found.samples],
    }
    waits = [wait for sample in found.samples for wait in sample.more.get("latencies", [])]
    if waits:
        entry["p50_ms"] = round(1e3 * percentile(waits, 50), 1)
        entry["p99_ms"] = round(1e3 * percentile(waits, 99), 1)
    else:
        entry["rows_per_second"] = round(found.rows_per_second)
    return entry
