"""A DeltaMirror as a process of its own: `mirror_process` starts and kills it."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_mysqlbinlog import DeltaMirror


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "user", "password-file", "tables", "into", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    mirror = DeltaMirror(
        target=f"{Path(given.into)}/{{database}}/{{table}}",
        checkpoint=given.checkpoint,
        options={
            "host": given.host,
            "port": given.port,
            "user": given.user,
            "passwordFile": given.password_file,
            "tables": given.tables,
            "startingOffset": "earliest",
        },
    )
    spark = SparkSession.builder.appName("delta mirror").getOrCreate()
    mirror.start(spark).awaitTermination()


if __name__ == "__main__":
    main()
