"""DeltaMirror with features of MariaDB, on MariaDB 11.8 with default and other settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.logs.live_log import new_database
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_cases import Cases, assert_all_equal, mirrored_cases
from helpers.servers import Server
from helpers.writers.global_settings import globally

CASES: Cases = {
    "types": (
        """
        CREATE TABLE typed (id INT PRIMARY KEY, j JSON, t TIME(6), d DATETIME(3), f FLOAT, c
          DECIMAL(20,5), e ENUM('ä', 'b'), s SET('x', 'y'), b BIT(9), g GEOMETRY, x BLOB, y YEAR,
          ts TIMESTAMP(6) NULL);
        INSERT INTO typed VALUES (1, '{"a": [1, 2.50]}', '-12:34:56.789012',
          '2026-01-02 03:04:05.678', 1.5, -12345.67890, 'ä', 'x,y', b'101', POINT(1, 2), 'bytes',
          2026, '2026-10-25 00:30:00.123456'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, NULL, NULL, NULL);
        """,
        """
        UPDATE typed SET j = '[]', c = 0 WHERE id = 1;
        INSERT INTO typed SELECT 3, j, t, d, f, c, e, s, b, g, x, y, ts FROM typed WHERE id = 1;
        DELETE FROM typed WHERE id = 2;
        ALTER TABLE typed ADD n INT DEFAULT 5 FIRST, ALGORITHM=INSTANT;
        UPDATE typed SET n = 6 WHERE id = 3;
        """,
    ),
    "collations": (
        """
        CREATE TABLE uca (k VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_uca1400_ai_ci;
        CREATE TABLE nopad (k VARCHAR(20) COLLATE utf8mb4_nopad_bin PRIMARY KEY, v INT);
        INSERT INTO uca VALUES ('a', 1), ('b', 2), ('ß', 3), ('😀', 4);
        INSERT INTO nopad VALUES ('a', 1), ('a ', 2), ('A', 3);
        """,
        """
        UPDATE uca SET k = 'A' WHERE k = 'a';
        DELETE FROM uca WHERE k = 'ss';
        DELETE FROM nopad WHERE k = 'a ';
        SET character_set_collations = 'utf8mb4=utf8mb4_general_ci';
        CREATE TABLE plain (k VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY);
        INSERT INTO plain VALUES ('é'), ('😀');
        DELETE FROM plain WHERE k = '😀';
        ALTER TABLE plain ADD w VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ü';
        INSERT INTO plain VALUES ('ö', 'ä');
        """,
    ),
    "renamed and instant columns": (
        """
        CREATE TABLE renamed (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(9));
        INSERT INTO renamed VALUES (1, 10, 100, 'x'), (2, 20, 200, 'y');
        """,
        """
        ALTER TABLE renamed RENAME COLUMN a TO b, RENAME COLUMN b TO a;
        INSERT INTO renamed (id, a, b) VALUES (3, 300, 30);
        ALTER TABLE renamed DROP c, ALGORITHM=INSTANT;
        INSERT INTO renamed VALUES (4, 1, 2);
        ALTER TABLE renamed ADD d INT DEFAULT 7 AFTER id, MODIFY b INT FIRST, ALGORITHM=INSTANT;
        UPDATE renamed SET d = 8 WHERE id = 1;
        DELETE FROM renamed WHERE id = 2;
        """,
    ),
    "invisible columns and defaults": (
        """
        CREATE TABLE hidden (id INT PRIMARY KEY, a INT INVISIBLE DEFAULT 7, t TEXT DEFAULT
          (CONCAT('x', 'y')), CHECK (a > 0));
        INSERT INTO hidden (id) VALUES (1), (2);
        """,
        """
        INSERT INTO hidden (id, a) VALUES (3, 33);
        ALTER TABLE hidden MODIFY a BIGINT;
        INSERT INTO hidden VALUES (4, 44, 'z');
        ALTER TABLE hidden ADD b INT INVISIBLE DEFAULT 9;
        UPDATE hidden SET b = 10 WHERE id = 1;
        """,
    ),
    "statements": (
        """
        CREATE TABLE first (id INT PRIMARY KEY, v INT);
        INSERT INTO first VALUES (1, 10), (2, 20);
        CREATE SEQUENCE numbers;
        CREATE TABLE keyless (v INT);
        INSERT INTO keyless VALUES (1), (1), (2);
        """,
        """
        CREATE TABLE again (PRIMARY KEY (id)) SELECT id, v, id * 1.5 AS d FROM first;
        CREATE OR REPLACE TABLE again (id INT PRIMARY KEY, w INT);
        INSERT INTO again VALUES (1, NEXTVAL(numbers)) RETURNING id;
        REPLACE INTO first VALUES (1, 11), (3, 30);
        DELETE FROM keyless LIMIT 1;
        RENAME TABLE first TO third, again TO first;
        UPDATE third SET v = 0 ORDER BY id LIMIT 2;
        START TRANSACTION;
        INSERT INTO third VALUES (5, 5);
        SAVEPOINT s;
        INSERT INTO third VALUES (6, 6);
        ROLLBACK TO s;
        COMMIT;
        """,
    ),
    "create or replace": (
        """
        CREATE TABLE same (id INT PRIMARY KEY, a INT);
        CREATE TABLE wider (id INT PRIMARY KEY, a INT);
        CREATE TABLE quiet (id INT PRIMARY KEY, a INT);
        CREATE TABLE bag (a INT, b INT);
        CREATE TABLE model (id INT PRIMARY KEY, a INT, c INT);
        CREATE TABLE alike (id INT PRIMARY KEY, a INT);
        INSERT INTO same VALUES (1, 1), (2, 2);
        INSERT INTO wider VALUES (1, 1), (2, 2);
        INSERT INTO quiet VALUES (1, 1), (2, 2);
        INSERT INTO bag VALUES (1, 1), (2, 2), (2, 2);
        INSERT INTO alike VALUES (1, 1), (2, 2);
        """,
        """
        CREATE OR REPLACE TABLE same (id INT PRIMARY KEY, a INT);
        INSERT INTO same VALUES (9, 9);
        UPDATE wider SET a = 5;
        SET sql_mode = 'ANSI_QUOTES';
        CREATE OR REPLACE TABLE "wider" (id INT PRIMARY KEY, a INT, b INT);
        SET sql_mode = DEFAULT;
        INSERT INTO wider VALUES (1, 8, 9);
        CREATE OR REPLACE TABLE wider (a INT, id INT PRIMARY KEY, b INT, c INT);
        INSERT INTO wider VALUES (1, 2, 3, 4);
        CREATE OR REPLACE TABLE quiet (id INT PRIMARY KEY, a BIGINT);
        CREATE OR REPLACE TABLE bag (a INT, b INT, c INT);
        INSERT INTO bag VALUES (2, 2, 2);
        CREATE OR REPLACE TABLE alike LIKE model;
        INSERT INTO alike VALUES (2, 2, 2);
        CREATE OR REPLACE TABLE model (id INT PRIMARY KEY) SELECT 5 AS id, 6 AS b;
        """,
    ),
    "executable comments": (
        """
        CREATE TABLE commented (id INT PRIMARY KEY, a INT, b INT, c INT);
        INSERT INTO commented VALUES (1, 1, 1, 1), (2, 2, 2, 2);
        """,
        """
        ALTER TABLE commented DROP COLUMN a /*M!100000 , ADD d INT DEFAULT 5 */;
        INSERT INTO commented VALUES (3, 3, 3, 3);
        ALTER TABLE commented DROP COLUMN b /*M! , MODIFY c VARCHAR(9) */;
        DELETE FROM commented WHERE id = 1;
        """,
    ),
    "compressed events": (
        """
        CREATE TABLE packed (id INT PRIMARY KEY, v TEXT);
        """,
        """
        SET SESSION binlog_row_image = FULL;
        INSERT INTO packed VALUES (1, REPEAT('x', 5000)), (2, REPEAT('é', 3000));
        UPDATE packed SET v = REPEAT('y', 4000) WHERE id = 1;
        DELETE FROM packed WHERE id = 2;
        ALTER TABLE packed ADD column_0 INT DEFAULT 0, ADD column_1 INT DEFAULT 1, ADD column_2
          INT DEFAULT 2, ADD column_3 INT DEFAULT 3, ADD column_4 INT DEFAULT 4, ADD column_5 INT
          DEFAULT 5, ADD column_6 INT DEFAULT 6, ADD column_7 INT DEFAULT 7, ADD column_8 INT
          DEFAULT 8, ADD column_9 INT DEFAULT 9, ADD column_10 INT DEFAULT 10, ADD column_11 INT
          DEFAULT 11, ADD column_12 INT DEFAULT 12, ADD column_13 INT DEFAULT 13, ADD column_14
          INT DEFAULT 14, ADD column_15 INT DEFAULT 15, ADD column_16 INT DEFAULT 16, ADD
          column_17 INT DEFAULT 17, ADD column_18 INT DEFAULT 18, ADD column_19 INT DEFAULT 19,
          ADD column_20 INT DEFAULT 20, ADD column_21 INT DEFAULT 21, ADD column_22 INT DEFAULT
          22, ADD column_23 INT DEFAULT 23, ADD column_24 INT DEFAULT 24, ADD column_25 INT
          DEFAULT 25, ADD column_26 INT DEFAULT 26, ADD column_27 INT DEFAULT 27, ADD column_28
          INT DEFAULT 28, ADD column_29 INT DEFAULT 29, ADD column_30 INT DEFAULT 30, ADD
          column_31 INT DEFAULT 31, ADD column_32 INT DEFAULT 32, ADD column_33 INT DEFAULT 33,
          ADD column_34 INT DEFAULT 34, ADD column_35 INT DEFAULT 35, ADD column_36 INT DEFAULT
          36, ADD column_37 INT DEFAULT 37, ADD column_38 INT DEFAULT 38, ADD column_39 INT
          DEFAULT 39, ADD column_40 INT DEFAULT 40, ADD column_41 INT DEFAULT 41, ADD column_42
          INT DEFAULT 42, ADD column_43 INT DEFAULT 43, ADD column_44 INT DEFAULT 44, ADD
          column_45 INT DEFAULT 45, ADD column_46 INT DEFAULT 46, ADD column_47 INT DEFAULT 47,
          ADD column_48 INT DEFAULT 48, ADD column_49 INT DEFAULT 49;
        UPDATE packed SET column_7 = 8;
        """,
    ),
    "foreign keys": (
        """
        CREATE TABLE parent (id INT PRIMARY KEY);
        CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
        INSERT INTO parent VALUES (1), (2), (3);
        INSERT INTO child VALUES (1, 1), (2, 2), (3, 3);
        """,
        """
        INSERT INTO child VALUES (4, 3);
        DELETE FROM child WHERE id = 1;
        """,
    ),
}

# The number of tables in each case.
COUNTS = dict.fromkeys(CASES, 1) | {
    "collations": 3,
    "statements": 3,
    "create or replace": 6,
    "foreign keys": 2,
}

# Global settings of the server. By default, events in transactions have no position.
SETTINGS: dict[str, dict[str, object]] = {
    "defaults": {},
    "row metadata and compression": {
        "binlog_row_metadata": "FULL",
        "log_bin_compress": 1,
        "log_bin_compress_min_len": 10,
    },
    "with positions": {"binlog_legacy_event_pos": 1, "binlog_annotate_row_events": 0},
}


# A sequence's changes are logged as rows of a table that the server does not describe.
EXCLUDED = {"excludeTables": "*.numbers"}


@pytest.fixture(
    scope="module",
    params=[(name, snapshot) for name in SETTINGS for snapshot in (False, True)],
    ids=lambda param: f"{param[0]}, {'snapshot' if param[1] else 'binlog'}",
)
def mirrored(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    mariadb11: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, MirroredDatabase]]:
    name, snapshot = request.param
    folder = tmp_path_factory.mktemp("mariadb11")
    with (
        globally(mariadb11, SETTINGS[name]) as found,
        mirrored_cases(spark, mariadb11, folder, CASES, snapshot=snapshot, **EXCLUDED) as mirrored,
    ):
        assert len(found) == len(SETTINGS[name])
        yield mirrored


@pytest.mark.sample(3)
@pytest.mark.parametrize(("case", "tables"), COUNTS.items())
def test_mariadb_11_tables_equal_select(
    mirrored: dict[str, MirroredDatabase], case: str, tables: int
) -> None:
    assert_all_equal(mirrored[case], tables)


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_generated_columns_stop_the_table_unless_they_are_excluded(
    spark: SparkSession, mariadb11: Server, tmp_path: Path, key: str
) -> None:
    """The server logs generated columns of inserted rows only."""
    with new_database(mariadb11, "generated"):
        mariadb11.execute(
            f"CREATE TABLE generated.t (a INT {key}, b INT, c INT AS (b + 1), d INT AS (b) STORED)"
        )
        mirrored = MirroredDatabase(
            spark, mariadb11, "generated", tmp_path, startingOffset="snapshot"
        )
        mirrored.run("first")
        mirrored.execute("INSERT INTO t (a, b) VALUES (1, 1), (2, 2)", "UPDATE t SET b = 5")
        with pytest.raises(Exception, match=r"rows without c: .* name them in excludeColumns"):
            mirrored.run("first")
        mirrored.options["excludeColumns"] = "generated.t.c,generated.t.d"
        mirrored.settings["target"] = f"{tmp_path}/other/{{database}}/{{table}}"
        mirrored.run()
        mirrored.execute("UPDATE t SET b = 6 WHERE a = 1", "DELETE FROM t WHERE a = 2")
        mirrored.run()
        table = DeltaTable(tmp_path / "other" / "generated" / "t").to_pyarrow_table()
        assert table.select(["a", "b"]).to_pylist() == [{"a": 1, "b": 6}]
        assert mariadb11.execute("SELECT a, b FROM generated.t") == [(1, 6)]
