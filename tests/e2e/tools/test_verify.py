"""`verify` finds exactly the differences between MySQL and Delta, also while both are written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, Self

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.connector.verification.results import TableResult
from pyspark_mysqlbinlog.connector.verification.verifier import Verifier

_TYPES = (
    "CREATE TABLE kinds (id INT PRIMARY KEY, a INT, s VARCHAR(9) COLLATE utf8mb4_general_ci,"
    " f DOUBLE, d DECIMAL(9,2), b VARBINARY(9), w DATETIME(3), g POINT, e ENUM('x','y'),"
    " i BIGINT UNSIGNED, l FLOAT, y DATE, z TIMESTAMP NULL, u TIME(2), r YEAR, k BIT(9),"
    " x SET('p','q'), m TEXT, o DECIMAL(50,3), j {json}) DEFAULT CHARSET utf8mb4"
)
_ROW = (
    "1, 'a ', -0.5, 1.20, x'00ff', '2026-01-02 03:04:05.006', POINT(1, 2), 'x',"
    " 18446744073709551615, 0.1, '2026-01-02', '2026-01-02 03:04:05', '-01:02:03.40', 2026, 257,"
    " 'p,q', 'text', 1234567890123456789012345678901234567890.125,"
    """ '{"b": [5.0, 1e2, 1.10, "x"], "a": 18446744073709551615}'"""
)
_NOTHING: dict[str, list[Any]] = {"bag": [], "kinds": [], "named": []}
_INVALID = (
    "NULL, '', -0e0, 0, '', '0000-00-00', NULL, '', 0, -0e0, '0000-00-00', NULL, '00:00:00', 0, 0,"
    " '', '', 0, NULL"
)


def verify(
    mirrored: MirroredDatabase, tables: str = "*", **settings: Any
) -> dict[str, TableResult]:
    options = mirrored.server.options(
        **{name: value for name, value in mirrored.options.items() if name != "startingOffset"}
        | {"tables": f"{mirrored.database}.{tables}"}
    )
    target = f"{mirrored.folder}/lake/{{database}}/{{table}}"
    texts = {name: str(value) for name, value in options.items()}
    results = [*Verifier(texts, target, **({"timeout": 2.0, "shown": 100} | settings)).results()]
    return {result.table[1]: result for result in results}


def kinds(result: TableResult) -> list[tuple[str, Any, tuple[str, ...]]]:
    """Return the differences as kind, key and differing columns."""
    assert result.is_complete, result.reason
    assert sum(result.counts.values()) == len(result.shown)
    found = [(each.kind, *each.row.values(), each.columns) for each in result.shown]
    return sorted(found, key=repr)


def unlogged(mirrored: MirroredDatabase, *statements: str) -> None:
    """Execute statements that are not written to the binlog."""
    mirrored.execute("SET sql_log_bin = 0", "SET sql_mode = ''", *statements)


def test_verify_finds_exactly_the_planted_differences(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path)
    mirrored.execute(
        "SET sql_mode = ''",
        _TYPES.replace("{json}", "TEXT" if any_server.version().startswith("5.6.") else "JSON"),
        "CREATE TABLE bag (a INT, s VARCHAR(9)) CHARSET utf8mb4",
        "CREATE TABLE named (`unit price` INT, `_seq` VARCHAR(9), n INT,"
        " PRIMARY KEY (`_seq`, `unit price`)) CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        f"INSERT INTO kinds VALUES (1, {_INVALID})",
        *(f"INSERT INTO kinds VALUES ({number}, {_ROW})" for number in range(2, 40)),
        "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (1, 'A'), (2, NULL), (2, ''), (3, 'c')",
        "INSERT INTO named VALUES (1, 'a', 1), (2, 'a', 1), (1, 'b', 1)",
    )
    mirrored.run()
    assert {name: kinds(each) for name, each in verify(mirrored).items()} == _NOTHING
    changes = {
        2: ("s", "s = 'a'"),  # a trailing space
        3: ("s", "s = 'A '"),  # equal in the collation
        4: ("f", "f = 0.5"),  # only the sign
        5: ("d", "d = 1.21"),
        6: ("b", "b = x'00fe'"),
        7: ("w", "w = '2026-01-02 03:04:05.007'"),
        8: ("g", "g = POINT(1, 3)"),
        9: ("e", "e = 'y'"),
        10: ("i", "i = 18446744073709551614"),
        11: ("l", "l = 0.10000002"),
        12: ("y", "y = NULL"),
        13: ("z", "z = '2026-01-02 03:04:06'"),
        14: ("u", "u = '01:02:03.40'"),
        15: ("r", "r = 2027"),
        16: ("k", "k = 256"),
        17: ("x", "x = 'p'"),
        18: ("m", "m = ''"),  # an empty text
        19: ("o", "o = 1234567890123456789012345678901234567890.124"),
        20: ("a", "a = NULL"),
        25: ("j", """j = '{"b": [5.0, 1e2, 1.11, "x"], "a": 18446744073709551615}'"""),
        1: ("f", "f = 1e-300"),
    }
    unlogged(
        mirrored,
        *(f"UPDATE kinds SET {what} WHERE id = {number}" for number, (_, what) in changes.items()),
        "DELETE FROM kinds WHERE id = 21",
        f"INSERT INTO kinds VALUES (50, {_ROW})",
        "DELETE FROM bag WHERE a = 1 AND BINARY s = 'a' LIMIT 1",
        "INSERT INTO bag VALUES (3, 'c'), (4, 'd')",
        "UPDATE bag SET s = '' WHERE s IS NULL",
        "UPDATE named SET `_seq` = 'A' WHERE `_seq` = 'a' AND `unit price` = 2",
    )
    mirrored.delta("kinds").delete("id IN (22, 23)")
    write_deltalake(mirrored.delta("kinds"), _copies(mirrored, "kinds", 24), mode="append")
    results = verify(mirrored)
    expected: list[Any] = [("different", number, (name,)) for number, (name, _) in changes.items()]
    expected += [("extra", 21, ()), ("missing", 50, ()), ("missing", 22, ()), ("missing", 23, ())]
    expected += [("duplicate", 24, ())]
    assert kinds(results["kinds"]) == sorted(expected, key=repr)
    bag = results["bag"]
    assert bag.is_complete
    found = {(*each.row.values(), each.server, each.delta) for each in bag.shown}
    assert found == {(1, "a", 1, 2), (3, "c", 2, 1), (4, "d", 1, 0), (2, None, 0, 1), (2, "", 2, 1)}
    named = [(each.kind, each.row) for each in results["named"].shown]
    assert sorted(named, key=repr) == [
        ("extra", {"_seq_": "a", "unit_price": 2}),
        ("missing", {"_seq_": "A", "unit_price": 2}),
    ]


def _copies(mirrored: MirroredDatabase, table: str, number: int) -> pa.Table:
    return mirrored.delta(table).to_pyarrow_table(filters=[("id", "=", number)])


def test_verify_ignores_changes_that_are_not_yet_applied(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE bag (n INT)",
        "CREATE TABLE quiet (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (9, 9)",
        "INSERT INTO quiet VALUES (1, 1), (2, 2)",
        "INSERT INTO bag VALUES (1), (1), (2)",
    )
    mirrored.run()
    unlogged(mirrored, "UPDATE t SET n = 0 WHERE id = 4", "UPDATE quiet SET n = 0 WHERE id = 2")
    mirrored.execute(
        "UPDATE t SET n = 10 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "UPDATE t SET id = 5 WHERE id = 3",
        "INSERT INTO t VALUES (8, 8)",
        # Changed, and changed back.
        "UPDATE t SET n = 10 WHERE id = 9",
        "UPDATE t SET n = 9 WHERE id = 9",
        "INSERT INTO bag VALUES (1), (3)",
    )
    results = verify(mirrored)
    assert kinds(results["t"]) == [("different", 4, ("n",))]
    assert results["t"].pending == 5
    assert (results["bag"].counts, results["bag"].unconfirmed) == ({}, 2)
    assert "start the mirror" in str(results["bag"].reason)
    assert kinds(results["quiet"]) == [("different", 2, ("n",))]
    mirrored.delta("t").update(updates={"n": "7"}, predicate="id IN (1, 9)")
    # The expected values are those before the pending changes.
    assert kinds(verify(mirrored, "t")["t"]) == [
        ("different", 1, ("n",)),
        ("different", 4, ("n",)),
        ("different", 9, ("n",)),
    ]
    mirrored.execute("TRUNCATE t")
    assert verify(mirrored, "t")["t"].unconfirmed == 5


def test_verify_lists_differences_among_many_changes_that_are_not_yet_applied(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """Values are kept of the first rows that are compared again; the others have their key."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    numbers = ", ".join(f"({number}, {number}, 0)" for number in range(300))
    mirrored.execute(
        "CREATE TABLE t (a BIGINT UNSIGNED, b INT, n INT, PRIMARY KEY (b, a))",
        f"INSERT INTO t VALUES {numbers}",
    )
    mirrored.run()
    planted = (5, 77, 298)
    unlogged(mirrored, f"UPDATE t SET n = 1 WHERE a IN {planted}")
    mirrored.execute(f"UPDATE t SET n = 2 WHERE a NOT IN {planted}")
    result = verify(mirrored, shown=3)["t"]
    assert (result.counts, result.pending) == ({"different": 3}, 297)
    found = sorted(result.shown, key=lambda each: each.row["b"])
    assert [dict(each.row) for each in found] == [{"b": each, "a": each} for each in planted]
    assert {each.columns for each in found} <= {(), ("n",)}
    # With a higher limit the values of all rows are kept.
    assert sorted((each.row["b"], each.columns) for each in verify(mirrored)["t"].shown) == [
        (each, ("n",)) for each in planted
    ]


def test_verify_respects_soft_deletes_snapshot_where_and_excluded_columns(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    where = json.dumps({f"{database}.part": "id > 2"})
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        snapshotWhere=where,
        excludeColumns=f"{database}.soft.secret",
    )
    mirrored.settings["soft_delete"] = True
    mirrored.execute(
        "CREATE TABLE soft (id INT PRIMARY KEY, n INT, secret INT)",
        "CREATE TABLE part (id INT PRIMARY KEY, n INT)",
        "INSERT INTO soft VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        "INSERT INTO part VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    )
    mirrored.run()
    mirrored.execute(
        "DELETE FROM soft WHERE id = 1",
        # The row is in Delta from here on.
        "UPDATE part SET n = 0 WHERE id = 1",
    )
    mirrored.run()
    assert all(kinds(result) == [] for result in verify(mirrored).values())
    unlogged(
        mirrored,
        "DELETE FROM soft WHERE id = 2",
        "UPDATE soft SET secret = 0 WHERE id = 3",
        "UPDATE part SET n = 9 WHERE id IN (1, 2, 4)",
        "INSERT INTO part VALUES (5, 5)",
        "INSERT INTO soft VALUES (1, 1, 1)",
    )
    results = verify(mirrored)
    assert kinds(results["soft"]) == [("extra", 2, ()), ("missing", 1, ())]
    assert kinds(results["part"]) == [
        ("different", 1, ("n",)),
        ("different", 4, ("n",)),
        ("missing", 5, ()),
    ]


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=patience(300)
    )


def test_verify_command_shows_differences_and_a_reload_option_for_repair(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"
    )
    mirrored.run()
    password = tmp_path / "password"
    password.write_text(live_server.password, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "verify"]
    command += ["--host", live_server.host, "--port", str(live_server.port)]
    command += ["--user", live_server.user, "--password-file", str(password)]
    command += ["--target", f"{tmp_path}/lake/{{database}}/{{table}}", "--timeout", "1"]
    command += ["--tables", f"{database}.t"]
    equal = run(command)
    assert (equal.returncode, equal.stderr) == (0, "")
    assert "3 rows in MySQL and 3 in Delta, no difference" in equal.stdout
    unlogged(mirrored, "UPDATE t SET n = 7 WHERE id < 3", "DELETE FROM t WHERE id = 3")
    different = run([*command, "--show", "1", "--reload"])
    assert different.returncode == 1, different.stderr
    assert "3 differences: 2 different, 1 extra in Delta" in different.stdout
    assert "  and 2 more" in different.stdout
    assert f"`{database}`.`t`'" in different.stderr
    shown = run([*command, "--json"])
    assert shown.returncode == 1
    line = json.loads(shown.stdout)
    assert line["differences"] == {"different": 2, "extra": 1}
    # The suggested option repairs the table.
    option = different.stderr.partition("'reload=")[2].rstrip("'\n")
    mirrored.options["reload"] = option
    mirrored.run()
    assert run(command).returncode == 0
    mirrored.execute("INSERT INTO t VALUES (4, 4)")
    without_changes = run(command)
    assert without_changes.returncode == 0, without_changes.stderr
    assert "after which the binlog changes 1 row" in without_changes.stdout
    mirrored.execute("TRUNCATE t")
    unclear = run(command)
    assert unclear.returncode == 3, unclear.stderr
    assert "not confirmed" in unclear.stdout
    assert run([*command, "--option", "payload=json"]).returncode == 2
    assert run([*command[:-1], f"{database}.none"]).returncode == 1


@pytest.mark.sample(1)
def test_verify_under_load_finds_exactly_the_planted_differences(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path)
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20)) CHARSET utf8mb4",
        "CREATE TABLE bag (n INT)",
        *(f"INSERT INTO t VALUES ({number}, 0, 'text')" for number in range(100)),
        "INSERT INTO bag VALUES (1), (2), (3), (3)",
    )
    mirrored.run()
    query = mirrored.mirror().start(spark, processingTime="0 seconds")
    try:
        with _Writer(any_server, any_database) as writer:
            for _ in range(3):
                results = verify(mirrored, timeout=3.0)
                assert not results["t"].shown, results["t"]
                assert not results["bag"].shown, results["bag"]
            # The writer changes rows 1 to 49 of `t`, and rows with n = 1 of `bag`.
            unlogged(
                mirrored,
                "UPDATE t SET s = 'Text' WHERE id = 60",
                "DELETE FROM t WHERE id = 61",
                "INSERT INTO t VALUES (-1, 0, 'text')",
                "DELETE FROM bag WHERE n = 3 LIMIT 1",
            )
            results = verify(mirrored, timeout=3.0)
            wait_until(lambda: writer.count > 20, "rows are changed all the time")
    finally:
        query.stop()
    assert sorted((each.kind, each.row["id"]) for each in results["t"].shown) == [
        ("different", 60),
        ("extra", 61),
        ("missing", -1),
    ]
    bag = [(each.row["n"], each.server, each.delta) for each in results["bag"].shown]
    assert bag == [(3, 1, 2)]


class _Writer:
    """A thread that changes rows during a block, three of them all the time."""

    def __init__(self, server: Server, database: str) -> None:
        self.count = 0
        self._server, self._database = server, database
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread.is_alive(), "the writer has failed"
        self._stopped.set()
        self._thread.join(patience(60))

    def _run(self) -> None:
        random = Random(5)
        with self._server.connect(database=self._database, autocommit=True) as connection:
            cursor = connection.cursor()
            while not self._stopped.wait(0.005):
                row = random.choice([1, 2, 3, random.randrange(4, 50)])
                for statement in random.choice(
                    [
                        ["UPDATE t SET n = 1 - n WHERE id = {row}"],
                        [
                            "UPDATE t SET s = 'a' WHERE id = {row}",
                            "UPDATE t SET s = 'text' WHERE id = {row}",
                        ],
                        [
                            "DELETE FROM t WHERE id = {row}",
                            "INSERT INTO t VALUES ({row}, 0, 'text')",
                        ],
                        ["INSERT INTO bag VALUES (1)"],
                        ["DELETE FROM bag WHERE n = 1 LIMIT 1"],
                    ]
                ):
                    cursor.execute(statement.format(row=row))
                    self.count += 1
