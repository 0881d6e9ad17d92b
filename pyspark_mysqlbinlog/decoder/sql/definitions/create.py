"""Parse CREATE TABLE to a TableSchema.

The module has its own small grammar instead of a general SQL parser. A wrong column is worse than
none, and general parsers drop executable comments (and the UNSIGNED in them), read REAL as FLOAT,
and reject a third of MySQL's type synonyms. Unknown syntax raises. It is skipped only where it
cannot affect a column's name, type or nullability (defaults, comments, expressions, index
definitions, partitions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import (
    ColumnDefinition,
    parse_column_definition,
)
from pyspark_mysqlbinlog.decoder.sql.definitions.column_types import (
    accept_charset,
    parse_charset_name,
    table_collation_charset,
)
from pyspark_mysqlbinlog.decoder.sql.definitions.unique_keys import spelled, unique_key
from pyspark_mysqlbinlog.decoder.sql.tokens import (
    DEFAULT_CONTEXT,
    SqlContext,
    TokenStream,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UnknownSchemaError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema, UniqueKey, row_keys

__all__ = [
    "check_undecoded",
    "elements",
    "index_or_constraint",
    "parse_create_table",
    "parse_database_charset",
    "skip_element",
    "skip_set_statement",
    "with_key",
]

# Variables that determine how a statement is parsed.
_READ_WITH = frozenset({"SQL_MODE", "OLD_MODE", "EXPLICIT_DEFAULTS_FOR_TIMESTAMP"})


def parse_create_table(
    sql: str,
    default_database: str,
    default_charset: str | None,
    lookup: Callable[[str, str], TableSchema | None] | None = None,
    context: SqlContext = DEFAULT_CONTEXT,
) -> TableSchema:
    """Parse CREATE TABLE or CREATE TABLE … LIKE.

    Parameters
    ----------
    default_database : for a name without one.
    default_charset : the database's, for a table without its own; None if it is unknown.
    lookup : the schema of (database, table) at this moment, for LIKE.
    context : the session's sql_mode, the server's version, explicit_defaults_for_timestamp.

    Raises
    ------
    UnknownSchemaError
        for a definition that cannot be parsed, an unknown character set, CREATE TABLE … SELECT, or
        LIKE an unknown table.
    """
    table: str | None = None
    try:
        if not sql.isascii():
            check_undecoded(sql)
        stream = TokenStream(sql, context)
        skip_set_statement(stream)
        stream.expect("CREATE")
        stream.accept("OR", "REPLACE")
        stream.accept("TEMPORARY")
        stream.expect("TABLE")
        stream.accept("IF", "NOT", "EXISTS")
        database, name = stream.qualified_name(default_database)
        table = f"{database}.{name}"
        if stream.accept("LIKE") or stream.accept("(", "LIKE"):
            return _copy(stream.qualified_name(default_database), database, name, lookup)
        return _table(stream, database, name, default_charset, context)
    except MySQLBinlogError as error:
        raise UnknownSchemaError(
            f"a CREATE TABLE can't be followed: {error.message}", table=table
        ) from None


def check_undecoded(sql: str) -> None:
    """Raise SchemaError for a text with undecodable bytes (see statement_text.py)."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            "its text is not in the character set that its client declared, or may be UTF-8"
        ) from None


def _copy(
    original: tuple[str, str],
    database: str,
    name: str,
    lookup: Callable[[str, str], TableSchema | None] | None,
) -> TableSchema:
    found = lookup(*original) if lookup is not None else None
    if found is None:
        raise UnknownSchemaError(f"it is LIKE {'.'.join(original)}, whose columns are unknown")
    return replace(found, database=database, table=name)


def _table(
    stream: TokenStream,
    database: str,
    name: str,
    default_charset: str | None,
    context: SqlContext,
) -> TableSchema:
    if stream.at_query() or not stream.at("("):
        raise UnknownSchemaError("it takes its columns from a SELECT")
    definitions, key, unique_keys = elements(stream, context)
    charset = _table_charset(stream, default_charset) or default_charset
    columns = with_key(tuple(each.schema(charset) for each in definitions), key)
    spelling = {fold(column.name): column.name for column in columns}
    if len(spelling) != len(columns):
        raise SchemaError("two of its columns have the same name")
    key = tuple(spelling[fold(each)] for each in key)
    keys = row_keys(columns, key, spelled(unique_keys, spelling))
    return TableSchema(database, name, columns, key, charset, keys)


def with_key(columns: tuple[ColumnSchema, ...], key: tuple[str, ...]) -> tuple[ColumnSchema, ...]:
    """Make a primary key's columns NOT NULL, regardless of their definitions."""
    wanted = {fold(name) for name in key}
    missing = wanted - {fold(column.name) for column in columns}
    if missing:
        raise SchemaError(f"its primary key contains the unknown column {min(missing)!r}")
    return tuple(
        replace(column, nullable=False) if fold(column.name) in wanted else column
        for column in columns
    )


def skip_set_statement(stream: TokenStream) -> None:
    """Skip SET STATEMENT; SchemaError if it sets a variable that affects parsing.

    The server has parsed the statement with the session's own value, which is not logged.
    """
    words = stream.skip_set_statement() & _READ_WITH
    if words:
        raise SchemaError(f"its SET STATEMENT changes {min(words)}, the session's value is unknown")


class Elements(NamedTuple):
    """The contents of the parentheses."""

    definitions: list[ColumnDefinition]
    key: tuple[str, ...]
    unique_keys: list[UniqueKey]


def elements(stream: TokenStream, context: SqlContext) -> Elements:
    """Parse the contents of the parentheses: the columns, the primary key, the unique keys."""
    stream.expect("(")
    definitions: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    unique_keys: list[UniqueKey] = []
    while True:
        found = index_or_constraint(stream)
        if found is not None:
            key = found.key or key
            unique_keys += found.unique_keys
        else:
            definition = parse_column_definition(stream, context)
            if definition.primary_key:
                key = (definition.name,)
            if definition.unique:
                unique_keys.append((definition.name, (definition.name,)))
            definitions.append(definition)
        if not stream.accept(","):
            stream.expect(")")
            return Elements(definitions, key, unique_keys)


class Index(NamedTuple):
    """An element among the columns that is not a column.

    Attributes
    ----------
    key : its columns, if it is the primary key.
    conditional : it is PRIMARY KEY IF NOT EXISTS.
    unique_keys : the key itself, if it is a unique key with known columns; otherwise empty.
    """

    key: tuple[str, ...] = ()
    conditional: bool = False
    unique_keys: tuple[UniqueKey, ...] = ()


def index_or_constraint(stream: TokenStream) -> Index | None:
    """Parse an index or a constraint; None if a column comes next."""
    if stream.accept("PRIMARY"):
        return _primary_key(stream)
    if stream.accept("CONSTRAINT"):
        stream.accept("IF", "NOT", "EXISTS")  # MariaDB, of a CHECK
        name = ""
        if stream.peek().word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name = stream.name("a constraint's name")
        if stream.accept("PRIMARY"):
            return _primary_key(stream)
        if stream.accept("UNIQUE"):
            return _unique_key(stream, name)
        skip_element(stream)
        return Index()
    if stream.accept("UNIQUE"):
        return _unique_key(stream)
    if stream.at("PERIOD", "FOR") or stream.peek().word in (
        "INDEX",
        "KEY",
        "FULLTEXT",
        "SPATIAL",
        "FOREIGN",
        "CHECK",
    ):
        skip_element(stream)
        return Index()
    return None


def _primary_key(stream: TokenStream) -> Index:
    """After PRIMARY: ``KEY [IF NOT EXISTS] [name] [USING BTREE] (column [(length)], …) …``."""
    stream.expect("KEY")
    conditional = stream.accept("IF", "NOT", "EXISTS")
    while not stream.at("("):
        if stream.at_end():
            raise stream.unexpected("the primary key's columns")
        stream.next()
    stream.expect("(")
    columns = []
    while True:
        columns.append(stream.name("a column"))
        if stream.at("("):
            stream.skip_parentheses()
        stream.accept_any("ASC", "DESC")
        if stream.at("WITHOUT", "OVERLAPS"):
            raise SchemaError("a primary key WITHOUT OVERLAPS is not supported")
        if not stream.accept(","):
            break
    stream.expect(")")
    skip_element(stream)
    return Index(tuple(columns), conditional)


def _unique_key(stream: TokenStream, name: str = "") -> Index:
    found = unique_key(stream, name)
    skip_element(stream)
    return Index(unique_keys=() if found is None else (found,))


def skip_element(stream: TokenStream) -> None:
    """Skip to the comma, the parenthesis or the end that ends this element."""
    while not stream.at_end() and stream.peek().word not in (",", ")", ";"):
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()


def _table_charset(stream: TokenStream, default_charset: str | None) -> str | None:
    """Parse the table options, up to the partitions; return the character set, if present."""
    charset: str | None = None
    while not stream.at_end():
        _check_query(stream)
        if accept_charset(stream):
            stream.accept("=")
            charset = parse_charset_name(stream) or default_charset
        elif stream.accept("COLLATE"):
            stream.accept("=")
            charset = table_collation_charset(stream) or charset
        elif stream.accept("UNION"):
            stream.accept("=")
            stream.skip_parentheses()
        elif stream.at("PARTITION", "BY"):
            _skip_partitions(stream)
        elif stream.at("WITH", "SYSTEM"):
            raise SchemaError("system versioning adds columns that its definition does not show")
        elif stream.at("("):
            raise stream.unexpected("an option of the table")
        else:
            stream.next()
    return charset


def _skip_partitions(stream: TokenStream) -> None:
    """Skip to the end of the statement; a query may follow the partitions."""
    while not stream.at_end():
        _check_query(stream)
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()


def _check_query(stream: TokenStream) -> None:
    if stream.at_query():
        raise UnknownSchemaError("it takes columns from a SELECT")


def parse_database_charset(
    sql: str, server_charset: str | None = None, context: SqlContext = DEFAULT_CONTEXT
) -> str | None:
    """Return the default character set in a CREATE or ALTER DATABASE; None if it has none.

    server_charset : for ``CHARACTER SET DEFAULT``.
    """
    stream = TokenStream(sql, context)
    while not stream.at_end() and stream.peek().word not in ("DATABASE", "SCHEMA"):
        stream.next()
    return _table_charset(stream, server_charset)
