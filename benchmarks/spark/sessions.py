"""Spark on all cores, for the child processes that need one.

BENCH_JARS names jars in addition to Spark's own, BENCH_HEAP the JVM's heap.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from pyspark.sql import SparkSession

from benchmarks.spark.upper_bound import ReadyBatches, ReadyClock

__all__ = ["spark"]

_CORES = len(os.sched_getaffinity(0))


@cache
def spark() -> SparkSession:
    """The session of this process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{_CORES}]")
        .appName("mysqlbinlog-benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(_CORES))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", os.environ.get("BENCH_HEAP", "2g"))
        .config("spark.driver.extraClassPath", os.environ.get("BENCH_JARS", ""))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # All batches of a query are evaluated at its end.
        .config("spark.sql.streaming.numRecentProgressUpdates", "100000")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.dataSource.register(ReadyBatches)
    session.dataSource.register(ReadyClock)
    return session
