"""From commit to foreachBatch: this project, and a source of prepared rows at the same pace.

The difference is what this project adds; the rest is what a micro-batch costs in Spark.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from benchmarks.decode.source_options import address, server_options
from benchmarks.harness.interleaved import Measure, Sample
from benchmarks.harness.scale import Scale
from benchmarks.harness.workers import Worker
from benchmarks.spark.spark_reads import Ready
from benchmarks.workload.workload import Workload

__all__ = ["latency_measures"]

# Rows of the first moments wait for the query's own start.
_WARM_UP = 3.0
_TIMEOUT = 300
# Seconds until the prepared rows begin: their query is then running, as this package's query is
# before the commits. (Spark itself is running, and a query starts within two seconds.)
_QUERY_START = 5.0


def latency_measures(
    spark: Worker, writer: Worker, workload: Workload, ready: Ready, scale: Scale
) -> Iterator[Measure]:
    """Latencies in seconds, as `latencies` of the samples."""
    rate = scale.latency_rate
    seconds = scale.latency_seconds + _WARM_UP
    server = workload.server
    words = ("write", address(server))

    def ours() -> Sample:
        start = "{}:{}".format(*server.position())
        options = server_options(server, "struct", start)
        spark.ask("watch", "mysqlbinlog", json.dumps(options), "")
        # The query runs when the first row has come through it.
        writer.ask(*words, 1, 1)
        spark.ask("wait", 1, _TIMEOUT)
        commits = writer.ask(*words, rate, seconds)["commits"]
        spark.ask("wait", 1 + len(commits), _TIMEOUT)
        arrived = {key: at for keys, at in spark.ask("arrived")["batches"] for key in keys}
        begin = commits[0][1]
        return _sample([(at - begin, arrived[key] - at) for key, at in commits])

    def made() -> Sample:
        begin = time.time() + _QUERY_START
        options = {"path": str(ready.path), "begin": repr(begin), "rate": str(rate)}
        spark.ask("watch", "ready_clock", json.dumps(options), ready.schema)
        spark.ask("wait", int(rate * seconds), _TIMEOUT + _QUERY_START + seconds)
        moments = [at for keys, at in spark.ask("arrived")["batches"] for _ in keys]
        return _sample(
            [
                (number / rate, at - begin - number / rate)
                for number, at in enumerate(moments, 1)
                if number <= rate * seconds
            ]
        )

    yield Measure("latency, pyspark-mysqlbinlog", ours)
    yield Measure("latency, prepared", made)


def _sample(found: list[tuple[float, float]]) -> Sample:
    """found : of each row, seconds since the begin and seconds until it arrived."""
    counted = [latency for since, latency in found if since >= _WARM_UP]
    return Sample(found[-1][0], len(found), 0, {"latencies": counted})
