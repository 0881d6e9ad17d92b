"""Run as a program: reads a server in one kind of Spark session, and prints the rows as JSON lines.

    session_reads.py connect|cluster|local SETTINGS

SETTINGS is a JSON file: the options of the reads, and a folder for the checkpoint and the output.
The first line is what a batch read gives, the second what a stream with AvailableNow gives.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

_MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,1024]"}


def _session(kind: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if kind == "connect":
        # The server that this starts is told by the environment, and not by the builder.
        os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.ui.enabled=false pyspark-shell"
        return SparkSession.builder.remote("local").getOrCreate()
    return (
        SparkSession.builder.master(_MASTERS[kind])
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def _lines(frame: DataFrame) -> list[str]:
    rows = frame.selectExpr("to_json(struct(*)) AS line").collect()
    return [str(row["line"]) for row in rows]


def main(kind: str, settings: dict[str, Any]) -> None:
    spark = _session(kind)
    folder = Path(settings["folder"])
    options = settings["options"]
    batch = spark.read.format("mysqlbinlog").options(**options).load()
    changes = spark.readStream.format("mysqlbinlog").options(**options).load()
    query = (
        changes.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(folder / "rows"))
    for frame in (batch, rows):
        sys.stdout.write(json.dumps(_lines(frame.orderBy("seq"))) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
