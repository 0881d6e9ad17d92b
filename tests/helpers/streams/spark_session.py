"""Spark for tests: a small local session, and reads of the source in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from helpers.servers import Server

__all__ = [
    "DELTA_JARS",
    "DELTA_SETTINGS",
    "FAITHFUL_CHECKPOINTS",
    "Reads",
    "make_spark",
    "with_delta",
]

# Comma-separated paths of Delta's jars (delta-spark, delta-storage); empty without these jars.
DELTA_JARS = os.environ.get("MYSQLBINLOG_DELTA_JARS", "")

_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
# Spark's default. On a local file system it runs the programs `chmod` and `readlink` for each file
# that it writes. With the other manager and the class of quick_java.py, it runs none.
FAITHFUL_CHECKPOINTS = f"{_MANAGERS}.FileContextBasedCheckpointFileManager"
QUICK_CHECKPOINTS = f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"


DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # With small tables, most of the time is spent on starting tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}


def make_spark(master: str = "local[2]", **conf: str) -> SparkSession:
    """Return a session without UI whose workers run this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(master)
        .appName("mysqlbinlog-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.streaming.checkpointFileManagerClass", QUICK_CHECKPOINTS)
    )
    if DELTA_JARS:
        # For `with_delta`: jars cannot be added to a running JVM.
        builder = builder.config("spark.jars", DELTA_JARS)
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def with_delta(spark: SparkSession) -> SparkSession:
    """Return another session of the same JVM, with Delta's extension; needs `DELTA_JARS`.

    With that extension, Spark does not replace parameters in SQL, so not all sessions have it.
    """
    jvm: Any = spark
    context = jvm._jsparkSession.sparkContext()
    # A session takes its extensions from the context when it is created.
    extensions = "spark.sql.extensions"
    context.conf().set(extensions, DELTA_SETTINGS[extensions])
    made = jvm._get_j_spark_session_class(jvm._jvm)(context, DELTA_SETTINGS)
    context.conf().remove(extensions)
    return SparkSession(spark.sparkContext, made)


class Reads:
    """Reads of one server: ``Reads(spark, server).stream(tables="shop.*")``."""

    def __init__(self, spark: SparkSession, server: Server) -> None:
        self.spark = spark
        self.options: dict[str, Any] = {**server.options(payload="json")}

    def stream(self, **options: Any) -> DataFrame:
        """Return a streaming read; options override the server's."""
        return self.spark.readStream.format("mysqlbinlog").options(**self.options | options).load()

    def batch(self, **options: Any) -> DataFrame:
        """Return a batch read; options override the server's."""
        return self.spark.read.format("mysqlbinlog").options(**self.options | options).load()

    def available_now(self, checkpoint: Path, **options: Any) -> list[list[Row]]:
        """Return each batch's rows of one run with Trigger.AvailableNow, also of empty batches."""
        batches: list[list[Row]] = []
        query = (
            self.stream(**options)
            .writeStream.foreachBatch(lambda frame, _: batches.append(frame.collect()))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return batches
