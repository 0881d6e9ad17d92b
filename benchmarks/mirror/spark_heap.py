"""The heap of Spark's driver with engine="spark": by the number of tables, and of batches.

It needs no server: commits are made as a mirror makes them, by the engine itself, in parallel.

    MYSQLBINLOG_DELTA_JARS=… python -m benchmarks.mirror.spark_heap --tables 20 300 --batches 50 500

It prints a line for each, with the live heap after a full collection. Python's garbage collector is
left alone, as in a mirror.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.connector.delta.query.parallel import map_in_threads
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.spark.engine import SparkEngine

__all__: list[str] = []

_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int32()),
    pa.field("v", pa.string()),
    pa.field("w", pa.decimal128(12, 2)),
    pa.field(SEQ, SEQ_TYPE),
]
_COLUMNS = pa.schema(_FIELDS)
_ROWS = 20
_KEYS = 500
_BATCH_TABLES = 5
_MAX_COLLECTIONS = 20
_SECONDS_TO_SETTLE = 3.0
_LOG = LogIdentity("server", 0, "mysql-bin")
_DELTA = "org.apache.spark.sql.delta"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="*", default=[20, 100, 300])
    parser.add_argument("--batches", type=int, nargs="*", default=[50, 200, 500])
    parser.add_argument("--heap", default="1g")
    arguments = parser.parse_args()
    spark = _spark(arguments.heap)
    engine = SparkEngine()
    engine.begin(spark)
    with tempfile.TemporaryDirectory(prefix="bench-heap-") as folder:
        _load(spark, engine, Path(folder), arguments.tables)
        _follow(spark, engine, Path(folder), arguments.batches)


def _spark(heap: str) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", os.environ["MYSQLBINLOG_DELTA_JARS"])
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", f"{_DELTA}.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", heap)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _load(spark: SparkSession, engine: SparkEngine, folder: Path, counts: Sequence[int]) -> None:
    made: list[DeltaTarget] = []
    for count in counts:
        new = [engine.target(str(folder / f"t{number}")) for number in range(len(made), count)]

        def create(target: DeltaTarget) -> None:
            target.create(_COLUMNS, {})
            _merge(target, 1)

        for _ in map_in_threads(create, new, spark):
            pass
        made += new
        _report(spark, f"{count} tables")


def _follow(spark: SparkSession, engine: SparkEngine, folder: Path, counts: Sequence[int]) -> None:
    targets = [engine.target(str(folder / f"b{number}")) for number in range(_BATCH_TABLES)]
    for target in targets:
        target.create(_COLUMNS, {})
    for number in range(1, max(counts, default=0) + 1):
        merge = partial(_merge, number=number)
        for _ in map_in_threads(merge, targets, spark):
            pass
        if number in counts:
            _report(spark, f"{number} batches")


def _merge(target: DeltaTarget, number: int) -> None:
    rows = [
        {
            "id": (number * 7 + row) % _KEYS,
            "v": str(number),
            "w": None,
            SEQ: {"epoch": 0, "file": 1, "pos": number, "row": row},
            TOMBSTONE: False,
        }
        for row in range(_ROWS)
    ]
    states = pa.Table.from_pylist(rows, _COLUMNS.append(pa.field(TOMBSTONE, pa.bool_())))
    query = ("mysqlbinlog:query:bench", number)
    target.merge(
        states, ["id"], CommitMarker(_LOG, number, PositionFingerprint(1000, 1, 10, 100), query)
    )


def _report(spark: SparkSession, what: str) -> None:
    live = _live_bytes(spark)
    # What a collection only queues, as soft references and Spark's cleaner of broadcasts do, is
    # freed by threads of their own, and py4j frees what Python has freed a moment later.
    for _ in range(_MAX_COLLECTIONS):
        time.sleep(_SECONDS_TO_SETTLE)
        before, live = live, _live_bytes(spark)
        if live > 0.98 * before:
            break
    sys.stdout.write(f"{what}: {live / 1e6:.0f} MB live\n")
    sys.stdout.flush()


def _live_bytes(spark: SparkSession) -> int:
    jvm: Any = spark
    runtime = jvm._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


if __name__ == "__main__":
    main()
