"""Check that a batch read and a stream of a real server equal SELECT.

A program that needs no pytest; `make test-min-versions` runs it with the minimum versions of
pyproject.toml.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers.servers import MySQL56Server
from helpers.streams.forked_python import quick_workers
from helpers.streams.spark_session import Reads, make_spark

__all__ = ["main"]

_LIBRARIES = ("pyspark", "pyarrow", "pymysql", "pydantic", "tenacity")


def main() -> None:
    sys.stdout.write(", ".join(f"{name} {version(name)}" for name in _LIBRARIES) + "\n")
    with MySQL56Server() as server, quick_workers(), TemporaryDirectory() as folder:
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT UNSIGNED PRIMARY KEY, note VARCHAR(20)"
            " CHARACTER SET utf8mb4, price DECIMAL(9,2), at DATETIME(3))",
        )
        spark = make_spark()
        reads = Reads(spark, server)
        checkpoint = Path(folder) / "checkpoint"
        options = {"tables": "shop.orders", "payload": "struct"}
        first = reads.available_now(checkpoint, **options)
        assert not any(first), f"rows from before the stream: {first}"
        server.execute(
            "INSERT INTO shop.orders VALUES (4000000000, '€ 😀', 12.30, '2026-11-20 10:00:00.123'),"
            " (2, NULL, -0.05, NULL)",
            "UPDATE shop.orders SET note = 'two' WHERE id = 2",
        )
        expected = sorted(
            tuple(row)
            for row in server.execute("SELECT id, note, price, CAST(at AS CHAR) FROM shop.orders")
        )
        batch = reads.batch(**options).collect()
        stream = [row for rows in reads.available_now(checkpoint, **options) for row in rows]
        for how, rows in (("batch read", batch), ("stream", stream)):
            after = {}
            for row in sorted(rows, key=lambda row: row.seq):
                after[row.after["id"]] = row.after
            found = sorted(
                (
                    each["id"],
                    each["note"],
                    each["price"],
                    each["at"] and f"{each['at']:%F %T.%f}"[:-3],
                )
                for each in after.values()
            )
            if len(rows) != 3 or found != expected:
                sys.exit(f"the {how} gives {rows}, and SELECT {expected}")
        spark.stop()
    sys.stdout.write(f"batch read and stream equal SELECT: {expected}\n")


if __name__ == "__main__":
    main()
