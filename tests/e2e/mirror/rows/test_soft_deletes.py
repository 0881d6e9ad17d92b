"""DeltaMirror with `soft_delete`: deleted rows stay, with their last values and a flag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_steps import with_short_steps
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.sync import batch_writer

pytestmark = pytest.mark.both_engines


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    made = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    made.settings["soft_delete"] = True
    made.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), _deleted INT)",
        "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', 4)",
    )
    made.run()
    return made


def _kept(mirrored: MirroredDatabase) -> tuple[list[Any], list[Any]]:
    """Return the live rows, which must equal SELECT, and the soft-deleted rows."""
    rows = mirrored.rows("t").to_pylist()
    there = [row for row in rows if not row["_deleted"]]
    names, selected = mirrored.select("t")
    names = [{"_deleted": "_deleted_"}.get(name, name) for name in names]
    found = sorted((tuple(row[name] for name in names) for row in there), key=repr)
    assert found == selected
    assert all(row["_deleted"] is not None for row in rows)
    gone = [tuple(row[name] for name in names) for row in rows if row["_deleted"]]
    return found, sorted(gone)


def _delete_two(mirrored: MirroredDatabase) -> None:
    """Delete a row by DELETE, and one by an UPDATE of its key; both must stay as deleted rows."""
    mirrored.execute(
        "UPDATE t SET v = 'last' WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET id = 20 WHERE id = 2",
    )
    mirrored.run()
    assert _kept(mirrored)[1] == [(1, "last", 1), (2, "two", 2)]


def test_soft_deletes_survive_sub_batches(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = with_short_steps(monkeypatch)
    # The first batches after a snapshot are a single sub-batch each.
    for value in ("after it", "and once more"):
        mirrored.execute(f"UPDATE t SET v = '{value}' WHERE id = 4")
        mirrored.run()
    _delete_two(mirrored)
    assert steps[-1] == 3


def test_soft_deleted_rows_stay_until_their_key_is_inserted_again(
    mirrored: MirroredDatabase,
) -> None:
    _delete_two(mirrored)
    mirrored.execute(
        "INSERT INTO t VALUES (1, 'back', 5)",
        "INSERT INTO t VALUES (9, 'came and went', 9)",
        "DELETE FROM t WHERE id IN (3, 9)",
    )
    mirrored.run()
    assert _kept(mirrored)[1] == [(2, "two", 2), (3, "three", 3), (9, "came and went", 9)]
    # The columns change while the table has soft-deleted rows.
    mirrored.execute(
        "ALTER TABLE t ADD n INT",
        "INSERT INTO t VALUES (5, 'five', 5, 5)",
        "DELETE FROM t WHERE id = 4",
        "ALTER TABLE t DROP COLUMN n",
    )
    mirrored.run()
    assert _kept(mirrored)[1] == [
        (2, "two", 2),
        (3, "three", 3),
        (4, "four", 4),
        (9, "came and went", 9),
    ]
    mirrored.execute("TRUNCATE TABLE t", "INSERT INTO t VALUES (2, 'anew', 2)")
    mirrored.run()
    found, gone = _kept(mirrored)
    assert found == [(2, "anew", 2)]
    assert {row[0] for row in gone} == {1, 20, 3, 4, 5, 9}


def test_rows_deleted_before_a_new_snapshot_are_marked_as_deleted(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute("DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (7, 'seven', 7)")
    mirrored.run("another checkpoint")
    assert _kept(mirrored)[1] == [(3, "three", 3)]
    mirrored.execute("INSERT INTO t VALUES (3, 'back', 3)")
    mirrored.run("another checkpoint")
    assert _kept(mirrored)[1] == []


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)",),
        ("ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t ADD PRIMARY KEY (v)"),
    ],
    ids=["altered", "in two steps"],
)
def test_soft_deleted_rows_are_removed_when_the_key_changes(
    mirrored: MirroredDatabase, statements: tuple[str, ...]
) -> None:
    """With the new key, a soft-deleted row would collide with a live row."""
    mirrored.execute("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (5, 'one', 5)")
    mirrored.run()
    assert _kept(mirrored)[1] == [(1, "one", 1)]
    mirrored.execute(*statements, "UPDATE t SET _deleted = 50 WHERE id = 5")
    mirrored.run()
    assert _kept(mirrored)[1] == []
    mirrored.execute("DELETE FROM t WHERE id = 5")
    mirrored.run()
    assert _kept(mirrored)[1] == [(5, "one", 50)]


def test_table_with_soft_deletes_recreated_with_another_key_equals_select(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute("INSERT INTO t VALUES (5, 'one', 5)")
    mirrored.run()
    mirrored.execute(
        "DROP TABLE t",
        "CREATE TABLE t (id INT, v VARCHAR(20) PRIMARY KEY, _deleted INT)",
        "INSERT INTO t VALUES (9, 'one', 9)",
    )
    mirrored.run()
    assert _kept(mirrored)[0] == [(9, "one", 9)]


def test_soft_deleted_rows_keep_their_values_when_the_table_is_recreated(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute(
        "DELETE FROM t WHERE id = 1",
        "DROP TABLE t",
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), z INT, _deleted VARCHAR(9))",
        "INSERT INTO t VALUES (2, 'again', 2, 'x')",
    )
    mirrored.run()
    # New columns, and columns of another type, are NULL in these rows.
    kept = [(1, "one", None, None), (3, "three", None, None), (4, "four", None, None)]
    assert _kept(mirrored) == ([(2, "again", 2, "x")], kept)


def test_soft_deleted_rows_stay_when_the_key_is_renamed(mirrored: MirroredDatabase) -> None:
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.run()
    mirrored.execute(
        "ALTER TABLE t CHANGE id number INT", "UPDATE t SET v = 'changed' WHERE number = 2"
    )
    mirrored.run()
    assert _kept(mirrored)[1] == [(1, "one", 1)]
    mirrored.execute("INSERT INTO t VALUES (1, 'back', 1)", "DELETE FROM t WHERE number = 3")
    mirrored.run()
    assert _kept(mirrored)[1] == [(3, "three", 3)]


def test_soft_deleted_rows_stay_when_a_batch_with_a_renamed_key_is_replayed(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.run()
    mirrored.execute("ALTER TABLE t CHANGE id number INT")

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(batch_writer, "record_merge_key", fail)
        with pytest.raises(Exception, match="the disk is full"):
            mirrored.run()
    mirrored.execute("UPDATE t SET v = 'changed' WHERE number = 2")
    mirrored.run()
    assert _kept(mirrored)[1] == [(1, "one", 1)]


def test_virtual_columns_missing_in_updates_stop_no_table(
    mirrored: MirroredDatabase, live_server: Server
) -> None:
    if live_server.version().startswith("5.6"):
        pytest.skip("virtual columns came with 5.7")
    mirrored.execute("ALTER TABLE t ADD w TEXT AS (CONCAT(v, '!')) VIRTUAL")
    mirrored.run()
    mirrored.execute(
        "UPDATE t SET v = 'uno' WHERE id = 1",
        "UPDATE t SET id = 20 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
    )
    mirrored.run()
    assert _kept(mirrored)[1][-1] == (3, "three", 3, "three!")


def test_soft_delete_without_a_full_row_image_stops_the_table(mirrored: MirroredDatabase) -> None:
    mirrored.execute("SET SESSION binlog_row_image = MINIMAL", "DELETE FROM t WHERE id = 1")
    with pytest.raises(Exception, match="every table is stopped"):
        mirrored.run()
    assert "binlog_row_image=FULL" in mirrored.stopped("t")


def test_soft_delete_mode_cannot_change(mirrored: MirroredDatabase) -> None:
    mirrored.settings["soft_delete"] = False
    mirrored.execute("DELETE FROM t WHERE id = 3")
    with pytest.raises(Exception, match="created by a mirror that is to keep deleted rows"):
        mirrored.run()
    assert _kept_ids(mirrored) == [1, 2, 3, 4]


def _kept_ids(mirrored: MirroredDatabase) -> list[int]:
    return sorted(row["id"] for row in mirrored.rows("t").to_pylist())
