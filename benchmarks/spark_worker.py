"""Spark on all cores, as a child process: reads of this project and of ready-made batches.

Everything ends in the noop sink, which takes each row and forgets it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from ready_batches import ReadyBatches, ReadyClock
from workers import answer_commands

__all__: list[str] = []

_CORES = len(os.sched_getaffinity(0))


@cache
def _spark() -> SparkSession:
    # Workers of the data sources must find the module that they are defined in.
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), here]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Not the package in the folder that they are started in: it has no compiled kernel.
    os.environ["PYTHONSAFEPATH"] = "1"
    session = (
        SparkSession.builder.master(f"local[{_CORES}]")
        .appName("mysqlbinlog-benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(_CORES))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.dataSource.register(ReadyBatches)
    session.dataSource.register(ReadyClock)
    return session


def count(source: str, options: str, schema: str) -> dict[str, Any]:
    """How many rows a batch read gives."""
    return {"rows": _loaded(_spark().read, source, options, schema).count()}


def batch(source: str, options: str, schema: str) -> dict[str, Any]:
    """A batch read into noop.

    `seconds` is what its job took: all tasks, from their submission on. `whole` is all of the
    query, with planning, for which Spark starts a Python process.
    """
    frame = _loaded(_spark().read, source, options, schema)
    begin = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    whole = time.perf_counter() - begin
    return {"seconds": _last_job(), "whole": whole}


def _last_job() -> float:
    """Seconds that the last job took, as the JVM noted them."""
    context = _spark()._jsparkSession.sparkContext()
    # What happened is told to the store a moment later.
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    last = max((jobs.apply(at) for at in range(jobs.size())), key=lambda job: int(job.jobId()))
    took = last.completionTime().get().getTime() - last.submissionTime().get().getTime()
    return float(took) / 1000


def stream(source: str, options: str, schema: str, expected: str) -> dict[str, Any]:
    """A backlog into noop with Trigger.AvailableNow.

    `seconds` is what its batches with rows took, from asking for their offset to their commit;
    `whole` is all of the query, with the start of Spark's Python processes.
    """
    frame = _loaded(_spark().readStream, source, options, schema)
    checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
    begin = time.perf_counter()
    try:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        whole = time.perf_counter() - begin
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    full = [each for each in query.recentProgress if each["numInputRows"]]
    rows = sum(each["numInputRows"] for each in full)
    if rows != int(expected):
        return {"error": f"{rows} rows came out, expected {expected}"}
    return {
        "seconds": sum(each["durationMs"]["triggerExecution"] for each in full) / 1000,
        "whole": whole,
        "batches": len(full),
        "phases": {name: _sum(full, name) for name in ("latestOffset", "addBatch")},
    }


def _sum(progress: list[Any], name: str) -> float:
    return float(sum(each["durationMs"].get(name, 0) for each in progress)) / 1000


def _loaded(reader: Any, source: str, options: str, schema: str) -> DataFrame:
    reader = reader.format(source).options(**json.loads(options))
    if schema:
        reader = reader.schema(StructType.fromJson(json.loads(schema)))
    frame: DataFrame = reader.load()
    return frame


class _Watch:
    """A running query, and when its rows arrived in foreachBatch."""

    def __init__(self, frame: DataFrame) -> None:
        self._checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
        # Keys and the moment, in seconds since 1970, of each batch.
        self.batches: list[tuple[list[int], float]] = []
        self._query: StreamingQuery = (
            frame.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", self._checkpoint)
            .start()
        )

    def _take(self, frame: DataFrame, _number: int) -> None:
        rows = frame.select("after.id").collect()
        self.batches.append(([int(row[0]) for row in rows], time.time()))

    def wait(self, rows: int, timeout: float) -> None:
        """Return when so many rows have arrived in all."""
        deadline = time.monotonic() + timeout
        while (found := sum(len(keys) for keys, _ in self.batches)) < rows:
            error = self._query.exception()
            if error is not None:
                raise error
            if time.monotonic() > deadline:
                raise TimeoutError(f"{found} of {rows} rows arrived in {timeout:.0f} s")
            time.sleep(0.02)

    def stop(self) -> None:
        self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)


_watching: list[_Watch] = []


def watch(source: str, options: str, schema: str) -> dict[str, Any]:
    """Start a query whose rows are noted as they arrive."""
    _watching.append(_Watch(_loaded(_spark().readStream, source, options, schema)))
    return {}


def wait(rows: str, timeout: str) -> dict[str, Any]:
    """Until so many rows have arrived."""
    _watching[-1].wait(int(rows), float(timeout))
    return {}


def arrived() -> dict[str, Any]:
    """End the query; what arrived when."""
    watching = _watching.pop()
    watching.stop()
    return {"batches": watching.batches}


if __name__ == "__main__":
    answer_commands(
        {
            "count": count,
            "batch": batch,
            "stream": stream,
            "watch": watch,
            "wait": wait,
            "arrived": arrived,
        }
    )
