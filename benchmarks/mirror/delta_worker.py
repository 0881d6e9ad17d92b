"""Delta tables, as a child process: mirrors of this project, and what is written by hand."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
from deltalake import DeltaTable, write_deltalake
from pymysql.cursors import SSCursor

from benchmarks.harness.workers import answer_commands
from benchmarks.mirror.instrumented_mirror import FollowedMirror
from benchmarks.spark.sessions import spark
from benchmarks.workload.orders import DATABASE, TABLE
from pyspark_mysqlbinlog import DeltaMirror

__all__: list[str] = []

_BATCH = 10_000
# What pymysql gives for the columns of `orders`, and Delta holds.
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("id", pa.int64()),
    ("customer", pa.int32()),
    ("status", pa.string()),
    ("amount", pa.decimal128(12, 2)),
    ("quantity", pa.int32()),
    ("sku", pa.string()),
    ("ordered", pa.timestamp("us")),
    ("changed", pa.timestamp("us")),
    ("weight", pa.float64()),
    ("priority", pa.int8()),
    ("note", pa.string()),
    ("tags", pa.string()),
]
_SCHEMA = pa.schema(_FIELDS)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-delta-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def load(options: str) -> dict[str, Any]:
    """The first load of a mirror, from the start of its query to its end."""
    with _folder() as folder:
        mirror = DeltaMirror(
            f"{folder}/{{database}}/{{table}}",
            str(folder / "checkpoint"),
            json.loads(options),
            maintenance_interval=None,
        )
        begin = time.perf_counter()
        query = mirror.start(spark(), availableNow=True)
        query.awaitTermination()
        seconds = time.perf_counter() - begin
        (table,) = (DeltaTable(str(path)) for path in folder.glob(f"{DATABASE}/*"))
        # Spark counts no rows of batches that a mirror reads directly.
        batches = [each for each in query.recentProgress if "addBatch" in each["durationMs"]]
        names = ("triggerExecution", "latestOffset", "addBatch")
        return {
            "rows": table.count(),
            "seconds": seconds,
            "batches": len(batches),
            "phases": {
                name: sum(each["durationMs"].get(name, 0) for each in batches) / 1000
                for name in names
            }
            | {"applying": sum(each.duration_seconds for each in mirror.progress.batches)},
        }


def jdbc_arrow(options: str, piece: str) -> dict[str, Any]:
    """Pieces by key, each read by Spark, collected and appended."""
    given = json.loads(options)
    count, size = int(given["upperBound"]), int(piece)
    with _folder() as folder:
        begin = time.perf_counter()
        for first in range(1, count + 1, size):
            last = min(first + size - 1, count)
            bounds = {"lowerBound": str(first), "upperBound": str(last)}
            frame = spark().read.format("jdbc").options(**given | bounds).load()
            arrow = frame.where(f"id BETWEEN {first} AND {last}").toArrow()
            write_deltalake(str(folder / "table"), arrow, mode="append")
        seconds = time.perf_counter() - begin
        return {"rows": DeltaTable(str(folder / "table")).count(), "seconds": seconds}


def jdbc_parquet(options: str) -> dict[str, Any]:
    """Parquet files, written by Spark."""
    with _folder() as folder:
        begin = time.perf_counter()
        frame = spark().read.format("jdbc").options(**json.loads(options)).load()
        frame.write.parquet(str(folder / "table"))
        seconds = time.perf_counter() - begin
        return {
            "rows": spark().read.parquet(str(folder / "table")).count(),
            "seconds": seconds,
        }


def pymysql_delta(address: str, rows: str) -> dict[str, Any]:
    """SSCursor, some rows at a time to pyarrow, all of it as one commit."""

    def batches(cursor: SSCursor) -> Iterator[pa.RecordBatch]:
        while some := list(islice(cursor, _BATCH)):
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*some, strict=True), _SCHEMA, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    with _folder() as folder:
        begin = time.perf_counter()
        with (
            pymysql.connect(charset="utf8mb4", **json.loads(address)) as connection,
            connection.cursor(SSCursor) as cursor,
        ):
            cursor.execute(f"SELECT * FROM {DATABASE}.{TABLE} LIMIT {int(rows)}")
            reader = pa.RecordBatchReader.from_batches(_SCHEMA, batches(cursor))
            write_deltalake(str(folder / "table"), reader)
        seconds = time.perf_counter() - begin
        return {"rows": DeltaTable(str(folder / "table")).count(), "seconds": seconds}


_following: list[FollowedMirror] = []


def begin(options: str, with_copies: str) -> dict[str, Any]:
    """Load a mirror.

    with_copies : `yes` to keep what is merged, and copies of the tables to merge it into.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-mirror-"))
    mirror = FollowedMirror(folder, json.loads(options), keeps=with_copies == "yes")
    _following.append(mirror)
    return {"seconds": mirror.load(spark())}


def go_on(interval: str) -> dict[str, Any]:
    """Let the mirror follow the log.

    interval : of its trigger; empty for none.
    """
    _following[-1].go_on(spark(), interval)
    return {}


def applied(file: str, pos: str) -> dict[str, Any]:
    """The batches until Delta has all before a place of the log, since this was asked last.

    `spent` is what parts of the mirror's work took in them.
    """
    mirror = _following[-1]
    return {"batches": mirror.until((file, int(pos))), "spent": mirror.spent()}


def merged() -> dict[str, Any]:
    """Seconds of the same merges into the copies, since this was asked last."""
    return {"seconds": _following[-1].merge_copies()}


def sums(column: str) -> dict[str, Any]:
    """The sum of a column in each table, and in its copy."""
    return {"mirror": _following[-1].sums(column), "copies": _following[-1].copied_sums(column)}


def places(options: str, start: str, column: str) -> dict[str, Any]:
    """(value, file, pos) of a column's new values in the log, from a place on."""
    frame = (
        spark()
        .read.format("mysqlbinlog")
        .options(**json.loads(options), payload="json", startingOffset=start)
        .load()
        .where("op = 'u'")
        .selectExpr(f"get_json_object(after, '$.{column}')", "source.file", "source.pos")
    )
    return {"places": [[int(value), file, pos] for value, file, pos in frame.collect()]}


def end() -> dict[str, Any]:
    """Stop the mirror."""
    mirror = _following.pop()
    mirror.stop()
    shutil.rmtree(mirror.folder, ignore_errors=True)
    return {}


if __name__ == "__main__":
    answer_commands(
        {
            "load": load,
            "jdbc_arrow": jdbc_arrow,
            "jdbc_parquet": jdbc_parquet,
            "pymysql": pymysql_delta,
            "begin": begin,
            "go_on": go_on,
            "applied": applied,
            "merged": merged,
            "sums": sums,
            "places": places,
            "end": end,
        }
    )
