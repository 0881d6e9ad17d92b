"""DeltaMirror of tables without any key: each row is there as often as SELECT shows it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.delta_mirrors import MirroredDatabase
from helpers.servers import Server

_CREATE = (
    "CREATE TABLE t (a INT, s VARCHAR(9) COLLATE utf8mb4_general_ci, f DOUBLE, d DECIMAL(9,2),"
    " b VARBINARY(9), w DATETIME(3), g POINT, e ENUM('x','y'), i BIGINT UNSIGNED)"
    " DEFAULT CHARSET utf8mb4"
)
# Of each column few values, which a careless comparison takes for one another.
_VALUES: dict[str, list[str]] = {
    "a": ["NULL", "0", "1"],
    "s": ["NULL", "''", "'a'", "'A'", "'ä'"],
    "f": ["NULL", "0e0", "-0e0", "0.1"],
    "d": ["NULL", "0", "-1.25"],
    "b": ["NULL", "''", "x'00'", "x'ff00'"],
    "w": ["NULL", "'2026-01-02 03:04:05.006'"],
    "g": ["NULL", "POINT(1, 2)", "POINT(1, 3)"],
    "e": ["NULL", "'x'"],
    "i": ["NULL", "18446744073709551615"],
}


def _statements(random: Random, count: int) -> list[str]:
    """Inserts, updates and deletes of one row or some, of which many are equal."""
    statements = []
    for _ in range(count):
        name, other = random.sample(sorted(_VALUES), 2)
        value, new = random.choice(_VALUES[name]), random.choice(_VALUES[other])
        row = f"({value}, {new})"
        statements.append(
            random.choice(
                [
                    f"INSERT INTO t (`{name}`, `{other}`) VALUES {row}, {row}",
                    f"INSERT INTO t (`{name}`) VALUES ({value})",
                    f"INSERT INTO t SELECT * FROM t WHERE `{name}` <=> {value} LIMIT 4",
                    f"UPDATE t SET `{other}` = {new} WHERE `{name}` <=> {value} LIMIT 3",
                    f"UPDATE t SET f = -f WHERE `{name}` <=> {value} LIMIT 2",
                    f"DELETE FROM t WHERE `{name}` <=> {value} LIMIT 2",
                ]
            )
        )
    return statements


def _expect_equal(mirrored: MirroredDatabase, table: str) -> int:
    """Both have the same rows, each as often; returns how many there are in all."""
    names, selected = mirrored.select(table)
    held = mirrored.rows(table).select(names).to_pylist()
    rows = sorted((tuple(map(_as_selected, row.values())) for row in held), key=repr)
    assert [*map(repr, rows)] == [*map(repr, selected)]
    return len(rows)


def _as_selected(value: Any) -> Any:
    """A value of Delta's as pymysql gives it: geometries and BIGINT UNSIGNED."""
    if isinstance(value, dict):
        return value["srid"].to_bytes(4, "little") + value["wkb"]
    whole = isinstance(value, Decimal) and value.as_tuple().exponent == 0
    return int(value) if whole else value


def test_rows_among_equal_ones(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path)
    random = Random(7)
    mirrored.execute(_CREATE, *_statements(random, 60))
    mirrored.run()
    assert _expect_equal(mirrored, "t") > 20
    mirrored.execute(*_statements(random, 100))
    mirrored.run()
    assert _expect_equal(mirrored, "t")
    mirrored.execute(
        "INSERT INTO t (a) VALUES (7), (7), (7)",
        "DELETE FROM t WHERE a = 7 LIMIT 1",
        # The rows that come to be equal are counted together.
        "ALTER TABLE t DROP COLUMN g, DROP COLUMN w",
        "UPDATE t SET a = 8 WHERE a = 7 LIMIT 1",
        "ALTER TABLE t MODIFY a BIGINT, ADD n INT FIRST",
        "INSERT INTO t (a) VALUES (5000000000), (7)",
        "DELETE FROM t WHERE a = 7 LIMIT 1",
        "INSERT INTO t SELECT * FROM t LIMIT 5",
    )
    mirrored.run()
    assert _expect_equal(mirrored, "t")
    mirrored.execute(
        "DELETE FROM t LIMIT 3",
        "TRUNCATE TABLE t",
        "INSERT INTO t (a) VALUES (1), (1), (2)",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
    )
    mirrored.run()
    assert _expect_equal(mirrored, "t")


def test_a_key_that_comes_and_goes(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (a INT NOT NULL, v INT)",
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)",
        "DELETE FROM t LIMIT 1",
        "ALTER TABLE t ADD PRIMARY KEY (a)",
        "UPDATE t SET v = 9 WHERE a = 1",
        "INSERT INTO t VALUES (3, 3)",
        "ALTER TABLE t DROP PRIMARY KEY",
        "INSERT INTO t VALUES (3, 3), (3, 4)",
    )
    mirrored.run()
    mirrored.expect_equal("t")
    mirrored.execute(
        "DELETE FROM t WHERE a = 3 LIMIT 2",
        "CREATE UNIQUE INDEX i ON t (a)",
        "UPDATE t SET a = 4 WHERE a = 3",
    )
    mirrored.run()
    mirrored.expect_equal("t")
    mirrored.execute("DROP INDEX i ON t", "INSERT INTO t VALUES (4, 4)", "UPDATE t SET v = 0")
    mirrored.run()
    mirrored.expect_equal("t")


def test_changes_that_come_again(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """A lost checkpoint, and the log once more from its beginning: each change counts once."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (a INT, v INT)",
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (1, 1)", "UPDATE t SET v = 3 WHERE a = 1 LIMIT 1")
    mirrored.run()
    mirrored.expect_equal("t")
    version = mirrored.delta("t").version()
    mirrored.run("another checkpoint")
    assert mirrored.delta("t").version() == version
    mirrored.execute("INSERT INTO t VALUES (1, 1)", "DELETE FROM t WHERE v = 3")
    mirrored.run("another checkpoint")
    mirrored.expect_equal("t")


@pytest.mark.parametrize("change", ["UPDATE t SET v = 2", "DELETE FROM t"])
def test_a_table_that_began_with_rows_and_was_not_loaded(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, change: str
) -> None:
    live_server.execute(
        "CREATE TABLE t (a INT, v INT)", "INSERT INTO t VALUES (1, 1)", database=database
    )
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO t VALUES (2, 2)")
    mirrored.run()
    # In one batch with a row that it has.
    mirrored.execute("INSERT INTO t VALUES (3, 3)", change)
    mirrored.run()
    assert "not what the server had there" in mirrored.stopped("t")
    assert mirrored.rows("t").to_pylist() == [{"a": 2, "v": 2}]
