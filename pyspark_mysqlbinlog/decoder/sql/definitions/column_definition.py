"""One column of a CREATE or ALTER TABLE: its type, and the attributes after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.decoder.sql.definitions.column_types import (
    CHARACTER_TYPES,
    ParsedType,
    check_labels,
    collation_charset,
    parse_type,
    resolve,
)
from pyspark_mysqlbinlog.decoder.sql.tokens import (
    SqlContext,
    TokenKind,
    TokenStream,
)
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["ColumnDefinition", "parse_column_definition", "parse_column_type", "skip_default"]

# Attributes of one word that are ignored.
_PLAIN_ATTRIBUTES = ("VIRTUAL", "VISIBLE", "INVISIBLE", "ENFORCED")
# DATE '2020-01-01'.
_TYPED_LITERALS = ("DATE", "TIME", "TIMESTAMP")


@dataclass(slots=True)
class ColumnDefinition:
    """One column in a statement.

    Attributes
    ----------
    nullable : by the column's own definition; a primary key makes it False.
    primary_key, unique : declared inline.
    fills : existing rows get a value: it has a default other than NULL, is AUTO_INCREMENT, or is
        generated.
    counts : it is AUTO_INCREMENT, so an existing 0 becomes another number.
    generated, virtual : as in ColumnSchema.
    """

    name: str
    parsed: ParsedType
    nullable: bool
    primary_key: bool
    fills: bool = False
    counts: bool = False
    generated: bool = False
    virtual: bool = False
    unique: bool = False

    def schema(self, default_charset: str | None) -> ColumnSchema:
        """Return the column for a table of this character set; None if that is unknown.

        Raises SchemaError for a label that the column's character set does not have.
        """
        column = resolve(self.parsed, self.name, self.nullable, default_charset)
        if column.charset is not None:
            check_labels(self.name, column.labels, column.charset)
        return replace(column, virtual=self.virtual, generated=self.generated)


def parse_column_definition(stream: TokenStream, context: SqlContext) -> ColumnDefinition:
    """Parse ``name type attribute …``, up to a comma, a parenthesis, FIRST/AFTER or partitions.

    Raises SchemaError for an unknown attribute.
    """
    name = stream.column_name("a column's name")
    try:
        parsed = parse_type(stream, context)
        if parsed.type == "year" and not context.mariadb and context.server_version >= 50606:
            # MySQL 5.6.6 and later create YEAR(4) for YEAR(2).
            parsed.length = None
        # TIMESTAMP is the only type that is NOT NULL by default.
        nullable = parsed.type != "timestamp" or context.explicit_defaults_for_timestamp
        nullable = nullable and not parsed.not_null
        column = _attributes(stream, ColumnDefinition(name, parsed, nullable, False))
    except MySQLBinlogError as error:
        raise SchemaError(f"column {name!r}: {error.message}") from None
    column.virtual = column.virtual and not context.mariadb
    return column


def _attributes(stream: TokenStream, column: ColumnDefinition) -> ColumnDefinition:
    column.fills = column.counts = column.unique = column.parsed.not_null
    is_stored = False
    while not (stream.at_end() or stream.peek().word in (",", ")", ";")):
        if stream.accept("NOT", "NULL"):
            column.nullable = False
        elif stream.accept("NULL"):
            column.nullable = True
        elif stream.accept("AUTO_INCREMENT"):
            column.nullable = False
            column.fills = column.counts = True
        elif stream.accept("SERIAL", "DEFAULT", "VALUE"):
            column.nullable = False
            column.fills = column.counts = column.unique = True
        elif stream.accept("PRIMARY") or stream.at("KEY"):
            stream.accept("KEY")
            column.primary_key = True
        elif stream.accept("UNIQUE"):
            stream.accept("KEY")
            column.unique = True
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
                raise SchemaError("system versioning is not supported")
        elif stream.accept("AS"):
            column.fills = column.generated = True
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
    # A generated column with neither VIRTUAL nor STORED is VIRTUAL.
    column.virtual = column.generated and not is_stored
    return column


def skip_default(stream: TokenStream) -> None:
    """Skip a literal, a call, an expression in parentheses; MariaDB's CASE, sequences, columns."""
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
    """Skip ``CASE … END``, which may be nested."""
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
    """Skip ``table.column``, ``database.table.column``, ``sequence.NEXTVAL``."""
    stream.name("a default value")
    while stream.accept("."):
        stream.name()


def _skip_literal(stream: TokenStream) -> None:
    """Skip a literal with its prefix, or a word that ``(…)`` may follow."""
    token = stream.next()
    if token.kind in (TokenKind.END, TokenKind.SYMBOL):
        raise SchemaError(f"expected a default value, found {token.shown}")
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
    """Skip ``REFERENCES table [(columns)] [MATCH word] [ON DELETE …] [ON UPDATE …]``."""
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


def parse_column_type(
    name: str, column_type: str, charset: str | None, nullable: bool, context: SqlContext
) -> ColumnSchema:
    """Parse information_schema's COLUMN_TYPE, CHARACTER_SET_NAME and IS_NULLABLE."""
    stream = TokenStream(column_type, context)
    parsed = parse_type(stream, context)
    if parsed.type in CHARACTER_TYPES and charset is not None:
        parsed.charset = charset
    if parsed.type not in ("enum", "set"):
        return resolve(parsed, name, nullable, None)
    column = resolve(parsed, name, nullable, "binary")
    # These are stored labels: 'a ' is kept of 'a \0b', while 'a ' in a statement becomes 'a'.
    shown = zip(parsed.raw_labels, column.labels, strict=True)
    labels = tuple(raw if isinstance(raw, str) else label for raw, label in shown)
    return replace(column, labels=labels)
