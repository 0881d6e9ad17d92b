"""Keys that are equal in Delta but not on the server, or equal on the server but not in Delta."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

pytestmark = pytest.mark.both_engines


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    return MirroredDatabase(spark, live_server, database, tmp_path)


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("ENUM('','a')", ["1", "'zz'"], "the key column k has '', the text of several"),
        ("SET('','a')", ["0", "1", "2", "3"], "the key column k has an empty label"),
        (
            "VARCHAR(9) CHARACTER SET cp932 COLLATE cp932_bin",
            ["_cp932 x'81E6'", "_cp932 x'879A'"],
            "has '∵', which may be shown for several values in the character set cp932",
        ),
        (
            "VARCHAR(9) CHARACTER SET greek COLLATE greek_bin",
            ["_greek x'D2'", "_greek x'FF'"],
            "has '.', which may be shown for several values in the character set greek",
        ),
    ],
    ids=["enum", "set", "cp932", "greek"],
)
def test_distinct_keys_with_the_same_text_stop_the_table(
    mirrored: MirroredDatabase, kind: str, values: list[str], reason: str
) -> None:
    mirrored.execute(
        f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v INT) DEFAULT CHARSET utf8",
        *(f"INSERT IGNORE INTO t VALUES ({value}, {at})" for at, value in enumerate(values)),
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
    )
    assert len(mirrored.select("t")[1]) == len(values)
    mirrored.run()
    assert re.search(reason, mirrored.stopped("t"))
    mirrored.assert_equal("other")


@pytest.mark.parametrize("together", [1, 2, 3], ids="{} in a batch".format)
def test_0_and_minus_0_are_one_key(mirrored: MirroredDatabase, together: int) -> None:
    mirrored.execute(
        "CREATE TABLE d (k DOUBLE PRIMARY KEY, v INT)",
        "CREATE TABLE f (k FLOAT PRIMARY KEY, v INT)",
    )
    mirrored.run()
    statements = (
        "INSERT INTO {} VALUES (0, 1), (1, 1)",
        "UPDATE {} SET k = -0e0, v = 2 WHERE k = 0",
        "UPDATE {} SET k = 0, v = 3 WHERE k = 0",
        "UPDATE {} SET k = -0e0, v = 4 WHERE k = 0",
        "DELETE FROM {} WHERE k = 0",
        "INSERT INTO {} VALUES (-0e0, 5)",
    )
    for begin in range(0, len(statements), together):
        for statement in statements[begin : begin + together]:
            mirrored.execute(*(statement.format(table) for table in "df"))
        mirrored.run()
        mirrored.assert_equal("d", "f")


def test_keyless_tables_with_unsigned_and_decimal_integers_equal_select(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute(
        "CREATE TABLE u (k BIGINT UNSIGNED, v INT)",
        "CREATE TABLE d (k DECIMAL(30), v INT)",
        "CREATE TABLE b (k BIGINT, v INT)",
        *(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (2, 2), (3, 3)" for table in "udb"),
    )
    mirrored.run()
    for statement in (
        "DELETE FROM {} WHERE k = 1",
        "UPDATE {} SET v = 9 WHERE k = 2 LIMIT 1",
        "UPDATE {} SET k = 999999999999999 WHERE k = 3",
        "DELETE FROM {} WHERE k = 999999999999999",
    ):
        mirrored.execute(*(statement.format(table) for table in "udb"))
        mirrored.run()
        for table in "udb":
            rows = mirrored.rows(table).to_pylist()
            found = sorted((int(row["k"]), row["v"]) for row in rows)
            assert found == sorted((int(k), v) for k, v in mirrored.select(table)[1]), table


def test_negative_decimal_fraction_as_partition_stops_the_table(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.settings["partition_by"] = {f"{mirrored.database}.t": ["amount"]}
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, amount DECIMAL(10,2))",
        "INSERT INTO t VALUES (1, 1.05), (2, -1), (3, NULL)",
    )
    mirrored.run()
    mirrored.assert_equal("t")
    mirrored.execute("INSERT INTO t VALUES (4, -0.05)")
    with pytest.raises(Exception, match="every table is stopped"):
        mirrored.run()
    assert re.search("amount .* has a negative value with a fraction", mirrored.stopped("t"))
