"""`snapshotWhere` limits snapshots but not changes: changed rows outside it survive a reload."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.logs.live_log import new_database
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.read import direct_read
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition

pytestmark = pytest.mark.both_engines

# The columns of a key, the key, and its values in seven rows.
KEYS: dict[str, tuple[str, str, list[str]]] = {
    "int": ("k INT", "k", ["-1", "0", "1", "2", "3", "2147483647", "-5"]),
    "bigint unsigned": (
        "k BIGINT UNSIGNED",
        "k",
        ["0", "1", "18446744073709551615", "999999999999999999", "3", "4", "5"],
    ),
    "text": (
        "k VARCHAR(30) CHARACTER SET utf8mb4",
        "k",
        ["''", "'a'", "'B'", "'it''s'", "'a\\\\b'", "'漢🐬'", "'é'"],
    ),
    "latin1": (
        "k CHAR(9) CHARACTER SET latin1 COLLATE latin1_bin",
        "k",
        ["''", "'a'", "'A'", "'€'", "'é'", "'x'", "'y'"],
    ),
    "bytes": ("k VARBINARY(9)", "k", ["''", "X'00'", "X'0001'", "X'FF'", "'a'", "'b'", "'c'"]),
    "binary": ("k BINARY(3)", "k", ["''", "X'01'", "X'0001'", "X'FF'", "'a'", "'b'", "'c'"]),
    "decimal": ("k DECIMAL(40, 3)", "k", ["0", "-1.5", "1e30", "2.125", "3", "4", "5"]),
    "double": ("k DOUBLE", "k", ["0", "-1.5", "1e300", "0.1", "3", "1e15", "5"]),
    "float": ("k FLOAT", "k", ["0", "-1.5", "1e30", "0.1", "3", "16777216", "5"]),
    "datetime": (
        "k DATETIME(6)",
        "k",
        [f"'2026-01-0{day} 10:00:00.{day}'" for day in range(1, 8)],
    ),
    "timestamp": ("k TIMESTAMP(3)", "k", [f"'2026-10-25 0{hour}:30:00.5'" for hour in range(7)]),
    "date": ("k DATE", "k", [f"'2026-01-0{day}'" for day in range(1, 8)]),
    "time": ("k TIME(2)", "k", ["'-838:59:59'", *(f"'{n}:00:00.5'" for n in range(6))]),
    "year": ("k YEAR", "k", ["0000", "1901", "2026", "2027", "2028", "2029", "2155"]),
    "bit": ("k BIT(9)", "k", ["0", "1", "2", "3", "4", "5", "511"]),
    "enum": ("k ENUM('b','a','é','d','e','f','g')", "k", ["1", "2", "3", "4", "5", "6", "7"]),
    "set": ("k SET('b','a','é')", "k", ["0", "1", "2", "3", "4", "5", "6"]),
    "two columns": (
        "k INT, `l l` VARCHAR(9)",
        "k, `l l`",
        ["1, 'a'", "1, 'b'", "2, 'a'", "2, 'b'", "3, ''", "4, 'x'", "4, 'y'"],
    ),
}
# The rows in the snapshot.
_WANTED = "v >= 100"


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    where = json.dumps({f"{database}.t": "id >= 100"})
    mirrored = MirroredDatabase(
        spark, live_server, database, tmp_path, startingOffset="snapshot", snapshotWhere=where
    )
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (100, 1), (101, 1)",
    )
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id >= 100")
    return mirrored


def _rows(mirrored: MirroredDatabase, table: str = "t") -> list[str]:
    names, _ = mirrored.select(table)
    rows = (tuple(row.values()) for row in mirrored.rows(table).select(names).to_pylist())
    return sorted(map(repr, rows))


def _selected(mirrored: MirroredDatabase, condition: str, table: str = "t") -> list[str]:
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM `{table}` WHERE {condition}")
        return sorted(map(repr, cursor.fetchall()))


def _unlogged(mirrored: MirroredDatabase, statement: str) -> None:
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(statement)


def test_reload_after_ddl_keeps_changed_rows_outside_snapshot_where(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute("UPDATE t SET n = 20 WHERE id = 2", "INSERT INTO t VALUES (5, 5), (102, 5)")
    mirrored.run()
    mirrored.execute(
        "UPDATE t SET n = 30 WHERE id = 3",
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
        "DELETE FROM t WHERE id = 5",
        "UPDATE t SET c = 8 WHERE id = 101",
    )
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id IN (2, 3) OR id >= 100")


def test_requested_reload_keeps_changed_rows_outside_snapshot_where(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute("UPDATE t SET n = 20 WHERE id < 4")
    mirrored.run()
    _unlogged(mirrored, "UPDATE t SET n = n + 5")
    _unlogged(mirrored, "DELETE FROM t WHERE id IN (1, 100)")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id IN (2, 3) OR id >= 100")
    mirrored.execute("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (6, 6)")
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id IN (3, 6) OR id >= 100")


def test_many_rows_outside_snapshot_where_are_reloaded_by_one_task(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[ChunkPartition] = []

    def counted(options: Options, task: ChunkPartition, *args: Any, **kwargs: Any) -> Any:
        tasks.append(task)
        return read_chunks(options, task, *args, **kwargs)

    monkeypatch.setattr(direct_read, "read_chunks", counted)
    rows = ", ".join(f"({-number}, {number})" for number in range(1, 2600))
    mirrored.execute(f"INSERT INTO t VALUES {rows}")
    mirrored.run()
    mirrored.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    tasks.clear()
    before = mirrored.delta("t").version()
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id < 0 OR id >= 100")
    assert [len(task.selections) for task in tasks if task.selections] == [3]
    operations = [commit["operation"] for commit in mirrored.delta("t").history()[: -before - 1]]
    assert sum(name in {"MERGE", "WRITE"} for name in operations) <= 3, operations


def test_soft_deleted_rows_outside_snapshot_where_stay_after_a_reload(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    where = json.dumps({f"{database}.t": "id >= 100"})
    mirrored = MirroredDatabase(
        spark, live_server, database, tmp_path, startingOffset="snapshot", snapshotWhere=where
    )
    mirrored.settings["soft_delete"] = True
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (100, 1)"
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (2, 2), (3, 3), (4, 4)", "DELETE FROM t WHERE id = 3")
    mirrored.run()
    _unlogged(mirrored, "DELETE FROM t WHERE id = 4")
    mirrored.options["reload"] = f"again: {database}.t"
    mirrored.run()
    found = mirrored.rows("t").to_pylist()
    assert {row["id"]: row["_deleted"] for row in found} == {2: False, 3: True, 4: True, 100: False}


def test_keyless_table_with_snapshot_where_stops_at_ddl_until_a_full_reload(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """Without a key, the mirror cannot know which rows the condition excluded."""
    where = json.dumps({f"{database}.t": "id >= 100"})
    mirrored = MirroredDatabase(
        spark, live_server, database, tmp_path, startingOffset="snapshot", snapshotWhere=where
    )
    mirrored.execute(
        "CREATE TABLE t (id INT, n INT)",
        "INSERT INTO t VALUES (1, 1), (100, 1)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (2, 2)")
    mirrored.run()
    assert _rows(mirrored) == _selected(mirrored, "id IN (2, 100)")
    mirrored.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    mirrored.run()
    assert "remove the table from snapshotWhere" in mirrored.stopped("t")
    del mirrored.options["snapshotWhere"]
    mirrored.options["reload"] = f"again: {database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.fixture(scope="module")
def keyed(
    spark: SparkSession, live_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MirroredDatabase]:
    """Yield a mirror of a table for each of `KEYS`, reloaded after changes of two excluded rows."""
    with new_database(live_server, "snapshot_where") as database:
        tables = {f"{database}.t{number}": _WANTED for number in range(len(KEYS))}
        mirrored = MirroredDatabase(
            spark,
            live_server,
            database,
            tmp_path_factory.mktemp("snapshot_where"),
            startingOffset="snapshot",
            snapshotWhere=json.dumps(tables),
        )
        with live_server.connect(database=database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET NAMES utf8mb4, SESSION time_zone = '+00:00', sql_mode = ''")
            for number, (columns, key, values) in enumerate(KEYS.values()):
                cursor.execute(
                    f"CREATE TABLE t{number} ({columns}, v INT, PRIMARY KEY ({key}))"
                    " CHARACTER SET utf8mb4"
                )
                for row, each in enumerate(values[:-1], 1):
                    v = row if row < 5 else 100 + row
                    cursor.execute(f"INSERT INTO t{number} VALUES ({each}, {v})")
            connection.commit()
            mirrored.run()
            for number, (_, _, values) in enumerate(KEYS.values()):
                cursor.execute(f"DELETE FROM t{number} WHERE v = 2")
                cursor.execute(f"INSERT INTO t{number} VALUES ({values[1]}, 2)")
                cursor.execute(f"UPDATE t{number} SET v = 9 WHERE v = 3")
                cursor.execute(f"UPDATE t{number} SET v = 3 WHERE v = 9")
                cursor.execute(f"INSERT INTO t{number} VALUES ({values[6]}, 50)")
            connection.commit()
            mirrored.run()
            for number in range(len(KEYS)):
                cursor.execute(f"DELETE FROM t{number} WHERE v = 50")
                cursor.execute(f"ALTER TABLE t{number} ADD COLUMN c INT DEFAULT 7")
            connection.commit()
        mirrored.run()
        yield mirrored


@pytest.mark.parametrize("case", range(len(KEYS)), ids=[*KEYS])
def test_rows_outside_snapshot_where_are_reloaded_by_keys_of_any_type(
    keyed: MirroredDatabase, case: int
) -> None:
    table = f"t{case}"
    assert keyed.rows(table).column("c").to_pylist() == [7] * keyed.rows(table).num_rows
    found = sorted(row["v"] for row in keyed.rows(table).to_pylist())
    assert found == [2, 3, *(int(v) for v in _values(keyed, table) if v >= 100)]


def _values(mirrored: MirroredDatabase, table: str) -> list[int]:
    query = f"SELECT v FROM {mirrored.database}.{table} ORDER BY v"
    return [row[0] for row in mirrored.server.execute(query)]


@pytest.mark.parametrize("option", ["snapshotWhere", "partition_by", "both right"])
def test_unknown_table_in_snapshot_where_or_partition_by_is_rejected(
    option: str, spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    where = "typo" if option == "snapshotWhere" else "t"
    mirrored.options["snapshotWhere"] = json.dumps({f"{database}.{where}": "id > 0"})
    by = "typo" if option == "partition_by" else "t"
    mirrored.settings["partition_by"] = {f"{database}.{by}": ["id"]}
    if option == "both right":
        mirrored.run()
        mirrored.assert_equal("t")
        mirrored.options["snapshotWhere"] = json.dumps({f"{database}.typo": "id > 0"})
        mirrored.options["reload"] = f"again: {database}.t"
        option = "snapshotWhere"
    with pytest.raises(StreamingQueryException, match=rf"{option}: .*{database}\.typo"):
        mirrored.run()


def test_snapshot_where_compares_timestamps_in_utc(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    where = json.dumps({f"{database}.t": "at >= '2026-01-01 12:00:00'"})
    mirrored = MirroredDatabase(
        spark, live_server, database, tmp_path, startingOffset="snapshot", snapshotWhere=where
    )
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NULL)",
        "SET time_zone = '+05:00'",
        "INSERT INTO t VALUES (1, '2026-01-01 16:59:59'), (2, '2026-01-01 17:00:00')",
    )
    mirrored.run()
    assert mirrored.rows("t").column("id").to_pylist() == [2]
