"""A program that reads a server in one kind of Spark session, and prints rows as JSON lines.

    session_reads.py connect|cluster|local SETTINGS

SETTINGS is a JSON file: the options of the reads, and a folder for the checkpoint and the output.
The first line contains the rows of a batch read, the second those of a stream with AvailableNow.

One line follows for each of the `failing` reads, which are dicts of options, and of a `sink` for a
stream: the read's name, the length of Spark's error text, and the error that `cause_of` returns.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_mysqlbinlog import cause_of

__all__ = ["main"]

_MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,1024]"}


def _session(kind: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if kind == "connect":
        # The server that this starts is configured by the environment, not by the builder.
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


def _collect(batch: DataFrame, _: int) -> None:
    batch.collect()


def _fail(spark: SparkSession, read: dict[str, Any], checkpoint: Path) -> None:
    """Run a read that fails."""
    options, sink = read["options"], read.get("sink")
    if "query" in read:
        spark.sql(read["query"]).collect()
    elif sink is None:
        spark.read.format("mysqlbinlog").options(**options).load().collect()
    else:
        changes = spark.readStream.format("mysqlbinlog").options(**options).load()
        writer = changes.writeStream.option("checkpointLocation", str(checkpoint))
        writer = writer.foreachBatch(_collect) if sink == "foreachBatch" else writer.format(sink)
        writer.trigger(availableNow=True).start().awaitTermination()


def _cause(spark: SparkSession, read: dict[str, Any], checkpoint: Path) -> dict[str, Any]:
    try:
        _fail(spark, read, checkpoint)
    except Exception as error:  # noqa: BLE001 (every exception of Spark is under test)
        cause = cause_of(error)
        fields = None if cause is None else {"class": type(cause).__name__, **vars(cause)}
        return {"length": len(str(error)), "cause": fields}
    return {"length": 0, "cause": "the read did not fail"}


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
    for name, read in settings.get("failing", {}).items():
        found = _cause(spark, read, folder / name)
        sys.stdout.write(json.dumps({"read": name, **found}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
