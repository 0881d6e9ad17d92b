"""Replicate MySQL tables, with their existing rows, to Delta tables: `DeltaMirror` in a script.

    python examples/delta_mirror.py --host db.example --user spark --password-file pw \\
        --tables 'shop.*' --target /lake --checkpoint /lake/_checkpoints/shop

It runs in classic sessions and in Spark Connect until it is stopped, and resumes from its
checkpoint when it is started again. How it handles changes, DDL and tables that it cannot follow is
described in docs/how-to/delta-mirror.md. The server needs `binlog_row_image=FULL`; Delta is
written by delta-rs (`pip install ".[delta]"` in a checkout), so the JVM needs no jars.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_mysqlbinlog import DeltaMirror, cause_of


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep Delta tables in sync with MySQL tables.")
    for name in ("host", "user", "password-file", "tables", "target", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", default="3306")
    parser.add_argument(
        "--starting-offset",
        default="snapshot",
        help="where a new checkpoint begins; unless it is snapshot, existing rows are delivered"
        " only when they change",
    )
    given = parser.parse_args()
    mirror = DeltaMirror(
        target=f"{Path(given.target)}/{{database}}/{{table}}",
        checkpoint=given.checkpoint,
        options={
            "host": given.host,
            "port": given.port,
            "user": given.user,
            "passwordFile": given.password_file,
            "tables": given.tables,
            "startingOffset": given.starting_offset,
        },
    )
    try:
        mirror.start(SparkSession.builder.appName("delta mirror").getOrCreate()).awaitTermination()
    except PySparkException as exception:
        error = cause_of(exception)
        if error is None:
            raise
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
