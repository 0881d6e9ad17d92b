"""Measurements through Spark into noop: prepared batches, files and a live server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.decode.source_options import Options, folder_options, server_options
from benchmarks.harness.interleaved import Measure, Sample
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.workload.workload import Workload

__all__ = ["Ready", "check_rows", "save_ready", "spark_reads"]

# One task a core: each costs Spark some 50 ms, so more of them would lower the bound.
_PARTS = len(os.sched_getaffinity(0))
_PAYLOADS = ("struct", "json")


def _warm(spark: Worker, *words: object) -> dict[str, Any]:
    """The second of two runs: Spark ends its Python workers when they were idle for a minute."""
    spark.ask(*words)
    return spark.ask(*words)


@dataclass(frozen=True, slots=True)
class Ready:
    """The log's rows, decoded beforehand into an Arrow file.

    Attributes
    ----------
    schema : Spark's, as JSON.
    """

    path: Path
    schema: str

    @property
    def options(self) -> Options:
        return {"path": str(self.path), "parts": str(_PARTS)}


def save_ready(decoder: Worker, workload: Workload, folder: Path) -> dict[str, Ready]:
    """Save prepared batches, by payload, as the decoder makes them: at most 16,384 rows each."""
    found = {}
    for payload in _PAYLOADS:
        path = folder / f"ready-{payload}.arrow"
        saved = decoder.ask("save", json.dumps(folder_options(workload, payload)), path)
        if saved["rows"] != workload.rows:
            raise WorkerError(f"{saved['rows']} rows were saved, expected {workload.rows}")
        found[payload] = Ready(path, saved["schema"])
    return found


def check_rows(spark: Worker, words: tuple[str, str, str], expected: int) -> None:
    """WorkerError unless a batch read gives so many rows; noop, which is timed, counts none.

    words : the source, its options and its schema, as for `batch`.
    """
    counted = spark.ask("count", *words)["rows"]
    if counted != expected:
        raise WorkerError(f"{words[0]}: {counted} rows were counted, expected {expected}")


def spark_reads(spark: Worker, workload: Workload, ready: dict[str, Ready]) -> Iterator[Measure]:
    """Yield Spark's upper bound, files and a live server for each payload, as batch and stream."""
    rows, size = workload.rows, workload.size

    def batch(source: str, options: Options, schema: str) -> Callable[[], Sample]:
        words = (source, json.dumps(options), schema)
        check_rows(spark, words, rows)

        def run() -> Sample:
            answer = _warm(spark, "batch", *words)
            return Sample(answer.pop("seconds"), rows, size, answer)

        return run

    def stream(source: str, options: Options, schema: str) -> Callable[[], Sample]:
        words = (source, json.dumps(options), schema, rows)

        def run() -> Sample:
            answer = _warm(spark, "stream", *words)
            return Sample(answer.pop("seconds"), rows, size, answer)

        return run

    for payload in _PAYLOADS:
        made = ready[payload]
        start = f"{workload.bulk.file}:4"
        files = folder_options(workload, payload)
        live = server_options(workload.server, payload, start)
        yield Measure(
            f"spark upper bound, batch, {payload}", batch("ready", made.options, made.schema)
        )
        yield Measure(
            f"spark upper bound, stream, {payload}", stream("ready", made.options, made.schema)
        )
        yield Measure(f"files to noop, {payload}", batch("mysqlbinlog", files, ""))
        yield Measure(f"live to noop, {payload}", stream("mysqlbinlog", live, ""))
