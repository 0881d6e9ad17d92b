"""Columns whose names are invalid or reserved in Delta: SELECT's rows, with documented names."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.delta.store.places.paths import PathTemplate

pytestmark = pytest.mark.both_engines

_CREATE = (
    "CREATE TABLE t (`the key` INT, _seq VARCHAR(9), `_TOMBSTONE` INT, `_row_number` INT,"
    " `x.y` INT, `q\"'` INT, PRIMARY KEY (`the key`, _seq))"
)
_FILL = (
    "INSERT INTO t VALUES (1, 'a', 10, 100, 7, 8), (2, 'b', 20, 200, 7, 8), (3, 'c', 0, 0, 0, 0)"
)


def test_columns_with_invalid_names_are_renamed_or_stop_the_table(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(
        _CREATE,
        _FILL,
        "CREATE TABLE alike (id INT PRIMARY KEY, `a b` INT, a_b INT)",
        "INSERT INTO alike VALUES (1, 2, 3)",
    )
    mirrored.run()
    mirrored.execute(
        "UPDATE t SET `_TOMBSTONE` = 11 WHERE `the key` = 1",
        "UPDATE t SET _seq = 'B' WHERE `the key` = 2",
        "UPDATE t SET `the key` = 30 WHERE `the key` = 3",
        "DELETE FROM t WHERE `the key` = 30",
        "ALTER TABLE t CHANGE `x.y` `x y` BIGINT",
        "ALTER TABLE t CHANGE `x y` `x_y` BIGINT",
        "ALTER TABLE t ADD `more = less` INT",
        "INSERT INTO t VALUES (4, 'd', 40, 400, 1, 2, 3)",
    )
    mirrored.run()
    rows = mirrored.rows("t")
    assert rows.column_names == [
        *("the_key", "_seq_", "_TOMBSTONE_", "_row_number_", "x_y", "q\"'", "more___less")
    ]
    found = sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)
    assert found == mirrored.select("t")[1]
    assert len(found) == 3
    assert "'a b' and 'a_b' would both be 'a_b' in Delta" in mirrored.stopped("alike")


def test_tables_with_special_characters_in_names_are_mirrored_to_own_paths(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    names = [
        "order details",
        "a%20b",
        "x/y",
        "..",
        "a#b?c",
        "größe~",
        "p:q",
        "[s]",
        "_delta_log",
        "plain",
    ]
    for number, name in enumerate(names):
        mirrored.execute(
            f"CREATE TABLE `{name}` (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO `{name}` VALUES (1, {number}), (2, 2)",
        )
    mirrored.run()
    for name in names:
        mirrored.execute(f"UPDATE `{name}` SET v = v + 1 WHERE id = 1")
    mirrored.run()
    targets = PathTemplate.parse(f"{tmp_path}/lake/{{database}}/{{table}}")
    for number, name in enumerate(names):
        held = DeltaTable(targets.render((database, name))).to_pyarrow_table().to_pylist()
        assert {(row["id"], row["v"]) for row in held} == {(1, number + 1), (2, 2)}, name
    assert len(list((tmp_path / "lake" / database).iterdir())) == len(names)
