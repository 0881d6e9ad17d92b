"""CREATE TABLE parsed to TableSchema; tests/live/ddl/test_ddl.py runs the cases on servers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from helpers.parity.decoding import CAPTURED
from helpers.schemas.ddl_cases import (
    KEYS,
    MARIADB_DEFAULTS,
    OPTIONS,
    TYPES,
    bare,
    logged_statements,
    text,
)
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import parse_column_type
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_create_table
from pyspark_mysqlbinlog.decoder.sql.tokens import DEFAULT_CONTEXT, SqlContext
from pyspark_mysqlbinlog.errors import UnknownSchemaError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def columns(definition: str, charset: str | None = "utf8mb4", **context: Any) -> list[ColumnSchema]:
    sql = f"create table t ({definition})"
    return list(parse_create_table(sql, "d", charset, context=SqlContext(**context)).columns)


@pytest.mark.parametrize(("definition", "expected"), TYPES)
def test_column_definition_parses_to_its_schema(definition: str, expected: ColumnSchema) -> None:
    assert columns(definition)[0] == expected


@pytest.mark.parametrize("definition", MARIADB_DEFAULTS)
def test_mariadb_default_ends_before_the_next_attribute_or_column(definition: str) -> None:
    column, *others = columns(f"{definition}, b int".replace("{table}", "t"))
    assert column.nullable == ("not null" not in definition)
    assert others == [ColumnSchema("b", "int")]


@pytest.mark.parametrize(("sql", "key", "not_null"), KEYS)
def test_primary_key_and_not_null_columns_are_parsed(
    sql: str, key: tuple[str, ...], not_null: set[str]
) -> None:
    schema = parse_create_table(sql, "d", "utf8mb4")
    assert schema.primary_key == key
    assert {column.name for column in schema.columns if not column.nullable} == not_null


# (definitions after `a int not null, b text not null, c int`, unique keys that identify rows)
UNIQUE: list[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]] = [
    ("unique (a), unique key u (b(9) desc, A)", (("a", ("a",)), ("u", ("b", "a")))),
    ("unique (c), unique i (a, c)", ()),
    ("unique type btree (a), unique `using` (a)", (("a", ("a",)), ("using", ("a",)))),
    ("constraint x unique (a), constraint unique (b)", (("b", ("b",)), ("x", ("a",)))),
    # Syntax of MySQL 8.0 and MariaDB, such as expressions and periods.
    ("unique e ((a + 1)), unique f (a, (abs(c)), b)", ()),
    ("unique p (a, p without overlaps), unique q (a)", (("q", ("a",)),)),
    ("unique key if not exists i (a)", ()),
    ("d text as (b) virtual not null, unique (d(9))", ()),
    ("unique (a), primary key (a)", ()),
]


@pytest.mark.parametrize(("keys", "expected"), UNIQUE)
def test_only_unique_keys_that_identify_rows_are_parsed(
    keys: str, expected: tuple[tuple[str, tuple[str, ...]], ...]
) -> None:
    sql = f"create table t (a int not null, b text not null, c int, {keys})"
    assert parse_create_table(sql, "d", "utf8mb4").unique_keys == expected


@pytest.mark.parametrize(("options", "table_charset", "column_charset"), OPTIONS)
def test_table_and_column_charsets_are_parsed_from_table_options(
    options: str, table_charset: str | None, column_charset: str | None
) -> None:
    schema = parse_create_table(f"create table t (a int, b varchar(9)) {options}", "d", "utf8mb4")
    assert (schema.charset, schema.columns[1].charset) == (table_charset, column_charset)


def test_quoted_and_unusual_names_are_parsed() -> None:
    sql = "CREATE TABLE IF NOT EXISTS `x y`.`t``1` (`a``b` int, 2b int, c$ int, é int, date date)"
    schema = parse_create_table(sql, "d", None)
    assert (schema.database, schema.table, schema.charset) == ("x y", "t`1", None)
    assert [column.name for column in schema.columns] == ["a`b", "2b", "c$", "é", "date"]


def test_create_like_copies_a_known_table_and_rejects_an_unknown_one() -> None:
    known = TableSchema("x", "u", (bare("int"),), ("a",), "latin1")
    found = {("x", "u"): known}
    for sql in ("create table t like x.u", "create table if not exists t (like x.u)"):
        schema = parse_create_table(sql, "d", None, lambda *name: found.get(name))
        assert schema == TableSchema("d", "t", known.columns, ("a",), "latin1")
    with pytest.raises(UnknownSchemaError, match=r"LIKE d\.u, whose columns are unknown"):
        parse_create_table("create table t like u", "d", None, lambda *name: found.get(name))


def test_parsed_columns_depend_on_session_and_server_settings() -> None:
    assert columns("a real", real_as_float=True)[0].type == "float"
    assert columns("a timestamp", explicit_defaults_for_timestamp=True)[0].nullable
    assert columns("a timestamp(6)", server_version=50568)[0].length == 0
    assert columns("a json", mariadb=True) == [text("longtext")]
    assert columns(r"a enum('\')", no_backslash_escapes=True)[0].labels == ("\\",)
    assert columns('"a b" int', ansi_quotes=True)[0].name == "a b"
    assert columns("a uuid", mariadb=True)[0].type == "uuid"


# (statement, part of the message); the database's character set is unknown.
REFUSED: list[tuple[str, str]] = [
    ("create table t (a varchar(9))", "character set that its definition"),
    ("create table t select 1", "from a SELECT"),
    ("create table t (select 1 as a)", "from a SELECT"),
    ("create table t (a int) select 1 as b", "from a SELECT"),
    ("create table t (a int) as (select 1 as b)", "from a SELECT"),
    ("create table t (a int) (select 1 as b)", "from a SELECT"),
    ("create table t (a int) charset utf8 ((select 1 as b))", "from a SELECT"),
    ("create table t (a int) values (1)", "from a SELECT"),
    ("create table t (a int) with q as (select 1 as b) select * from q", "from a SELECT"),
    ("create table t (a int) partition by hash(a) partitions 2 (select 1)", "from a SELECT"),
    ("create table t (a int) engine=innodb (b)", r"an option of the table.*found '\('"),
    ("create table t (a int) charset utf8 as select 1 as b", "from a SELECT"),
    ("create table t (a int) partition by hash(a) (partition p) select 1 as b", "from a SELECT"),
    ("create table t (a frob)", "unknown column type 'frob'"),
    ("create table t (a int frob)", "found 'frob'"),
    ("create table t (a varchar)", r"\(length\) after VARCHAR"),
    ("create table t (a int, a int)", "the same name"),
    ("create table t (a int, primary key (b))", "unknown column"),
    ("create table t (a int", "the end"),
    ("create table t (a int, primary key", "the end"),
    ("create table t (a enum('x)", "does not end"),
    ("create table t (a enum(_latin1'x'))", "a label"),
    ("create table t (a enum(x'ff') charset utf8)", "is not utf8"),
    ("create table t (a enum(x'ff') charset gbk)", "is not gbk"),
    ("create table t (a enum(x'ff') charset binary)", "cannot be decoded"),
    ("create table t (a char(9) charset klingon)", "unknown character set 'klingon'"),
    ("create table t (a char(9) collate klingon_ci)", "klingon_ci"),
    ("create table t (a int) with system versioning", "system versioning"),
    ("create view t as select 1", "expected TABLE"),
    ("create table t (a enum('\udce9') charset latin1)", "not in the character set"),
    ("create table t (a int default)", "a default value"),
    ("create table t (a int default case when 1 then 2)", "expected END"),
    ("create table t (a int default t.)", "a name"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_unsupported_create_table_raises_unknown_schema_error(sql: str, message: str) -> None:
    with pytest.raises(UnknownSchemaError, match=message) as caught:
        parse_create_table(sql, "d", None)
    assert "\n" not in str(caught.value)


def shown(column: dict[str, Any]) -> ColumnSchema:
    """Return a column of a recorded scenario as the server showed it."""
    parsed = parse_column_type(
        column["name"],
        column["type"],
        column["charset"],
        column["nullable"] == "YES",
        DEFAULT_CONTEXT,
    )
    extra = column["extra"]
    return replace(parsed, virtual="VIRTUAL" in extra, generated=extra.endswith(" GENERATED"))


def without_labels(column: ColumnSchema) -> ColumnSchema:
    return replace(column, labels=())


# Databases whose tables were nearly all altered.
OF_DDL = ("fx_random_ddl", "fx_conversions")


def test_captured_create_tables_parse_to_the_columns_shown_by_the_server() -> None:
    """The cases are all CREATE TABLE in the 5.7 logs whose tables were not altered or renamed."""
    left_out = set()
    for description in sorted(CAPTURED.glob("*.json")):
        scenario = json.loads(description.read_text())
        checksums = scenario["variables"]["binlog_checksum"] != "NONE"
        created: dict[str, TableSchema] = {}
        altered: set[str] = set()
        for file in scenario["files"]:
            for sql in logged_statements((CAPTURED / file).read_bytes(), checksums=checksums):
                statement = classify(sql, scenario["database"])
                if statement.kind is StatementKind.CREATE_TABLE:
                    schema = parse_create_table(sql, scenario["database"], "utf8mb4")
                    created[schema.table] = schema
                elif statement.kind in (StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE):
                    altered |= {name for _, name in statement.tables or ()}
        for name, table in scenario["tables"].items():
            if name in altered or name not in created:
                left_out |= {name} if scenario["database"] not in OF_DDL else set()
                continue
            followed = created[name].columns
            on_server = [shown(column) for column in table["columns"]]
            assert list(map(without_labels, followed)) == list(map(without_labels, on_server))
            # information_schema uses three-byte utf8, so the server shows ? for an emoji.
            labels = [tuple(label.replace("😀", "?") for label in each.labels) for each in followed]
            assert labels == [each.labels for each in on_server]
            keys = {column["name"] for column in table["columns"] if column["key"] == "PRI"}
            assert set(created[name].primary_key) == keys
    assert left_out == {"b", "c", "plain", "pt", "swap_old", "tr"}
