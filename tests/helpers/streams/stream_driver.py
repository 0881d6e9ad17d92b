"""A program that runs a streaming query, which tests stop and kill from outside.

Run as ``python stream_driver.py SETTINGS.json``; `stream_process` writes the settings, and reads
and writes the files named there. The rows of each batch are written to one file, under another name
and then renamed, so that a killed driver leaves a complete file or none. A replayed batch must give
the same rows as the first time; otherwise the query fails.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

# This file is run as a program, which puts its own folder first.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from helpers.streams.spark_session import (  # noqa: E402 (after the path is set)
    FAITHFUL_CHECKPOINTS,
    make_spark,
)

# Shorter than the timeouts of tests, and longer than a call takes on a busy machine.
_STALLED_SECONDS = 100


class Output:
    """The sink: one file of JSON lines for each batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, frame: DataFrame, batch: int) -> None:
        _hold(self._folder, "hold-before-sink", batch)
        numbered = frame.select(sf.spark_partition_id().alias("partition"), "*")
        row = sf.to_json(sf.struct("*"), {"ignoreNullFields": "false"})
        lines = [found[0] for found in numbered.select(row).collect()]
        target = self._folder / f"batch-{batch:06}.jsonl"
        if target.exists():
            _assert_same_rows(target.read_text(), lines, batch)
        written = target.with_suffix(".writing")
        written.write_text("".join(f"{line}\n" for line in lines))
        written.replace(target)
        _hold(self._folder, "hold-after-sink", batch)


def _hold(folder: Path, name: str, batch: int | None = None) -> None:
    """Wait (in this batch) as long as the gate file `name` exists."""
    gate = folder / name
    while gate.exists():
        (folder / f"{name}-reached").write_text("" if batch is None else str(batch))
        time.sleep(0.005)


@contextmanager
def _dumped_if_stalled(folder: Path) -> Iterator[None]:
    """Write the stacks of all threads into a file `stacks-*` if the block does not end in time."""
    with (folder / f"stacks-{os.getpid()}").open("w") as file:
        faulthandler.dump_traceback_later(_STALLED_SECONDS, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def held_source(folder: Path) -> type[DataSource]:
    """Return a data source that waits before each step of a batch as long as a gate file exists.

    Spark pickles these classes by value, like all classes of a program.
    """

    class HeldReader(MySQLBinlogStreamReader):
        def initialOffset(self) -> dict[str, Any]:
            _hold(folder, "hold-before-initial")
            return super().initialOffset()

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            _hold(folder, "hold-before-latest")
            with _dumped_if_stalled(folder):
                return super().latestOffset(start, limit)

        def partitions(
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Sequence[InputPartition]:
            _hold(folder, "hold-before-partitions")
            with _dumped_if_stalled(folder):
                return super().partitions(start, end)

    class HeldSource(MySQLBinlogDataSource):
        @classmethod
        def name(cls) -> str:
            return "mysqlbinlog_held"

        def streamReader(self, schema: StructType) -> HeldReader:
            return HeldReader(self._parsed(), schema)

    return HeldSource


def _assert_same_rows(before: str, now: list[str], batch: int) -> None:
    first, second = _rows(before.splitlines()), _rows(now)
    if first != second:
        raise RuntimeError(
            f"batch {batch} ran again with other rows: {len(first)} before, {len(second)} now"
        )


def _rows(lines: list[str]) -> list[dict[str, Any]]:
    """Return the rows in log order, without their partitions, which may differ in a replay.

    Snapshot rows are left out: a replay reads their current values.
    """
    rows = [row for row in map(json.loads, lines) if row["op"] != "r"]
    for row in rows:
        del row["partition"]
    return sorted(rows, key=lambda row: tuple(row["seq"].values()))


def main(settings: dict[str, Any]) -> None:
    folder = Path(settings["folder"])
    spark = make_spark(
        **{
            # The checkpoint keeps every batch of the run, because tests read it afterwards.
            "spark.sql.streaming.minBatchesToRetain": "1000000",
            # The driver is killed while it writes checkpoint files.
            "spark.sql.streaming.checkpointFileManagerClass": FAITHFUL_CHECKPOINTS,
        }
    )
    source = held_source(folder)
    spark.dataSource.register(source)
    changes = spark.readStream.format(source.name()).options(**settings["options"]).load()
    query = (
        changes.writeStream.foreachBatch(Output(folder))
        .option("checkpointLocation", settings["checkpoint"])
        .start()
    )
    stop = folder / "stop"
    while query.isActive:
        if stop.exists():
            query.stop()
        time.sleep(0.02)
    error = query.exception()
    if error is not None:
        raise error
    spark.stop()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
