"""Random DDL of every kind that can change columns, on a few tables; a seed makes it repeatable.

The statements are drawn without regard to the current columns: servers reject some of them (a key
that is too long, a duplicate column), and these change nothing. CONVERT TO is never the only
clause: its effect on a table's default character set can then depend on collations, which are not
tracked (see live/ddl/test_alter).
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from pymysql.cursors import Cursor

__all__ = ["RandomConversions", "RandomDdl", "drop_hashed_keys"]

_TYPES = (
    "INT", "INT UNSIGNED", "BIGINT", "TINYINT(1)", "SMALLINT ZEROFILL", "MEDIUMINT", "DOUBLE",
    "FLOAT", "DECIMAL(10,3)", "DECIMAL(5)", "BIT(9)", "DATE", "DATETIME(3)", "DATETIME", "TIME(6)",
    "TIMESTAMP NULL", "YEAR", "CHAR(10)", "CHAR(5) CHARACTER SET latin1", "VARCHAR(20)",
    "VARCHAR(300)", "VARCHAR(20) CHARACTER SET gbk", "VARCHAR(9) COLLATE utf8_bin", "TINYTEXT",
    "TEXT", "TEXT CHARACTER SET latin1", "MEDIUMTEXT", "LONGTEXT CHARACTER SET utf8mb4",
    "TEXT(300)", "BLOB", "TINYBLOB", "VARBINARY(30)", "BINARY(8)", "NATIONAL VARCHAR(7)",
    "ENUM('a','b','c')", "ENUM('b','a')", "ENUM('x') CHARACTER SET utf8mb4", "SET('p','q','r')",
    "SET('r','q')", "POINT", "BOOL", "CHAR BYTE", "CHAR(9) BINARY", "TEXT BINARY", "LONG VARCHAR",
    "VARCHAR(9) CHARACTER SET cp1251 BINARY", "CHAR(3) UNICODE", "ENUM('z','x') BINARY",
)  # fmt: skip
_NAMES = ("a", "b", "c", "d", "e", "Über", "`a b`", "`select`", "`x``y`", "漢字", "`first`", "Key1")
_CHARSETS = ("latin1", "utf8", "utf8mb4", "gbk", "cp1251", "binary", "ascii")
_ATTRIBUTES = ("", "", "", " NOT NULL", " NULL", " COMMENT 'x, DROP a'")


def drop_hashed_keys(cursor: Cursor) -> None:
    """Drop the UNIQUE keys that MariaDB hashes, those of long texts, which are not supported.

    The binlog then contains a column that no definition shows, and rows of the table stop a query.
    """
    cursor.execute(
        "SELECT DISTINCT table_name, index_name FROM information_schema.statistics"
        " WHERE table_schema = DATABASE() AND index_type = 'HASH'"
    )
    for table, index in cursor.fetchall():
        # Keys have their columns' names, which may contain a backquote.
        quoted = index.replace("`", "``")
        cursor.execute(f"ALTER TABLE `{table}` DROP INDEX `{quoted}`")


class RandomDdl:
    """Random statements on tables with the given (quoted) names."""

    def __init__(self, random: Random, tables: Iterable[str]) -> None:
        self.random = random
        self.tables = list(tables)

    def statement(self) -> str:
        random = self.random
        table = random.choice(self.tables)
        kind = random.random()
        if kind < 0.72:
            return f"ALTER TABLE {table} {self.clauses(table)}"
        if kind < 0.80:
            return self.create(table)
        if kind < 0.84:
            return f"DROP TABLE IF EXISTS {table}"
        if kind < 0.92:
            return self.rename()
        if kind < 0.95:
            return (
                f"CREATE TABLE {random.choice(('', 'IF NOT EXISTS '))}{table} LIKE {self.other()}"
            )
        if kind < 0.97:
            return f"CREATE TABLE {table} SELECT * FROM {self.other()}"
        if kind < 0.98:
            return f"ALTER DATABASE CHARACTER SET {random.choice(_CHARSETS)}"
        return f"TRUNCATE TABLE {table}"

    def other(self) -> str:
        return self.random.choice(self.tables)

    def rename(self) -> str:
        one, two = self.random.sample(self.tables, 2)
        if self.random.random() < 0.4:
            return f"RENAME TABLE {one} TO {two}"
        spare = f"{one[:-1]}_spare`"
        return f"RENAME TABLE {one} TO {spare}, {two} TO {one}, {spare} TO {two}"

    def create(self, table: str) -> str:
        random = self.random
        condition = random.choice(("", "", "IF NOT EXISTS "))
        names = random.sample(_NAMES, random.randint(1, 6))
        columns = [f"{name} {self.type()}" for name in names]
        key = random.choice((f", PRIMARY KEY ({names[0]})", ""))
        charset = random.choice(("", f" CHARSET {random.choice(_CHARSETS)}"))
        return f"CREATE TABLE {condition}{table} ({', '.join(columns)}{key}){charset}"

    def type(self) -> str:
        return self.random.choice(_TYPES) + self.random.choice(_ATTRIBUTES)

    def clauses(self, table: str) -> str:
        random = self.random
        count = random.choice((1, 1, 1, 2, 2, 3))
        clauses = [self.clause() for _ in range(count)]
        if random.random() < 0.05:
            clauses += [self.convert(), self.default()]
            random.shuffle(clauses)
        # IF NOT EXISTS is not tracked in one statement with a DROP of the same column.
        clauses = [each for each in clauses if " IF NOT EXISTS " in each][:1] or clauses
        if random.random() < 0.03:
            # MariaDB 10.11 copies a table and also keeps the old one if the table's name differs
            # from its file's name (see test_ddl_stream).
            if not table.strip("`").isalnum() or not table.isascii():
                clauses.clear()
            clauses.append(f"RENAME TO {self.other()}")
        if random.random() < 0.05:
            clauses = [f"/*!50000 {clauses[0]} */", *clauses[1:]]
        return ", ".join(clauses)

    def clause(self) -> str:
        random = self.random
        name, other = random.sample(_NAMES, 2)
        column = random.choice(("", "COLUMN "))
        place = random.choice(("", "", "", " FIRST", f" AFTER {random.choice(_NAMES)}"))
        if random.random() < 0.06:
            return self.relabelled(name, other)
        if random.random() < 0.06:
            return self.of_mariadb(name, other, place)
        kind = random.random()
        if kind < 0.30:
            return f"ADD {column}{name} {self.type()}{place}"
        if kind < 0.34:
            return f"ADD {column}({name} {self.type()}, {other} {self.type()})"
        if kind < 0.46:
            return f"DROP {column}{name}"
        if kind < 0.60:
            return f"CHANGE {column}{name} {other} {self.type()}{place}"
        if kind < 0.76:
            return f"MODIFY {column}{name} {self.type()}{place}"
        if kind < 0.80:
            return self.convert()
        if kind < 0.84:
            return self.default()
        if kind < 0.88:
            return "DROP PRIMARY KEY"
        if kind < 0.93:
            return f"ADD PRIMARY KEY ({name})"
        if kind < 0.96:
            return random.choice((f"ADD INDEX ({name}(3), {other})", f"ADD UNIQUE ({name})"))
        return random.choice(("ENGINE=InnoDB", "COMMENT 'ADD z INT'", f"ALTER {name} DROP DEFAULT"))

    def convert(self) -> str:
        return f"CONVERT TO CHARACTER SET {self.random.choice(_CHARSETS)}, COMMENT 'x'"

    def default(self) -> str:
        return f"DEFAULT CHARACTER SET {self.random.choice(_CHARSETS)}"

    def of_mariadb(self, name: str, other: str, place: str) -> str:
        """Return a clause that MySQL 5.x rejects."""
        kind = self.random.random()
        if kind < 0.4:
            return f"RENAME COLUMN {name} TO {other}"
        if kind < 0.6:
            return f"ADD COLUMN IF NOT EXISTS {name} {self.type()}{place}"
        if kind < 0.7:
            return f"DROP COLUMN IF EXISTS {name}"
        if kind < 0.85:
            return f"MODIFY COLUMN IF EXISTS {name} {self.type()}{place}"
        return f"CHANGE COLUMN IF EXISTS {name} {other} {self.type()}{place}"

    def relabelled(self, name: str, other: str) -> str:
        """Return clauses that can keep the table map: swapped names, or a column added again."""
        random = self.random
        kind = random.random()
        type_ = self.type()
        if kind < 0.6:
            return f"CHANGE {name} {other} {type_}, CHANGE {other} {name} {type_}"
        if kind < 0.8:
            return f"DROP {name}, ADD {name} {type_}"
        return f"DROP {name}, DROP {other}, ADD ({name} {type_}, {other} {type_})"


class RandomConversions:
    """Statements of few kinds, so that CONVERT TO often finds nothing to convert.

    Columns are added, with or without their own character set, after conversions of tables with and
    without text columns. Tables swap names, are copied, dropped and created again.
    """

    TABLES = ("a", "b", "c", "d")
    CHARSETS = ("latin1", "utf8", "utf8mb4", "gbk", "cp1251", "binary")
    NUMBERS = ("INT", "DATE", "BLOB", "VARBINARY(9)", "BIT(3)", "POINT", "DECIMAL(9,2)")
    TEXTS = ("VARCHAR(9)", "TEXT", "CHAR(3)", "TINYTEXT", "ENUM('x','y')", "SET('p')")

    def __init__(self, random: Random) -> None:
        self.random = random
        self._added = 0

    def statement(self) -> str:
        random = self.random
        table, other = random.sample(self.TABLES, 2)
        kind = random.random()
        if kind < 0.16:
            return self.create(table)
        if kind < 0.40:
            return f"ALTER TABLE {table} {self.convert()}"
        if kind < 0.62:
            return f"ALTER TABLE {table} ADD {self.new_column()}"
        if kind < 0.70:
            # Sometimes no text column is left.
            return f"ALTER TABLE {table} DROP n{random.randint(1, max(self._added, 1))}"
        if kind < 0.78:
            return f"RENAME TABLE {table} TO spare, {other} TO {table}, spare TO {other}"
        if kind < 0.86:
            return f"CREATE TABLE {table} LIKE {other}"
        if kind < 0.96:
            return f"DROP TABLE {table}"
        return f"ALTER DATABASE CHARACTER SET {random.choice(self.CHARSETS[:-1])}"

    def create(self, table: str) -> str:
        random = self.random
        kinds = self.NUMBERS if random.random() < 0.7 else self.NUMBERS + self.TEXTS
        columns = [f"c{number} {random.choice(kinds)}" for number in range(random.randint(1, 3))]
        charset = random.choice(("", f" CHARSET {random.choice(self.CHARSETS)}"))
        engine = random.choice(("", "", " ENGINE=MyISAM"))
        return f"CREATE TABLE {table} (id INT PRIMARY KEY, {', '.join(columns)}){charset}{engine}"

    def convert(self) -> str:
        random = self.random
        charset = random.choice((*self.CHARSETS, "DEFAULT"))
        more = ("", "", "", "", ", ALGORITHM=INPLACE", ", LOCK=SHARED", ", COMMENT 'x'", ", FORCE",
                ", ADD INDEX (id)", ", DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
                f", ADD {self.new_column()}")  # fmt: skip
        return f"CONVERT TO CHARACTER SET {charset}{random.choice(more)}"

    def new_column(self) -> str:
        random = self.random
        self._added += 1
        type_ = random.choice(random.choice((self.NUMBERS, self.TEXTS, self.TEXTS)))
        charset = ""
        if type_ in self.TEXTS and random.random() < 0.25:
            charset = f" CHARACTER SET {random.choice(self.CHARSETS[:-1])}"
        return f"n{self._added} {type_}{charset}{random.choice(('', ' FIRST'))}"
