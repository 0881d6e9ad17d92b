"""A stream from a folder in Spark: each AvailableNow run reads the changes that were added."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from helpers.logs.events import LogBuilder
from helpers.waiting import patience


def write(folder: Path, number: int, *values: int, rotates: bool = True) -> None:
    made = LogBuilder(f"b.{number:06}").format_description()
    if number == 1:
        made.query("CREATE TABLE t (a INT)")
    for value in values:
        made.begin().rows(1, "t", value).xid()
    if rotates:
        made.rotate(f"b.{number + 1:06}")
    made.write(folder)


def test_available_now_stream_of_a_folder_reads_only_added_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The struct payload has the columns of the CREATE TABLE in the files."""
    folder, rows = tmp_path / "binlogs", tmp_path / "rows"
    folder.mkdir()

    def run() -> list[int]:
        changes = spark.readStream.format("mysqlbinlog").options(path=str(folder), tables="d.t")
        writer = changes.load().writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(rows))
        assert query.awaitTermination(patience(120))
        found = spark.read.parquet(str(rows)).orderBy("seq").select("after.a").collect()
        return [row[0] for row in found]

    write(folder, 1, 1, 2)
    write(folder, 2, 3, rotates=False)
    assert run() == [1, 2, 3]
    write(folder, 2, 3, 4)
    write(folder, 3, 5)
    assert run() == [1, 2, 3, 4, 5]
    assert run() == [1, 2, 3, 4, 5]
