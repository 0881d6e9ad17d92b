"""A program that runs a stream by `path` over Spark Connect, and prints the stream's error.

refused_stream.py PATH CHECKPOINT
"""

from __future__ import annotations

import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

__all__ = ["main"]


def main(path: str, checkpoint: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.ui.enabled=false pyspark-shell"
    spark = SparkSession.builder.remote("local").getOrCreate()
    options = {"path": path, "endingOffset": "latest"}
    changes = spark.readStream.format("mysqlbinlog").options(**options).load()
    try:
        writer = changes.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.start().awaitTermination()
    except PySparkException as error:
        sys.stdout.write(str(error))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
