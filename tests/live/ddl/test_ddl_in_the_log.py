"""DDL whose logged event differs from its text: failed, flagged or of temporary tables."""

from __future__ import annotations

import pymysql
import pytest

from helpers.logs.live_log import new_database
from helpers.schemas.tracker_harness import Follower
from helpers.servers import LocalServer
from live.conftest import DATABASE


def test_create_or_replace_gives_the_schema_of_the_server(mariadb: LocalServer) -> None:
    """CREATE OR REPLACE is logged with the flag of temporary tables."""
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
        on_server = follower.from_server()
        assert {table: follower.now(table) for table in "tuv"} == {t: on_server[t] for t in "tuv"}
        assert "character set" in str(follower.now("w"))


def test_failed_statements_leave_schema_equal_or_unknown(follower: Follower) -> None:
    """A statement that is logged with an error did a part of its work; which part is unknown."""
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
    on_server = follower.from_server()
    assert {"p", "c", "q"} <= on_server.keys()
    for table in (*"pcoqr",):
        followed = follower.now(table)
        assert isinstance(followed, str) or followed == on_server[table], table
    assert follower.now("q") == on_server["q"], "all that was there was dropped"


def test_statement_format_temporary_tables_make_same_named_tables_unknown(
    follower: Follower,
) -> None:
    """Their DDL is logged under names that hide real tables: which is meant is unknown."""
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


def test_procedure_with_temporary_table_makes_altered_tables_unknown(follower: Follower) -> None:
    """After the temporary table, all that the procedure does has the flag of temporary tables."""
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
    on_server = follower.from_server()
    if follower.server.name == "mariadb11":  # logs no temporary tables, and has no such flag
        assert follower.now("t") == on_server["t"]
    else:
        assert "may be of a temporary table" in str(follower.now("t"))
    assert follower.now("v") == on_server["v"]
    if follower.server.name == "mysql56":  # RENAME TABLE takes no temporary tables
        assert follower.now("w") == on_server["w"]


def test_alter_flagged_as_temporary_by_mariadb_makes_schema_unknown(mariadb: LocalServer) -> None:
    """Each statement of a table with such a default has the flag of temporary tables."""
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
