"""MySQL's column types, from their tokens: `int(10) unsigned`, `enum('a','b')`, `long varchar`.

The parser reads both sources of types: statements in the binlog, and information_schema's
COLUMN_TYPE. Synonyms are resolved to the base type that the server stores. `resolve` adds what
depends on the character set, which may come after the type, or from the table or the database.
(MySQL: sql/sql_yacc.yy `type:`, sql/field.cc Create_field::init.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.charsets import (
    MAX_BYTES_PER_CHARACTER,
    canonical_charset,
    charset_of_collation,
    is_known_charset,
)
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext, TokenKind, TokenStream
from pyspark_mysqlbinlog.decoder.values.charsets import can_hold, decoder_of
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UnknownSchemaError
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, SPATIAL_TYPES, ColumnSchema

__all__ = [
    "CHARACTER_TYPES",
    "MARIADB_TYPES",
    "ParsedType",
    "accept_charset",
    "check_labels",
    "collation_charset",
    "parse_charset_name",
    "parse_type",
    "resolve",
    "table_collation_charset",
]

# Types that have a character set.
CHARACTER_TYPES = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
)

_SYNONYMS = {
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT3": "mediumint",
    "MIDDLEINT": "mediumint",
    "INTEGER": "int",
    "INT4": "int",
    "INT8": "bigint",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "CHARACTER": "char",
    "SQL_TSI_YEAR": "year",
    "GEOMCOLLECTION": "geometrycollection",
}
# In sql_mode ORACLE (MariaDB's sql_yacc.yy); also NUMBER, whose meaning depends on its digits.
_ORACLE_SYNONYMS = {
    "VARCHAR2": "varchar",
    "RAW": "varbinary",
    "CLOB": "longtext",
    "NUMBER": "number",
}
_ORACLE_SCHEMA, _MAXDB_SCHEMA = "ORACLE_SCHEMA", "MAXDB_SCHEMA"
_TYPE_SCHEMAS = frozenset({"MARIADB_SCHEMA", _ORACLE_SCHEMA, _MAXDB_SCHEMA})
# With character set `binary`, a character type becomes the binary type.
_BINARY_TWINS = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
_TEXT_SIZES = ((255, "tiny"), (65535, ""), (16777215, "medium"), (4294967295, "long"))
# Longer ones become texts outside strict mode, with only a warning.
_MAX_VARCHAR_BYTES = 65535
_MAX_VARCHAR_BYTES_MARIADB = 65532
_MAX_FLOAT_PRECISION = 24
_NATIONAL = "utf8"
# Character sets in which letters contain bytes of 0.
_WIDE_SETS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
# MariaDB's own types, stored as fixed binaries: listed so that errors can name them.
MARIADB_TYPES = frozenset({"uuid", "inet4", "inet6"})


@dataclass(slots=True)
class ParsedType:
    """A type as written, before its character set is known.

    `raw_labels` are text, or bytes if written as a hex or bit literal.
    `collates_default`: BINARY or COLLATE DEFAULT, a collation of the column's character set.
    `has_whole_labels`: labels are kept whole (MariaDB, MySQL 8.0), not up to a byte of 0.
    """

    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    charset: str | None = None
    collates_default: bool = False
    raw_labels: tuple[str | bytes, ...] = ()
    not_null: bool = False  # SERIAL
    rounds: bool = False  # FLOAT(m,d), DOUBLE(m,d)
    max_varchar_bytes: int = _MAX_VARCHAR_BYTES
    has_whole_labels: bool = False


def parse_type(stream: TokenStream, context: SqlContext) -> ParsedType:
    """Parse a type and the attributes that belong to it: UNSIGNED, CHARACTER SET, BYTE, ….

    Raises SchemaError for anything that is not a type.
    """
    parsed = _base_type(stream, context)
    if context.mariadb:
        parsed.max_varchar_bytes = _MAX_VARCHAR_BYTES_MARIADB
    # With the data dictionary of 8.0, of which 9.7 was measured.
    parsed.has_whole_labels = context.mariadb or context.server_version >= 80000
    _type_attributes(stream, parsed)
    return parsed


def _base_type(stream: TokenStream, context: SqlContext) -> ParsedType:
    qualifier = _qualifier(stream, context)
    token = stream.next()
    if token.kind is not TokenKind.WORD:
        raise SchemaError(f"expected a column type, found {token.shown}")
    word = token.word
    name = _SYNONYMS.get(word, word.lower())
    if context.oracle:
        name = _ORACLE_SYNONYMS.get(word, name)
    if name in INTEGER_TYPES:
        width = _parenthesised(stream)
        return ParsedType(name, 1 if name == "tinyint" and width == 1 else None)
    match name:
        case "bool" | "boolean":
            return ParsedType("tinyint", 1)
        case "serial":
            return ParsedType("bigint", unsigned=True, not_null=True)
        case "float":
            precision, scale = _precision_and_scale(stream)
            wide = scale is None and precision is not None and precision > _MAX_FLOAT_PRECISION
            return ParsedType("double" if wide else "float", rounds=scale is not None)
        case "double" | "real":
            if name == "double":
                stream.accept("PRECISION")
            _, scale = _precision_and_scale(stream)
            narrow = name == "real" and context.real_as_float
            return ParsedType("float" if narrow else "double", rounds=scale is not None)
        case "decimal" | "number":
            precision, scale = _precision_and_scale(stream)
            if name == "number" and precision is None:
                return ParsedType("double")
            return ParsedType("decimal", precision or 10, scale or 0)
        case "bit":
            return ParsedType("bit", _parenthesised(stream) or 1)
        case "date":
            # In these two sql_modes DATE and TIMESTAMP are other types (sql_yacc.yy).
            of_oracle = qualifier == _ORACLE_SCHEMA if qualifier else context.oracle
            return ParsedType("datetime", 0) if of_oracle else ParsedType("date")
        case "year":
            return ParsedType("year", 2 if _parenthesised(stream) == 2 else None)
        case "time" | "datetime" | "timestamp":
            digits = _parenthesised(stream) or 0
            of_maxdb = qualifier == _MAXDB_SCHEMA if qualifier else context.maxdb
            if name == "timestamp" and of_maxdb:
                name = "datetime"
            # Before 5.6.4 the number was a display width, and there were no fractions.
            return ParsedType(name, 0 if context.server_version < 50604 else digits)
        case "char":
            varying = stream.accept("VARYING")
            return _character(stream, "varchar" if varying else "char")
        case "varchar" | "varcharacter":
            return _character(stream, "varchar")
        case "nvarchar":
            return _character(stream, "varchar", _NATIONAL)
        case "nchar" | "national":
            if name == "national":
                if stream.accept_any("VARCHAR", "VARCHARACTER"):
                    return _character(stream, "varchar", _NATIONAL)
                if not stream.accept_any("CHAR", "CHARACTER"):
                    raise stream.unexpected("CHAR or VARCHAR after NATIONAL")
            varying = stream.accept_any("VARYING", "VARCHAR", "VARCHARACTER") is not None
            return _character(stream, "varchar" if varying else "char", _NATIONAL)
        case "binary":
            length = _parenthesised(stream)
            return ParsedType("binary", 1 if length is None else length)
        case "varbinary":
            return ParsedType("varbinary", _parenthesised(stream))
        case "long":
            if stream.accept("VARBINARY"):
                return ParsedType("mediumblob")
            if not stream.accept_any("VARCHAR", "VARCHARACTER"):
                stream.accept("CHAR", "VARYING")
                stream.accept("CHARACTER", "VARYING")
            return ParsedType("mediumtext")
        case "text" | "blob":
            length = _parenthesised(stream)
            if name == "blob" and length is None and context.oracle:
                name = "longblob"
            if length == 0 and not context.mariadb and context.server_version >= 90700:
                # Measured on 9.7.4; 5.6, 5.7 and MariaDB ignore the number.
                return ParsedType(f"tiny{name}")
            return ParsedType(name, length)
        case "tinytext" | "mediumtext" | "longtext" | "tinyblob" | "mediumblob" | "longblob":
            return ParsedType(name)
        case "enum" | "set":
            return ParsedType(name, raw_labels=_labels(stream))
        case "vector" if not context.mariadb:
            _parenthesised(stream)
            return ParsedType("vector")
        case "json":
            if context.mariadb:
                return ParsedType("longtext", charset="utf8mb4")
            return ParsedType("json")
    if name in SPATIAL_TYPES or (context.mariadb and name in MARIADB_TYPES):
        return ParsedType(name)
    raise SchemaError(f"unknown column type {token.shown}")


def _qualifier(stream: TokenStream, context: SqlContext) -> str | None:
    """Parse ``schema.`` before a type, by which MariaDB selects the variant of DATE."""
    word = stream.peek().word
    if not (context.mariadb and word in _TYPE_SCHEMAS and stream.peek(1).word == "."):
        return None
    stream.next()
    stream.expect(".")
    return word


def _character(stream: TokenStream, name: str, charset: str | None = None) -> ParsedType:
    length = _parenthesised(stream)
    if length is None:
        if name == "varchar":
            raise stream.unexpected("(length) after VARCHAR")
        length = 1
    return ParsedType(name, length, charset=charset)


def _parenthesised(stream: TokenStream) -> int | None:
    """Parse ``(n)``, if present."""
    if not stream.accept("("):
        return None
    number = stream.integer()
    stream.expect(")")
    return number


def _precision_and_scale(stream: TokenStream) -> tuple[int | None, int | None]:
    """Parse ``(p)`` or ``(p, s)``, if present."""
    if not stream.accept("("):
        return None, None
    precision = stream.integer()
    scale = stream.integer() if stream.accept(",") else None
    stream.expect(")")
    return precision, scale


def _labels(stream: TokenStream) -> tuple[str | bytes, ...]:
    stream.expect("(")
    labels: list[str | bytes] = []
    while True:
        token = stream.peek()
        if token.kind is TokenKind.HEX:
            labels.append(bytes.fromhex(token.text.zfill(len(token.text) + len(token.text) % 2)))
        elif token.kind is TokenKind.BITS:
            labels.append(int(token.text or "0", 2).to_bytes((len(token.text) + 7) // 8, "big"))
        elif token.kind is TokenKind.STRING:
            labels.append(token.text)
        else:
            raise stream.unexpected("a label")
        stream.next()
        if not stream.accept(","):
            stream.expect(")")
            return tuple(labels)


def accept_charset(stream: TokenStream) -> bool:
    """Skip ``CHARACTER SET`` in any of its spellings, if it comes next."""
    return (
        stream.accept("CHARSET")
        or stream.accept("CHARACTER", "SET")
        or (stream.accept("CHAR", "SET"))
    )


def parse_charset_name(stream: TokenStream) -> str | None:
    """Parse the name after CHARACTER SET or CHARSET; None for DEFAULT."""
    if stream.accept("DEFAULT"):
        return None
    token = stream.next()
    if token.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING):
        raise SchemaError(f"expected a character set, found {token.shown}")
    name = canonical_charset(token.text)
    if not is_known_charset(name):
        raise UnknownSchemaError(f"unknown character set {token.shown}")
    return name


def table_collation_charset(stream: TokenStream) -> str | None:
    """Parse the name after COLLATE of a table or database; see `collation_charset`.

    SchemaError for DEFAULT, with which 5.6 and 5.7 reset the character set to the inherited one,
    and MariaDB does not (measured on 5.6.24, 5.7.41 and 11.8; 9.7.4 rejects it).
    """
    if stream.at("DEFAULT"):
        raise SchemaError("COLLATE DEFAULT gives a table another character set on some servers")
    return collation_charset(stream)


def collation_charset(stream: TokenStream) -> str | None:
    """Parse the name after COLLATE; return its character set, or None if it implies none."""
    token = stream.next()
    if token.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING):
        raise SchemaError(f"expected a collation, found {token.shown}")
    name = token.text.lower()
    if name == "default" or name.startswith("uca1400"):
        return None  # MariaDB: the character set that applies anyway
    return charset_of_collation(name)


def _type_attributes(stream: TokenStream, parsed: ParsedType) -> None:
    """Parse the attributes of a type that change it; in any order, as the grammar's parts allow."""
    while True:
        if stream.accept_any("UNSIGNED", "ZEROFILL"):
            parsed.unsigned = True
        elif stream.accept("SIGNED"):
            pass
        elif accept_charset(stream):
            parsed.charset = parse_charset_name(stream) or parsed.charset
        elif stream.accept("ASCII"):
            parsed.charset = "latin1"
        elif stream.accept("UNICODE"):
            parsed.charset = "ucs2"
        elif stream.accept("BYTE"):
            parsed.charset = "binary"
        elif stream.accept("BINARY"):
            parsed.collates_default = True  # the _bin one
        elif stream.accept("COMPRESSED"):
            # MariaDB stores these columns, and logs them, in its own format.
            raise UnknownSchemaError("MariaDB's COMPRESSED columns are not supported")
        else:
            return


def resolve(
    parsed: ParsedType, name: str, nullable: bool, default_charset: str | None
) -> ColumnSchema:
    """Return the column, given the character set that it would inherit.

    Raises UnknownSchemaError if it needs one and there is none.
    """
    kind = parsed.type
    if kind not in CHARACTER_TYPES:
        length = parsed.length
        if kind == "blob":
            kind, length = _sized("blob", length or 0), None
        elif kind == "varbinary" and length is not None and length > parsed.max_varchar_bytes:
            kind, length = _sized("blob", length), None
        return ColumnSchema(
            name, kind, length, parsed.scale, unsigned=parsed.unsigned, nullable=nullable
        )
    charset = parsed.charset or default_charset
    if charset is None:
        raise UnknownSchemaError(
            f"column {name!r} has a character set that its definition, the table and the database"
            " do not contain"
        )
    if kind in ("enum", "set"):
        whole = parsed.has_whole_labels or charset in _WIDE_SETS
        try:
            labels = tuple(_label(raw, charset, whole=whole) for raw in parsed.raw_labels)
        except MySQLBinlogError as error:
            raise UnknownSchemaError(f"column {name!r}: {error.message}") from None
        return ColumnSchema(name, kind, charset=charset, labels=labels, nullable=nullable)
    length = parsed.length
    if charset == "binary":
        twin = replace(parsed, type=_BINARY_TWINS[kind], charset=None)
        return resolve(twin, name, nullable, None)
    in_bytes = (length or 0) * MAX_BYTES_PER_CHARACTER[charset]
    if kind == "text" or (kind == "varchar" and in_bytes > parsed.max_varchar_bytes):
        kind, length = _sized("text", in_bytes), None
    return ColumnSchema(name, kind, length, charset=charset, nullable=nullable)


def check_labels(name: str, labels: tuple[str, ...], charset: str) -> None:
    """Raise SchemaError for labels that the character set cannot hold: the server changes them."""
    for label in labels:
        if not can_hold(charset, label) and charset != "binary":
            raise SchemaError(f"{charset} cannot hold label {label!r} of column {name!r}")


def _sized(kind: str, in_bytes: int) -> str:
    """Return the smallest type that holds TEXT(n) or BLOB(n); 0: no length given."""
    if not in_bytes:
        return kind
    for limit, prefix in _TEXT_SIZES:
        if in_bytes <= limit:
            return prefix + kind
    raise SchemaError(f"expected a length of at most 4294967295 bytes, found {in_bytes}")


def _label(raw: str | bytes, charset: str, *, whole: bool) -> str:
    """Return a label as the server stores it: without trailing spaces, then up to a byte of 0.

    whole : a byte of 0 does not end it. (Measured on 5.6.24, 5.7.41, 9.7.4 and MariaDB 10.11.)
    """
    text = raw if isinstance(raw, str) else _decoded_label(raw, charset)
    stripped = text if charset == "binary" else text.rstrip(" ")
    return stripped if whole else stripped.partition("\0")[0]


def _decoded_label(raw: bytes, charset: str) -> str:
    """Decode a label that was written as hex: bytes in the column's character set."""
    if charset == "binary" and raw.isascii():
        return raw.decode("ascii")
    decode = decoder_of(charset)
    if decode is None:
        raise SchemaError(f"label x'{raw.hex()}' in {charset} cannot be decoded")
    try:
        return decode(raw)
    except UnicodeDecodeError:
        raise SchemaError(f"label x'{raw.hex()}' is not {charset}") from None
