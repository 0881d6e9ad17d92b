"""`DeltaMirror.progress`, compared with the server and with the changes that were made."""

from __future__ import annotations

import logging
from pathlib import Path
from time import time

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.query import progress


@pytest.fixture
def shop(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of two tables whose row counts the server can estimate."""
    shop = MirroredDatabase(
        spark, live_server, database, tmp_path, startingOffset="snapshot", maxRowsPerTrigger="1000"
    )
    rows = ", ".join(f"({number}, 'ñ漢{number}')" for number in range(2000))
    shop.execute(
        "CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(20)) CHARSET utf8mb4",
        "CREATE TABLE small (id INT PRIMARY KEY)",
        f"INSERT INTO big VALUES {rows}",
        "INSERT INTO small VALUES (1), (2)",
        "ANALYZE TABLE big, small",
    )
    return shop


def run(shop: MirroredDatabase) -> DeltaMirror:
    mirror = shop.mirror()
    mirror.start(shop.spark, availableNow=True).awaitTermination()
    return mirror


def test_progress_reports_rows_lag_and_stopped_tables(
    shop: MirroredDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    big, small = f"{shop.database}.big", f"{shop.database}.small"
    with caplog.at_level(logging.INFO, logger=progress.__name__):
        loaded = run(shop).progress
    lines = [record.getMessage() for record in caplog.records if record.name == progress.__name__]
    assert lines == [
        f"snapshot of {big} completed, 1 remaining",
        f"snapshot of {small} completed, 0 remaining",
    ]
    assert {name: table.rows for name, table in loaded.tables.items()} == {big: 2000, small: 2}
    assert loaded.tables[big].snapshot_rows == 2000
    total = loaded.tables[big].snapshot_rows_estimate
    assert total is not None
    assert 1000 <= total <= 3000  # an estimate
    assert {table.lag for table in loaded.tables.values()} == {None}
    assert loaded.batches[0].tables_in_snapshot == 2
    assert loaded.batches[-1].tables_in_snapshot == 0
    assert not any(table.in_snapshot for table in loaded.tables.values())
    assert (
        sum(part.snapshot_rows for batch in loaded.batches for part in batch.tables.values())
        == 2002
    )
    # A batch reads at most half of maxRowsPerTrigger.
    assert len(loaded.batches) >= 4

    # The timestamp of the newest change of `big` is 1,000 s ago.
    began = time()
    shop.execute(
        "SET timestamp = UNIX_TIMESTAMP() - 5000",
        "UPDATE big SET v = 'x' WHERE id < 5",
        "SET timestamp = UNIX_TIMESTAMP() + 4000",
        "DELETE FROM big WHERE id = 7",
        "SET timestamp = DEFAULT",
        "UPDATE small SET id = 3 WHERE id = 2",
    )
    end = shop.server.position()
    found = run(shop).progress
    elapsed = time() - began
    assert {name: table.rows for name, table in found.tables.items()} == {big: 6, small: 1}
    lag = found.tables[big].lag
    # Timestamps are whole seconds, so the lag can be up to one second more.
    assert lag is not None
    assert 1000 <= lag <= 1001 + elapsed
    lag = found.tables[small].lag
    assert lag is not None
    assert 0 <= lag <= 1 + elapsed
    assert found.tables[big].bytes > 0
    (batch,) = (batch for batch in found.batches if batch.rows)
    assert (batch.file, batch.pos) == end
    assert batch.tables[big].rows == 6

    # The row image lacks columns, whose values are unknown.
    shop.execute("SET binlog_row_image = MINIMAL", "UPDATE big SET v = 'y' WHERE id = 1")
    stopped = run(shop).progress.tables
    assert "binlog_row_image" in (stopped[big].stopped or "")
    assert stopped[small].stopped is None


def test_replayed_batch_adds_no_rows_to_the_progress_of_its_tables(shop: MirroredDatabase) -> None:
    run(shop)
    shop.execute("UPDATE big SET v = 'x' WHERE id < 5")
    first = run(shop).progress.batches[-1]
    # The state after a crash between Delta's commit and Spark's.
    (shop.folder / "checkpoint" / "commits" / str(first.number)).unlink()
    again = run(shop).progress
    name = f"{shop.database}.big"
    assert again.batches[0].number == first.number
    assert again.batches[0].rows == 5
    assert again.batches[0].tables[name].rows == 0
    assert again.tables[name].rows == 0
    assert again.tables[name].lag is None


class Ends(Exception):  # noqa: N818 (not an error)
    """The exception that ends the query of `EndsInTheLoad`."""


class EndsInTheLoad(DeltaMirror):
    """A mirror that ends after a part of the table is snapshotted."""

    def __call__(self, batch: DataFrame, number: int) -> None:
        if any(
            table.in_snapshot and table.snapshot_rows for table in self.progress.tables.values()
        ):
            raise Ends
        super().__call__(batch, number)


def test_resumed_snapshot_counts_the_rows_already_in_delta(shop: MirroredDatabase) -> None:
    name = f"{shop.database}.big"
    first = shop.mirror(kind=EndsInTheLoad)
    with pytest.raises(StreamingQueryException, match="Ends"):
        first.start(shop.spark, availableNow=True).awaitTermination()
    before = shop.delta("big").count()
    assert first.progress.tables[name].snapshot_rows == before
    second = run(shop).progress.tables[name]
    ((count,),) = shop.server.execute("SELECT COUNT(*) FROM big", database=shop.database)
    assert 0 < before < count
    assert (second.rows, second.snapshot_rows) == (count - before, count)
