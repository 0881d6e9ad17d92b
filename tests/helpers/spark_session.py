"""Spark for tests: a small local session, and the ways to read our source in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from helpers.servers import Server

__all__ = ["FAITHFUL_CHECKPOINTS", "Reads", "make_spark"]

_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
# What Spark takes by itself; on a local file system it starts `chmod` and `readlink`, programs, for
# each file that it writes. The other of its two starts none.
FAITHFUL_CHECKPOINTS = f"{_MANAGERS}.FileContextBasedCheckpointFileManager"
QUICK_CHECKPOINTS = f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"


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
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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
