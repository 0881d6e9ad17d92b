"""Spark for tests: a small local session, and the ways to read our source in it."""

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

# Paths of Delta's own jars (delta-spark, delta-storage), with commas between; may be not there.
DELTA_JARS = os.environ.get("MYSQLBINLOG_DELTA_JARS", "")

_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
# What Spark takes by itself; on a local file system it starts `chmod` and `readlink`, programs, for
# each file that it writes. The other of its two starts none.
FAITHFUL_CHECKPOINTS = f"{_MANAGERS}.FileContextBasedCheckpointFileManager"
QUICK_CHECKPOINTS = f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"


DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Small tables wait for tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}


def make_spark(master: str = "local[2]", **conf: str) -> SparkSession:
    """A session without UI whose Python workers are this Python."""
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
        # For `with_delta`: a JVM takes no more jars when it runs.
        builder = builder.config("spark.jars", DELTA_JARS)
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def with_delta(spark: SparkSession) -> SparkSession:
    """Another session of the same JVM, with Delta's extension; needs `DELTA_JARS`.

    Under that extension Spark fills in no parameters of SQL, so not all sessions have it.
    """
    jvm: Any = spark
    context = jvm._jsparkSession.sparkContext()
    # A session takes its extensions from the context, when it is made.
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
        """A streaming read; options win over the server's."""
        return self.spark.readStream.format("mysqlbinlog").options(**self.options | options).load()

    def batch(self, **options: Any) -> DataFrame:
        """A batch read; options win over the server's."""
        return self.spark.read.format("mysqlbinlog").options(**self.options | options).load()

    def available_now(self, checkpoint: Path, **options: Any) -> list[list[Row]]:
        """What one run with Trigger.AvailableNow delivers: each batch's rows, empty ones too."""
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
