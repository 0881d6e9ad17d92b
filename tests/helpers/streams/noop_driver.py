"""A program that streams a whole log into Spark's noop sink, and prints the number of rows.

    noop_driver.py SETTINGS

SETTINGS is a JSON file: the options of the read, and the checkpoint.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# The folder `tests` is not on the path of a program.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from helpers.streams.spark_session import make_spark

__all__ = ["main"]


def main(settings: dict[str, object]) -> None:
    spark = make_spark()
    options = settings["options"]
    assert isinstance(options, dict)
    query = (
        spark.readStream.format("mysqlbinlog")
        .options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(settings["checkpoint"]))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = sum(progress["numInputRows"] for progress in query.recentProgress)
    sys.stdout.write(json.dumps({"rows": rows, "batches": len(query.recentProgress)}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
