"""ALTER TABLE followed in the binlog of real servers: the result equals information_schema."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from random import Random

import pymysql
import pytest

from helpers.logs.live_log import new_database
from helpers.schemas.alter_cases import ALTERS, BASE, CHARACTER_SETS, OTHERS, RELABELLED
from helpers.schemas.random_alters import RandomDdl, drop_hashed_keys
from helpers.schemas.tracker_harness import Follower, with_all_keys
from helpers.servers import LocalServer, Server
from live.conftest import DATABASE
from pyspark_mysqlbinlog.tables import TableSchema

TABLES = ("t", "u", "v", "W w", "漢")


STATEMENTS = 300


def keeps_default(follower: Follower) -> bool:
    """Return whether CONVERT TO may keep the table's default; this depends on collations."""
    return follower.server.version().startswith("5.6.")


def is_mysql9(follower: Follower) -> bool:
    return follower.server.version().startswith("9.")


def is_unknown_text(followed: TableSchema | str) -> bool:
    """Return whether `followed` reports that a CONVERT TO with a new text column is unknown."""
    return isinstance(followed, str) and "does not take from the definition alone" in followed


def same(followed: TableSchema | str, on_server: TableSchema, *, kept: bool) -> bool:
    """Return whether the schemas are equal; if `kept`, the table's default may be unknown.

    Some unique keys may be unknown (test_unique_keys covers them).
    """
    if isinstance(followed, TableSchema):
        followed = with_all_keys(followed, on_server)
    if kept and isinstance(followed, TableSchema) and followed.charset is None:
        return replace(followed, charset=on_server.charset) == on_server
    return followed == on_server


def made_others(followed: TableSchema | str) -> bool:
    """Return whether the server changed labels, which is not followed."""
    return isinstance(followed, str) and "change in" in followed


def difference(followed: TableSchema | str, on_server: TableSchema) -> object:
    """Return the differences, for an error message."""
    if isinstance(followed, str):
        return followed
    columns = [
        (column, other)
        for column, other in zip_longest(followed.columns, on_server.columns)
        if column != other
    ]
    rest = [(each.primary_key, each.charset, each.unique_keys) for each in (followed, on_server)]
    return columns or rest


Case = tuple[str, str]


SINGLE = [(BASE, f"ALTER TABLE {{table}} {clauses}") for clauses in ALTERS]


def attempt(server: Server, database: str, cases: list[Case]) -> dict[int, str]:
    """Run each case on its own table; return the error of each refused case by its index."""
    refused = {}
    with server.connect(database=database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        for index, (create, alter) in enumerate(cases):
            table = f"t{index}"
            try:
                cursor.execute(create.replace("{table}", table))
                cursor.execute(alter.replace("{table}", table))
            except pymysql.MySQLError as error:
                refused[index] = f"{alter}: {error}"
    return refused


def run_cases(follower: Follower, cases: list[Case]) -> list[str]:
    """Run each case on its own table and compare all tables; return the refused cases."""
    refused = attempt(follower.server, DATABASE, cases)
    follower.catch_up()
    on_server = follower.from_server()
    kept = keeps_default(follower)
    wrong, relabelled = [], set()
    for index, (_, alter) in enumerate(cases):
        if f"t{index}" not in on_server:
            # Its CREATE is refused by this server, too.
            assert is_mysql9(follower)
            assert index in refused
            continue
        followed, expected = follower.now(f"t{index}"), on_server[f"t{index}"]
        if is_mysql9(follower) and is_unknown_text(followed):
            assert "CONVERT TO" in alter, alter
        elif made_others(followed):
            relabelled.add(index)
        elif not same(followed, expected, kept=kept):
            wrong.append((alter, difference(followed, expected)))
    assert wrong == []
    marked = {index for index, (_, alter) in enumerate(cases) if alter in RELABELLED}
    assert relabelled == marked - refused.keys()
    return list(refused.values())


# What each server does not know or does not allow.
REFUSED = {
    "mysql56": (
        "RENAME COLUMN", "RENAME INDEX", "IF NOT EXISTS", "IF EXISTS", "PERSISTENT", "PERIOD",
        "SET STATEMENT", "NOWAIT", "ONLINE", "COLLATE DEFAULT", "Incorrect prefix key",
        # MODIFY of a column that the same statement adds.
        "Unknown column 'z'", "Unknown column 'a'", "Unknown column 'b'", "Unknown column 'c'",
        "Conflicting declarations", "is not valid for CHARACTER SET", "IGNORE TABLE",
    ),
    "mysql9": (
        "IF NOT EXISTS", "IF EXISTS", "PERSISTENT", "PERIOD", "SET STATEMENT", "NOWAIT", "ONLINE",
        "COLLATE DEFAULT", "Incorrect prefix key", "Unknown column 'z'", "Unknown column 'a'",
        "Unknown column 'b'", "Unknown column 'c'", "Conflicting declarations",
        "is not valid for CHARACTER SET", "IGNORE TABLE",
        # Qualified names of columns, and CHARACTER SET DEFAULT of a table.
        "near '.z INT", "near '.a ", "near '.c ", "near '.a,", "near 'DEFAULT",
        "non-boolean type specified to a check constraint",
    ),
    "mariadb": (
        "Key column 'a' doesn't exist", "SERIAL NULL", "ADD period INT",
        "is not valid for CHARACTER SET",
    ),
}  # fmt: skip


def assert_rejected(
    follower: Follower, refused: list[str], at_most: int, more_on_mysql9: int = 0
) -> None:
    kind = "mysql9" if is_mysql9(follower) else "mysql56"
    words = REFUSED["mariadb" if follower.server.is_mariadb else kind]
    unexpected = [each for each in refused if not any(word in each for word in words)]
    assert unexpected == [], "\n".join(unexpected)
    assert len(refused) <= at_most + (more_on_mysql9 if is_mysql9(follower) else 0)


def test_single_alters_give_the_schema_of_the_server(follower: Follower) -> None:
    assert_rejected(follower, run_cases(follower, SINGLE), at_most=23, more_on_mysql9=13)


def test_other_ddl_statements_give_the_schema_of_the_server(follower: Follower) -> None:
    assert_rejected(follower, run_cases(follower, OTHERS), at_most=12, more_on_mysql9=2)


def test_charset_alters_give_the_schema_of_the_server(follower: Follower) -> None:
    refused = run_cases(follower, CHARACTER_SETS)
    assert_rejected(follower, refused, at_most=60, more_on_mysql9=4)


@pytest.mark.slow
def test_each_ddl_case_is_accepted_by_some_server(mysql56: Server, mariadb: Server) -> None:
    cases = SINGLE + OTHERS + CHARACTER_SETS
    with new_database(mysql56, "done") as one, new_database(mariadb, "done") as other:
        refused = [cases[index] for index in attempt(mysql56, one, cases)]
        assert attempt(mariadb, other, refused) == {}


@pytest.mark.one_server
def test_random_ddl_gives_the_schemas_of_the_server(follower: Follower, ddl_seed: int) -> None:
    """All tables are compared with information_schema after every statement."""
    ddl = RandomDdl(Random(ddl_seed), [f"`{name}`" for name in TABLES])
    done: list[str] = []
    kept = keeps_default(follower)
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
            drop_hashed_keys(cursor)
            for table in TABLES:
                with suppress(pymysql.MySQLError):
                    cursor.execute(f"INSERT INTO `{table}` () VALUES ()")
            follower.catch_up()
            on_server = follower.from_server()
            followed = {name: follower.now(name) for name in on_server}
            unknown = {name for name in on_server if is_unknown_text(followed[name])}
            assert is_mysql9(follower) or not unknown
            wrong = [
                (name, difference(followed[name], schema))
                for name, schema in on_server.items()
                if name not in unknown and not same(followed[name], schema, kept=kept)
            ]
            assert wrong == [], "\n".join([f"DDL_SEED={ddl_seed}", *done[-8:]])
            known = {name for name in TABLES if not isinstance(follower.now(name), str)}
            assert known <= on_server.keys()
            # Later changes of these tables cannot be followed, either.
            for name in unknown:
                cursor.execute(f"DROP TABLE `{name}`")
    assert follower.fitted > STATEMENTS


def test_conversion_without_column_change_leaves_default_unknown_on_5_6(follower: Follower) -> None:
    """5.6 changes the table's default or keeps it, depending on the collations of its columns.

    A column that is added without a character set is then unknown. It is known if it has one, or if
    the CONVERT TO statement makes another change, too.
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
    on_server = follower.from_server()
    if not keeps_default(follower):
        assert {on_server[table].charset for table in "tu"} == {"utf8"}
    else:
        assert [on_server[table].charset for table in "tu"] == ["latin1", "utf8"]
        for table in "tu":
            reason = follower.now(table)
            assert isinstance(reason, str)
            assert "column 'b' has a character set that its definition" in reason
            del on_server[table]
    assert {table: follower.now(table) for table in on_server} == on_server


def test_rename_with_wait_or_nowait_is_followed(mariadb: LocalServer) -> None:
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


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11"])
def test_alter_that_mariadb_logs_in_two_phases_is_followed_once(
    request: pytest.FixtureRequest, kind: str
) -> None:
    server: LocalServer = request.getfixturevalue(kind)
    with new_database(server, "two_phases") as name, Follower.of(server, name) as follower:
        statements = (
            "CREATE TABLE t (a INT, b INT)",
            "CREATE TABLE u (a ENUM('x','y'), b ENUM('z','y'))",
            "CREATE TABLE w (a INT, b INT, c INT)",
            "INSERT INTO w VALUES (1, 1, 1), (2, 1, 1)",
            "SET binlog_alter_two_phase = 1",
            "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
            "ALTER TABLE u RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            "ALTER TABLE w MODIFY a INT AFTER b, MODIFY b INT AFTER c",
            "INSERT INTO t VALUES (1, 2)",
        )
        with server.connect(database=name) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            with pytest.raises(pymysql.err.IntegrityError):
                cursor.execute("ALTER TABLE w ADD UNIQUE (b)")
        follower.catch_up()
        assert {table: follower.now(table) for table in "tuw"} == follower.from_server()


def test_add_if_not_exists_of_the_name_of_a_void_change_adds_nothing(mariadb: LocalServer) -> None:
    with new_database(mariadb, "void_changes") as name, Follower.of(mariadb, name) as follower:
        mariadb.execute(
            "CREATE TABLE t (a INT, z INT)",
            "CREATE TABLE u (a INT, z INT)",
            "ALTER TABLE t MODIFY IF EXISTS y INT, ADD IF NOT EXISTS y INT",
            "ALTER TABLE u CHANGE IF EXISTS q y INT, ADD IF NOT EXISTS y INT",
            "ALTER TABLE u ADD IF NOT EXISTS y INT FIRST",
            database=name,
        )
        follower.catch_up()
        assert {table: follower.now(table) for table in "tu"} == follower.from_server()


@pytest.mark.parametrize("letters", ["iİ", "iı", "sſ", "ſs", "ɀⱿ", "σς"])
@pytest.mark.parametrize(
    "clause",
    [
        "CHANGE COLUMN IF EXISTS `{}` b INT",
        "MODIFY COLUMN IF EXISTS `{}` INT UNSIGNED",
        "DROP COLUMN IF EXISTS `{}`, ADD z INT",
        "ADD COLUMN IF NOT EXISTS `{}` INT, DROP COLUMN y",
    ],
)
def test_if_exists_with_a_letter_that_versions_compare_otherwise_makes_columns_unknown(
    mariadb11: LocalServer, letters: str, clause: str
) -> None:
    with new_database(mariadb11, "conditional") as name, Follower.of(mariadb11, name) as follower:
        mariadb11.execute(
            f"CREATE TABLE t (id INT PRIMARY KEY, `{letters[0]}` INT, y INT)",
            "CREATE TABLE u (id INT PRIMARY KEY, größe INT, y INT)",
            f"ALTER TABLE t {clause.format(letters[1])}",
            f"ALTER TABLE u {clause.format('größe')}, ADD COLUMN IF NOT EXISTS höhe INT",
            database=name,
        )
        follower.catch_up()
        assert "IF [NOT] EXISTS" in str(follower.now("t"))
        assert follower.now("u") == follower.from_server()["u"]


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE t (a TEXT) CHARSET=greek COLLATE=DEFAULT"],
        ["CREATE TABLE t (b INT) CHARSET greek", "ALTER TABLE t COLLATE=DEFAULT, ADD a TEXT"],
    ],
    ids=["create", "alter"],
)
def test_default_collation_makes_the_table_unknown(
    follower: Follower, statements: list[str]
) -> None:
    *earlier, last = statements
    execute_in(follower, "utf8mb4", earlier)
    if is_mysql9(follower):
        with pytest.raises(pymysql.err.ProgrammingError):
            execute_in(follower, "utf8mb4", [last])
        return
    execute_in(follower, "utf8mb4", [last])
    follower.catch_up()
    assert isinstance(follower.now("t"), str)


# (client's character set, statement)
AMBIGUOUS = [
    # To the server, U+00A0 is a space in latin1.
    ("latin1", "CREATE TABLE t (a INT,\xa0b INT)"),
    ("latin1", "CREATE TABLE t (e ENUM('é') CHARACTER SET binary)"),
    ("swe7", "CREATE TABLE t (e ENUM('[', 'b') CHARACTER SET utf8)"),
]


@pytest.mark.parametrize(("charset", "statement"), AMBIGUOUS)
def test_ddl_with_ambiguous_characters_makes_the_table_unknown(
    follower: Follower, charset: str, statement: str
) -> None:
    execute_in(follower, charset, [statement])
    follower.catch_up()
    assert isinstance(follower.now("t"), str)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a TEXT) DEFAULT\xa0CHARSET=latin1",
        "CREATE TABLE t (a TEXT)\xa0CHARSET latin1",
    ],
    ids=["after DEFAULT", "before CHARSET"],
)
def test_no_break_space_before_a_table_option_is_followed(
    follower: Follower, statement: str
) -> None:
    execute_in(follower, "latin1", [statement])
    follower.catch_up()
    assert follower.now("t") == follower.from_server()["t"]


def execute_in(follower: Follower, charset: str, statements: list[str]) -> None:
    """Execute statements in a session with a client's character set."""
    with follower.server.connect(database=follower.database) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET NAMES {charset}")
        # pymysql encodes the statement.
        connection.encoding = "latin1" if charset == "latin1" else "utf8"
        for statement in statements:
            cursor.execute(statement)


# ALTER TABLE of a table in a database with another default than the session's.
OF_DATABASES = [
    "CHARACTER SET DEFAULT, ADD z TEXT",
    "CONVERT TO CHARACTER SET DEFAULT, ADD z TEXT",
    "CONVERT TO CHARACTER SET DEFAULT",
    "CONVERT TO CHARACTER SET DEFAULT, CHARACTER SET ucs2, ADD z TEXT",
]


def test_default_charset_is_that_of_the_database_that_the_server_uses(follower: Follower) -> None:
    """An option uses the default of the table's database; in MySQL, CONVERT TO the session's."""
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
        if is_mysql9(follower):
            with pytest.raises(pymysql.err.ProgrammingError, match="near 'DEFAULT'"):
                cursor.execute(f"CREATE TABLE {other}.made (s TEXT) CHARACTER SET DEFAULT")
            compare_defaults(follower, other)
            return
        cursor.execute(f"ALTER TABLE {other}.t0 CHARACTER SET DEFAULT, ADD y TEXT, RENAME moved")
        cursor.execute(f"CREATE TABLE {other}.made (s TEXT) CHARACTER SET DEFAULT")
        # MySQL uses the last one for the table and converts the columns in either case.
        convert, default = "CONVERT TO CHARACTER SET utf8mb4", "CHARACTER SET DEFAULT"
        for table, clauses in (
            ("made", f"{convert}, {default}"),
            ("made2", f"{default}, {convert}"),
            ("made3", f"{convert}, {default}, ADD z TEXT"),
            ("made4", f"{default}, {convert}, ADD z TEXT"),
        ):
            if table != "made":
                cursor.execute(f"CREATE TABLE {other}.{table} (s TEXT) CHARACTER SET DEFAULT")
            cursor.execute(f"ALTER TABLE {other}.{table} {clauses}")
        compare_defaults(follower, other)


def compare_defaults(follower: Follower, other: str) -> None:
    follower.catch_up()
    for database in (DATABASE, other):
        on_server = follower.from_server(database)
        followed = {table: follower.now(table, database) for table in on_server}
        assert len(followed) >= len(OF_DATABASES) - 1
        assert followed == {table: on_server[table] for table in followed}
