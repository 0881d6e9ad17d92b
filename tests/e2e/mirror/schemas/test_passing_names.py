"""Table names that are used only within a part of one batch, and by no table at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of, log_of, replayed, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

_COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
_NEW = (f"CREATE TABLE n {_COLUMNS}", "INSERT INTO n VALUES (1, 'new'), (4, 'new')")
_SWAP = [*_NEW, "RENAME TABLE t TO x, n TO t"]
# Statements, and whether the stream has a row of the table name `x`, which no table has after them.
CASES: list[tuple[list[str], bool]] = [
    (["RENAME TABLE t TO x, x TO t"], True),
    (["RENAME TABLE t TO x", "RENAME TABLE x TO t"], False),
    (["ALTER TABLE t RENAME x", "ALTER TABLE x RENAME t"], False),
    ([*_SWAP, "DROP TABLE x"], True),
    ([*_NEW, "RENAME TABLE t TO x, n TO t, x TO n", "DROP TABLE n"], True),
    ([*_SWAP, "RENAME TABLE x TO n"], True),
    (
        [*_NEW, "RENAME TABLE t TO x", "UPDATE x SET v = 'x' WHERE id = 2", "RENAME TABLE x TO t"],
        True,
    ),
    (
        [
            *_SWAP,
            "UPDATE x SET v = 'x' WHERE id = 2",
            "DELETE FROM x WHERE id = 1",
            "DROP TABLE x",
        ],
        True,
    ),
    (
        [
            *_NEW,
            *("RENAME TABLE t TO x", "DROP TABLE x", f"CREATE TABLE x {_COLUMNS}"),
            *("INSERT INTO x VALUES (9, 'x')", "DROP TABLE x", "RENAME TABLE n TO t"),
        ],
        True,
    ),
]


def _mirrored(spark: SparkSession, server: Server, database: str, folder: Path) -> MirroredDatabase:
    mirrored = MirroredDatabase(spark, server, database, folder, startingOffset="snapshot")
    mirrored.settings["change_log"] = change_log_of(mirrored)
    mirrored.execute(
        f"CREATE TABLE t {_COLUMNS}", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    )
    _run(mirrored)
    return mirrored


def _run(mirrored: MirroredDatabase, checkpoint: str = "checkpoint") -> None:
    """Run a mirror; no table may be stopped after it."""
    mirror = mirrored.mirror(checkpoint)
    mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    assert mirror.stopped == {}


def _assert_right(mirrored: MirroredDatabase) -> None:
    mirrored.assert_equal("t")
    assert_replay(mirrored, "t", "id")
    if log_of(mirrored, "x").exists():
        assert replayed(rows_of_log(mirrored, "x"), "id") == []


@pytest.mark.parametrize("case", range(len(CASES)))
def test_tables_equal_select_after_a_table_name_used_only_within_one_batch(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, case: int
) -> None:
    statements, is_logged = CASES[case]
    mirrored = _mirrored(spark, live_server, database, tmp_path)
    mirrored.execute(*statements)
    _run(mirrored)
    _assert_right(mirrored)
    # If the stream has no row of `x`, there is no change log of `x`.
    assert log_of(mirrored, "x").exists() == is_logged
    if "UPDATE x" in " ".join(statements):
        assert "u" in {row["op"] for row in rows_of_log(mirrored, "x")}
    mirrored.execute("REPLACE INTO t VALUES (3, 'last'), (7, 'last')")
    _run(mirrored)
    _assert_right(mirrored)


@pytest.mark.parametrize("becomes", ["goes on", "is lost"])
def test_tables_equal_select_after_a_temporary_table_name_is_used_again(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, becomes: str
) -> None:
    """The change log of the name exists already, and may lack changes between the two uses."""
    mirrored = _mirrored(spark, live_server, database, tmp_path)
    swap = [*_SWAP, "DELETE FROM x", "DROP TABLE x"]
    mirrored.execute(*swap)
    _run(mirrored)
    checkpoint = "checkpoint"
    if becomes == "is lost":
        checkpoint = "another checkpoint"
        # The change log of `x` contains none of these changes.
        mirrored.execute("CREATE TABLE x (id INT)", "INSERT INTO x VALUES (5)", "DROP TABLE x")
        _run(mirrored, checkpoint)
    mirrored.execute(*swap)
    _run(mirrored, checkpoint)
    _assert_right(mirrored)
    rows = rows_of_log(mirrored, "x")
    assert [row["op"] for row in rows].count("d") == 3 + 2
    # A table that keeps the name `x` is reloaded and mirrored.
    mirrored.execute("RENAME TABLE t TO x", f"CREATE TABLE t {_COLUMNS}")
    _run(mirrored, checkpoint)
    mirrored.execute("DELETE FROM x WHERE id = 1", "INSERT INTO t VALUES (1, 'b')")
    _run(mirrored, checkpoint)
    for table in ("t", "x"):
        mirrored.assert_equal(table)
        assert_replay(mirrored, table, "id")
