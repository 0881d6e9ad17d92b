"""The effect of DDL on existing rows, one statement per line."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.decoder.sql.alter.apply import apply_alter
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, ddl_effect
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_create_table
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext

BEFORE = parse_create_table(
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9), e ENUM('a','b'), d DECIMAL(9,2),"
    " tx TEXT, b BINARY(4), dt DATETIME, l CHAR(5) CHARACTER SET latin1, f FLOAT(10,4), g DOUBLE)"
    " CHARSET utf8",
    "d",
    None,
)
SHAPE, CHANGING, LOSING = DdlEffect

CASES = [
    ("ALTER TABLE t ADD z INT", SHAPE),
    ("ALTER TABLE t ADD z INT DEFAULT NULL AFTER id, ADD INDEX (n), COMMENT 'x'", SHAPE),
    ("ALTER TABLE t ADD z INT DEFAULT 5", CHANGING),
    ("ALTER TABLE t ADD z INT NOT NULL", CHANGING),
    ("ALTER TABLE t ADD (y INT, z TIMESTAMP DEFAULT CURRENT_TIMESTAMP)", CHANGING),
    ("ALTER TABLE t ADD z INT AS (n + 1)", CHANGING),
    ("ALTER TABLE t CHANGE n m INT, ADD n VARCHAR(9)", CHANGING),
    ("ALTER TABLE t CHANGE n m INT, ADD n INT AFTER id", CHANGING),
    ("ALTER TABLE t CHANGE n m INT, ADD n INT NOT NULL", CHANGING),
    ("ALTER TABLE t CHANGE n s INT, CHANGE s n VARCHAR(9)", CHANGING),
    ("ALTER TABLE t RENAME COLUMN s TO tx, RENAME COLUMN tx TO s", CHANGING),
    ("ALTER TABLE t CHANGE n id INT, CHANGE id k INT", CHANGING),
    ("ALTER TABLE t CHANGE n N INT", SHAPE),
    ("ALTER TABLE t ADD z INT, MODIFY z BIGINT AFTER id", SHAPE),
    ("ALTER TABLE t ADD z INT, MODIFY z BIGINT DEFAULT 5", CHANGING),
    ("ALTER TABLE t DROP n", LOSING),
    ("ALTER TABLE t DROP n, ADD z INT DEFAULT 5", LOSING),
    ("ALTER TABLE t CHANGE n m INT", SHAPE),
    ("ALTER TABLE t RENAME COLUMN n TO m", SHAPE),
    ("ALTER TABLE t CHANGE n m BIGINT FIRST", SHAPE),
    ("ALTER TABLE t MODIFY n SMALLINT", CHANGING),
    ("ALTER TABLE t MODIFY n INT UNSIGNED", CHANGING),
    ("ALTER TABLE t MODIFY n INT NOT NULL", CHANGING),
    ("ALTER TABLE t MODIFY id INT AUTO_INCREMENT COMMENT 'x'", CHANGING),
    ("ALTER TABLE t MODIFY s VARCHAR(20)", SHAPE),
    ("ALTER TABLE t MODIFY s VARCHAR(5)", CHANGING),
    ("ALTER TABLE t MODIFY s VARCHAR(9) CHARACTER SET latin1", CHANGING),
    ("ALTER TABLE t MODIFY s TEXT", CHANGING),
    ("ALTER TABLE t MODIFY tx MEDIUMTEXT", SHAPE),
    ("ALTER TABLE t MODIFY b BINARY(5)", CHANGING),
    ("ALTER TABLE t MODIFY e ENUM('a','b','c')", SHAPE),
    ("ALTER TABLE t MODIFY e ENUM('b','a')", CHANGING),
    ("ALTER TABLE t MODIFY d DECIMAL(11,2)", SHAPE),
    ("ALTER TABLE t MODIFY d DECIMAL(9,3)", CHANGING),
    ("ALTER TABLE t MODIFY dt DATETIME(3)", CHANGING),
    ("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT", CHANGING),
    ("ALTER TABLE t MODIFY id INT SERIAL DEFAULT VALUE", CHANGING),
    ("ALTER TABLE t MODIFY f FLOAT(5,1)", CHANGING),
    ("ALTER TABLE t MODIFY f FLOAT(5)", SHAPE),
    ("ALTER TABLE t CHANGE g h REAL(8,2)", CHANGING),
    ("ALTER TABLE t MODIFY g DOUBLE", SHAPE),
    ("ALTER TABLE t ADD z FLOAT(5,1)", SHAPE),
    ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", CHANGING),
    ("ALTER TABLE t DEFAULT CHARACTER SET utf8mb4, ALTER n SET DEFAULT 3", SHAPE),
    ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)", SHAPE),
    ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)", CHANGING),
    ("ALTER TABLE t RENAME u, ENGINE=InnoDB, ORDER BY n", SHAPE),
    ("ALTER TABLE t ENGINE=BLACKHOLE", LOSING),
    ("ALTER IGNORE TABLE t ADD UNIQUE (n)", LOSING),
    ("ALTER TABLE t TRUNCATE PARTITION p", LOSING),
    ("ALTER TABLE t DROP PARTITION p, q", LOSING),
    ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", LOSING),
    ("ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (9))", SHAPE),
    ("ALTER TABLE t ADD PARTITION (PARTITION q VALUES LESS THAN (9))", SHAPE),
    ("ALTER TABLE t DISCARD TABLESPACE", LOSING),
    ("ALTER TABLE t FROBNICATE", LOSING),
    ("DROP INDEX `PRIMARY` ON t", SHAPE),
    ("CREATE UNIQUE INDEX i ON t (n)", SHAPE),
    ("RENAME TABLE t TO u", SHAPE),
    ("RENAME TABLE t TO old, new TO t", CHANGING),
    ("CREATE TABLE t (id INT)", SHAPE),
    ("CREATE OR REPLACE TABLE t (id INT)", LOSING),
    ("CREATE TABLE t LIKE u", SHAPE),
    ("DROP TABLE t, u", LOSING),
    ("TRUNCATE TABLE t", LOSING),
    ("DROP DATABASE d", LOSING),
    ("CREATE OR REPLACE DATABASE d", LOSING),
    ("ALTER DATABASE d CHARSET utf8", SHAPE),
]


@pytest.mark.parametrize(("sql", "effect"), CASES)
def test_ddl_effect_on_existing_rows_is_classified(sql: str, effect: DdlEffect) -> None:
    statement = classify(sql, "d")
    after = None
    if statement.kind is StatementKind.ALTER_TABLE and "FROBNICATE" not in sql:
        after = apply_alter(sql, BEFORE, None, None)
    assert ddl_effect(statement, sql, BEFORE, after) is effect


WITH_GENERATED = [
    ("ALTER TABLE t MODIFY z INT(6) ZEROFILL", CHANGING),
    ("ALTER TABLE t CHANGE z y INT(3) ZEROFILL", CHANGING),
    ("ALTER TABLE t ALTER z SET DEFAULT 7", CHANGING),
    ("ALTER TABLE t ALTER COLUMN z DROP DEFAULT", CHANGING),
    ("ALTER TABLE t FORCE", CHANGING),
    ("ALTER TABLE t ENGINE=InnoDB", CHANGING),
    ("ALTER TABLE t ADD y INT, ALGORITHM=COPY", CHANGING),
    ("ALTER TABLE t PARTITION BY HASH (id)", CHANGING),
    ("ALTER TABLE t REMOVE PARTITIONING", CHANGING),
    ("ALTER TABLE t ORDER BY z", CHANGING),
    ("ALTER TABLE t CONVERT TO CHARACTER SET utf8", CHANGING),
    ("ALTER TABLE t ADD y INT, ALGORITHM=INPLACE", SHAPE),
    ("ALTER TABLE t RENAME COLUMN z TO y", SHAPE),
    ("ALTER TABLE t ALTER INDEX i INVISIBLE", SHAPE),
    ("ALTER TABLE t ALTER z SET INVISIBLE", SHAPE),
    ("ALTER TABLE t ADD INDEX (z), COMMENT 'x'", SHAPE),
    ("ALTER TABLE t RENAME u", SHAPE),
]


@pytest.mark.parametrize("kept", ["VIRTUAL", "STORED"])
@pytest.mark.parametrize(("sql", "effect"), WITH_GENERATED)
def test_statement_that_may_compute_generated_columns_again_changes_rows(
    sql: str, effect: DdlEffect, kept: str
) -> None:
    create = f"CREATE TABLE t (id INT PRIMARY KEY, z INT(3) ZEROFILL, g INT AS (z) {kept})"
    before = parse_create_table(f"{create} CHARSET utf8", "d", None)
    after = apply_alter(sql, before, None, None)
    assert ddl_effect(classify(sql, "d"), sql, before, after) is effect


def test_effect_of_added_timestamp_follows_explicit_defaults_for_timestamp() -> None:
    """The statement's text is the same; only the resulting schema shows the effect."""
    sql = "ALTER TABLE t ADD z TIMESTAMP"
    for explicit, effect in ((True, SHAPE), (False, CHANGING)):
        context = SqlContext(explicit_defaults_for_timestamp=explicit)
        after = apply_alter(sql, BEFORE, None, None, context)
        assert ddl_effect(classify(sql, "d"), sql, BEFORE, after) is effect


def test_table_option_of_an_unknown_table_changes_the_shape_only() -> None:
    for sql in ("ALTER TABLE t ENGINE=InnoDB", "ALTER TABLE t ALTER z SET INVISIBLE"):
        assert ddl_effect(classify(sql, "d"), sql, None, None) is SHAPE


def test_column_change_of_an_unknown_table_counts_as_changing_rows() -> None:
    sql = "ALTER TABLE t CHANGE n m INT"
    assert ddl_effect(classify(sql, "d"), sql, None, None) is CHANGING
    sql = "ALTER TABLE t COMMENT 'x'"
    assert ddl_effect(classify(sql, "d"), sql, None, None) is SHAPE
