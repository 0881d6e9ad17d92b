"""All texts that Spark and this package show for a few queries, to be searched for secrets.

Run as ``python shown_texts.py SETTINGS.json``: it runs a batch read, a stream and a mirror with the
options in the settings, with the UI, the event log and all log lines from INFO on, and prints the
texts. The event log, the checkpoints and the Delta tables are below the settings' folder.
"""

from __future__ import annotations

import json
import logging
import sys
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_mysqlbinlog import DeltaMirror

_PAGES = (
    "jobs/",
    "stages/",
    "storage/",
    "environment/",
    "executors/",
    "SQL/",
    "StreamingQuery/",
    *(f"SQL/execution/?id={number}" for number in range(12)),
    "api/v1/applications",
)
_NOT_OF_MIRRORS = {"startingOffset", "operations"}
_LONG = {"spark.sql.maxMetadataStringLength": "10000", "spark.sql.debug.maxToStringFields": "1000"}


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
    # On DEBUG, py4j logs every argument of every call.
    logging.getLogger("py4j").setLevel(logging.INFO)
    folder = Path(settings["folder"])
    (folder / "events").mkdir(exist_ok=True)
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "true")
        .config("spark.ui.port", "0")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.ui.explainMode", "extended")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "INFO")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file://{folder / 'events'}")
        .config("spark.local.dir", str(folder / "local"))
    )
    for name, value in _LONG.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    options = settings["options"]

    batch = spark.read.format("mysqlbinlog").options(**options).load()
    _show("batch", repr(batch), batch.count())
    batch.show(10_000, truncate=False)
    batch.explain(True)
    batch.createOrReplaceTempView("changes")
    spark.sql("EXPLAIN EXTENDED SELECT * FROM changes").show(truncate=False)

    stream = spark.readStream.format("mysqlbinlog").options(**options).load()
    stream.explain(True)
    query = (
        stream.writeStream.foreachBatch(_count)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    query.explain(True)
    _show("progress", *query.recentProgress, query.lastProgress, query.status, repr(query))

    mirror = DeltaMirror(
        str(folder / "lake/{database}/{table}"),
        str(folder / "mirror"),
        {name: text for name, text in options.items() if name not in _NOT_OF_MIRRORS},
        change_log=str(folder / "changes/{database}/{table}"),
        storage_options=settings["storage_options"],
    )
    _show("mirror", repr(mirror), repr(mirror._runner))
    query = mirror.start(spark, availableNow=True)
    query.awaitTermination()
    query.explain(True)
    _show("progress", *query.recentProgress, repr(mirror.progress), repr(mirror.stopped))

    for name, more in settings["failing"].items():
        try:
            spark.read.format("mysqlbinlog").options(**options | more).load().collect()
        except Exception as error:
            logging.getLogger(__name__).exception(name)
            _show(name, str(error), repr(error), repr(error.args))
        else:
            raise AssertionError(name)

    address = str(spark.sparkContext.uiWebUrl)
    for page in _PAGES:
        with urllib.request.urlopen(f"{address}/{page}") as answer:
            _show(page, answer.read().decode())
    application = spark.sparkContext.applicationId
    rest = f"{address}/api/v1/applications/{application}"
    for name in ("sql?details=true&length=100", "environment", "jobs", "stages"):
        with urllib.request.urlopen(f"{rest}/{name}") as answer:
            _show(name, answer.read().decode())
    spark.stop()


def _count(batch: DataFrame, _: int) -> None:
    batch.count()


def _show(name: str, *texts: object) -> None:
    for text in (f"=== {name}", *texts):
        sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
