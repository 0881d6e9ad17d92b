"""ALTER TABLE statements, one per line, whose effects are compared with real servers.

Each statement runs on a table created by `BASE` or by its own CREATE. The schema that the package
derives from the two statements must equal the one in information_schema.
"""

from __future__ import annotations

from itertools import product

__all__ = ["ALTERS", "BASE", "CHARACTER_SETS", "CONVERSIONS", "OTHERS", "RELABELLED"]

BASE = (
    "CREATE TABLE {table} (id INT UNSIGNED NOT NULL, a INT, b VARCHAR(20), c TEXT, d TINYTEXT,"
    " e ENUM('x','y') NOT NULL, f SET('p','q'), g CHAR(9) CHARACTER SET latin1,"
    " h MEDIUMTEXT CHARACTER SET gbk, i LONGTEXT, j VARBINARY(9), k BLOB, l TINYTEXT CHARACTER SET"
    " latin1, m TEXT CHARACTER SET latin1, n BINARY(4), PRIMARY KEY (id, b), KEY (a))"
    " DEFAULT CHARSET utf8"
)

ALTERS = [
    # ADD
    "ADD z INT",
    "ADD COLUMN z INT NOT NULL DEFAULT 7 FIRST",
    "ADD COLUMN z VARCHAR(9) AFTER a",
    "ADD z VARCHAR(9) CHARACTER SET latin1 AFTER n",
    "ADD (z INT, y VARCHAR(5))",
    "ADD COLUMN (z INT, INDEX (z), y ENUM('r'), UNIQUE u (y, z))",
    "ADD z INT, ADD y INT FIRST, ADD x INT AFTER z, ADD w INT AFTER y",
    "ADD z INT UNIQUE KEY, ADD y INT COMMENT 'AFTER a, FIRST' AFTER id",
    "ADD z BOOL, ADD y SERIAL",
    "ADD period INT, ADD COLUMN z INT AFTER period",
    "ADD `first` INT FIRST, ADD `after` INT AFTER `first`",
    "ADD z TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
    "ADD z VARCHAR(9) DEFAULT 'a,b' COLLATE utf8_bin NOT NULL, ADD y DECIMAL(9,3) UNSIGNED",
    # DROP
    "DROP a",
    "DROP COLUMN a, DROP c, DROP COLUMN n",
    "DROP c, ADD c VARCHAR(3)",
    "DROP c, ADD c VARCHAR(3) FIRST, ADD z INT AFTER c",
    "DROP a, ADD a INT FIRST",
    "DROP PRIMARY KEY",
    "DROP INDEX `PRIMARY`",
    "DROP KEY a",
    "DROP PRIMARY KEY, DROP b",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (a)",
    "DROP PRIMARY KEY, ADD CONSTRAINT pk PRIMARY KEY USING BTREE (b(5), id)",
    "DROP PRIMARY KEY, ADD z INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "DROP PRIMARY KEY, MODIFY id INT",
    "DROP PRIMARY KEY, CHANGE a pk INT, ADD PRIMARY KEY (pk, id)",
    "DROP PRIMARY KEY, MODIFY b VARCHAR(20) NULL",
    # CHANGE, MODIFY
    "CHANGE a z BIGINT",
    "CHANGE COLUMN a a BIGINT UNSIGNED NOT NULL AFTER n",
    "CHANGE id id2 BIGINT",
    "CHANGE id id2 BIGINT FIRST, CHANGE b b2 VARCHAR(30) CHARACTER SET latin1 AFTER id2",
    "CHANGE a c2 INT, CHANGE c a TEXT",
    "CHANGE a b2 INT, CHANGE b a VARCHAR(20)",
    "MODIFY a INT FIRST",
    "MODIFY A SMALLINT",
    "MODIFY b VARCHAR(100)",
    "MODIFY b VARCHAR(20) NOT NULL, MODIFY a INT AFTER e, MODIFY n BINARY(5) AFTER a",
    "MODIFY COLUMN e ENUM('y','x','z')",
    "MODIFY c TEXT CHARACTER SET utf8mb4, MODIFY d TEXT(100), MODIFY k BLOB(70000)",
    "MODIFY g CHAR(9), MODIFY h TEXT, MODIFY f SET('a','b','c') CHARACTER SET ascii",
    "MODIFY j BLOB, MODIFY k VARBINARY(7), MODIFY n VARCHAR(9)",
    "ADD z INT AFTER a, MODIFY a INT AFTER n",
    "MODIFY a INT AFTER n, ADD z INT AFTER a",
    "CHANGE a z INT AFTER n, ADD a INT AFTER z",
    "ADD y INT, ADD z INT AFTER y",
    "MODIFY b VARCHAR(20) AFTER a, MODIFY a INT AFTER b",
    "MODIFY a INT AFTER b, MODIFY b VARCHAR(20) AFTER c, MODIFY c TEXT FIRST",
    "CHANGE a z INT, DROP c, ADD c INT AFTER z",
    "MODIFY a INT, ADD z INT FIRST, DROP c, ADD y INT AFTER id, CHANGE d dd TINYTEXT AFTER z",
    "ADD z INT, MODIFY z BIGINT AFTER a, ADD y INT AFTER z",
    "ADD z INT FIRST, MODIFY z TEXT",
    "DROP c, ADD c INT, MODIFY COLUMN c TEXT COMMENT 'x, DROP a'",
    "DROP c, ADD c INT FIRST, MODIFY c VARCHAR(9) AFTER e",
    "DROP b, ADD b VARCHAR(20), MODIFY b VARCHAR(30) FIRST",
    "DROP a, ADD z INT, CHANGE a z TEXT",
    # Qualified names of columns
    "ADD COLUMN {table}.z INT",
    "ADD {table}.z INT UNIQUE AFTER a, ADD `{table}`.`y` TEXT FIRST",
    "ADD ({table}.z INT, INDEX (z), {table}.y ENUM('r'))",
    "CHANGE {table}.a z BIGINT, CHANGE d {table}.y TEXT, CHANGE {table}.e {table}.x INT FIRST",
    "MODIFY COLUMN {table}.c VARCHAR(500), MODIFY .a BIGINT AFTER d",
    "DROP COLUMN {table}.a, DROP {table}.c, DROP .d",
    "ALTER {table}.a SET DEFAULT 5, ALTER COLUMN {table}.b SET DEFAULT 'x', ADD z INT",
    # ALTER COLUMN, names, indexes
    "ALTER a SET DEFAULT 5",
    "ALTER COLUMN a DROP DEFAULT, ADD z INT",
    "ALTER b SET DEFAULT 'x, ADD y INT', DROP a",
    "ADD INDEX (a, e), ADD UNIQUE KEY u (id, a), ADD z INT",
    "ADD CONSTRAINT UNIQUE (a, id), ADD KEY k USING BTREE (b(3)) COMMENT 'x', DROP COLUMN d",
    "RENAME COLUMN a TO z",
    "RENAME COLUMN a TO c, RENAME COLUMN c TO a",
    "RENAME COLUMN id TO `select`, ADD z INT AFTER `select`",
    "RENAME INDEX a TO z, ADD y INT",
    # character sets
    "CONVERT TO CHARACTER SET utf8mb4",
    "CONVERT TO CHARACTER SET latin1",
    "CONVERT TO CHARSET ucs2",
    "CONVERT TO CHARACTER SET utf8 COLLATE utf8_bin",
    "CONVERT TO CHARACTER SET binary",
    "CONVERT TO CHARACTER SET gbk",
    "CONVERT TO CHARACTER SET DEFAULT",
    "CONVERT TO CHARACTER SET latin1, ADD z VARCHAR(9), ADD y TEXT CHARACTER SET utf8",
    "CONVERT TO CHARACTER SET utf8mb4, MODIFY c TEXT, MODIFY b VARCHAR(9) CHARACTER SET latin1",
    "CONVERT TO CHARACTER SET ucs2, ADD z BLOB, ADD y BINARY(3), ADD x ENUM('q')",
    "CONVERT TO CHARACTER SET utf8mb4, DEFAULT CHARACTER SET latin1, ADD z VARCHAR(9)",
    "DEFAULT CHARACTER SET latin1, CONVERT TO CHARACTER SET utf8mb4, ADD z VARCHAR(9)",
    "DEFAULT CHARACTER SET latin1",
    "CHARSET = latin1, ADD z VARCHAR(9)",
    "ADD z VARCHAR(9), DEFAULT CHARSET latin1, MODIFY b VARCHAR(20)",
    "COLLATE latin1_bin, ADD z TEXT",
    "DEFAULT COLLATE = utf8mb4_bin ENGINE = InnoDB COMMENT 'ADD x INT', ADD z TEXT",
    "CHARACTER SET DEFAULT, ADD z VARCHAR(9)",
    "CONVERT TO CHARACTER SET latin1, CHARACTER SET DEFAULT",
    "CONVERT TO CHARACTER SET latin1, CHARACTER SET DEFAULT, ADD z VARCHAR(9), MODIFY c TEXT",
    "CHARACTER SET DEFAULT, CONVERT TO CHARACTER SET latin1, ADD z VARCHAR(9)",
    "CONVERT TO CHARACTER SET DEFAULT, CHARACTER SET DEFAULT, ADD z VARCHAR(9)",
    "CONVERT TO CHARACTER SET latin1, COLLATE latin1_bin, CHARACTER SET DEFAULT, ADD z TEXT",
    # clauses that do not change columns
    "ENGINE = InnoDB",
    "ENGINE InnoDB, COMMENT 'DROP a', AUTO_INCREMENT = 10, ROW_FORMAT = DYNAMIC, ADD z INT",
    "ORDER BY a, b DESC, e",
    "ADD z INT, ORDER BY z, a",
    "FORCE, ALGORITHM = COPY, LOCK = SHARED, ADD z INT",
    "ALGORITHM=INPLACE, ADD z INT, LOCK=NONE",
    "DISABLE KEYS",
    "ENABLE KEYS, ADD z INT",
    "ADD z INT /*!50000 UNSIGNED NOT NULL */ /* DROP a */, /*!99999 DROP b, */ DROP c",
    "ADD z INT -- , DROP a\n, ADD y INT # , DROP b",
    "PARTITION BY HASH (id) PARTITIONS 3",
    "ADD z INT PARTITION BY KEY (id) PARTITIONS 2",
    "ADD z INT, COMMENT 'x' PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN MAXVALUE)",
    # MariaDB
    "ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS z INT, DROP COLUMN IF EXISTS y",
    "DROP IF EXISTS a, MODIFY COLUMN IF EXISTS b VARCHAR(90), CHANGE IF EXISTS y x INT",
    "ADD COLUMN IF NOT EXISTS (a BIGINT, z INT)",
    "ADD PRIMARY KEY IF NOT EXISTS (a), ADD z INT",
    "ADD CONSTRAINT pk PRIMARY KEY IF NOT EXISTS name (a), ADD z INT",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (a), ADD INDEX IF NOT EXISTS q (e)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (a), ADD CONSTRAINT IF NOT EXISTS c CHECK (IF(a, 1, 1))",
    "ADD CONSTRAINT IF NOT EXISTS primary_key CHECK (IF(a, 1, 1)), ADD z INT",
    "ADD INDEX IF NOT EXISTS a (a), ADD CONSTRAINT ck CHECK (a < 10), ADD z JSON",
    "ADD z INT CHECK (z > 3), ADD y INT AS (a + 1) PERSISTENT, ADD x INT AS (a * 2) VIRTUAL",
    "ADD PERIOD FOR p (s1, s2), ADD s1 DATE NOT NULL, ADD s2 DATE NOT NULL",
]

_RANGES = (
    "CREATE TABLE {table} (a INT, b INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5),"
    " PARTITION q VALUES LESS THAN (9))"
)

# Whole statements, each after its own CREATE; {table} is the table's name.
OTHERS = [
    ("CREATE TABLE {table} (a INT PRIMARY KEY, b INT)", "DROP INDEX `PRIMARY` ON {table}"),
    ("CREATE TABLE {table} (a INT PRIMARY KEY, b INT)", "ALTER TABLE {table} DROP a"),
    ("CREATE TABLE {table} (a INT PRIMARY KEY, b INT)", "ALTER TABLE {table} DROP a, ADD A INT"),
    (
        "CREATE TABLE {table} (a INT, b INT, c INT, PRIMARY KEY (c, a))",
        "ALTER TABLE {table} DROP a, ADD a INT FIRST, CHANGE c d BIGINT, CHANGE b c INT",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE {table} ADD z INT REMOVE PARTITIONING",
    ),
    ("CREATE TABLE {table} (a INT, b INT, PRIMARY KEY (b, a))", "ALTER TABLE {table} DROP a"),
    (
        "CREATE TABLE {table} (a VARCHAR(40000) CHARACTER SET latin1, b INT)",
        "ALTER TABLE {table} CONVERT TO CHARACTER SET utf8",
    ),
    (
        "CREATE TABLE {table} (a TEXT CHARACTER SET utf8mb4, b TINYTEXT CHARACTER SET utf8mb4)",
        "ALTER TABLE {table} CONVERT TO CHARACTER SET latin1",
    ),
    (
        "CREATE TABLE {table} (a TEXT CHARACTER SET latin1, b MEDIUMTEXT CHARACTER SET latin1)",
        "ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4",
    ),
    (
        "CREATE TABLE {table} (e ENUM('漢','b') CHARACTER SET utf8, s SET('é') CHARACTER SET utf8)",
        "ALTER TABLE {table} CONVERT TO CHARACTER SET ucs2",
    ),
    (
        "CREATE TABLE {table} (e ENUM('é','b') CHARACTER SET utf8) DEFAULT CHARSET latin1",
        "ALTER TABLE {table} ADD v VARCHAR(9), CONVERT TO CHARACTER SET latin1",
    ),
    (
        _RANGES,
        "ALTER TABLE {table} ADD PARTITION (PARTITION r VALUES LESS THAN (20))",
    ),
    (
        _RANGES,
        "ALTER TABLE {table} DROP PARTITION p",
    ),
    (
        _RANGES,
        "ALTER TABLE {table} REORGANIZE PARTITION p, q INTO (PARTITION r VALUES LESS THAN (20))",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE {table} COALESCE PARTITION 2",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE {table} ADD PARTITION PARTITIONS 2",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE {table} REMOVE PARTITIONING",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ALTER TABLE {table} TRUNCATE PARTITION p1, p2",
    ),
    ("CREATE TABLE {table} (a INT) CHARSET latin1", "ALTER TABLE {table} CONVERT TO CHARSET utf8"),
    (
        "CREATE TABLE {table} (a VARCHAR(9) CHARSET utf8, b BLOB) CHARSET latin1",
        "ALTER TABLE {table} CONVERT TO CHARSET utf8, ALGORITHM=COPY",
    ),
    (
        "CREATE TABLE {table} (a INT) CHARSET latin1",
        "ALTER TABLE {table} CONVERT TO CHARSET utf8, ADD INDEX (a)",
    ),
    (
        "CREATE TABLE {table} (a INT) CHARSET latin1",
        "ALTER TABLE {table} CONVERT TO CHARSET utf8, MODIFY a INT",
    ),
    ("CREATE TABLE {table} (a INT)", "ALTER IGNORE TABLE {table} ADD UNIQUE (a), ADD b INT"),
    (
        "CREATE TABLE {table} (a INT)",
        "SET STATEMENT lock_wait_timeout=9 FOR ALTER TABLE {table} ADD b INT",
    ),
    ("CREATE TABLE {table} (a INT)", "ALTER TABLE IF EXISTS {table} WAIT 5 ADD b INT"),
    ("CREATE TABLE {table} (a INT)", "ALTER TABLE {table} NOWAIT ADD b INT"),
    (
        "CREATE TABLE {table} (a INT)",
        "ALTER TABLE {table} ADD CHECK (IF(a, 1, 1)), ADD PRIMARY KEY (a)",
    ),
    (
        "CREATE TABLE {table} (a INT PRIMARY KEY)",
        "SET STATEMENT lock_wait_timeout=9 FOR DROP INDEX `PRIMARY` ON {table}",
    ),
    # A key refers to its columns by their old names, and takes the first column that matches.
    (
        "CREATE TABLE {table} (a VARCHAR(9) PRIMARY KEY, b INT)",
        "ALTER TABLE {table} CHANGE a z VARCHAR(9), ADD a VARCHAR(9) FIRST",
    ),
    (
        "CREATE TABLE {table} (a VARCHAR(9) PRIMARY KEY, b INT)",
        "ALTER TABLE {table} CHANGE a z VARCHAR(9), ADD a VARCHAR(9)",
    ),
    (
        "CREATE TABLE {table} (a INT, b INT, PRIMARY KEY (b, a))",
        "ALTER TABLE {table} RENAME COLUMN a TO z, ADD a INT FIRST",
    ),
    (
        "CREATE TABLE {table} (a INT PRIMARY KEY, b INT, c INT)",
        "ALTER TABLE {table} CHANGE a b INT, CHANGE b a INT, MODIFY c INT FIRST",
    ),
    (
        "CREATE TABLE {table} (a INT PRIMARY KEY, b INT)",
        "ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY IF NOT EXISTS (b)",
    ),
    (
        "CREATE TABLE {table} (a INT PRIMARY KEY, b INT)",
        "ALTER TABLE {table} DROP a, ADD PRIMARY KEY IF NOT EXISTS (b)",
    ),
    # The last NULL or NOT NULL applies.
    (
        "CREATE TABLE {table} (a INT AUTO_INCREMENT NULL UNIQUE, b INT)",
        "ALTER TABLE {table} ADD c INT NOT NULL NULL",
    ),
    (
        "CREATE TABLE {table} (a INT NULL AUTO_INCREMENT UNIQUE)",
        "ALTER TABLE {table} MODIFY a BIGINT SERIAL DEFAULT VALUE NULL",
    ),
    ("CREATE TABLE {table} (b INT)", "ALTER TABLE {table} ADD a SERIAL NULL"),
    ("CREATE TABLE {table} ({table}.a INT, .b INT PRIMARY KEY)", "ALTER TABLE {table} DROP a"),
    ("CREATE TABLE {table} (a INT)", "ALTER IGNORE ONLINE TABLE {table} ADD b INT"),
    ("CREATE TABLE {table} (a INT)", "ALTER ONLINE IGNORE TABLE {table} ADD b INT"),
]

# Statements that change labels without listing them, which is not tracked.
RELABELLED = frozenset(
    {
        "ALTER TABLE {table} CONVERT TO CHARSET ucs2",
        "ALTER TABLE {table} CONVERT TO CHARACTER SET ucs2",
        (
            "ALTER TABLE {table} CONVERT TO CHARACTER SET ucs2, ADD z BLOB, ADD y BINARY(3),"
            " ADD x ENUM('q')"
        ),
        "ALTER TABLE {table} ADD v VARCHAR(9), CONVERT TO CHARACTER SET latin1",
    }
)

# Clauses about the table's character set. Servers differ if a statement has two of them.
_OF_THE_TABLE = (
    "COMMENT 'x'",
    "CONVERT TO CHARACTER SET utf8mb4",
    "CONVERT TO CHARACTER SET binary",
    "DEFAULT CHARACTER SET binary",
    "CONVERT TO CHARACTER SET utf8mb4, DEFAULT CHARACTER SET latin1",
    "DEFAULT CHARACTER SET ucs2, CONVERT TO CHARACTER SET latin1",
    "CONVERT TO CHARACTER SET latin1, DEFAULT CHARACTER SET binary",
    "CONVERT TO CHARACTER SET binary, DEFAULT CHARACTER SET latin1",
    "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, COLLATE latin1_bin",
)
# Definitions of a column in the same statement.
_OF_A_COLUMN = (
    "VARCHAR(3)", "CHAR(3) BINARY", "CHAR(3) COLLATE DEFAULT", "CHAR(3) COLLATE latin1_bin",
    "CHAR(3) CHARACTER SET cp1251 BINARY", "VARCHAR(3) BINARY ASCII", "ENUM('q') BINARY", "TEXT",
    "LONG VARCHAR", "TEXT CHARACTER SET binary", "NVARCHAR(3) BINARY", "CHAR(3) BYTE",
)  # fmt: skip
CHARACTER_SETS = [
    (
        "CREATE TABLE {table} (a INT, b VARCHAR(5), c TEXT) CHARSET gbk",
        f"ALTER TABLE {{table}} ADD z {column}, {table}, MODIFY b {column}",
    )
    for column, table in product(_OF_A_COLUMN, _OF_THE_TABLE)
]

# CONVERT TO that changes no column's character set: it depends on the server whether the table's
# default changes. (columns and options, clauses)
_NUMBERS = "(id INT PRIMARY KEY, n INT) CHARSET latin1"
_OF_NO_COLUMN = [
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ALGORITHM=INPLACE"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ALGORITHM=COPY"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, LOCK=NONE"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ALGORITHM=DEFAULT, LOCK=DEFAULT"),
    (_NUMBERS, "CONVERT TO CHARACTER SET latin1"),
    (_NUMBERS, "CONVERT TO CHARACTER SET binary"),
    (_NUMBERS, "CONVERT TO CHARACTER SET DEFAULT"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, CONVERT TO CHARACTER SET utf8mb4"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ENABLE KEYS"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, MODIFY n INT"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ALTER n SET DEFAULT 1"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ORDER BY n"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, FORCE"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, ADD INDEX (n)"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, DROP n, ADD n INT"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, COMMENT ''"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4, DROP PRIMARY KEY, ADD PRIMARY KEY (id)"),
    (_NUMBERS, "CONVERT TO CHARACTER SET utf8mb4 PARTITION BY HASH (id) PARTITIONS 2"),
    (f"{_NUMBERS} ENGINE=MyISAM", "CONVERT TO CHARACTER SET utf8mb4"),
    (f"{_NUMBERS} PARTITION BY HASH (id)", "CONVERT TO CHARACTER SET utf8mb4"),
    (f"{_NUMBERS} PARTITION BY HASH (id)", "CONVERT TO CHARSET utf8mb4 REMOVE PARTITIONING"),
    ("(id INT, n INT) CHARSET utf8mb4", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    ("(id INT, b BLOB) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    ("(id INT, b BINARY(3), c VARBINARY(4)) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    ("(id INT, j JSON) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    ("(id INT, g GEOMETRY) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    ("(id INT, v VARCHAR(3) CHARSET utf8mb4) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    (
        "(id INT, v VARCHAR(3) CHARSET utf8mb4 COLLATE utf8mb4_bin) CHARSET latin1",
        "CONVERT TO CHARACTER SET utf8mb4",
    ),
    ("(id INT, e ENUM('a') CHARSET utf8mb4) CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4"),
    ("(id INT, t TEXT CHARSET latin1) CHARSET utf8mb4", "CONVERT TO CHARACTER SET latin1"),
    ("(id INT, e CHAR(3) CHARSET latin1)", "CONVERT TO CHARACTER SET latin1"),
    (
        "(id INT, n INT, KEY n (n)) CHARSET latin1",
        "CONVERT TO CHARACTER SET utf8mb4, DROP INDEX n, ADD INDEX n (n)",
    ),
    (
        "(id INT, n INT, KEY n (n)) CHARSET latin1",
        "CONVERT TO CHARACTER SET utf8mb4, DROP INDEX n",
    ),
]
CONVERSIONS = [
    (f"CREATE TABLE {{table}} {columns}", f"ALTER TABLE {{table}} {clauses}")
    for columns, clauses in _OF_NO_COLUMN
]
