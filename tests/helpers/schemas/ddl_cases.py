"""CREATE TABLE statements and their expected columns, for the parser and for real servers."""

from __future__ import annotations

from typing import Any

from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, EventHeader, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = [
    "KEYS",
    "MARIADB_DEFAULTS",
    "OPTIONS",
    "TYPES",
    "bare",
    "logged_statements",
    "text",
]


VIRTUAL = {"virtual": True, "generated": True}


def bare(type_: str, **rest: Any) -> ColumnSchema:
    return ColumnSchema("a", type_, **rest)


def text(
    type_: str, length: int | None = None, charset: str = "utf8mb4", **rest: Any
) -> ColumnSchema:
    return ColumnSchema("a", type_, length, charset=charset, **rest)


def enum(*labels: str, charset: str = "utf8mb4") -> ColumnSchema:
    return ColumnSchema("a", "enum", charset=charset, labels=labels)


# (definition, expected); the database is utf8mb4.
TYPES: list[tuple[str, ColumnSchema]] = [
    ("a tinyint", bare("tinyint")),
    ("a tinyint(1)", bare("tinyint", length=1)),
    ("a tinyint(1) unsigned", bare("tinyint", length=1, unsigned=True)),
    ("a tinyint(4)", bare("tinyint")),
    ("a int1", bare("tinyint")),
    ("a int2", bare("smallint")),
    ("a int3 unsigned", bare("mediumint", unsigned=True)),
    ("a middleint", bare("mediumint")),
    ("a INTEGER(10) UNSIGNED ZEROFILL", bare("int", unsigned=True)),
    ("a int4 signed", bare("int")),
    ("a int8 zerofill", bare("bigint", unsigned=True)),
    ("a bool", bare("tinyint", length=1)),
    ("a boolean not null", bare("tinyint", length=1, nullable=False)),
    ("a serial", bare("bigint", unsigned=True, nullable=False)),
    ("a int serial default value", bare("int", nullable=False)),
    ("a int null auto_increment, key (a)", bare("int", nullable=False)),
    ("a int not null null", bare("int")),
    ("a float", bare("float")),
    ("a float(24)", bare("float")),
    ("a float(25) unsigned", bare("double", unsigned=True)),
    ("a float(30,2)", bare("float")),
    ("a float4", bare("float")),
    ("a float8", bare("double")),
    ("a real", bare("double")),
    ("a double precision(10,2) unsigned", bare("double", unsigned=True)),
    ("a decimal", bare("decimal", length=10, scale=0)),
    ("a dec(5)", bare("decimal", length=5, scale=0)),
    ("a numeric(65,30) unsigned", bare("decimal", length=65, scale=30, unsigned=True)),
    ("a fixed(8,2)", bare("decimal", length=8, scale=2)),
    ("a bit", bare("bit", length=1)),
    ("a bit(64)", bare("bit", length=64)),
    ("a date", bare("date")),
    ("a year(4)", bare("year")),
    ("a time", bare("time", length=0)),
    ("a time(3)", bare("time", length=3)),
    ("a datetime(6) not null", bare("datetime", length=6, nullable=False)),
    ("a timestamp", bare("timestamp", length=0, nullable=False)),
    ("a timestamp null default null", bare("timestamp", length=0)),
    ("a timestamp(6) default now(6) on update now(6)", bare("timestamp", length=6, nullable=False)),
    ("a json", bare("json")),
    ("a geometry", bare("geometry")),
    ("a point not null srid 4326", bare("point", nullable=False)),
    ("a geomcollection", bare("geometrycollection")),
    ("a char", text("char", 1)),
    ("a character(4)", text("char", 4)),
    ("a char(0)", text("char", 0)),
    ("a varchar(60) binary", text("varchar", 60)),
    ("a char varying(3)", text("varchar", 3)),
    ("a character varying(3)", text("varchar", 3)),
    ("a national char(3)", text("char", 3, "utf8")),
    ("a nchar(3)", text("char", 3, "utf8")),
    ("a national varchar(3)", text("varchar", 3, "utf8")),
    ("a nvarchar(3)", text("varchar", 3, "utf8")),
    ("a nchar varchar(3)", text("varchar", 3, "utf8")),
    ("a nchar varying(3)", text("varchar", 3, "utf8")),
    ("a national character varying(3)", text("varchar", 3, "utf8")),
    ("a char(5) ascii", text("char", 5, "latin1")),
    ("a char(5) unicode", text("char", 5, "ucs2")),
    ("a varchar(5) ascii binary", text("varchar", 5, "latin1")),
    ("a varchar(5) CHARACTER SET 'latin2'", text("varchar", 5, "latin2")),
    ("a varchar(5) charset utf8mb3", text("varchar", 5, "utf8")),
    ("a varchar(5) char set latin1", text("varchar", 5, "latin1")),
    ("a varchar(5) collate latin1_bin", text("varchar", 5, "latin1")),
    ("a varchar(5) not null collate utf8mb3_bin", text("varchar", 5, "utf8", nullable=False)),
    ("a char(5) byte", bare("binary", length=5)),
    ("a char(5) charset binary", bare("binary", length=5)),
    ("a varchar(5) collate `binary`", bare("varbinary", length=5)),
    ("a text charset binary", bare("blob")),
    ("a longtext byte", bare("longblob")),
    ("a binary", bare("binary", length=1)),
    ("a binary(0)", bare("binary", length=0)),
    ("a varbinary(300)", bare("varbinary", length=300)),
    ("a varbinary(70000)", bare("mediumblob")),
    ("a tinytext", text("tinytext")),
    ("a text", text("text")),
    ("a text(0)", text("text")),
    ("a text(63)", text("tinytext")),
    ("a text(64)", text("text")),
    ("a text(255) charset latin1", text("tinytext", charset="latin1")),
    ("a text(20000)", text("mediumtext")),
    ("a text(20000000)", text("longtext")),
    ("a blob(255)", bare("tinyblob")),
    ("a blob(256)", bare("blob")),
    ("a blob(65536)", bare("mediumblob")),
    ("a varchar(16383)", text("varchar", 16383)),
    ("a varchar(16384)", text("mediumtext")),
    ("a varchar(65532) charset latin1", text("varchar", 65532, "latin1")),
    ("a long", text("mediumtext")),
    ("a long varchar binary", text("mediumtext")),
    ("a long char varying", text("mediumtext")),
    ("a long varbinary", bare("mediumblob")),
    ("a long charset latin1", text("mediumtext", charset="latin1")),
    # labels
    ("a enum('x','y z')", enum("x", "y z")),
    (
        "a set('x') character set latin1 not null default 'x'",
        text("set", charset="latin1", labels=("x",), nullable=False),
    ),
    (
        r"""a enum('a''b','c\'d','\\','e\nf','\%','\q','k""l','\t')""",
        enum("a'b", "c'd", "\\", "e\nf", r"\%", "q", 'k""l', "\t"),
    ),
    ('a enum("a\'b","c""d")', enum("a'b", 'c"d')),
    ("a enum('a  ',' b ')", enum("a", " b")),
    ("a enum('a  ') charset binary", enum("a  ", charset="binary")),
    ("a enum(x'41',0x4243,b'1000001')", enum("A", "BC", "A")),
    ("a enum(x'c3a9')", enum("é")),
    ("a enum(x'80') charset latin1", enum("€", charset="latin1")),
    ("a enum(x'81') charset latin1", enum("\x81", charset="latin1")),
    ("a enum(x'e4') charset latin2", enum("ä", charset="latin2")),
    ("a enum(x'5b') charset swe7", enum("Ä", charset="swe7")),
    ("a enum(x'baba',x'4120') charset gbk", enum("汉", "A", charset="gbk")),
    ("a enum('汉字😀','')", enum("汉字😀", "")),
    ("a enum('(',')',',','--','#','/*')", enum("(", ")", ",", "--", "#", "/*")),
    # defaults, checks, references, generated columns, comments
    ("a int default -1 comment 'not null, x) (' key", bare("int", nullable=False)),
    ("a int default (1 + (2)) check (a > 0)", bare("int")),
    ("a varchar(9) default _latin1'x' 'y' unique key", text("varchar", 9)),
    ("a bit(3) default b'101'", bare("bit", length=3)),
    ("a int references x.y (b) match full on delete set null on update no action", bare("int")),
    ("a int references y on delete cascade not null", bare("int", nullable=False)),
    ("a int generated always as (b + 1) virtual", bare("int", **VIRTUAL)),
    ("a int as (b + 1) virtual not null", bare("int", nullable=False, **VIRTUAL)),
    ("a text as (b)", bare("text", charset="utf8mb4", **VIRTUAL)),
    ("a text as (b) virtual", bare("text", charset="utf8mb4", **VIRTUAL)),
    ("a text as (b) unique stored", bare("text", charset="utf8mb4", generated=True)),
    ("a json generated always as (b) persistent", bare("json", generated=True)),
    ("a json generated always as (b) comment 'stored' null", bare("json", **VIRTUAL)),
    ("a varchar(65535) as (b)", bare("mediumtext", charset="utf8mb4", **VIRTUAL)),
    ("a int as (concat('a)', 1)) stored unique", bare("int", generated=True)),
    ("a int column_format fixed storage disk", bare("int")),
    ("a int /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT DYNAMIC */ DEFAULT NULL", bare("int")),
    ("a int /*!40101 unsigned */", bare("int", unsigned=True)),
    ("a int /*!90000 unsigned */", bare("int")),
    ("a int /* unsigned */ -- not null\n # zerofill\n", bare("int")),
    ("a int constraint c check (a > 1) not enforced", bare("int")),
]  # fmt: skip


# Defaults that MySQL does not support; {table} is the table's name, s a sequence, b an INT.
MARIADB_DEFAULTS = [
    "a date default date '2020-01-01' not null",
    "a datetime default timestamp '2020-01-01 00:00:00'",
    "a time default time '10:00:00' comment 'x' not null",
    "a date default date('2020-01-01')",
    "a int default case when (1) then case 2 when 2 then 4 end else 3 end not null",
    "a int default b",
    "a int default {table}.b not null",
    "a int default `{table}`.`b` comment 'x'",
    "a int default ddl_live.{table}.b not null",
    "a int default next value for s not null",
    "a int default previous value for ddl_live.s",
    "a int default nextval(s) not null",
    "a varchar(90) default current_user not null",
]


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


# (options after the columns, the table's character set, the column's)
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
    (
        ("charset latin1 /*!50100 PARTITION BY RANGE (a)"
        " (PARTITION p VALUES LESS THAN (1) ENGINE = InnoDB) */"),
        "latin1",
        "latin1",
    ),
    ("charset latin1 start transaction", "latin1", "latin1"),
    ("row_format=compressed key_block_size=8 data directory='/x';", "utf8mb4", "utf8mb4"),
]  # fmt: skip


def logged_statements(log: bytes, start: int = 4, checksums: bool = True) -> list[str]:
    """Return the statements in a log's QUERY events, from this position on."""
    statements = []
    while start < len(log):
        header = EventHeader.parse(log, start)
        end = start + header.length
        if header.type == EventType.QUERY_EVENT:
            body = log[start + HEADER_LENGTH : end - 4 * checksums]
            statements.append(Query.parse(body).sql)
        start = end
    return statements
