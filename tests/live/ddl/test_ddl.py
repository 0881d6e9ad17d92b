"""Schemas from DDL in the binlog, compared with information_schema on real servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pymysql
import pytest
from pymysql.cursors import Cursor

from helpers.logs.live_log import client_of, schemas_of
from helpers.schemas.ddl_cases import KEYS, MARIADB_DEFAULTS, OPTIONS, TYPES, logged_statements
from helpers.servers import LocalServer, MariaDBServer
from helpers.servers.available import every_server
from pyspark_mysqlbinlog.charsets import (
    MAX_BYTES_PER_CHARACTER,
    canonical_charset,
    charset_of_collation,
)
from pyspark_mysqlbinlog.connector.server.information_schema import (
    read_database_charsets,
    read_table_schemas,
)
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, ddl_effect
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_create_table
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext, TokenStream
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

DATABASE = "ddl_live"


@pytest.fixture(params=["mysql56", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield both servers in turn, with an empty utf8mb4 database."""
    server: LocalServer = request.getfixturevalue(request.param)
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARSET utf8mb4"
    )
    yield server
    server.execute(f"DROP DATABASE {DATABASE}")


def in_database(database: str, table: str) -> bool:
    return database == DATABASE


def from_server(server: LocalServer) -> dict[str, TableSchema]:
    return {each.table: each for each in schemas_of(server, DATABASE)}


def context_of(server: LocalServer) -> SqlContext:
    explicit = server.execute("SELECT @@explicit_defaults_for_timestamp")[0][0]
    return SqlContext.of(0, server.version(), bool(explicit))


def logged(server: LocalServer, start: tuple[str, int]) -> list[str]:
    """Return the statements in the binlog from this position on, as they are logged."""
    file, pos = start
    assert file == server.position()[0]
    assert server.datadir is not None
    return logged_statements((server.datadir / file).read_bytes(), pos)


def from_log(server: LocalServer, start: tuple[str, int]) -> dict[str, TableSchema]:
    """Return the schemas of all tables created since this position."""
    context = context_of(server)
    schemas: dict[str, TableSchema] = {}
    for sql in logged(server, start):
        if classify(sql, DATABASE, context).kind in (
            StatementKind.CREATE_TABLE,
            StatementKind.CREATE_TABLE_LIKE,
        ):
            schema = parse_create_table(
                sql, DATABASE, "utf8mb4", lambda _, name: schemas.get(name), context
            )
            schemas[schema.table] = schema
    return schemas


def create_all(server: LocalServer, statements: list[str]) -> list[str]:
    """Run the statements; return those that the server refuses."""
    refused = []
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("SET foreign_key_checks = 0")
        for sql in statements:
            try:
                cursor.execute(sql)
            except pymysql.MySQLError:
                refused.append(sql)
    return refused


def shown(schema: TableSchema) -> TableSchema:
    """Return the schema as information_schema shows it, in utf8 with up to three bytes."""

    def three_bytes(column: ColumnSchema) -> ColumnSchema:
        labels = tuple(re.sub(r"[^\u0000-\uffff]", "?", label) for label in column.labels)
        return replace(column, labels=labels)

    return TableSchema(
        schema.database,
        schema.table,
        tuple(map(three_bytes, schema.columns)),
        schema.primary_key,
        schema.charset,
        schema.unique_keys,
    )


def compare(server: LocalServer, statements: list[str]) -> list[str]:
    """Run the statements, compare each logged schema with the server's; return the refused ones."""
    start = server.position()
    refused = create_all(server, statements)
    followed = {name: shown(schema) for name, schema in from_log(server, start).items()}
    on_server = from_server(server)
    assert followed.keys() == on_server.keys()
    differing = [
        (followed[name], on_server[name])
        for name in sorted(followed)
        if followed[name] != on_server[name]
    ]
    assert differing == []
    assert len(followed) + len(refused) == len(statements)
    return refused


def types() -> list[str]:
    return [
        f"create table t{index} ({definition}{', b int' if '(b' in definition else ''})"
        " engine=myisam"
        for index, (definition, _) in enumerate(TYPES)
    ]


# Statements that each server refuses: newer syntax, or that of the other server.
REFUSED_TYPES = {
    "mysql56": ["json", "srid", "geomcoll", "default (1", "cascade not", "as (", "not enforced"],
    "mariadb": [
        "srid",
        "geomcoll",
        "cascade not",
        "virtual not",
        "unique stored",
        "comment 'stored' null",
        "storage disk",
        "STORAGE",
        "not enforced",
    ],
}


def test_create_table_of_every_type_gives_the_schema_of_the_server(server: LocalServer) -> None:
    refused = compare(server, types())
    words = REFUSED_TYPES["mariadb" if server.is_mariadb else server.name]
    assert refused == [sql for sql in types() if any(word in sql for word in words)]


@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_mariadb_defaults_give_the_schema_of_the_server(server: LocalServer) -> None:
    server.execute("CREATE SEQUENCE s", database=DATABASE)
    statements = [
        f"create table t{index} ({definition}, b int)".replace("{table}", f"t{index}")
        for index, definition in enumerate(MARIADB_DEFAULTS)
    ]
    assert compare(server, statements) == []


# (column, a value of it, the column after MODIFY)
MODIFIED = [
    ("FLOAT(10,4)", "1.2345", "FLOAT(5,1)"),
    ("FLOAT", "1.2345", "REAL(8,2)"),
    ("DOUBLE", "1.2345", "DOUBLE(8,2)"),
    ("DOUBLE(10,4)", "1.2345", "DOUBLE"),
    ("FLOAT(10,4)", "1.2345", "FLOAT"),
    ("INT NOT NULL", "0", "INT NOT NULL AUTO_INCREMENT"),
    ("INT NOT NULL", "0", "BIGINT NOT NULL"),
    ("BIGINT UNSIGNED NOT NULL", "0", "SERIAL"),
]


def test_modify_that_changes_values_is_data_changing(server: LocalServer) -> None:
    with server.connect(database=DATABASE, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        changed = 0
        for index, (old, value, new) in enumerate(MODIFIED):
            table = f"t{index}"
            cursor.execute(f"CREATE TABLE {table} (a {old}, UNIQUE (a))")
            cursor.execute(f"INSERT INTO {table} VALUES ({value})")
            before, values = from_server(server)[table], rows(cursor, table)
            cursor.execute("SET sql_mode = ''")
            sql = f"ALTER TABLE {table} MODIFY a {new}, ALGORITHM=COPY"
            cursor.execute(sql)
            effect = ddl_effect(classify(sql, DATABASE), sql, before, from_server(server)[table])
            if rows(cursor, table) != values:
                changed += 1
                assert effect is DdlEffect.DATA_CHANGING, sql
    assert changed >= 5


def rows(cursor: Cursor, table: str) -> object:
    cursor.execute(f"SELECT a FROM {table}")
    return cursor.fetchall()


def test_timestamps_without_explicit_defaults_give_the_schema_of_the_server(
    server: LocalServer,
) -> None:
    kind = type(server)
    with kind(["--explicit-defaults-for-timestamp=0"]) as other:
        other.execute(f"CREATE DATABASE {DATABASE} CHARSET utf8mb4")
        refused = compare(
            other,
            [
                "create table a (a timestamp, b timestamp)",
                "create table b (a timestamp null, b timestamp null default null)",
                "create table c (a timestamp default now(), b timestamp default 0)",
                "create table d (a timestamp(3) not null default now(3), b datetime default now())",
                "create table e (a timestamp null not null)",
            ],
        )
        assert refused == []


def test_keys_and_table_options_give_the_schema_of_the_server(server: LocalServer) -> None:
    keys = [sql.replace("table t", f"table k{i}") for i, (sql, _, _) in enumerate(KEYS)]
    options = [
        f"create table o{i} (a int, b varchar(9)) {o}" for i, (o, _, _) in enumerate(OPTIONS)
    ]
    refused = compare(server, keys + options)
    # A newer keyword, missing engines and directories, an index that is not possible.
    expected = ("start transaction", "insert_method", "data directory", "fulltext", "desc)")
    assert [sql for sql in refused if not any(word in sql for word in expected)] == []


def test_create_select_and_create_like_give_the_schema_of_the_server(server: LocalServer) -> None:
    """CREATE … SELECT is logged with the resulting columns, LIKE as it was written."""
    refused = compare(
        server,
        [
            "create table a (id int primary key, n varchar(9) charset latin1, e enum('x'), t text)",
            "create table b like a",
            "create table if not exists c (like b)",
            "create table d select * from a",
            "create table e (z int key) select id as i, n, concat(n, 'é') as c, now() as w from a",
            "create table f charset latin1 select 'x' as x, 1.5 as d, 1e0 as f, x'00' as b from a",
            "create table `g ``h` (`a b` int, `c``d` int, primary key (`c``d`))",
        ],
    )
    assert refused == []


LABELS = ["a b", "c'd", "e\\f", 'g"h', "i\nj", "k\rl", "\tm", "%n", "漢", ",", "(x)", "o''p", "é"]


def test_labels_with_special_characters_are_read_in_every_sql_mode(server: LocalServer) -> None:
    with client_of(server) as client:
        labels = ", ".join(["%s"] * len(LABELS))
        client.query(f"create table {DATABASE}.t (e enum({labels}))", LABELS)
        for mode in ("", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"):
            client.query(f"SET sql_mode = '{mode}'")
            (schema,) = read_table_schemas(client, in_database)
            assert list(schema.columns[0].labels) == LABELS


VERSIONS = (
    *("", "50503", "50624", "50625", "50700", "50701", "80000", "90700", "99999"),
    *("080000", "505037", "101100", "110000"),
)


@pytest.mark.parametrize("server", every_server(), indirect=True)
def test_executable_comments_are_read_as_the_server_executes_them(server: LocalServer) -> None:
    """The server and the parser agree on whether `/*!version … */` is executed."""
    context = context_of(server)
    for opening in [*(f"/*!{each}" for each in VERSIONS if len(each) < 6), "/*M!", "/*M!50700"]:
        sql = f"SELECT {opening} 1 + */ 1"
        ((found,),) = server.execute(sql)
        read = TokenStream(sql, context)
        read.expect("SELECT")
        assert (read.integer(), read.accept("+")) == (1, found == 2), sql
    if server.is_mariadb or server.is_mysql9():  # where a version may have six digits
        for version in VERSIONS:
            if len(version) == 6:
                sql = f"SELECT /*!{version} 1 + */ 1"
                ((found,),) = server.execute(sql)
                assert context.executes(int(version), for_mariadb=False) == (found == 2), version
                read = TokenStream(sql, context)
                read.expect("SELECT")
                assert (read.integer(), read.accept("+")) == (1, found == 2), sql
    else:  # the sixth digit is text
        for version in ("50503", "50624", "00000"):
            sql = f"SELECT /*!{version}7 + */ 1"
            ((found,),) = server.execute(sql)
            read = TokenStream(sql, context)
            read.expect("SELECT")
            assert (read.integer(), read.accept("+"), found) == (7, True, 8), sql


def test_create_table_is_parsed_in_the_sql_mode_of_its_session(server: LocalServer) -> None:
    for index, (mode, bits, name) in enumerate(
        [
            ("NO_BACKSLASH_ESCAPES", 1 << 20, "`a`"),
            ("ANSI_QUOTES", 4, '"a"'),
            ("REAL_AS_FLOAT", 1, "a"),
        ]
    ):
        sql = rf"create table m{index} ({name} enum('\\'), r real)"
        with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET sql_mode = '{mode}'")
            cursor.execute(sql)
        context = SqlContext.of(bits, server.version())
        assert (
            parse_create_table(sql, DATABASE, "utf8mb4", context=context)
            == (from_server(server)[f"m{index}"])
        )


def test_schemas_of_200_tables_take_at_most_six_selects(server: LocalServer) -> None:
    columns = ", ".join(f"c{i} varchar(20), d{i} decimal(10,2)" for i in range(24))
    create_all(
        server, [f"create table t{i} (id int primary key, {columns}, z int)" for i in range(200)]
    )
    with client_of(server) as client:
        schemas = read_table_schemas(client, in_database)
        ((_, selects),) = client.query("SHOW SESSION STATUS LIKE 'Com_select'")
    assert len(schemas) == 200
    assert all(len(schema.columns) == 50 for schema in schemas)
    assert int(selects) <= 6


def test_only_captured_base_tables_are_read_from_information_schema(server: LocalServer) -> None:
    server.execute(
        "create table a (id int)", "create table b (id int)", "create view v as select * from a",
        database=DATABASE,
    )  # fmt: skip
    with client_of(server) as client:
        found = read_table_schemas(client, lambda database, table: table != "b")
        assert [each.full_name for each in found if each.database == DATABASE] == [f"{DATABASE}.a"]
        everything = {each.database for each in read_table_schemas(client, lambda *_: True)}
        assert not everything & {"mysql", "information_schema", "performance_schema", "sys"}
        assert read_table_schemas(client, lambda *_: False) == []
        assert read_database_charsets(client)[DATABASE] == "utf8mb4"


def test_collations_and_character_widths_equal_those_of_the_server(server: LocalServer) -> None:
    """Every id and name that information_schema lists is compared."""
    rows = server.execute(
        "SELECT ID, COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"
        " WHERE ID IS NOT NULL AND CHARACTER_SET_NAME IS NOT NULL"
    )
    assert len(rows) > 200
    for number, name, charset in rows:
        expected = canonical_charset(charset)
        assert (charset_of_collation(int(number)), charset_of_collation(name)) == (expected,) * 2
    if type(server) is MariaDBServer:
        for number, charset in server.execute(
            "SELECT ID, CHARACTER_SET_NAME FROM"
            " information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
        ):
            assert charset_of_collation(int(number)) == canonical_charset(charset)
    for charset, width in server.execute(
        "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS"
    ):
        assert MAX_BYTES_PER_CHARACTER[canonical_charset(charset)] == width


def test_restart_statement_of_memory_table_is_classified_as_emptying_it(
    server: LocalServer,
) -> None:
    """The server's own statement has no BEGIN before it; a user's statement has one."""
    with type(server)() as other:
        other.execute("CREATE DATABASE m", "CREATE TABLE m.t (a INT) ENGINE=MEMORY")
        start = other.position()
        other.execute("SET SESSION binlog_format = 'STATEMENT'", "DELETE FROM `m`.`t`")
        by_user = [classify(sql, "m") for sql in logged(other, start)]
        other.restart()
        start = other.position()
        other.execute("SELECT * FROM m.t")
        by_server = [classify(sql, "m") for sql in logged(other, start)]
    delete = by_user[-2] if by_user[-1].kind is StatementKind.COMMIT else by_user[-1]
    assert delete.kind is StatementKind.DML
    assert (delete.tables, delete.whole_table) == ((("m", "t"),), True)
    assert not delete.server_made
    assert len(by_server) == 1  # no BEGIN, no COMMIT
    assert by_server[0].tables == (("m", "t"),)
    if isinstance(other, MariaDBServer):
        assert (by_server[0].kind, by_server[0].server_made) == (StatementKind.TRUNCATE, True)
    else:
        assert (by_server[0].kind, by_server[0].whole_table) == (StatementKind.DML, True)
