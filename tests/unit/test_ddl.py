"""CREATE TABLE to TableSchema: what tests/live/test_ddl_live.py does not compare with servers here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyspark_mysqlbinlog.decoder.ddl import parse_column_type, parse_create_table
from pyspark_mysqlbinlog.decoder.sql_tokens import DEFAULT_CONTEXT, SqlContext
from pyspark_mysqlbinlog.decoder.statements import StatementKind, classify
from pyspark_mysqlbinlog.errors import UnknownSchemaError
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

CAPTURED = Path(__file__).resolve().parents[1] / "data" / "binlogs57"


def columns(definition: str, charset: str | None = "utf8mb4", **context: Any) -> list[ColumnSchema]:
    sql = f"create table t ({definition}"
    sql += "" if definition.count(")") > definition.count("(") else ")"
    return list(parse_create_table(sql, "d", charset, context=SqlContext(**context)).columns)


def C(type_: str, **rest: Any) -> ColumnSchema:
    return ColumnSchema("a", type_, **rest)


def S(type_: str, length: int | None = None, charset: str = "utf8mb4", **rest: Any) -> ColumnSchema:
    return ColumnSchema("a", type_, length, charset=charset, **rest)


def E(*labels: str, kind: str = "enum", charset: str = "utf8mb4") -> ColumnSchema:
    return ColumnSchema("a", kind, charset=charset, labels=labels)


# (definition, expected); the database is utf8mb4.
TYPES: list[tuple[str, ColumnSchema]] = [
    ("a tinyint", C("tinyint")),
    ("a tinyint(1)", C("tinyint", length=1)),
    ("a tinyint(1) unsigned", C("tinyint", length=1, unsigned=True)),
    ("a tinyint(4)", C("tinyint")),
    ("a int1", C("tinyint")),
    ("a int2", C("smallint")),
    ("a int3 unsigned", C("mediumint", unsigned=True)),
    ("a middleint", C("mediumint")),
    ("a INTEGER(10) UNSIGNED ZEROFILL", C("int", unsigned=True)),
    ("a int4 signed", C("int")),
    ("a int8 zerofill", C("bigint", unsigned=True)),
    ("a bool", C("tinyint", length=1)),
    ("a boolean not null", C("tinyint", length=1, nullable=False)),
    ("a serial", C("bigint", unsigned=True, nullable=False)),
    ("a int serial default value", C("int", nullable=False)),
    ("a int null auto_increment, key (a)", C("int", nullable=False)),
    ("a int not null null", C("int")),
    ("a float", C("float")),
    ("a float(24)", C("float")),
    ("a float(25) unsigned", C("double", unsigned=True)),
    ("a float(30,2)", C("float")),
    ("a float4", C("float")),
    ("a float8", C("double")),
    ("a real", C("double")),
    ("a double precision(10,2) unsigned", C("double", unsigned=True)),
    ("a decimal", C("decimal", length=10, scale=0)),
    ("a dec(5)", C("decimal", length=5, scale=0)),
    ("a numeric(65,30) unsigned", C("decimal", length=65, scale=30, unsigned=True)),
    ("a fixed(8,2)", C("decimal", length=8, scale=2)),
    ("a bit", C("bit", length=1)),
    ("a bit(64)", C("bit", length=64)),
    ("a date", C("date")),
    ("a year(4)", C("year")),
    ("a time", C("time", length=0)),
    ("a time(3)", C("time", length=3)),
    ("a datetime(6) not null", C("datetime", length=6, nullable=False)),
    ("a timestamp", C("timestamp", length=0, nullable=False)),
    ("a timestamp null default null", C("timestamp", length=0)),
    ("a timestamp(6) default current_timestamp(6) on update now(6)", C("timestamp", length=6, nullable=False)),
    ("a json", C("json")),
    ("a geometry", C("geometry")),
    ("a point not null srid 4326", C("point", nullable=False)),
    ("a geomcollection", C("geometrycollection")),
    ("a char", S("char", 1)),
    ("a character(4)", S("char", 4)),
    ("a char(0)", S("char", 0)),
    ("a varchar(60) binary", S("varchar", 60)),
    ("a char varying(3)", S("varchar", 3)),
    ("a character varying(3)", S("varchar", 3)),
    ("a national char(3)", S("char", 3, "utf8")),
    ("a nchar(3)", S("char", 3, "utf8")),
    ("a national varchar(3)", S("varchar", 3, "utf8")),
    ("a nvarchar(3)", S("varchar", 3, "utf8")),
    ("a nchar varchar(3)", S("varchar", 3, "utf8")),
    ("a nchar varying(3)", S("varchar", 3, "utf8")),
    ("a national character varying(3)", S("varchar", 3, "utf8")),
    ("a char(5) ascii", S("char", 5, "latin1")),
    ("a char(5) unicode", S("char", 5, "ucs2")),
    ("a varchar(5) ascii binary", S("varchar", 5, "latin1")),
    ("a varchar(5) CHARACTER SET 'latin2'", S("varchar", 5, "latin2")),
    ("a varchar(5) charset utf8mb3", S("varchar", 5, "utf8")),
    ("a varchar(5) char set latin1", S("varchar", 5, "latin1")),
    ("a varchar(5) collate latin1_bin", S("varchar", 5, "latin1")),
    ("a varchar(5) not null collate utf8mb3_bin", S("varchar", 5, "utf8", nullable=False)),
    ("a char(5) byte", C("binary", length=5)),
    ("a char(5) charset binary", C("binary", length=5)),
    ("a varchar(5) collate binary", C("varbinary", length=5)),
    ("a text charset binary", C("blob")),
    ("a longtext byte", C("longblob")),
    ("a binary", C("binary", length=1)),
    ("a binary(0)", C("binary", length=0)),
    ("a varbinary(300)", C("varbinary", length=300)),
    ("a varbinary(70000)", C("mediumblob")),
    ("a tinytext", S("tinytext")),
    ("a text", S("text")),
    ("a text(0)", S("text")),
    ("a text(63)", S("tinytext")),
    ("a text(64)", S("text")),
    ("a text(255) charset latin1", S("tinytext", charset="latin1")),
    ("a text(20000)", S("mediumtext")),
    ("a text(20000000)", S("longtext")),
    ("a blob(255)", C("tinyblob")),
    ("a blob(256)", C("blob")),
    ("a blob(65536)", C("mediumblob")),
    ("a varchar(16383)", S("varchar", 16383)),
    ("a varchar(16384)", S("mediumtext")),
    ("a varchar(65535) charset latin1", S("varchar", 65535, "latin1")),
    ("a long", S("mediumtext")),
    ("a long varchar binary", S("mediumtext")),
    ("a long char varying", S("mediumtext")),
    ("a long varbinary", C("mediumblob")),
    ("a long charset latin1", S("mediumtext", charset="latin1")),
    # labels
    ("a enum('x','y z')", E("x", "y z")),
    ("a set('x') character set latin1 not null default 'x'", E("x", kind="set", charset="latin1").__class__("a", "set", charset="latin1", labels=("x",), nullable=False)),
    (r"a enum('a''b','c\'d','\\','e\nf','\%','\q','k""l','\t')", E("a'b", "c'd", "\\", "e\nf", r"\%", "q", 'k""l', "\t")),
    ('a enum("a\'b","c""d")', E("a'b", 'c"d')),
    ("a enum('a  ',' b ')", E("a", " b")),
    ("a enum('a  ') charset binary", E("a  ", charset="binary")),
    ("a enum(x'41',0x4243,b'1000001')", E("A", "BC", "A")),
    ("a enum(x'c3a9')", E("é")),
    ("a enum(x'80') charset latin1", E("€", charset="latin1")),
    ("a enum('汉字😀','')", E("汉字😀", "")),
    ("a enum('(',')',',','--','#','/*')", E("(", ")", ",", "--", "#", "/*")),
    # what has nothing to say
    ("a int default -1 comment 'not null, x) (' key", C("int", nullable=False)),
    ("a int default (1 + (2)) check (a > 0)", C("int")),
    ("a varchar(9) default _latin1'x' 'y' unique key", S("varchar", 9)),
    ("a bit(3) default b'101'", C("bit", length=3)),
    ("a int references x.y (b) match full on delete set null on update no action", C("int")),
    ("a int references y on delete cascade not null", C("int", nullable=False)),
    ("a int generated always as (b + 1) virtual not null", C("int", nullable=False)),
    ("a int as (concat('a)', 1)) stored unique", C("int")),
    ("a int column_format fixed storage disk", C("int")),
    ("a int /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT DYNAMIC */ DEFAULT NULL", C("int")),
    ("a int /*!40101 unsigned */", C("int", unsigned=True)),
    ("a int /*!90000 unsigned */", C("int")),
    ("a int /* unsigned */ -- not null\n # zerofill\n", C("int")),
    ("a int constraint c check (a > 1) not enforced", C("int")),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "expected"), TYPES)
def test_column(definition: str, expected: ColumnSchema) -> None:
    assert columns(definition)[0] == expected


# (statement, primary key, not null columns)
KEYS: list[tuple[str, tuple[str, ...], set[str]]] = [
    ("create table t (a int, b int)", (), set()),
    ("create table t (a int primary key, b int)", ("a",), {"a"}),
    ("create table t (a int key, b int)", ("a",), {"a"}),
    ("create table t (a int null primary key)", ("a",), {"a"}),
    ("create table t (a int, b int, primary key (b, A))", ("b", "a"), {"a", "b"}),
    ("create table t (a int, constraint primary key (a))", ("a",), {"a"}),
    ("create table t (a int, constraint c primary key using btree (a))", ("a",), {"a"}),
    ("create table t (a int, primary key pk (a asc) using btree comment 'x')", ("a",), {"a"}),
    ("create table t (primary key (`x y`(10) desc), `x y` text)", ("x y",), {"x y"}),
    ("create table t (a int not null, unique (a))", (), {"a"}),
    ("create table t (a int, index (a), key k (a), unique index u (a), fulltext (a))", (), set()),
    ("create table t (a int, foreign key (a) references b (c) on delete set null)", (), set()),
    ("create table t (a int, constraint f foreign key i (a) references b (c))", (), set()),
    ("create table t (a int, check (a > 1), constraint c check (a < 9))", (), set()),
    ("create table t (`primary` int, `key` int, primary key (`key`))", ("key",), {"key"}),
]


@pytest.mark.parametrize(("sql", "key", "not_null"), KEYS)
def test_primary_key(sql: str, key: tuple[str, ...], not_null: set[str]) -> None:
    schema = parse_create_table(sql, "d", "utf8mb4")
    assert schema.primary_key == key
    assert {column.name for column in schema.columns if not column.nullable} == not_null


# (what follows the columns, the table's character set, the column's)
OPTIONS: list[tuple[str, str | None, str | None]] = [
    ("", "utf8mb4", "utf8mb4"),
    ("charset latin1", "latin1", "latin1"),
    ("DEFAULT CHARACTER SET = latin1", "latin1", "latin1"),
    ("default charset=default", "utf8mb4", "utf8mb4"),
    ("collate latin1_bin", "latin1", "latin1"),
    ("engine=innodb charset utf8 collate=utf8_bin comment 'charset latin1'", "utf8", "utf8"),
    ("charset binary", "binary", None),
    ("union=(a, b) insert_method=last charset latin1", "latin1", "latin1"),
    ("partition by hash(a) partitions 4", "utf8mb4", "utf8mb4"),
    ("charset latin1 /*!50100 PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1) ENGINE = InnoDB) */", "latin1", "latin1"),
    ("charset latin1 start transaction", "latin1", "latin1"),
    ("row_format=compressed key_block_size=8 data directory='/x';", "utf8mb4", "utf8mb4"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "table_charset", "column_charset"), OPTIONS)
def test_table_options(
    options: str, table_charset: str | None, column_charset: str | None
) -> None:
    schema = parse_create_table(f"create table t (a int, b varchar(9)) {options}", "d", "utf8mb4")
    assert (schema.charset, schema.columns[1].charset) == (table_charset, column_charset)


def test_names() -> None:
    sql = "CREATE TABLE IF NOT EXISTS `x y`.`t``1` (`a``b` int, 2b int, c$ int, é int, date date)"
    schema = parse_create_table(sql, "d", None)
    assert (schema.database, schema.table, schema.charset) == ("x y", "t`1", None)
    assert [column.name for column in schema.columns] == ["a`b", "2b", "c$", "é", "date"]


def test_like() -> None:
    known = TableSchema("x", "u", (C("int"),), ("a",), "latin1")
    found = {("x", "u"): known}
    for sql in ("create table t like x.u", "create table if not exists t (like x.u)"):
        schema = parse_create_table(sql, "d", None, lambda *name: found.get(name))
        assert schema == TableSchema("d", "t", known.columns, ("a",), "latin1")
    with pytest.raises(UnknownSchemaError, match=r"LIKE d\.u, which is not known"):
        parse_create_table("create table t like u", "d", None, lambda *name: found.get(name))


def test_what_the_session_and_the_server_decide() -> None:
    assert columns("a real", real_as_float=True)[0].type == "float"
    assert columns("a timestamp", explicit_defaults_for_timestamp=True)[0].nullable
    assert columns("a timestamp(6)", server_version=50568)[0].length == 0
    assert columns("a json", mariadb=True) == [S("longtext")]
    assert columns(r"a enum('\')", no_backslash_escapes=True)[0].labels == ("\\",)
    assert columns('"a b" int', ansi_quotes=True)[0].name == "a b"
    assert columns("a uuid", mariadb=True)[0].type == "uuid"


# (statement, part of the message); the database's character set is not known.
REFUSED: list[tuple[str, str]] = [
    ("create table t (a varchar(9))", "character set that neither"),
    ("create table t select 1", "from a SELECT"),
    ("create table t (select 1 as a)", "from a SELECT"),
    ("create table t (a int) select 1 as b", "from a SELECT"),
    ("create table t (a int) charset utf8 as select 1 as b", "from a SELECT"),
    ("create table t (a int) partition by hash(a) (partition p) select 1 as b", "from a SELECT"),
    ("create table t (a frob)", "column type 'frob' is not known"),
    ("create table t (a int frob)", "found 'frob'"),
    ("create table t (a varchar)", r"\(length\) after VARCHAR"),
    ("create table t (a int, a int)", "one name"),
    ("create table t (a int, primary key (b))", "no column"),
    ("create table t (a int", "the end"),
    ("create table t (a int, primary key", "the end"),
    ("create table t (a enum('x)", "does not end"),
    ("create table t (a enum(_latin1'x'))", "a label"),
    ("create table t (a enum(x'ff') charset utf8)", "is not utf8"),
    ("create table t (a enum(x'ff') charset gbk)", "can't be read here"),
    ("create table t (a char(9) charset klingon)", "'klingon' is not known"),
    ("create table t (a char(9) collate klingon_ci)", "klingon_ci"),
    ("create table t (a int) with system versioning", "system versioning"),
    ("create view t as select 1", "expected TABLE"),
    ("create table t (a enum('\udce9') charset latin1)", "not UTF-8"),
    ("create table t (a int default)", "a default value"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_what_is_not_understood_is_refused(sql: str, message: str) -> None:
    with pytest.raises(UnknownSchemaError, match=message) as caught:
        parse_create_table(sql, "d", None)
    assert "\n" not in str(caught.value)


def shown(column: dict[str, Any]) -> ColumnSchema:
    """A column of a captured scenario, as SHOW told it."""
    return parse_column_type(
        column["name"],
        column["type"],
        column["charset"],
        column["nullable"] == "YES",
        DEFAULT_CONTEXT,
    )


def test_captured_creates_are_what_the_server_showed() -> None:
    """Every CREATE TABLE in the 5.7 logs whose table was not altered later."""
    compared = []
    for description in sorted(CAPTURED.glob("*.json")):
        scenario = json.loads(description.read_text())
        created: dict[str, TableSchema] = {}
        altered: set[str] = set()
        for file in scenario["files"]:
            for sql in logged_statements((CAPTURED / file).read_bytes(), scenario):
                statement = classify(sql, scenario["database"])
                names = {name for _, name in statement.tables or ()}
                if statement.kind is StatementKind.CREATE_TABLE:
                    schema = parse_create_table(sql, scenario["database"], "utf8mb4")
                    created[schema.table] = schema
                elif statement.kind in (StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE):
                    altered |= names
        for name in created.keys() & scenario["tables"].keys() - altered:
            expected = scenario["tables"][name]["columns"]
            # information_schema is utf8 with three bytes: 5.7 showed ? for the fourth byte's.
            labels = [[label.replace("😀", "?") for label in c.labels] for c in created[name].columns]
            assert labels == [list(shown(column).labels) for column in expected]
            bare = [(c.name, c.type, c.length, c.scale, c.unsigned, c.charset, c.nullable) for c in created[name].columns]
            seen = [shown(column) for column in expected]
            assert bare == [(c.name, c.type, c.length, c.scale, c.unsigned, c.charset, c.nullable) for c in seen]
            assert set(created[name].primary_key) == {c["name"] for c in expected if c["key"] == "PRI"}
            compared.append(name)
    assert len(compared) == 52


def logged_statements(log: bytes, scenario: dict[str, Any]) -> list[str]:
    """The statements of a log's QUERY events."""
    checksum = 0 if scenario["variables"]["binlog_checksum"] == "NONE" else 4
    statements = []
    pos = 4
    while pos < len(log):
        length = int.from_bytes(log[pos + 9 : pos + 13], "little")
        if log[pos + 4] == EventType.QUERY_EVENT:
            body = log[pos + 19 : pos + length - checksum]
            skip = 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
            statements.append(body[skip:].decode())
        pos += length
    return statements
