"""DeltaMirror of tables without a key: each row occurs as often as in SELECT."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from e2e.conftest import REPLICATION, Account
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget

pytestmark = pytest.mark.both_engines

_CREATE = (
    "CREATE TABLE t (a INT, s VARCHAR(9) COLLATE utf8mb4_general_ci, f DOUBLE, d DECIMAL(9,2),"
    " b VARBINARY(9), w DATETIME(3), g POINT, e ENUM('x','y'), i BIGINT UNSIGNED, l FLOAT, y DATE,"
    " z TIMESTAMP NULL, u TIME(2), r YEAR, k BIT(9), x SET('p','q'), m TEXT, o DECIMAL(50,3),"
    " j {json}) DEFAULT CHARSET utf8mb4"
)
# A few values per column, which an inexact comparison would confuse.
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
    "l": ["NULL", "-0e0", "0.5"],
    # The last value is an invalid date, which is NULL in Delta.
    "y": ["NULL", "'2026-01-02'", "'0000-00-00'"],
    "z": ["NULL", "'2026-01-02 03:04:05'"],
    "u": ["NULL", "'-01:02:03.40'"],
    "r": ["NULL", "2026"],
    "k": ["NULL", "0", "257"],
    "x": ["NULL", "''", "'p,q'"],
    "m": ["NULL", "'1:a'"],
    "o": ["NULL", "'1234567890123456789012345678901234567890.125'"],
    "j": ["NULL", """'{"b": [5.0, 1e2, 1.10, "x"], "a": 18446744073709551615}'""", "'null'"],
}
# SELECT expressions for values that pymysql returns in another form.
_SHOWN = {
    "y": "NULLIF(CAST(y AS CHAR), '0000-00-00')",
    "u": "CAST(u AS CHAR)",
    "k": "k + 0",
    "o": "CAST(o AS CHAR)",
}


def _create(server: Server) -> str:
    has_json = not server.version().startswith("5.6.")
    return _CREATE.replace("{json}", "JSON" if has_json else "TEXT")


def _statements(random: Random, count: int) -> list[str]:
    """Return INSERT, UPDATE and DELETE statements of one or more rows, many of them equal."""
    statements = ["SET sql_mode = ''"]
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


def _assert_equal(mirrored: MirroredDatabase, table: str) -> int:
    """Assert that Delta has each row as often as SELECT; return the number of rows."""
    names, _ = mirrored.select(table)
    shown = ", ".join(_SHOWN.get(name, f"`{name}`") for name in names)
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {shown} FROM `{table}`")
        found = cursor.fetchall()
    if mirrored.server.is_mysql9():  # it appends .0 to integral doubles
        found = tuple(tuple(map(_without_point, names, row)) for row in found)
    selected = sorted(repr(tuple(map(_without_spaces, names, row))) for row in found)
    held = mirrored.rows(table).select(names).to_pylist()
    rows = sorted(repr(tuple(map(_as_selected, names, row.values()))) for row in held)
    assert rows == selected
    return len(rows)


def _without_point(name: str, value: Any) -> Any:
    """Return a JSON document with ``.0`` removed from its numbers."""
    return value if value is None or name != "j" else re.sub(r"(\d)\.0\b", r"\1", value)


def _without_spaces(name: str, value: Any) -> Any:
    """Return a JSON document without spaces, as Delta stores it."""
    return value if value is None or name != "j" else value.replace(" ", "")


def _as_selected(name: str, value: Any) -> Any:
    """Return a value of the Delta table as SELECT returns it."""
    value = _without_spaces(name, value)
    if isinstance(value, dict):
        return value["srid"].to_bytes(4, "little") + value["wkb"]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date) and name == "y":
        return str(value)
    whole = isinstance(value, Decimal) and value.as_tuple().exponent == 0
    return int(value) if whole else value


def test_keyless_table_with_equal_rows_equals_select(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path)
    random = Random(7)
    mirrored.execute(_create(any_server), *_statements(random, 80))
    mirrored.run()
    assert _assert_equal(mirrored, "t") > 20
    mirrored.execute(
        *_statements(random, 100),
        "INSERT INTO t (a) VALUES (7), (7), (7)",
        "DELETE FROM t WHERE a = 7 LIMIT 1",
        # Rows that become equal when columns are dropped are counted together.
        "ALTER TABLE t DROP COLUMN g, DROP COLUMN w",
        "UPDATE t SET a = 8 WHERE a = 7 LIMIT 1",
        "ALTER TABLE t MODIFY a BIGINT, ADD n INT FIRST",
        "INSERT INTO t (a) VALUES (5000000000), (7)",
        "DELETE FROM t WHERE a = 7 LIMIT 1",
        "INSERT INTO t SELECT * FROM t LIMIT 5",
    )
    mirrored.run()
    assert _assert_equal(mirrored, "t")
    mirrored.execute(
        "DELETE FROM t LIMIT 3",
        "TRUNCATE TABLE t",
        "INSERT INTO t (a) VALUES (1), (1), (2)",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
    )
    mirrored.run()
    assert _assert_equal(mirrored, "t")


def test_table_whose_key_is_added_and_dropped_equals_select(
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
    mirrored.assert_equal("t")
    mirrored.execute(
        "DELETE FROM t WHERE a = 3 LIMIT 2",
        "CREATE UNIQUE INDEX i ON t (a)",
        "UPDATE t SET a = 4 WHERE a = 3",
    )
    mirrored.run()
    mirrored.assert_equal("t")
    mirrored.execute("DROP INDEX i ON t", "INSERT INTO t VALUES (4, 4)", "UPDATE t SET v = 0")
    mirrored.run()
    mirrored.assert_equal("t")


def test_replayed_changes_of_a_keyless_table_are_applied_once(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """The checkpoint is lost, and the binlog is read again from the same start."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (a INT, v INT)",
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (1, 1)", "UPDATE t SET v = 3 WHERE a = 1 LIMIT 1")
    mirrored.run()
    mirrored.assert_equal("t")
    version = mirrored.delta("t").version()
    mirrored.run("another checkpoint")
    assert mirrored.delta("t").version() == version
    mirrored.execute("INSERT INTO t VALUES (1, 1)", "DELETE FROM t WHERE v = 3")
    mirrored.run("another checkpoint")
    mirrored.assert_equal("t")


def test_snapshot_of_an_empty_keyless_table_equals_select(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute("CREATE TABLE t (a INT, v VARCHAR(9))", "CREATE TABLE k (a INT PRIMARY KEY)")
    mirrored.run()
    mirrored.assert_equal("t", "k")
    mirrored.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x')", "INSERT INTO k VALUES (1)")
    mirrored.run()
    mirrored.assert_equal("t", "k")


def test_snapshot_of_a_changing_keyless_table_equals_select(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    """A change during a snapshot batch is either in its rows or applied after them, never both."""
    mirrored = MirroredDatabase(
        spark, any_server, any_database, tmp_path, startingOffset="snapshot"
    )
    doubled = "INSERT INTO t SELECT * FROM t"
    mirrored.execute(
        f"{_create(any_server)} ENGINE=InnoDB",
        *_statements(Random(1), 40),
        *[doubled] * 7,
        "CREATE TABLE m LIKE t",
        "ALTER TABLE m ENGINE=MyISAM",
        "INSERT INTO m SELECT * FROM t",
        "CREATE TABLE `empty` (a INT)",
    )
    random, is_over = Random(2), Event()

    def write() -> None:
        with any_server.connect(database=any_database, autocommit=True) as connection:
            cursor = connection.cursor()
            while not is_over.is_set():
                for sql in [*_statements(random, 5), "INSERT INTO `empty` VALUES (1)"]:
                    cursor.execute(sql)
                    cursor.execute(re.sub(r"\bt\b", "m", sql))

    with ThreadPoolExecutor(1) as writers:
        writing = writers.submit(write)
        try:
            mirrored.run()
        finally:
            is_over.set()
        writing.result()
    mirrored.execute("DELETE FROM `empty` LIMIT 2", "INSERT INTO `empty` VALUES (1), (NULL)")
    mirrored.run()
    assert _assert_equal(mirrored, "t") > 1000
    assert _assert_equal(mirrored, "m") > 1000
    assert _assert_equal(mirrored, "empty")


def test_reloaded_keyless_table_equals_select(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute(
        "CREATE TABLE t (a INT, v INT)",
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)",
        "CREATE TABLE keyed (a INT PRIMARY KEY)",
    )
    mirrored.run()
    mirrored.assert_equal("t", "keyed")
    # The mirror cannot know the converted values, so it reloads the table.
    mirrored.execute("DELETE FROM t LIMIT 1", "ALTER TABLE t MODIFY v VARCHAR(9)")
    mirrored.run()
    mirrored.assert_equal("t", "keyed")
    mirrored.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x')")
    mirrored.options["reload"] = f"1: {database}.t"
    mirrored.run()
    mirrored.assert_equal("t", "keyed")
    mirrored.execute("DELETE FROM t WHERE v = 'x' LIMIT 1", "DELETE FROM t WHERE a = 2")
    mirrored.run()
    mirrored.assert_equal("t", "keyed")
    # A new checkpoint, whose binlog position is after these changes.
    mirrored.execute("UPDATE t SET v = 'y' LIMIT 1", "INSERT INTO keyed VALUES (1)")
    mirrored.run("another checkpoint")
    mirrored.execute("DELETE FROM t LIMIT 1")
    mirrored.run("another checkpoint")
    mirrored.assert_equal("t", "keyed")
    # Another table is renamed to `t`: no change of `t` contains its rows.
    mirrored.execute(
        "CREATE TABLE t_new (a INT, v VARCHAR(9))",
        "INSERT INTO t_new VALUES (7, 'z'), (7, 'z')",
        "RENAME TABLE t TO t_old, t_new TO t",
        "DELETE FROM t LIMIT 1",
    )
    mirrored.run("another checkpoint")
    mirrored.execute("INSERT INTO t VALUES (8, NULL)")
    mirrored.run("another checkpoint")
    mirrored.assert_equal("t", "keyed")


def test_interrupted_snapshot_of_a_keyless_table_equals_select_after_a_restart(
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows are committed, but not the batch: it is read again, at another position."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (1), (2)")
    kind = type(mirrored.target("t"))
    replace = kind.replace

    def failing(target: DeltaTarget, rows: pa.Table, mark: CommitMarker) -> None:
        replace(target, rows, mark)
        raise RuntimeError("broken off")

    with monkeypatch.context() as patched:
        patched.setattr(kind, "replace", failing)
        with pytest.raises(StreamingQueryException, match="broken off"):
            mirrored.run()
    assert mirrored.rows("t").num_rows == 3
    mirrored.execute("DELETE FROM t WHERE a = 1 LIMIT 1", "INSERT INTO t VALUES (2)")
    mirrored.run()
    mirrored.assert_equal("t")


def test_missing_lock_tables_grant_stops_the_snapshot_of_a_keyless_table(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, account: Account
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute(
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1), (1)",
        "CREATE TABLE keyed (a INT PRIMARY KEY)",
        "INSERT INTO keyed VALUES (1)",
    )
    grants = [REPLICATION, "PROCESS ON *.*", f"SELECT ON `{database}`.*"]
    reads = account(live_server, *grants)
    mirrored.options |= {name: reads.options[name] for name in ("user", "password")}
    mirrored.run()
    mirrored.assert_equal("keyed")
    assert f"GRANT SELECT, LOCK TABLES ON `{database}`.* to this account" in mirrored.stopped("t")
    mirrored.execute(f"GRANT LOCK TABLES ON `{database}`.* TO '{reads.options['user']}'@'%'")
    mirrored.options["reload"] = f"1: {database}.t"
    mirrored.run()
    mirrored.assert_equal("t", "keyed")


def test_change_of_a_row_missing_in_a_keyless_table_stops_the_table(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    live_server.execute(
        "CREATE TABLE t (a INT, v INT)", "INSERT INTO t VALUES (1, 1)", database=database
    )
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO t VALUES (2, 2)")
    mirrored.run()
    # The same batch inserts and updates another row.
    mirrored.execute("INSERT INTO t VALUES (3, 3)", "UPDATE t SET v = 2")
    mirrored.run()
    assert "differs from the server" in mirrored.stopped("t")
    assert mirrored.rows("t").to_pylist() == [{"a": 2, "v": 2}]
