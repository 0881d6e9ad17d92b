"""ALTER TABLE followed in the log of real servers: the columns must be information_schema's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from random import Random

import pymysql
import pytest

from pyspark_mysqlbinlog.tables import TableSchema

from alter_cases import ALTERS, BASE, CHARACTER_SETS, OTHERS, RELABELLED
from ddl_cases import TYPES
from followed import Follower
from live_log import new_database
from random_alters import RandomDdl
from random_tables import RandomTable
from servers import LocalServer, Server

DATABASE = "alter_live"
TABLES = ("t", "u", "v", "W w", "漢")
STATEMENTS = 300


@pytest.fixture(params=["mysql56", "mariadb"])
def follower(request: pytest.FixtureRequest) -> Iterator[Follower]:
    """Both servers, with an empty database in utf8mb4, and a tracker of it."""
    server: LocalServer = request.getfixturevalue(request.param)
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARSET utf8mb4"
    )
    with Follower.of(server, DATABASE) as follower:
        yield follower
    server.execute(f"DROP DATABASE {DATABASE}")


def same(ours: TableSchema | str, theirs: TableSchema) -> bool:
    """The table's default may be unknown: CONVERT TO hangs on collations."""
    if isinstance(ours, TableSchema) and ours.charset is None:
        return replace(ours, charset=theirs.charset) == theirs
    return ours == theirs


def made_others(ours: TableSchema | str) -> bool:
    """Whether the server has mangled labels, which is not followed."""
    return isinstance(ours, str) and "become others" in ours


def difference(ours: TableSchema | str, theirs: TableSchema) -> object:
    """What is not the same, for a message."""
    if isinstance(ours, str):
        return ours
    columns = [
        (mine, other) for mine, other in zip_longest(ours.columns, theirs.columns) if mine != other
    ]
    rest = [(ours.primary_key, ours.charset), (theirs.primary_key, theirs.charset)]
    return columns or rest


Case = tuple[str, str]
SINGLE = [(BASE, f"ALTER TABLE {{table}} {clauses}") for clauses in ALTERS]


def attempt(server: Server, database: str, cases: list[Case]) -> dict[int, str]:
    """Run each on a table of its own; why the server refused which."""
    refused = {}
    with server.connect(database=database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        for index, (create, alter) in enumerate(cases):
            table = f"t{index}"
            cursor.execute(create.replace("{table}", table))
            try:
                cursor.execute(alter.replace("{table}", table))
            except pymysql.MySQLError as error:
                refused[index] = f"{alter}: {error}"
    return refused


def run_cases(follower: Follower, cases: list[Case]) -> list[str]:
    """Run each on a table of its own, and compare all of them; returns what was refused."""
    refused = attempt(follower.server, DATABASE, cases)
    follower.catch_up()
    theirs = follower.from_server()
    wrong, relabelled = [], set()
    for index, (_, alter) in enumerate(cases):
        ours, expected = follower.now(f"t{index}"), theirs[f"t{index}"]
        if made_others(ours):
            relabelled.add(index)
        elif not same(ours, expected):
            wrong.append((alter, difference(ours, expected)))
    assert wrong == []
    marked = {index for index, (_, alter) in enumerate(cases) if alter in RELABELLED}
    assert relabelled == marked - refused.keys()
    return list(refused.values())


# What each server does not know, or does not allow.
REFUSED = {
    "mysql56": (
        "RENAME COLUMN", "RENAME INDEX", "IF NOT EXISTS", "IF EXISTS", "PERSISTENT", "PERIOD",
        "SET STATEMENT", "NOWAIT", "ONLINE", "COLLATE DEFAULT", "Incorrect prefix key",
        # MODIFY of a column that the same statement adds.
        "Unknown column 'z'", "Unknown column 'a'", "Unknown column 'b'", "Unknown column 'c'",
        "Conflicting declarations", "is not valid for CHARACTER SET",
    ),
    "mariadb": ("Key column 'a' doesn't exist", "SERIAL NULL", "ADD period INT"),
}  # fmt: skip


def expect_refused(follower: Follower, refused: list[str], at_most: int) -> None:
    words = REFUSED[follower.server.name]
    assert [each for each in refused if not any(word in each for word in words)] == []
    assert len(refused) <= at_most


def test_single_alters(follower: Follower) -> None:
    expect_refused(follower, run_cases(follower, SINGLE), at_most=23)


def test_other_statements(follower: Follower) -> None:
    expect_refused(follower, run_cases(follower, OTHERS), at_most=11)


def test_character_sets_of_table_and_column(follower: Follower) -> None:
    expect_refused(follower, run_cases(follower, CHARACTER_SETS), at_most=60)


def test_each_case_is_done_by_a_server(mysql56: Server, mariadb: Server) -> None:
    cases = SINGLE + OTHERS + CHARACTER_SETS
    with new_database(mysql56, "done") as one, new_database(mariadb, "done") as other:
        refused = [cases[index] for index in attempt(mysql56, one, cases)]
        assert attempt(mariadb, other, refused) == {}


def test_random_ddl(follower: Follower, ddl_seed: int) -> None:
    """The tables are what information_schema shows after every statement."""
    ddl = RandomDdl(Random(ddl_seed), [f"`{name}`" for name in TABLES])
    done: list[str] = []
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        while len(done) < STATEMENTS:
            sql = ddl.statement()
            try:
                cursor.execute(sql)
            except pymysql.MySQLError:
                continue
            done.append(sql)
            for table in TABLES:
                with suppress(pymysql.MySQLError):
                    cursor.execute(f"INSERT INTO `{table}` () VALUES ()")
            follower.catch_up()
            theirs = follower.from_server()
            ours = {name: follower.now(name) for name in theirs}
            wrong = [
                (name, difference(ours[name], schema))
                for name, schema in theirs.items()
                if not same(ours[name], schema)
            ]
            assert wrong == [], "\n".join([f"DDL_SEED={ddl_seed}", *done[-8:]])
            known = {name for name in TABLES if not isinstance(follower.now(name), str)}
            assert known <= theirs.keys()
    assert follower.fitted > STATEMENTS


def test_a_conversion_that_changes_no_column(follower: Follower) -> None:
    """5.6 and 5.7 then change the table's default with its columns' collations, or not at all.

    So what is added without a character set is not known there; with one it is, and where the
    statement does anything else besides.
    """
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        for table, collation in (("t", "utf8_general_ci"), ("u", "utf8_bin")):
            column = f"s VARCHAR(9) CHARACTER SET utf8 COLLATE {collation}"
            cursor.execute(f"CREATE TABLE {table} ({column}) DEFAULT CHARSET latin1")
            cursor.execute(f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8")
            cursor.execute(f"ALTER TABLE {table} ADD a VARCHAR(9) CHARACTER SET gbk")
            cursor.execute(f"CREATE TABLE {table}{table} LIKE {table}")
            cursor.execute(f"ALTER TABLE {table} ADD b VARCHAR(9)")
            cursor.execute(
                f"ALTER TABLE {table}{table} CONVERT TO CHARACTER SET utf8mb4, ADD b VARCHAR(9)"
            )
    follower.catch_up()
    theirs = follower.from_server()
    if follower.server.name == "mariadb":
        assert {theirs[table].charset for table in "tu"} == {"utf8"}
    else:
        assert [theirs[table].charset for table in "tu"] == ["latin1", "utf8"]
        for table in "tu":
            reason = follower.now(table)
            assert isinstance(reason, str)
            assert "column 'b' has a character set that neither its definition" in reason
            del theirs[table]
    assert {table: follower.now(table) for table in theirs} == theirs


# What clients may write in, with names and labels in it; in gbk and sjis some end in a backslash.
CLIENTS = [
    ("latin1", "prix é", "Übermaß"),
    ("gbk", "誠許", "汉\\字"),
    ("sjis", "表ソ", "能\\'予"),
    ("big5", "許功蓋", "許'功"),
    ("cp1251", "Привет", "ёлка"),
    ("koi8r", "Привет", "ёлка"),
    ("utf8", "漢字é", "é\\n"),
    ("utf8mb4", "漢字é", "é"),
]


@pytest.mark.parametrize(("charset", "name", "label"), CLIENTS)
def test_statements_in_the_clients_charset(
    follower: Follower, charset: str, name: str, label: str
) -> None:
    """A log has a client's bytes as they came; what the server writes itself is UTF-8."""
    with follower.server.connect(database=DATABASE, charset=charset) as connection:
        cursor = connection.cursor()
        text = connection.escape(label)
        cursor.execute(
            f"CREATE TABLE `{name}` (id INT PRIMARY KEY, `{name}` ENUM({text}, 'x')"
            f" CHARACTER SET utf8 DEFAULT {text} COMMENT {text}) DEFAULT CHARSET utf8"
        )
        cursor.execute(f"CREATE TABLE made SELECT * FROM `{name}`")
        cursor.execute(f"ALTER TABLE `{name}` ADD `{name}2` SET({text}) CHARACTER SET utf8")
        cursor.execute(f"CREATE TABLE `{name}_gone` (id INT)")
        cursor.execute(f"DROP TABLE `{name}_gone`")
        cursor.execute(f"CREATE TEMPORARY TABLE tmp LIKE `{name}`")
        cursor.execute("CREATE TABLE `of tmp` LIKE tmp")
        cursor.execute(f"ALTER TABLE made RENAME `{name} made`")
    follower.catch_up()
    theirs = follower.from_server()
    ours = {table: follower.now(table) for table in theirs}
    # The server logs it without its character set: a replica makes it another table.
    assert "character set" in str(ours.pop("of tmp"))
    assert ours == {table: theirs[table] for table in ours}
    assert set(ours) == {name, f"{name} made"}
    assert label in theirs[name].columns[1].labels
    for gone in ("made", f"{name}_gone", "tmp"):
        assert isinstance(follower.now(gone), str)


def test_backslashes_of_the_servers_own(follower: Follower) -> None:
    """It doubles them in its own texts, also where the session's mode makes nothing of them."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute(r"CREATE TABLE t (e ENUM('a\\b', 'c\nd', '\\', 'q''\\\\'))")
        cursor.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
        cursor.execute("CREATE TABLE u SELECT * FROM t")
        cursor.execute(r"CREATE TABLE v (e ENUM('a\\b', 'c\nd', '\'))")
        # As SHOW CREATE TABLE has it, and as MariaDB logs LIKE a temporary table.
        shown = "CREATE TABLE `{}` (\n  `e` enum({}) DEFAULT NULL\n) ENGINE=InnoDB COMMENT='\\'"
        cursor.execute(shown.format("w", r"'a\\b'"))
        cursor.execute(shown.format("x", "'ab'"))
    follower.catch_up()
    theirs = follower.from_server()
    assert "may have backslashes of the server's own" in str(follower.now("w"))
    assert {name: follower.now(name) for name in "tuvx"} == {name: theirs[name] for name in "tuvx"}


# What a session says first, what it creates, and what is said of the table: nothing if it is known.
# `{made}` is what CREATE … SELECT copies, `{name}` the table that must be as the server has it.
SESSIONS = [
    # Literals go through the connection's character set, whatever the column could hold.
    ("SET NAMES utf8", "CREATE TABLE {name} (e ENUM('😀') CHARACTER SET utf8mb4)", "not in utf8,"),
    ("SET NAMES utf8mb4", "CREATE TABLE {name} (e ENUM('😀') CHARACTER SET utf8mb4)", "unseen"),
    (
        "SET NAMES utf8, character_set_connection = latin1",
        "CREATE TABLE {name} (e SET('ж', 'b') CHARACTER SET utf8)",
        "not in latin1,",
    ),
    (
        "SET NAMES utf8, character_set_connection = latin1",
        "CREATE TABLE {name} (`ж` ENUM('é') CHARACTER SET utf8 COMMENT 'ж')",
        "",
    ),
    (
        "SET NAMES binary",
        "CREATE TABLE {name} (e ENUM('é') CHARACTER SET latin1)",
        "not in ascii,",
    ),
    ("SET NAMES binary", "CREATE TABLE {name} (e ENUM('é') CHARACTER SET utf8)", ""),
    ("SET NAMES utf8, character_set_connection = latin1", "CREATE TABLE {name} LIKE {made}", ""),
    # What the server writes itself: in its own quotes, and in some modes without character sets.
    ("SET NAMES latin1, sql_mode = 'ANSI_QUOTES'", "CREATE TABLE {name} SELECT * FROM {made}", ""),
    ("SET sql_mode = 'ANSI_QUOTES'", "CREATE TABLE {name} SELECT * FROM {made}", ""),
    *(
        (
            f"SET sql_mode = '{mode}'",
            "CREATE TABLE {name} (s TEXT) DEFAULT CHARSET latin1 SELECT 1 AS a",
            "has a character set that neither",
        )
        for mode in ("ANSI", "ORACLE", "NO_TABLE_OPTIONS")
    ),
    (
        "SET sql_mode = 'MYSQL40'",
        "CREATE TABLE {name} (s TEXT CHARACTER SET latin1) SELECT 1 AS a",
        "has a character set that neither",
    ),
    # Types that are others in some modes.
    ("SET sql_mode = 'MAXDB'", "CREATE TABLE {name} (a TIMESTAMP, b TIMESTAMP(3) NOT NULL)", ""),
    ("SET sql_mode = 'ORACLE'", "CREATE TABLE {name} (a DATE, b BLOB, c BLOB(10), d TEXT)", ""),
]


@pytest.mark.parametrize(("session", "create", "words"), SESSIONS)
def test_what_hangs_on_the_session(
    follower: Follower, session: str, create: str, words: str
) -> None:
    """Either it is what the server has, or it is not known."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE `née` (`prix é` INT, e ENUM('é') CHARACTER SET utf8)")
        cursor.execute(session)
        # In the client's character set.
        charset = {"latin1": "latin-1"}.get(session.split()[2].rstrip(","), "utf-8")
        text = create.format(name="t", made="`née`" if "QUOTES" not in session else '"née"')
        connection.query(text.encode(charset))
        follower.catch_up()
        ours, theirs = follower.now("t"), follower.from_server()["t"]
        if words == "unseen":
            # Of such labels information_schema shows question marks.
            assert isinstance(ours, TableSchema)
            assert ours.columns[0].labels == ("😀",)
        elif words:
            assert isinstance(ours, str)
            assert words in ours
        else:
            assert ours == theirs or replace(theirs, charset=None) == ours


# Of sql_mode ORACLE, and what MariaDB writes in it; DATE and TIMESTAMP of either in any mode.
ORACLE_TYPES = (
    "VARCHAR2(10)", "VARCHAR2(70000)", "NUMBER", "NUMBER(5)", "NUMBER(10,2) UNSIGNED", "CLOB",
    "CLOB CHARACTER SET utf8", "RAW(16)", "RAW(70000)", "DATE", "BLOB", "BLOB(9)", "TIMESTAMP(3)",
)  # fmt: skip
QUALIFIED_TYPES = (
    "mariadb_schema.date", "oracle_schema.date", "maxdb_schema.timestamp(3)",
    "mariadb_schema.timestamp(3) NOT NULL", "mariadb_schema.varchar(9)",
)  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "kinds"), [("ORACLE", ORACLE_TYPES + QUALIFIED_TYPES), ("", QUALIFIED_TYPES)]
)
def test_types_of_oracle(mariadb: LocalServer, mode: str, kinds: tuple[str, ...]) -> None:
    with new_database(mariadb, "oracle") as name, Follower.of(mariadb, name) as follower:
        with mariadb.connect(database=name) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET sql_mode = '{mode}'")
            for index, kind in enumerate(kinds):
                cursor.execute(f"CREATE TABLE t{index} (a {kind}, b INT)")
            cursor.execute("SET sql_mode = ''")
            cursor.execute("CREATE TABLE t (a DATE, b TIMESTAMP(2), c BLOB, d TINYBLOB)")
            cursor.execute("SET sql_mode = 'ORACLE'")
            cursor.execute("CREATE TABLE made SELECT * FROM t")
        follower.catch_up()
        theirs = follower.from_server()
        ours = {table: follower.now(table) for table in theirs}
        # In this mode the server writes no character set of the table.
        theirs["made"] = replace(theirs["made"], charset=None)
        assert ours == theirs


def test_labels_that_an_alter_did_not_write(follower: Follower) -> None:
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (a ENUM('ж') CHARACTER SET utf8, b INT)")
        cursor.execute("SET NAMES latin1")
        cursor.execute("ALTER TABLE t ADD c SET('x') CHARACTER SET utf8, DROP b")
        follower.catch_up()
        assert follower.now("t") == follower.from_server()["t"]
        cursor.execute("SET NAMES utf8, character_set_connection = latin1")
        cursor.execute("ALTER TABLE t MODIFY c SET('ё') CHARACTER SET utf8")
    follower.catch_up()
    assert "not in latin1," in str(follower.now("t"))


def test_a_definition_that_a_client_copied(follower: Follower) -> None:
    """UTF-8 over a connection that says latin1: the server has what it was told, `Ã©`."""
    shown = "CREATE TABLE `t` (\n  `é` int(11) DEFAULT NULL,\n  `e` enum('é') DEFAULT NULL\n)"
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES latin1")
        cursor.execute(f"{shown} ENGINE=InnoDB DEFAULT CHARSET=utf8")
    follower.catch_up()
    assert [column.name for column in follower.from_server()["t"].columns] == ["Ã©", "e"]
    assert "character set that its client said" in str(follower.now("t"))


def test_a_table_that_mariadb_replaced(mariadb: LocalServer) -> None:
    """Its statement has the flag of temporary tables, since it dropped one."""
    with new_database(mariadb, "replaced") as name, Follower.of(mariadb, name) as follower:
        mariadb.execute(
            "CREATE TABLE t (id INT, s VARCHAR(9))",
            "CREATE OR REPLACE TABLE t (s VARCHAR(9), e ENUM('a'))",
            "CREATE TABLE u (id INT, s TEXT)",
            "CREATE OR REPLACE TABLE u SELECT * FROM t",
            "CREATE TEMPORARY TABLE tmp (s TEXT CHARACTER SET latin1) DEFAULT CHARSET latin1",
            "CREATE TABLE v SELECT * FROM tmp",
            "CREATE TABLE w LIKE tmp",
            database=name,
        )
        follower.catch_up()
        theirs = follower.from_server()
        assert {table: follower.now(table) for table in "tuv"} == {t: theirs[t] for t in "tuv"}
        assert "character set" in str(follower.now("w"))


def test_statements_that_failed(follower: Follower) -> None:
    """What is logged with its error did a part of its work, and nobody knows which."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB")
        cursor.execute("CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES p (id)) ENGINE=InnoDB")
        for table in ("o", "q", "r"):
            cursor.execute(f"CREATE TABLE {table} (id INT)")
        for failing in (
            "DROP TABLE IF EXISTS p",
            "DROP TABLE p, o",
            "DROP TABLE q, nobody_has_this",
            "CREATE OR REPLACE TABLE r (a TEXT PRIMARY KEY)",
        ):
            with pytest.raises(pymysql.MySQLError):
                cursor.execute(failing)
        cursor.execute("CREATE TABLE IF NOT EXISTS p (other INT)")
        cursor.execute("CREATE TABLE IF NOT EXISTS q (other INT)")
    follower.catch_up()
    theirs = follower.from_server()
    assert {"p", "c", "q"} <= theirs.keys()
    for table in (*"pcoqr",):
        ours = follower.now(table)
        assert isinstance(ours, str) or ours == theirs[table], table
    assert follower.now("q") == theirs["q"], "all that was there was dropped"


def test_statements_that_set_what_they_are_read_with(mariadb: LocalServer) -> None:
    """MariaDB reads them as the session would have, and logs them as if they had been read so."""
    with new_database(mariadb, "read_with") as name, Follower.of(mariadb, name) as follower:
        mariadb.execute(
            "SET STATEMENT sql_mode='REAL_AS_FLOAT' FOR CREATE TABLE t (a REAL)",
            "SET STATEMENT lock_wait_timeout=9, sql_mode='' FOR CREATE TABLE u (a REAL)",
            "CREATE TABLE v (a INT)",
            "SET STATEMENT sql_mode='REAL_AS_FLOAT' FOR ALTER TABLE v ADD b REAL",
            "SET STATEMENT lock_wait_timeout=9 FOR CREATE TABLE w (a REAL)",
            database=name,
        )
        follower.catch_up()
        assert all("has SQL_MODE" in str(follower.now(table)) for table in "tuv")
        assert follower.now("w") == follower.from_server()["w"]


def test_letters_beyond_the_bmp(follower: Follower) -> None:
    """The server keeps none in names, and writes none in its own statements."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        with suppress(pymysql.MySQLError):
            cursor.execute("CREATE TABLE `x😀` (`b😀` INT, `漢` INT)")
        cursor.execute("CREATE TABLE e (l ENUM('😀', 'é') CHARACTER SET utf8mb4)")
        cursor.execute("CREATE TABLE f SELECT l FROM e")
    follower.catch_up()
    theirs = follower.from_server()
    for table in theirs.keys() - {"e", "f"}:
        assert follower.now(table) == theirs[table]
    assert "beyond U+FFFF" in str(follower.now("f"))


def test_a_letter_of_sjis_that_looks_like_a_backslash(follower: Follower) -> None:
    with follower.server.connect(database=DATABASE, charset="latin1") as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES sjis")
        connection.query(b"CREATE TABLE t (e ENUM('\x81\x5fn') CHARACTER SET sjis)")
    follower.catch_up()
    assert isinstance(follower.now("t"), str)


def test_temporary_tables_in_statement_format(follower: Follower) -> None:
    """Their DDL is in the log, under names that hide those of real tables: nobody can tell them."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (id INT)")
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("CREATE TEMPORARY TABLE t (other INT)")
        cursor.execute("ALTER TABLE t ADD v INT")
        cursor.execute("TRUNCATE TABLE t")
        cursor.execute("CREATE TABLE `like` LIKE t")
        cursor.execute("ALTER TABLE t RENAME TO u")
        cursor.execute("ALTER TABLE t ADD v INT")
        cursor.execute("DROP TABLE u")
    follower.catch_up()
    assert isinstance(follower.now("like"), str)
    assert "changed it when its columns were not known" in str(follower.now("t"))


def test_tables_of_a_procedure_that_uses_a_temporary_one(follower: Follower) -> None:
    """All that it does behind that has the flag of temporary tables."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        for table in ("t", "u", "v"):
            cursor.execute(f"CREATE TABLE {table} (a INT, b INT)")
        cursor.execute(
            "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE tmp (q INT);"
            " INSERT INTO tmp VALUES (1); ALTER TABLE t CHANGE a b INT, CHANGE b a INT;"
            " RENAME TABLE u TO w; DROP TABLE v; CREATE TABLE v (c INT); END"
        )
        cursor.execute("CALL p()")
    follower.catch_up()
    theirs = follower.from_server()
    assert "may be of a temporary table" in str(follower.now("t"))
    assert follower.now("v") == theirs["v"]
    if follower.server.name == "mysql56":  # which renames no temporary tables
        assert follower.now("w") == theirs["w"]


def test_tables_that_mariadb_flags_as_temporary(mariadb: LocalServer) -> None:
    """With such a default each statement of a table has the flag: its ALTER makes it unknown."""
    with new_database(mariadb, "flagged") as name, Follower.of(mariadb, name) as follower:
        create = "(a INT, b BIGINT DEFAULT (CONNECTION_ID()))"
        mariadb.execute(f"CREATE TABLE t {create}", f"CREATE TABLE u {create}", database=name)
        follower.catch_up()
        assert {table: follower.now(table) for table in "tu"} == follower.from_server()
        mariadb.execute(
            "ALTER TABLE t ADD d INT", "ALTER TABLE u ADD d INT, RENAME TO v", database=name
        )
        follower.catch_up()
        for table in "tuv":
            assert "may be of a temporary table" in str(follower.now(table))


def test_a_rename_behind_wait(mariadb: LocalServer) -> None:
    with new_database(mariadb, "waiting") as name, Follower.of(mariadb, name) as follower:
        mariadb.execute(
            "CREATE TABLE t (a INT)",
            "CREATE TABLE u (b INT)",
            "ALTER TABLE t WAIT 5 RENAME TO x",
            "RENAME TABLE u NOWAIT TO t",
            database=name,
        )
        follower.catch_up()
        assert {table: follower.now(table) for table in "tx"} == follower.from_server()
        assert isinstance(follower.now("u"), str)


# ALTER TABLE of a table in a database with another default than the session's.
OF_DATABASES = [
    "CHARACTER SET DEFAULT, ADD z TEXT",
    "CONVERT TO CHARACTER SET DEFAULT, ADD z TEXT",
    "CONVERT TO CHARACTER SET DEFAULT",
    "CONVERT TO CHARACTER SET DEFAULT, CHARACTER SET ucs2, ADD z TEXT",
]


def test_the_default_of_which_database(follower: Follower) -> None:
    """An option takes that of the table's; CONVERT TO the session's, but in MariaDB."""
    with (
        new_database(follower.server, "gbk_default") as other,
        follower.server.connect(database=DATABASE) as connection,
    ):
        cursor = connection.cursor()
        cursor.execute(f"ALTER DATABASE {other} CHARSET gbk")
        for index, clauses in enumerate(OF_DATABASES):
            for database in (DATABASE, other):
                table = f"{database}.t{index}"
                cursor.execute(f"CREATE TABLE {table} (b VARCHAR(9)) CHARSET utf8")
                with suppress(pymysql.MySQLError):  # conflicting declarations
                    cursor.execute(f"ALTER TABLE {table} {clauses}")
        cursor.execute(f"ALTER TABLE {other}.t0 CHARACTER SET DEFAULT, ADD y TEXT, RENAME moved")
        cursor.execute(f"CREATE TABLE {other}.made (s TEXT) CHARACTER SET DEFAULT")
        # Which one, hangs on their order.
        cursor.execute(
            f"ALTER TABLE {other}.made CONVERT TO CHARACTER SET utf8mb4, CHARACTER SET DEFAULT"
        )
        follower.catch_up()
        for database in (DATABASE, other):
            theirs = follower.from_server(database)
            ours = {table: follower.now(table, database) for table in theirs}
            if follower.server.name != "mariadb" and database == other:
                assert "CONVERT TO and CHARACTER SET DEFAULT" in str(ours.pop("made"))
            assert len(ours) >= len(OF_DATABASES) - 1
            assert ours == {table: theirs[table] for table in ours}


def test_table_maps_fit_every_type(follower: Follower) -> None:
    """What the server writes into its table maps is what is derived from the DDL."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        made = 0
        for index, (definition, _) in enumerate(TYPES):
            with suppress(pymysql.MySQLError):  # types that are newer than the server
                other = ", b INT" if "b +" in definition else ""
                cursor.execute(f"CREATE TABLE t{index} ({definition}{other}) ENGINE=MyISAM")
                cursor.execute(f"INSERT INTO t{index} () VALUES ()")
                made += 1
    follower.catch_up()
    assert follower.fitted == made
    assert made > len(TYPES) * 0.7


def test_table_maps_fit_random_tables(follower: Follower, ddl_seed: int) -> None:
    """Random types, in every character set, under odd names."""
    random = Random(ddl_seed)
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        for number in range(30):
            # Few, so that a row is not too long whatever they are.
            columns = random.sample(RandomTable.make(random, 12).columns, 5)
            create, insert = list(RandomTable(columns).statements(random, 1))[:2]
            cursor.execute(create.replace("TABLE t", f"TABLE t{number}"))
            cursor.execute(insert.replace("INTO t", f"INTO t{number}"))
    follower.catch_up()
    theirs = follower.from_server()
    assert follower.fitted == 30
    assert len(theirs) == 30
