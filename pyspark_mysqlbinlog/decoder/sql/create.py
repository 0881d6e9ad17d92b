"""CREATE TABLE to TableSchema.

The statement is read by its own small grammar instead of a general SQL parser: a wrong column is
worse than none, and general parsers drop executable comments (and the UNSIGNED in them), take REAL
for FLOAT, and refuse a third of MySQL's type synonyms. What is not understood here raises; it is
never skipped, except where nothing about a column's name, type or nullability can stand (defaults,
comments, expressions, index definitions, partitions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.sql.column_types import (
    CHARACTER_TYPES,
    ParsedType,
    accept_charset,
    check_labels,
    collation_charset,
    parse_charset_name,
    parse_type,
    resolve,
)
from pyspark_mysqlbinlog.decoder.sql.tokens import (
    DEFAULT_CONTEXT,
    SqlContext,
    TokenKind,
    TokenStream,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UnknownSchemaError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = [
    "ColumnDefinition",
    "elements",
    "index_or_constraint",
    "parse_column_definition",
    "parse_column_type",
    "parse_create_table",
    "parse_database_charset",
    "refuse_undecoded",
    "skip_element",
    "skip_set_statement",
    "with_key",
]

# Variables that say how a statement is read.
_READ_WITH = frozenset({"SQL_MODE", "OLD_MODE", "EXPLICIT_DEFAULTS_FOR_TIMESTAMP"})


@dataclass(slots=True)
class ColumnDefinition:
    """One column as a statement defines it.

    Attributes
    ----------
    nullable : as far as the column's own definition tells; a primary key makes it False.
    primary_key : marked so inline.
    fills : rows that are there already get a value: it has a default other than NULL, counts up,
        or is computed.
    counts : it is AUTO_INCREMENT, so that a 0 that is there already becomes another number.
    computed : it is a generated column.
    virtual : as ColumnSchema has it.
    """

    name: str
    parsed: ParsedType
    nullable: bool
    primary_key: bool
    fills: bool = False
    counts: bool = False
    computed: bool = False
    virtual: bool = False

    def schema(self, default_charset: str | None) -> ColumnSchema:
        """The column in a table of this character set; None where that is not known.

        Raises SchemaError for a label that the column's character set does not have.
        """
        column = resolve(self.parsed, self.name, self.nullable, default_charset)
        if column.charset is not None:
            check_labels(self.name, column.labels, column.charset)
        return replace(column, virtual=self.virtual)


def parse_create_table(
    sql: str,
    default_database: str,
    default_charset: str | None,
    lookup: Callable[[str, str], TableSchema | None] | None = None,
    context: SqlContext = DEFAULT_CONTEXT,
) -> TableSchema:
    """Read CREATE TABLE or CREATE TABLE … LIKE.

    Parameters
    ----------
    default_database : for a name without one.
    default_charset : the database's, for a table that does not tell; None when it is not known.
    lookup : the schema of (database, table) at this moment, for LIKE.
    context : the session's sql_mode, the server's version, explicit_defaults_for_timestamp.

    Raises
    ------
    UnknownSchemaError
        for a definition that can't be read, a character set that nobody tells, CREATE TABLE …
        SELECT, or LIKE a table that is not known.
    """
    table: str | None = None
    try:
        if not sql.isascii():
            refuse_undecoded(sql)
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


def refuse_undecoded(sql: str) -> None:
    """SchemaError for a text with bytes that could not be decoded (see statement_text.py)."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            "its text is not in the character set that its client said it wrote, or may be in UTF-8"
        ) from None


def _copy(
    original: tuple[str, str],
    database: str,
    name: str,
    lookup: Callable[[str, str], TableSchema | None] | None,
) -> TableSchema:
    found = lookup(*original) if lookup is not None else None
    if found is None:
        raise UnknownSchemaError(f"it is LIKE {'.'.join(original)}, which is not known")
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
    definitions, key = elements(stream, context)
    charset = _table_charset(stream, default_charset) or default_charset
    columns = with_key(tuple(each.schema(charset) for each in definitions), key)
    spelling = {fold(column.name): column.name for column in columns}
    if len(spelling) != len(columns):
        raise SchemaError("two of its columns have one name")
    return TableSchema(
        database, name, columns, tuple(spelling[fold(each)] for each in key), charset
    )


def with_key(columns: tuple[ColumnSchema, ...], key: tuple[str, ...]) -> tuple[ColumnSchema, ...]:
    """A primary key's columns are NOT NULL, whatever their definitions say."""
    wanted = {fold(name) for name in key}
    missing = wanted - {fold(column.name) for column in columns}
    if missing:
        raise SchemaError(f"its primary key names {min(missing)!r}, which is no column of it")
    return tuple(
        replace(column, nullable=False) if fold(column.name) in wanted else column
        for column in columns
    )


def skip_set_statement(stream: TokenStream) -> None:
    """Step over SET STATEMENT; SchemaError where it sets what statements are read with.

    The server has read the statement with the session's own by then, which the log does not tell.
    """
    words = stream.skip_set_statement() & _READ_WITH
    if words:
        raise SchemaError(f"its SET STATEMENT has {min(words)}, and not the session's own")


def elements(
    stream: TokenStream, context: SqlContext
) -> tuple[list[ColumnDefinition], tuple[str, ...]]:
    """What stands in the parentheses: the columns and the primary key."""
    stream.expect("(")
    definitions: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    while True:
        found = index_or_constraint(stream)
        if found is not None:
            key = found.key or key
        else:
            definition = parse_column_definition(stream, context)
            if definition.primary_key:
                key = (definition.name,)
            definitions.append(definition)
        if not stream.accept(","):
            stream.expect(")")
            return definitions, key


class Index(NamedTuple):
    """What stands among the columns and is none.

    Attributes
    ----------
    key : its columns, if it is the primary key.
    conditional : it is the primary key IF NOT EXISTS, if the table has none.
    """

    key: tuple[str, ...] = ()
    conditional: bool = False


def index_or_constraint(stream: TokenStream) -> Index | None:
    """Step over an index or a constraint; None where a column comes next."""
    if stream.accept("PRIMARY"):
        return _primary_key(stream)
    if stream.accept("CONSTRAINT"):
        stream.accept("IF", "NOT", "EXISTS")  # MariaDB, of a CHECK
        if stream.peek().word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            stream.name("a constraint's name")
        if stream.accept("PRIMARY"):
            return _primary_key(stream)
        skip_element(stream)
        return Index()
    if stream.at("PERIOD", "FOR") or stream.peek().word in (
        "INDEX",
        "KEY",
        "UNIQUE",
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
            raise SchemaError("a primary key WITHOUT OVERLAPS can't be read")
        if not stream.accept(","):
            break
    stream.expect(")")
    skip_element(stream)
    return Index(tuple(columns), conditional)


def skip_element(stream: TokenStream) -> None:
    """Up to the comma, the parenthesis or the end that ends this element."""
    while not stream.at_end() and stream.peek().word not in (",", ")", ";"):
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()


def parse_column_definition(stream: TokenStream, context: SqlContext) -> ColumnDefinition:
    """Step over ``name type attribute …``, up to a comma, a parenthesis, FIRST/AFTER or partitions.

    Raises SchemaError for an attribute that is not known.
    """
    name = stream.name("a column's name")
    try:
        parsed = parse_type(stream, context)
        # TIMESTAMP is the one type that is NOT NULL by default.
        nullable = parsed.type != "timestamp" or context.explicit_defaults_for_timestamp
        nullable = nullable and not parsed.not_null
        column = _attributes(stream, ColumnDefinition(name, parsed, nullable, False))
    except MySQLBinlogError as error:
        raise SchemaError(f"column {name!r}: {error.message}") from None
    column.virtual = column.virtual and not context.mariadb
    return column


# Of one word, and nothing to us.
_PLAIN_ATTRIBUTES = ("VIRTUAL", "VISIBLE", "INVISIBLE", "ENFORCED")


def _attributes(stream: TokenStream, column: ColumnDefinition) -> ColumnDefinition:
    column.fills = column.counts = column.parsed.not_null
    is_stored = False
    while not (stream.at_end() or stream.peek().word in (",", ")", ";")):
        if stream.accept("NOT", "NULL"):
            column.nullable = False
        elif stream.accept("NULL"):
            column.nullable = True
        elif stream.accept("AUTO_INCREMENT") or stream.accept("SERIAL", "DEFAULT", "VALUE"):
            column.nullable = False
            column.fills = column.counts = True
        elif stream.accept("PRIMARY") or stream.at("KEY"):
            stream.accept("KEY")
            column.primary_key = True
        elif stream.accept("UNIQUE"):
            stream.accept("KEY")
        elif stream.accept("DEFAULT"):
            column.fills = column.fills or not stream.at("NULL")
            skip_default(stream)
        elif stream.accept("ON", "UPDATE"):
            skip_default(stream)
        elif stream.accept("COMMENT"):
            stream.string("a comment")
        elif stream.accept("COLLATE"):
            charset = collation_charset(stream)
            if column.parsed.type in CHARACTER_TYPES:
                column.parsed.charset = charset or column.parsed.charset
                column.parsed.collates_default |= charset is None
        elif stream.accept("GENERATED", "ALWAYS"):
            if stream.at("AS", "ROW"):
                raise SchemaError("system versioning can't be read")
        elif stream.accept("AS"):
            column.fills = column.computed = True
            stream.skip_parentheses()
        elif stream.accept_any("STORED", "PERSISTENT"):
            is_stored = True
        elif stream.accept("CHECK"):
            stream.skip_parentheses()
        elif stream.accept_any(*_PLAIN_ATTRIBUTES) or stream.accept("NOT", "ENFORCED"):
            pass
        elif stream.accept_any("COLUMN_FORMAT", "STORAGE"):
            stream.name()
        elif stream.accept_any("SRID", "REF_SYSTEM_ID"):
            stream.accept("=")
            stream.integer()
        elif stream.accept_any("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
            stream.accept("=")
            stream.string()
        elif stream.accept("CONSTRAINT"):
            if not stream.at("CHECK"):
                stream.name("a constraint's name")
        elif stream.accept("REFERENCES"):
            _skip_references(stream)
        elif (
            stream.peek().word in ("FIRST", "AFTER")
            or stream.at("PARTITION", "BY")
            or stream.at("REMOVE", "PARTITIONING")
        ):
            break
        else:
            raise stream.unexpected("a column's attribute")
    # A generated column that says neither is VIRTUAL.
    column.virtual = column.computed and not is_stored
    return column


def skip_default(stream: TokenStream) -> None:
    """A literal, a call, an expression in parentheses; MariaDB's CASE, sequences and columns."""
    stream.accept_any("+", "-")
    if stream.at("("):
        stream.skip_parentheses()
    elif stream.at("CASE"):
        _skip_case(stream)
    elif stream.accept("NEXT", "VALUE", "FOR") or stream.accept("PREVIOUS", "VALUE", "FOR"):
        stream.qualified_name("")
    elif stream.peek(1).word == ".":
        _skip_dotted(stream)
    else:
        _skip_literal(stream)


def _skip_case(stream: TokenStream) -> None:
    """``CASE … END``, which may hold others."""
    depth = 0
    while True:
        if stream.at_end():
            raise stream.unexpected("END")
        if stream.at("("):
            stream.skip_parentheses()
            continue
        word = stream.next().word
        depth += (word == "CASE") - (word == "END")
        if not depth:
            return


def _skip_dotted(stream: TokenStream) -> None:
    """``table.column``, ``database.table.column``, ``sequence.NEXTVAL``."""
    stream.name("a default value")
    while stream.accept("."):
        stream.name()


# DATE '2020-01-01'.
_TYPED_LITERALS = ("DATE", "TIME", "TIMESTAMP")


def _skip_literal(stream: TokenStream) -> None:
    """A literal with what may stand before it, or a word that a ``(…)`` may follow."""
    token = stream.next()
    if token.kind in (TokenKind.END, TokenKind.SYMBOL):
        raise SchemaError(f"expected a default value, found {token.text!r}")
    if token.word in _TYPED_LITERALS and stream.peek().kind is TokenKind.STRING:
        token = stream.next()
    introducer = token.kind is TokenKind.WORD and token.text.startswith("_")
    if introducer and stream.peek().kind in (TokenKind.STRING, TokenKind.HEX, TokenKind.BITS):
        token = stream.next()
    if token.kind is TokenKind.WORD and token.word == "N":
        stream.string()  # N'text'
    while token.kind is TokenKind.STRING and stream.peek().kind is TokenKind.STRING:
        stream.next()  # adjacent strings are one
    if token.kind is TokenKind.WORD and stream.at("("):
        stream.skip_parentheses()


def _skip_references(stream: TokenStream) -> None:
    """``REFERENCES table [(columns)] [MATCH word] [ON DELETE …] [ON UPDATE …]``."""
    stream.qualified_name("")
    if stream.at("("):
        stream.skip_parentheses()
    while True:
        if stream.accept("MATCH"):
            stream.name()
        elif stream.accept("ON", "DELETE") or stream.accept("ON", "UPDATE"):
            if not (stream.accept("SET") or stream.accept("NO")):
                stream.name()
            else:
                stream.next()  # NULL, DEFAULT, ACTION
        else:
            return


def _table_charset(stream: TokenStream, default_charset: str | None) -> str | None:
    """The table options, up to the partitions: the character set, if they tell one."""
    charset: str | None = None
    while not stream.at_end():
        _refuse_query(stream)
        if accept_charset(stream):
            stream.accept("=")
            charset = parse_charset_name(stream) or default_charset
        elif stream.accept("COLLATE"):
            stream.accept("=")
            charset = collation_charset(stream) or charset
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
    """To the end of the statement, in which a query may follow them."""
    while not stream.at_end():
        _refuse_query(stream)
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()


def _refuse_query(stream: TokenStream) -> None:
    if stream.at_query():
        raise UnknownSchemaError("it takes columns from a SELECT")


def parse_column_type(
    name: str, column_type: str, charset: str | None, nullable: bool, context: SqlContext
) -> ColumnSchema:
    """A column from information_schema's COLUMN_TYPE, CHARACTER_SET_NAME and IS_NULLABLE."""
    stream = TokenStream(column_type, context)
    parsed = parse_type(stream, context)
    if parsed.type in CHARACTER_TYPES and charset is not None:
        parsed.charset = charset
    return resolve(parsed, name, nullable, "binary" if parsed.type in ("enum", "set") else None)


def parse_database_charset(
    sql: str, server_charset: str | None = None, context: SqlContext = DEFAULT_CONTEXT
) -> str | None:
    """The default character set that a CREATE or ALTER DATABASE tells; None when it does not.

    server_charset : what ``CHARACTER SET DEFAULT`` stands for.
    """
    stream = TokenStream(sql, context)
    while not stream.at_end() and stream.peek().word not in ("DATABASE", "SCHEMA"):
        stream.next()
    return _table_charset(stream, server_charset)
