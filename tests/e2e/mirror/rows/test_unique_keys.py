"""DeltaMirror of tables without a primary key that have a UNIQUE key of NOT NULL columns."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server


def test_table_with_a_unique_key_and_no_primary_key_equals_select(
    spark: SparkSession, any_server: Server, any_database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(
        spark, any_server, any_database, tmp_path, startingOffset="snapshot"
    )
    mirrored.execute(
        # Values that differ only in case or accents are equal on the server, and distinct in Delta.
        "CREATE TABLE words (w VARCHAR(20) NOT NULL, n INT, UNIQUE (w))"
        " DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        "INSERT INTO words VALUES ('a', 1), ('b', 2), ('ñ', 3)",
        "CREATE TABLE prefixes (v INT, w VARCHAR(40) NOT NULL, UNIQUE p (w(3)))",
        "INSERT INTO prefixes VALUES (1, 'abcd'), (2, 'abxx')",
        "CREATE TABLE numbers (f DOUBLE NOT NULL, v INT, UNIQUE (f))",
        "INSERT INTO numbers VALUES (0e0, 1), (1.5, 2)",
        "CREATE TABLE pairs (a INT NOT NULL, b INT NOT NULL, v INT NOT NULL, UNIQUE (a),"
        " UNIQUE ab (a, b))",
        "INSERT INTO pairs VALUES (1, 1, 1), (2, 2, 2)",
    )
    mirrored.run()
    tables = ("words", "prefixes", "numbers", "pairs")
    mirrored.assert_equal(*tables)
    mirrored.execute(
        "UPDATE words SET w = 'A' WHERE w = 'a'",
        "UPDATE words SET w = 'n' WHERE w = 'ñ'",
        "UPDATE words SET n = 20 WHERE w = 'B'",
        "DELETE FROM prefixes WHERE v = 1",
        "INSERT INTO prefixes VALUES (3, 'abcd')",
        "UPDATE prefixes SET w = 'abyy' WHERE v = 2",
        # The values are equal on the server, but their bytes differ.
        "UPDATE numbers SET f = -f WHERE f = 0",
        "UPDATE pairs SET a = 3 WHERE a = 1",
    )
    mirrored.run()
    mirrored.assert_equal(*tables)
    mirrored.execute(
        "UPDATE numbers SET v = 9 WHERE f = 0",
        # From here on, the mirror uses another key.
        "DROP INDEX a ON pairs",
        "INSERT INTO pairs VALUES (3, 9, 9)",
        "ALTER TABLE pairs DROP INDEX ab, ADD UNIQUE vs (v, a)",
        "INSERT INTO pairs VALUES (3, 9, 10), (4, 9, 10)",
        "UPDATE pairs SET b = 7 WHERE v = 10",
        "ALTER TABLE pairs CHANGE v w INT NOT NULL",
        "UPDATE pairs SET w = 11 WHERE a = 4",
        "DELETE FROM pairs WHERE w = 9",
    )
    mirrored.run()
    mirrored.assert_equal(*tables)
