"""What ALTER, DROP and TRUNCATE do to the Delta mirror of examples/: it is SELECT, or it stops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from helpers.servers import Server
from pyspark_mysqlbinlog import cause_of
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaChangedError

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class MirroredTable:
    """A table ``t`` with a few rows, and runs of the mirror with AvailableNow."""

    def __init__(self, spark: SparkSession, server: Server, database: str, folder: Path) -> None:
        example = import_module("delta_mirror")
        self.spark, self.server, self.database, self.folder = spark, server, database, folder
        start = "{}:{}".format(*server.position())
        table = f"{database}.t"
        self._options = server.options(tables=table, startingOffset=start) | example.OPTIONS
        self._mirror = example.DeltaMirror([table], folder / "lake")
        self.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT)")

    def fill(self) -> None:
        """Three rows, in the server's table and in Delta."""
        self.execute("INSERT INTO t VALUES (1, 'ñ漢', 1), (2, 'two', 2), (3, 'three', 3)")
        assert self.run() is None
        self.expect_equal()

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.database)

    def run(self) -> MySQLBinlogError | None:
        """Run up to the end of the log, started again as often as the stream asks for it."""
        for _ in range(3):
            try:
                self._run()
            except PySparkException as exception:
                error = cause_of(exception)
                if error is None:
                    raise
                if not isinstance(error, SchemaChangedError):
                    return error
            else:
                return None
        raise AssertionError("the stream asks for a restart again and again")

    def _run(self) -> None:
        changes = self.spark.readStream.format("mysqlbinlog").options(**self._options).load()
        writer = changes.writeStream.foreachBatch(self._mirror)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def expect_equal(self) -> None:
        """Delta has the columns and the rows that SELECT shows."""
        names = [
            row[0] for row in self.server.execute("SHOW COLUMNS FROM t", database=self.database)
        ]
        rows = DeltaTable(self.folder / "lake" / self.database / "t").to_pyarrow_table().to_pylist()
        found: list[tuple[Any, ...]] = sorted(tuple(row[name] for name in names) for row in rows)
        selected = self.server.execute("SELECT * FROM t ORDER BY id", database=self.database)
        assert found == selected
        assert all(set(row) == set(names) for row in rows)


@pytest.fixture
def mirrored(
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MirroredTable]:
    monkeypatch.syspath_prepend(str(_EXAMPLES))
    yield MirroredTable(spark, live_server, database, tmp_path)
    sys.modules.pop("delta_mirror", None)


def test_columns_that_are_added(mirrored: MirroredTable) -> None:
    mirrored.fill()
    mirrored.execute(
        "UPDATE t SET v = 'before' WHERE id = 1",
        "ALTER TABLE t ADD note VARCHAR(10) AFTER id",
        "UPDATE t SET id = 10, note = 'ñ' WHERE id = 2",
        "ALTER TABLE t ADD d DATETIME(3)",
        "INSERT INTO t VALUES (4, 'new', 'x', 4, '2026-01-02 03:04:05.678')",
        "DELETE FROM t WHERE id = 3",
    )
    assert mirrored.run() is None
    mirrored.expect_equal()
    mirrored.execute(
        "INSERT INTO t (id) VALUES (5)",
        "TRUNCATE TABLE t",
        "INSERT INTO t (id, note) VALUES (1, 'again')",
        "ALTER TABLE t ADD more INT",
        "TRUNCATE TABLE t",
        "INSERT INTO t (id, more) VALUES (2, 7)",
        "UPDATE t SET id = 3",
    )
    assert mirrored.run() is None
    mirrored.expect_equal()


@pytest.mark.parametrize(
    ("statement", "insert", "said"),
    [
        ("ALTER TABLE t ADD w INT NOT NULL DEFAULT 5", "(7, '7', 7, 7)", "without telling"),
        ("ALTER TABLE t DROP COLUMN n", "(7, '7')", "without telling"),
        ("ALTER TABLE t CHANGE n m INT", "(7, '7', 7)", "no longer has"),
        ("ALTER TABLE t MODIFY n BIGINT", "(7, '7', 7)", "in Delta"),
        ("ALTER TABLE t DROP PRIMARY KEY", "(7, '7', 7)", "key changed"),
    ],
)
def test_what_the_log_does_not_tell_stops_it(
    mirrored: MirroredTable, statement: str, insert: str, said: str
) -> None:
    mirrored.fill()
    mirrored.execute(
        "UPDATE t SET v = '9' WHERE id = 1", statement, f"INSERT INTO t VALUES {insert}"
    )
    error = mirrored.run()
    assert error is not None, "it went on"
    assert type(error).__name__ == "SchemaError", error
    assert said in error.message, error
    assert error.table == f"{mirrored.database}.t"


def test_ddl_before_the_first_row_does_no_harm(mirrored: MirroredTable) -> None:
    mirrored.execute(
        "ALTER TABLE t ADD w INT NOT NULL DEFAULT 5",
        "ALTER TABLE t DROP COLUMN v",
    )
    mirrored.execute("INSERT INTO t (id) VALUES (1), (2)")
    assert mirrored.run() is None
    mirrored.expect_equal()


def test_partial_images_stop_it(mirrored: MirroredTable) -> None:
    mirrored.fill()
    mirrored.execute(
        "SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE t SET v = 'x' WHERE id = 1"
    )
    error = mirrored.run()
    assert error is not None, "it went on"
    assert "binlog_row_image=FULL" in error.message
