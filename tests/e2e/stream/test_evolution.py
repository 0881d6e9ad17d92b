"""A table whose columns change during a query: restarts, `_rescued_data` and statement rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from e2e.conftest import shown_error
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from helpers.streams.stream_query import THREE_DDLS, run

# The columns of each row when it was written.
WRITTEN = [
    {"id": 1, "a": 10, "b": 100},
    {"id": 2, "a": 20, "b": 200, "c": 2000},
    {"id": 3, "b": 300, "c": 3000},
    {"id": 4, "d": 400, "c": 4000},
]


class Query:
    """Runs with AvailableNow from one checkpoint, and the number of restarts they needed."""

    def __init__(self, reads: Reads, checkpoint: Path, **options: str) -> None:
        self.reads = reads
        self.checkpoint = checkpoint
        self.options = options
        self.rows: list[Row] = []
        self.restarts = 0

    def run(self) -> None:
        def take(frame: DataFrame, _: int) -> None:
            if self.options["payload"] == "variant":
                frame = frame.withColumn("after", sf.to_json("after"))
            self.rows += frame.collect()

        writer = self.reads.stream(**self.options).writeStream.foreachBatch(take)
        query = (
            writer.option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def run_with_restarts(self) -> None:
        """Run like a scheduler that restarts a failed query."""
        while True:
            try:
                return self.run()
            except PySparkException as error:
                if shown_error(error).name != "SchemaChangedError" or self.restarts > 3:
                    raise
                self.restarts += 1

    def written(self) -> list[dict[str, Any]]:
        """Return the columns that each row was written with, rescued ones included."""
        found = []
        for row in self.rows:
            if self.options["payload"] != "struct":
                found.append(json.loads(row.after))
                continue
            missing = {name.removeprefix("after.") for name in row.source.missing or ()}
            values = {
                name: value for name, value in row.after.asDict().items() if name not in missing
            }
            found.append(values | json.loads(row["_rescued_data"] or "{}").get("after", {}))
        return found


@pytest.mark.parametrize(
    ("payload", "running", "restarts"),
    [
        ("struct", False, 0),
        ("struct", True, 1),
        ("json", False, 0),
        ("json", True, 0),
        ("variant", False, 0),
    ],
)
def test_rows_written_before_and_after_ddl_keep_their_own_columns(
    payload: str,
    running: bool,
    restarts: int,
    *,
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
) -> None:
    """A stream with struct payload that is loaded before the DDL needs one restart."""
    live_server.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", database=database)
    query = Query(Reads(spark, live_server), tmp_path, payload=payload, tables=f"{database}.t")
    query.run()
    if running:
        # load() sees the table before the DDL, and the run reads the changes after it.
        frame = query.reads.stream(**query.options)
        run(live_server, f"{database}.t", *THREE_DDLS)
        rows = query.rows
        writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        started = (
            writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        )
        if restarts == 0:
            started.awaitTermination()
        else:
            with pytest.raises(PySparkException) as caught:
                started.awaitTermination()
            shown = shown_error(caught.value)
            assert shown.name == "SchemaChangedError"
            assert "column `c` (int) is in the table from here on" in shown.message
            query.restarts += 1
            assert [row.after.id for row in rows] == [1]
    else:
        run(live_server, f"{database}.t", *THREE_DDLS)
    query.run_with_restarts()
    assert query.written() == WRITTEN
    assert query.restarts == restarts


def test_truncate_and_data_losing_ddl_give_statement_rows(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    live_server.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", database=database)
    query = Query(
        Reads(spark, live_server),
        tmp_path,
        payload="struct",
        tables=f"{database}.t",
        operations="insert,truncate,ddl",
    )
    query.run()
    run(live_server, f"{database}.t", *THREE_DDLS, "TRUNCATE TABLE {t}")
    query.run_with_restarts()
    assert [row.op for row in query.rows] == ["c", "c", "ddl", "c", "c", "t"]
    losing = next(row for row in query.rows if row.op == "ddl")
    assert losing.source.query == f"/* data-losing */ ALTER TABLE {database}.t DROP a"
    assert (losing.before, losing.after, losing["_rescued_data"]) == (None, None, None)
