"""DeltaMirror after INSERT, UPDATE, DELETE, key changes and TRUNCATE: equal to SELECT."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

pytestmark = pytest.mark.both_engines


def test_two_tables_of_one_query_equal_select(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path)
    mirrored.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20), n DECIMAL(12,2))"
        " DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE `lines` (o INT, `line-no` VARCHAR(9), v INT, PRIMARY KEY (o, `line-no`))"
        " DEFAULT CHARACTER SET utf8mb4",
        "INSERT INTO orders VALUES (1, 'ñ漢', 1.25), (2, NULL, NULL), (3, 'three', -0.01)",
        "INSERT INTO `lines` VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3)",
    )
    mirrored.run()
    mirrored.assert_equal("orders", "lines")
    mirrored.execute(
        # Several changes of one key in a batch, a key that changes, and one that is used again.
        "UPDATE orders SET v = 'again' WHERE id = 1",
        "UPDATE orders SET v = 'and again' WHERE id = 1",
        "UPDATE orders SET id = 20 WHERE id = 2",
        "INSERT INTO orders VALUES (2, 'another', 2)",
        "DELETE FROM orders WHERE id = 3",
        "UPDATE `lines` SET `line-no` = 'c' WHERE o = 1 AND `line-no` = 'a'",
        "UPDATE `lines` SET `line-no` = 'a' WHERE o = 1 AND `line-no` = 'b'",
        "ALTER TABLE orders ADD note VARCHAR(9)",
        "INSERT INTO orders VALUES (4, 'four', 4, 'new')",
    )
    mirrored.run()
    mirrored.assert_equal("orders", "lines")
    mirrored.execute(
        "INSERT INTO `lines` VALUES (8, 'x', 1)",
        "TRUNCATE TABLE `lines`",
        "INSERT INTO `lines` VALUES (9, 'x', 1)",
        "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (1, 'back', 0, NULL)",
    )
    mirrored.run()
    mirrored.assert_equal("orders", "lines")
