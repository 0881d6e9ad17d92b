"""DeltaMirror with features of MySQL 8.0 and later, on 9.x with default and other settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_cases import Cases, assert_all_equal, mirrored_cases
from helpers.servers import Server
from helpers.writers.global_settings import globally

CASES: Cases = {
    "invisible primary key": (
        """
        SET sql_generate_invisible_primary_key = ON;
        CREATE TABLE made (a INT, b VARCHAR(9));
        INSERT INTO made VALUES (1, 'one'), (1, 'one'), (2, 'two');
        """,
        """
        UPDATE made SET b = 'uno' WHERE a = 1 LIMIT 1;
        DELETE FROM made WHERE a = 2;
        SET sql_generate_invisible_primary_key = ON;
        CREATE TABLE later (v JSON);
        INSERT INTO later VALUES ('[1]'), ('[1]');
        CREATE TABLE liked LIKE made;
        INSERT INTO liked (a) VALUES (5), (5);
        CREATE TABLE chosen SELECT a, b FROM made;
        ALTER TABLE later ALTER COLUMN my_row_id SET VISIBLE, ADD w INT;
        UPDATE later SET w = my_row_id;
        """,
    ),
    "invisible columns": (
        """
        CREATE TABLE hidden (id INT PRIMARY KEY, a INT INVISIBLE DEFAULT 7, b INT);
        INSERT INTO hidden VALUES (1, 10), (2, 20);
        INSERT INTO hidden (id, a, b) VALUES (3, 33, 30);
        """,
        """
        UPDATE hidden SET a = 11 WHERE id = 1;
        ALTER TABLE hidden ALTER COLUMN a SET VISIBLE, ALTER COLUMN b SET INVISIBLE;
        INSERT INTO hidden VALUES (4, 44);
        ALTER TABLE hidden ADD c INT INVISIBLE FIRST, ADD d INT DEFAULT (id) /*!80023 INVISIBLE
          */;
        INSERT INTO hidden VALUES (5, 55);
        UPDATE hidden SET c = 1, d = 2 WHERE id = 2;
        """,
    ),
    "expression defaults": (
        """
        CREATE TABLE defaults (id INT PRIMARY KEY, j JSON DEFAULT (JSON_ARRAY(1, 'x')), t TEXT
          DEFAULT ('a, b) c'), u BINARY(16) DEFAULT (UUID_TO_BIN(UUID())), n INT DEFAULT (1 + 2 *
          (3)), CHECK (n > 0), CONSTRAINT named CHECK (id <> -1) NOT ENFORCED);
        INSERT INTO defaults (id) VALUES (1), (2);
        """,
        """
        INSERT INTO defaults (id) VALUES (3);
        ALTER TABLE defaults ADD later DATETIME(3) DEFAULT (CURRENT_TIMESTAMP(3)), ADD p POINT
          DEFAULT (POINT(1, 2)), DROP CHECK named, ALTER CHECK defaults_chk_1 NOT ENFORCED;
        INSERT INTO defaults (id) VALUES (4);
        ALTER TABLE defaults ALTER n SET DEFAULT (id);
        INSERT INTO defaults (id) VALUES (5);
        """,
    ),
    "renamed columns": (
        """
        CREATE TABLE renamed (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(9));
        INSERT INTO renamed VALUES (1, 10, 100, 'x'), (2, 20, 200, 'y');
        """,
        """
        ALTER TABLE renamed RENAME COLUMN a TO b, RENAME COLUMN b TO a;
        INSERT INTO renamed (id, a, b) VALUES (3, 300, 30);
        ALTER TABLE renamed RENAME COLUMN id TO c, RENAME COLUMN c TO id;
        UPDATE renamed SET id = 'z' WHERE c = 2;
        ALTER TABLE renamed RENAME COLUMN a TO x, RENAME COLUMN b TO a, RENAME COLUMN id TO b,
          ALGORITHM=INPLACE;
        DELETE FROM renamed WHERE c = 1;
        INSERT INTO renamed (c, x, a, b) VALUES (4, 1, 2, '3');
        """,
    ),
    "instant columns": (
        """
        CREATE TABLE instant (id INT PRIMARY KEY, a INT, b VARCHAR(9));
        INSERT INTO instant VALUES (1, 10, 'x'), (2, 20, 'y');
        """,
        """
        ALTER TABLE instant ADD f INT DEFAULT 5 FIRST, ADD m INT DEFAULT 6 AFTER id,
          ALGORITHM=INSTANT;
        INSERT INTO instant VALUES (1, 3, 2, 30, 'z');
        UPDATE instant SET m = 7 WHERE id = 1;
        ALTER TABLE instant DROP a, ALGORITHM=INSTANT;
        INSERT INTO instant VALUES (1, 4, 2, 'w');
        ALTER TABLE instant DROP f, ADD a BIGINT DEFAULT 8, ALGORITHM=INSTANT;
        UPDATE instant SET b = 'v' WHERE id = 2;
        DELETE FROM instant WHERE id = 1;
        """,
    ),
    "create table select": (
        """
        CREATE TABLE source (id INT PRIMARY KEY, v VARCHAR(9));
        INSERT INTO source VALUES (1, 'a'), (2, 'b');
        CREATE TABLE copied (PRIMARY KEY (id)) SELECT * FROM source;
        """,
        """
        CREATE TABLE again (PRIMARY KEY (id)) SELECT id, v, id * 1.5 AS d FROM source;
        UPDATE again SET v = 'c' WHERE id = 1;
        CREATE TABLE keyless SELECT v FROM source UNION ALL SELECT v FROM source;
        DELETE FROM keyless LIMIT 1;
        CREATE TABLE rowed (a INT, b INT) AS SELECT * FROM (VALUES ROW(1, 2), ROW(3, 4)) x;
        """,
    ),
    "collations": (
        """
        CREATE TABLE ai_ci (k VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_0900_ai_ci;
        CREATE TABLE as_cs (k VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_0900_as_cs;
        CREATE TABLE bin (k VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_0900_bin;
        CREATE TABLE ja (k CHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_ja_0900_as_cs_ks;
        INSERT INTO ai_ci VALUES ('a', 1), ('a ', 2), ('ß', 3), ('ñ漢', 4), ('😀', 5);
        INSERT INTO as_cs VALUES ('a', 1), ('a ', 2), ('ß', 3), ('ñ漢', 4), ('😀', 5);
        INSERT INTO bin VALUES ('a', 1), ('a ', 2), ('ß', 3), ('ñ漢', 4), ('😀', 5);
        INSERT INTO ja VALUES ('か', 1), ('が', 2), ('カ', 3);
        """,
        """
        UPDATE ai_ci SET k = 'A' WHERE k = 'a';
        UPDATE ai_ci SET v = 9 WHERE k = 'SS';
        DELETE FROM bin WHERE k = 'a ';
        UPDATE as_cs SET k = 'A ' WHERE v = 2;
        INSERT INTO bin VALUES ('A', 6);
        UPDATE ja SET k = 'ガ' WHERE v = 2;
        SET default_collation_for_utf8mb4 = utf8mb4_general_ci;
        CREATE TABLE plain (k VARCHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY);
        INSERT INTO plain VALUES ('😀'), ('é');
        DELETE FROM plain WHERE k = '😀';
        ALTER TABLE plain CONVERT TO CHARACTER SET utf8mb3, ADD e ENUM('ä', 'b');
        INSERT INTO plain VALUES ('ö', 'ä');
        ALTER TABLE plain DEFAULT CHARACTER SET latin1 COLLATE latin1_bin, ADD w VARCHAR(9);
        UPDATE plain SET w = 'ü' WHERE k = 'ö';
        """,
    ),
    "names in double quotes": (
        """
        CREATE TABLE x_partition (id INT PRIMARY KEY);
        INSERT INTO x_partition VALUES (1), (2);
        """,
        """
        SET sql_mode = 'ANSI_QUOTES';
        TRUNCATE TABLE "x_partition" /* no partition */;
        SET sql_mode = DEFAULT;
        INSERT INTO x_partition VALUES (2);
        """,
    ),
    "executable comments": (
        """
        CREATE TABLE commented (id INT PRIMARY KEY, a INT, b INT, c INT);
        INSERT INTO commented VALUES (1, 1, 1, 1), (2, 2, 2, 2);
        """,
        """
        ALTER TABLE commented DROP COLUMN a /*!80000 , ADD d INT DEFAULT 5 */;
        INSERT INTO commented VALUES (3, 3, 3, 3);
        ALTER TABLE commented DROP COLUMN b /*!80000 , MODIFY c VARCHAR(9) */;
        DELETE FROM commented WHERE id = 1;
        """,
    ),
    "vectors": (
        """
        CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3), w VECTOR);
        INSERT INTO vectors VALUES (1, TO_VECTOR('[1,2.5,-3]'), NULL), (2, NULL,
          TO_VECTOR('[1e30]'));
        CREATE TABLE bag (n INT, v VECTOR(3));
        INSERT INTO bag VALUES (1, TO_VECTOR('[1,2]')), (1, TO_VECTOR('[1,2]')), (2, NULL);
        """,
        """
        DELETE FROM bag WHERE n = 1 LIMIT 1;
        UPDATE bag SET v = TO_VECTOR('[0,-0.0]') WHERE n = 2;
        INSERT INTO bag VALUES (3, TO_VECTOR('[0,0]'));
        UPDATE vectors SET v = TO_VECTOR('[0,0,1e-30]') WHERE id = 2;
        INSERT INTO vectors VALUES (3, STRING_TO_VECTOR('[7,8]'), TO_VECTOR('[1,2,3,4,5]'));
        ALTER TABLE vectors ADD x VECTOR(2) DEFAULT (TO_VECTOR('[1,2]'));
        INSERT INTO vectors (id) VALUES (4);
        DELETE FROM vectors WHERE id = 1;
        """,
    ),
    "functional indexes": (
        """
        CREATE TABLE functional (id INT PRIMARY KEY, name VARCHAR(20), tags JSON, INDEX
          lower_name ((LOWER(name))), UNIQUE doubled ((id * 2)), INDEX tag ((CAST(tags->'$[*]' AS
          UNSIGNED ARRAY))));
        INSERT INTO functional VALUES (1, 'Ann', '[1, 2]'), (2, 'Bob', NULL);
        CREATE TABLE keyless (a INT NOT NULL, b INT, UNIQUE ((a + 1)), KEY ((b + 1)));
        INSERT INTO keyless VALUES (1, 1), (2, NULL);
        CREATE TABLE mixed (a INT NOT NULL, b INT NOT NULL, KEY (a, (b + 1)), UNIQUE (a, b),
          UNIQUE (b));
        INSERT INTO mixed VALUES (1, 1), (2, 2);
        CREATE TABLE descending (a INT, b VARCHAR(9), c INT, PRIMARY KEY (a DESC, b ASC));
        INSERT INTO descending VALUES (1, 'x', 1), (2, 'y', 2), (2, 'z', 3);
        """,
        """
        UPDATE functional SET tags = '[3]' WHERE id = 2;
        INSERT INTO functional VALUES (3, 'Cy', '[4, 5]');
        ALTER TABLE functional DROP INDEX lower_name, ADD INDEX upper_name ((UPPER(name)), id),
          ADD n INT;
        UPDATE functional SET n = 1;
        UPDATE keyless SET b = 7 WHERE a = 1;
        DELETE FROM keyless WHERE a = 2;
        UPDATE mixed SET a = 5 WHERE b = 1;
        UPDATE mixed SET b = 9 WHERE b = 2;
        DELETE FROM descending WHERE b = 'y';
        UPDATE descending SET a = 7 WHERE b = 'z';
        ALTER TABLE mixed ALTER INDEX b INVISIBLE, RENAME INDEX a TO c;
        CREATE UNIQUE INDEX late ON mixed ((a * 3), b DESC);
        INSERT INTO mixed VALUES (8, 8);
        """,
    ),
    "generated columns": (
        """
        CREATE TABLE computed (id INT PRIMARY KEY, a INT, v INT AS (a + 1), s VARCHAR(20)
          GENERATED ALWAYS AS (CONCAT(a, ')')) STORED, j JSON AS (JSON_OBJECT('a', a)) VIRTUAL,
          INDEX (v));
        INSERT INTO computed (id, a) VALUES (1, 10), (2, NULL);
        CREATE TABLE padded (a INT(3) ZEROFILL, b INT DEFAULT 5, g VARCHAR(9) AS (CONCAT('x', a))
          NOT NULL UNIQUE, h INT AS (DEFAULT(b) + 1) STORED);
        INSERT INTO padded (a) VALUES (1), (2);
        """,
        """
        UPDATE computed SET a = 11 WHERE id = 1;
        ALTER TABLE computed ADD w INT AS (a * 2) VIRTUAL, ALGORITHM=INSTANT;
        INSERT INTO computed (id, a) VALUES (3, 30);
        ALTER TABLE computed MODIFY a BIGINT;
        DELETE FROM computed WHERE id = 2;
        ALTER TABLE padded MODIFY a INT(6) ZEROFILL;
        UPDATE padded SET b = 10 WHERE a = 1;
        ALTER TABLE padded ALTER b SET DEFAULT 7;
        DELETE FROM padded WHERE a = 2;
        """,
    ),
    "documents without a key": (
        """
        CREATE TABLE numbers (d JSON);
        INSERT INTO numbers VALUES ('[5.0, 1e2]'), ('[5.0, 1e2]'),
          (JSON_ARRAY(CAST(5 AS DECIMAL(3,1)), 5e0, 5)), (NULL), ('null');
        """,
        """
        DELETE FROM numbers WHERE JSON_LENGTH(d) = 2 LIMIT 1;
        UPDATE numbers SET d = '[-0.0, 0.0, 0.00001]' WHERE JSON_LENGTH(d) = 3;
        INSERT INTO numbers SELECT * FROM numbers;
        UPDATE numbers SET d = NULL WHERE JSON_LENGTH(d) = 3 LIMIT 1;
        """,
    ),
    "partial documents": (
        """
        CREATE TABLE documents (id INT PRIMARY KEY, d JSON, n INT);
        INSERT INTO documents VALUES (1, '{"a": [1, 2, 3], "b": "text", "c": "xxxxxxxxxx"}', 1),
          (2, NULL, 2);
        """,
        """
        SET binlog_row_value_options = PARTIAL_JSON, binlog_transaction_compression = ON;
        UPDATE documents SET d = JSON_SET(d, '$.a[1]', 'two'), n = 5 WHERE id = 1;
        UPDATE documents SET d = JSON_REMOVE(d, '$.b') WHERE id = 1;
        UPDATE documents SET d = JSON_REPLACE(d, '$.c', 'y'), id = 3 WHERE id = 1;
        """,
    ),
    "statements of 8.0": (
        """
        CREATE TABLE first (id INT PRIMARY KEY, v INT) COMMENT 'x' AUTOEXTEND_SIZE 4M;
        CREATE TABLE other (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION low
          VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE);
        INSERT INTO first VALUES ROW(1, 10), ROW(2, 20);
        INSERT INTO other TABLE first;
        """,
        """
        LOCK TABLES first WRITE, other WRITE;
        RENAME TABLE first TO third, other TO first;
        UNLOCK TABLES;
        INSERT INTO first VALUES (11, 110) AS new ON DUPLICATE KEY UPDATE v = new.v;
        INSERT INTO third VALUES (1, 5) AS new (i, w) ON DUPLICATE KEY UPDATE v = new.w;
        WITH big AS (SELECT id FROM first WHERE id > 10) DELETE FROM first WHERE id IN (SELECT id
          FROM big);
        ALTER TABLE first TRUNCATE PARTITION high;
        CREATE TABLE places (id INT PRIMARY KEY, p POINT NOT NULL SRID 4326, INDEX (id DESC)
          VISIBLE COMMENT 'y');
        INSERT INTO places VALUES (1, ST_SRID(POINT(13.4, 52.5), 4326));
        ALTER TABLE third ADD v2 INT COLUMN_FORMAT DYNAMIC STORAGE DISK;
        UPDATE third SET v2 = 3;
        DROP TABLE IF EXISTS third, absent;
        """,
    ),
    "foreign keys": (
        """
        CREATE TABLE parent (id INT PRIMARY KEY);
        CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON
          DELETE CASCADE ON UPDATE SET NULL);
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
    "invisible primary key": 4,
    "create table select": 5,
    "collations": 5,
    "functional indexes": 4,
    "statements of 8.0": 2,
    "vectors": 2,
    "foreign keys": 2,
    "generated columns": 2,
}


# Global settings of the server.
SETTINGS: dict[str, dict[str, object]] = {
    "defaults": {},
    "row metadata and compression": {
        "binlog_row_metadata": "FULL",
        "binlog_transaction_compression": 1,
        # Tables without a key get an invisible primary key, which is then hidden from every
        # session.
        "sql_generate_invisible_primary_key": 1,
        "show_gipk_in_create_table_and_information_schema": 0,
    },
}


@pytest.fixture(
    scope="module",
    params=[(name, snapshot) for name in SETTINGS for snapshot in (False, True)],
    ids=lambda param: f"{param[0]}, {'snapshot' if param[1] else 'binlog'}",
)
def mirrored(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    mysql9: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, MirroredDatabase]]:
    name, snapshot = request.param
    folder = tmp_path_factory.mktemp("mysql9")
    with (
        globally(mysql9, SETTINGS[name]) as found,
        mirrored_cases(spark, mysql9, folder, CASES, snapshot=snapshot) as mirrored,
    ):
        assert len(found) == len(SETTINGS[name])
        yield mirrored


@pytest.mark.sample(2)
@pytest.mark.parametrize(("case", "tables"), COUNTS.items())
def test_mysql_9_tables_equal_select(
    mirrored: dict[str, MirroredDatabase], case: str, tables: int
) -> None:
    assert_all_equal(mirrored[case], tables)
