"""Spark on all cores, as a child process: reads of this project and of prepared batches.

Everything ends in the noop sink, which takes each row and forgets it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from benchmarks.harness.workers import answer_commands
from benchmarks.spark.sessions import spark

__all__: list[str] = []


def count(source: str, options: str, schema: str) -> dict[str, Any]:
    """How many rows a batch read gives."""
    return {"rows": _loaded(spark().read, source, options, schema).count()}


def batch(source: str, options: str, schema: str) -> dict[str, Any]:
    """A batch read into noop.

    `seconds` is what its job took: all tasks, from their submission on. `whole` is all of the
    query, with planning, for which Spark starts a Python process.
    """
    frame = _loaded(spark().read, source, options, schema)
    begin = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    whole = time.perf_counter() - begin
    return {"seconds": _last_job(), "whole": whole}


def _last_job() -> float:
    """Seconds that the last job took, as the JVM noted them."""
    context = spark()._jsparkSession.sparkContext()
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
    frame = _loaded(spark().readStream, source, options, schema)
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


def first_rows(source: str, options: str, schema: str) -> dict[str, Any]:
    """From the start of a query to the end of its first batch with rows, into noop.

    `started` is how long it took until the first batch of all began.
    """
    frame = _loaded(spark().readStream, source, options, schema)
    checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
    begin = time.time()
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        while not any(each["numInputRows"] for each in query.recentProgress):
            error = query.exception()
            if error is not None:
                raise error
            # The moments are Spark's own. Looking costs processor time: offsets may be long.
            time.sleep(0.1)
    finally:
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    progress = list(query.recentProgress)
    first = next(each for each in progress if each["numInputRows"])
    return {
        "seconds": _moment(first) + first["durationMs"]["triggerExecution"] / 1000 - begin,
        "started": _moment(progress[0]) - begin,
        "rows": first["numInputRows"],
        "phases": {name: spent / 1000 for name, spent in first["durationMs"].items()},
    }


def _moment(progress: Any) -> float:
    """When a batch began, in seconds since 1970."""
    return datetime.fromisoformat(progress["timestamp"]).timestamp()


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
    _watching.append(_Watch(_loaded(spark().readStream, source, options, schema)))
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
            "first_rows": first_rows,
            "watch": watch,
            "wait": wait,
            "arrived": arrived,
        }
    )
