"""Texts of DDL: character sets, escapes, sql_modes, and what the server writes for them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import pymysql
import pytest

from helpers.logs.live_log import new_database
from helpers.schemas.tracker_harness import Follower
from helpers.servers import LocalServer
from live.conftest import DATABASE
from pyspark_mysqlbinlog.tables import TableSchema

# Client charsets, a name and a label; in gbk and sjis some characters end in a backslash.
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
def test_ddl_in_the_client_charset_gives_the_schema_of_the_server(
    follower: Follower, charset: str, name: str, label: str
) -> None:
    """The binlog has a client's bytes unchanged; statements written by the server are UTF-8."""
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
    on_server = follower.from_server()
    followed = {table: follower.now(table) for table in on_server}
    # The server logs it without its character set, so a replica creates a different table.
    made_like_it = followed.pop("of tmp")
    # 9.x logs the columns' character sets, but in these three, UTF-8 is valid text, too.
    if follower.server.is_mysql9() and charset not in {"latin1", "cp1251", "koi8r"}:
        assert made_like_it == replace(on_server["of tmp"], charset=None)
    else:
        assert "character set" in str(made_like_it)
    assert followed == {table: on_server[table] for table in followed}
    assert set(followed) == {name, f"{name} made"}
    assert label in on_server[name].columns[1].labels
    for gone in ("made", f"{name}_gone", "tmp"):
        assert isinstance(follower.now(gone), str)


def test_backslashes_added_by_the_server_are_undone_or_make_schema_unknown(
    follower: Follower,
) -> None:
    """The server doubles backslashes in its own statements, even under NO_BACKSLASH_ESCAPES."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute(r"CREATE TABLE t (e ENUM('a\\b', 'c\nd', '\\', 'q''\\\\'))")
        cursor.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
        cursor.execute("CREATE TABLE u SELECT * FROM t")
        cursor.execute(r"CREATE TABLE v (e ENUM('a\\b', 'c\nd', '\'))")
        # As SHOW CREATE TABLE prints it, and as MariaDB logs CREATE TABLE LIKE a temporary table.
        shown = "CREATE TABLE `{}` (\n  `e` enum({}) DEFAULT NULL\n) ENGINE=InnoDB COMMENT='\\'"
        cursor.execute(shown.format("w", r"'a\\b'"))
        cursor.execute(shown.format("x", "'ab'"))
    follower.catch_up()
    on_server = follower.from_server()
    assert "may have backslashes added by the server" in str(follower.now("w"))
    assert {name: follower.now(name) for name in "tuvx"} == {
        name: on_server[name] for name in "tuvx"
    }


# The session's statement, its CREATE, and the expected reason, "" if the schema is known.
# `{made}` is the table that CREATE … SELECT copies, `{name}` the table that is compared.
SESSIONS = [
    # Literals are converted to the connection's character set, whatever the column could store.
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
    # The server writes its own quotes and, in some modes, leaves out character sets.
    ("SET NAMES latin1, sql_mode = 'ANSI_QUOTES'", "CREATE TABLE {name} SELECT * FROM {made}", ""),
    ("SET sql_mode = 'ANSI_QUOTES'", "CREATE TABLE {name} SELECT * FROM {made}", ""),
    *(
        (
            f"SET sql_mode = '{mode}'",
            "CREATE TABLE {name} (s TEXT) DEFAULT CHARSET latin1 SELECT 1 AS a",
            "has a character set that its definition",
        )
        for mode in ("ANSI", "ORACLE", "NO_TABLE_OPTIONS")
    ),
    (
        "SET sql_mode = 'MYSQL40'",
        "CREATE TABLE {name} (s TEXT CHARACTER SET latin1) SELECT 1 AS a",
        "has a character set that its definition",
    ),
    # Types that mean another type in some modes.
    ("SET sql_mode = 'MAXDB'", "CREATE TABLE {name} (a TIMESTAMP, b TIMESTAMP(3) NOT NULL)", ""),
    ("SET sql_mode = 'ORACLE'", "CREATE TABLE {name} (a DATE, b BLOB, c BLOB(10), d TEXT)", ""),
]


GONE_MODES = ("ORACLE", "NO_TABLE_OPTIONS", "MYSQL40", "MAXDB")


@pytest.mark.parametrize(("session", "create", "words"), SESSIONS)
def test_session_dependent_ddl_gives_the_server_schema_or_unknown(
    follower: Follower, session: str, create: str, words: str
) -> None:
    if follower.server.is_mysql9() and any(mode in session for mode in GONE_MODES):
        pytest.skip("8.0 and later have no such sql_mode")
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE `née` (`prix é` INT, e ENUM('é') CHARACTER SET utf8)")
        cursor.execute(session)
        # In the client's character set.
        charset = {"latin1": "latin-1"}.get(session.split()[2].rstrip(","), "utf-8")
        text = create.format(name="t", made="`née`" if "QUOTES" not in session else '"née"')
        connection.query(text.encode(charset))
        follower.catch_up()
        followed, on_server = follower.now("t"), follower.from_server()["t"]
        if words == "unseen":
            # information_schema shows such labels as question marks.
            assert isinstance(followed, TableSchema)
            assert followed.columns[0].labels == ("😀",)
        elif words:
            assert isinstance(followed, str)
            assert words in followed
        else:
            assert followed == on_server or replace(on_server, charset=None) == followed


# Types of sql_mode ORACLE, and the qualified types that MariaDB writes, valid in any mode.
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
def test_oracle_mode_types_give_the_schema_of_the_server(
    mariadb: LocalServer, mode: str, kinds: tuple[str, ...]
) -> None:
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
        on_server = follower.from_server()
        followed = {table: follower.now(table) for table in on_server}
        # In this mode the server does not write the table's character set.
        on_server["made"] = replace(on_server["made"], charset=None)
        assert followed == on_server


def test_alter_keeps_unwritten_labels_and_makes_lossy_ones_unknown(follower: Follower) -> None:
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


def test_utf8_definition_declared_as_latin1_makes_schema_unknown(follower: Follower) -> None:
    """The session declares latin1 and sends UTF-8, so the server stores `Ã©`."""
    shown = "CREATE TABLE `t` (\n  `é` int(11) DEFAULT NULL,\n  `e` enum('é') DEFAULT NULL\n)"
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES latin1")
        cursor.execute(f"{shown} ENGINE=InnoDB DEFAULT CHARSET=utf8")
    follower.catch_up()
    assert [column.name for column in follower.from_server()["t"].columns] == ["Ã©", "e"]
    assert "character set that its client declared" in str(follower.now("t"))


def test_set_statement_that_changes_sql_mode_makes_schema_unknown(mariadb: LocalServer) -> None:
    """The mode that MariaDB parses the statement with can differ from the mode that it logs."""
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
        assert all("changes SQL_MODE" in str(follower.now(table)) for table in "tuv")
        assert follower.now("w") == follower.from_server()["w"]


def test_labels_beyond_bmp_in_create_select_make_schema_unknown(follower: Follower) -> None:
    """The server stores no such characters in names and writes none in its own statements."""
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        with suppress(pymysql.MySQLError):
            cursor.execute("CREATE TABLE `x😀` (`b😀` INT, `漢` INT)")
        cursor.execute("CREATE TABLE e (l ENUM('😀', 'é') CHARACTER SET utf8mb4)")
        cursor.execute("CREATE TABLE f SELECT l FROM e")
    follower.catch_up()
    on_server = follower.from_server()
    for table in on_server.keys() - {"e", "f"}:
        assert follower.now(table) == on_server[table]
    assert "beyond U+FFFF" in str(follower.now("f"))


def test_labels_with_zero_byte_equal_those_of_the_server(follower: Follower) -> None:
    """The server stores only the part before the zero byte.

    MariaDB 10.11.18 rejects two such columns in one table: their labels are not in its .frm.
    """
    enum = r"e ENUM('a\0b', 'c', '\0x', ' \0', 'd\0 ', 'e \0') CHARACTER SET {0}"
    members = r"s SET('é\0x', 'y', 'z\0') CHARACTER SET {0}"
    charsets = ("utf8", "utf8mb4", "latin1", "gbk", "ucs2", "utf16", "utf16le", "utf32")
    written = [enum, members] if follower.server.is_mariadb else [f"{enum}, {members}"]
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES utf8, sql_mode = ''")
        for charset, (number, columns) in product(charsets, enumerate(written)):
            cursor.execute(f"CREATE TABLE {charset}_{number} ({columns.format(charset)})")
        cursor.execute("CREATE TABLE hex (e ENUM(0x6100, 0x620063) CHARACTER SET latin1)")
        cursor.execute("CREATE TABLE bin (e ENUM(0x6100, 0x620063) CHARACTER SET binary)")
        cursor.execute(r"CREATE TABLE later (a INT)")
        cursor.execute(r"ALTER TABLE later ADD e ENUM('a\0b', 'c') CHARACTER SET latin1")
    follower.catch_up()
    on_server = follower.from_server()
    assert len(on_server) == len(charsets) * len(written) + 3
    for name, schema in on_server.items():
        assert follower.now(name) == schema, name


def test_sjis_letter_decoded_as_backslash_makes_schema_unknown(follower: Follower) -> None:
    with follower.server.connect(database=DATABASE, charset="latin1") as connection:
        cursor = connection.cursor()
        cursor.execute("SET NAMES sjis")
        connection.query(b"CREATE TABLE t (e ENUM('\x81\x5fn') CHARACTER SET sjis)")
    follower.catch_up()
    assert isinstance(follower.now("t"), str)
