"""Parser for the clauses of ALTER TABLE.

It keeps only what concerns columns, the primary key, character sets or rows. Other clauses are
skipped by name; an unknown clause raises, because it may be relevant. (sql/sql_yacc.yy,
`alter_list_item`, of MySQL 5.5 to 8.0 and MariaDB.)
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.sql.alter.statement import (
    DEFAULT,
    FIRST,
    AlterTable,
    ColumnChange,
)
from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import parse_column_definition
from pyspark_mysqlbinlog.decoder.sql.definitions.column_types import (
    accept_charset,
    collation_charset,
    parse_charset_name,
    table_collation_charset,
)
from pyspark_mysqlbinlog.decoder.sql.definitions.create import (
    check_undecoded,
    elements,
    index_or_constraint,
    skip_element,
    skip_set_statement,
)
from pyspark_mysqlbinlog.decoder.sql.definitions.unique_keys import unique_key
from pyspark_mysqlbinlog.decoder.sql.tokens import (
    DEFAULT_CONTEXT,
    SqlContext,
    TokenKind,
    TokenStream,
)
from pyspark_mysqlbinlog.errors import SchemaError

__all__ = ["DEFAULT", "FIRST", "AlterTable", "ColumnChange", "parse_alter"]


def parse_alter(sql: str, context: SqlContext = DEFAULT_CONTEXT) -> AlterTable:
    """Parse ALTER TABLE, CREATE UNIQUE INDEX … ON or DROP INDEX … ON.

    Raises SchemaError for an unknown clause.
    """
    if not sql.isascii():
        check_undecoded(sql)
    stream = TokenStream(sql, context)
    skip_set_statement(stream)
    if stream.accept("DROP"):
        alter = AlterTable()
        stream.accept_any("ONLINE", "OFFLINE")
        stream.expect("INDEX")
        stream.accept("IF", "EXISTS")
        name = stream.name("an index")
        alter.drops_key = name.upper() == "PRIMARY"
        alter.lost_indexes.append(name)
        return alter
    if stream.accept("CREATE"):
        return _created_index(stream)
    stream.expect("ALTER")
    ignore = False
    while word := stream.accept_any("ONLINE", "OFFLINE", "IGNORE"):
        ignore = ignore or word == "IGNORE"
    stream.expect("TABLE")
    stream.accept("IF", "EXISTS")
    stream.qualified_name("")
    stream.skip_wait()
    alter = _Clauses(stream, context).read()
    alter.ignore = ignore
    return alter


def _created_index(stream: TokenStream) -> AlterTable:
    """After CREATE: ``[OR REPLACE] [UNIQUE] INDEX [IF NOT EXISTS] name … ON table (column, …)``."""
    alter = AlterTable()
    replaces = stream.accept("OR", "REPLACE")
    stream.accept_any("ONLINE", "OFFLINE")
    is_unique = stream.accept("UNIQUE")
    stream.accept_any("FULLTEXT", "SPATIAL", "VECTOR")
    if not stream.at("INDEX"):
        raise stream.unexpected("INDEX")
    if replaces:
        # After INDEX.
        alter.lost_indexes.append(stream.peek(1).text)
    added = unique_key(stream) if is_unique else None
    if added is not None:
        alter.unique_keys.append(added)
    return alter


# Table options that may have no `=`, and the words before their value.
_OPTIONS = frozenset({
    "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMMENT", "COMPRESSION", "CONNECTION",
    "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS",
    "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC",
    "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TABLE_CHECKSUM",
    "TRANSACTIONAL", "TYPE",
})  # fmt: skip
_INDEXES = ("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK")
# ADD COLUMN may omit COLUMN, but not before these.
_ADDED = frozenset({*_INDEXES, "PRIMARY", "CONSTRAINT"})
# Verbs of PARTITION, alone in their statement, and whether they remove rows.
_PARTITION_VERBS = {
    "ANALYZE": False, "CHECK": False, "COALESCE": False, "OPTIMIZE": False, "REBUILD": False,
    "REORGANIZE": False, "REPAIR": False, "DISCARD": True, "EXCHANGE": True, "TRUNCATE": True,
    "IMPORT": True,
}  # fmt: skip


class _Clauses:
    """Parser state for the clauses of one statement."""

    def __init__(self, stream: TokenStream, context: SqlContext) -> None:
        self.stream = stream
        self.context = context
        self.alter = AlterTable()

    def read(self) -> AlterTable:
        stream = self.stream
        while not stream.at_end() and not stream.accept(";"):
            if stream.accept("PARTITION", "BY"):
                self.alter.clauses += 1
                self.alter.recomputes = True
                self.rest()
            elif stream.accept("REMOVE", "PARTITIONING"):
                self.alter.clauses += 1
                self.alter.recomputes = True
            else:
                self.clause()
                if not stream.accept(","):
                    self.check_clause_end()
        return self.alter

    def check_clause_end(self) -> None:
        stream = self.stream
        if not (
            stream.at_end()
            or stream.at(";")
            or stream.at("PARTITION", "BY")
            or stream.at("REMOVE", "PARTITIONING")
        ):
            raise stream.unexpected("a comma or the end")

    def rest(self) -> None:
        """Skip to the end of the statement."""
        while not self.stream.at_end():
            self.stream.next()

    def clause(self) -> None:
        stream = self.stream
        verb = stream.peek().word
        self.alter.clauses += verb not in ("ALGORITHM", "LOCK", "CONVERT")
        if verb in _PARTITION_VERBS and stream.peek(1).word == "PARTITION":
            self.alter.loses_rows |= _PARTITION_VERBS[verb]
            self.rest()
            return
        match verb:
            case "ADD":
                stream.next()
                self.add()
            case "DROP":
                stream.next()
                self.drop()
            case "CHANGE" | "MODIFY":
                stream.next()
                self.change(names_old=verb == "CHANGE")
            case "ALTER":
                stream.next()
                self.alter.recomputes |= stream.peek().word not in _ADDED and "DEFAULT" in {
                    stream.peek(distance).word for distance in range(4)
                }
                skip_element(stream)  # SET DEFAULT, DROP DEFAULT, [IN]VISIBLE, [NOT] ENFORCED
            case "RENAME":
                stream.next()
                self.rename()
            case "CONVERT":
                stream.next()
                self.convert()
            case "ORDER":
                stream.next()
                self.alter.recomputes = True
                self.order()
            case "DISCARD" | "IMPORT":
                stream.next()
                stream.expect("TABLESPACE")
                self.alter.loses_rows = True
            case "ENABLE" | "DISABLE":
                stream.next()
                stream.expect("KEYS")
            case "FORCE":
                stream.next()
                self.alter.recomputes = True
            case "UPGRADE":
                stream.next()
                stream.expect("PARTITIONING")
            case "WITH" | "WITHOUT":
                stream.next()
                stream.expect("VALIDATION")
            case "ALGORITHM" | "LOCK":
                stream.next()
                stream.accept("=")
                if stream.name().upper() == "COPY":
                    self.alter.clauses += 1
                    self.alter.recomputes = True
            case _:
                self.options()

    # --- columns

    def add(self) -> None:
        stream = self.stream
        if stream.accept("COLUMN"):
            self.add_columns()
        elif stream.accept("PARTITION"):
            if (
                not stream.at("(")
                and stream.accept_any("PARTITIONS", "LOCAL", "NO_WRITE_TO_BINLOG", "IF") is None
            ):
                raise stream.unexpected("partitions")
            self.rest()
        elif stream.at("SYSTEM", "VERSIONING") or stream.at("PERIOD", "FOR", "SYSTEM_TIME"):
            raise SchemaError("system versioning adds columns that its definition does not show")
        elif stream.peek().word in _ADDED or stream.at("PERIOD", "FOR"):
            self.add_key()
        else:
            self.add_columns()

    def add_key(self) -> None:
        found = index_or_constraint(self.stream)
        if found is not None and found.key:
            self.alter.key = found.key
            self.alter.key_is_conditional = found.conditional
        if found is not None:
            self.alter.unique_keys += found.unique_keys

    def add_columns(self) -> None:
        stream = self.stream
        conditional = stream.accept("IF", "NOT", "EXISTS")
        if stream.at("("):
            definitions, key, unique_keys = elements(stream, self.context)
            self.alter.changes += [
                ColumnChange(each, conditional=conditional) for each in definitions
            ]
            self.alter.key = key or self.alter.key
            # Unique keys of columns that may not be added.
            own = [(each.name, (each.name,)) for each in definitions if each.unique]
            self.alter.unique_keys += [each for each in unique_keys if each not in own]
            return
        definition = parse_column_definition(stream, self.context)
        self.defined(ColumnChange(definition, None, self.place(), conditional))

    def change(self, *, names_old: bool) -> None:
        stream = self.stream
        stream.accept("COLUMN")
        conditional = stream.accept("IF", "EXISTS")
        old = stream.column_name() if names_old else None
        definition = parse_column_definition(stream, self.context)
        self.defined(ColumnChange(definition, old or definition.name, self.place(), conditional))

    def place(self) -> str | None:
        if self.stream.accept("FIRST"):
            return FIRST
        if self.stream.accept("AFTER"):
            return self.stream.name("a column")
        return None

    def defined(self, change: ColumnChange) -> None:
        self.alter.changes.append(change)
        if change.definition.primary_key:
            if change.conditional:
                raise SchemaError("it defines a primary key on a condition")
            self.alter.key = (change.definition.name,)

    def drop(self) -> None:
        stream = self.stream
        word = stream.peek().word
        if word == "PRIMARY":
            stream.expect("PRIMARY", "KEY")
            self.alter.drops_key = self.alter.drops_index = True
        elif word in ("INDEX", "KEY", "CONSTRAINT"):
            stream.next()
            stream.accept("IF", "EXISTS")
            # The name of the primary key's index.
            name = stream.name("an index")
            self.alter.drops_key |= name.upper() == "PRIMARY"
            self.alter.drops_index = True
            self.alter.lost_indexes.append(name)
        elif word == "FOREIGN":
            stream.expect("FOREIGN", "KEY")
            stream.accept("IF", "EXISTS")
            stream.name("a foreign key")
        elif word == "CHECK" and stream.peek(1).kind in (TokenKind.WORD, TokenKind.NAME):
            stream.next()
            stream.name("a constraint")
        elif word == "PARTITION":
            self.alter.loses_rows = True
            self.rest()
        elif stream.at("SYSTEM", "VERSIONING"):
            raise SchemaError("system versioning drops columns that no definition shows")
        elif stream.accept("PERIOD", "FOR"):
            stream.name()
        else:
            stream.accept("COLUMN")
            if_exists = stream.accept("IF", "EXISTS")
            self.alter.drops.append((stream.column_name(), if_exists))
            stream.accept_any("RESTRICT", "CASCADE")

    def rename(self) -> None:
        """The classifier handles the table's new name."""
        stream = self.stream
        if stream.accept("COLUMN"):
            if_exists = stream.accept("IF", "EXISTS")
            old = stream.name("a column")
            stream.expect("TO")
            new = stream.name("a column")
            if if_exists:
                raise SchemaError("the effect of RENAME COLUMN IF EXISTS is not logged")
            self.alter.renames.append((old, new))
        elif stream.accept_any("INDEX", "KEY"):
            stream.accept("IF", "EXISTS")
            self.alter.lost_indexes.append(stream.name("an index"))
            stream.expect("TO")
            stream.name("an index")
        else:
            stream.accept_any("TO", "AS", "=")
            stream.qualified_name("")

    # --- character sets and options

    def convert(self) -> None:
        stream = self.stream
        if stream.at("PARTITION") or stream.at("TABLE"):
            raise SchemaError("a partition that becomes a table, or a table a partition")
        stream.expect("TO")
        if not accept_charset(stream):
            raise stream.unexpected("CHARACTER SET")
        charset = parse_charset_name(stream) or DEFAULT
        if stream.accept("COLLATE"):
            charset = collation_charset(stream) or charset
        self.alter.convert_to = charset
        self.alter.converts_last = True

    def options(self) -> None:
        """``[DEFAULT] CHARACTER SET [=] x``, ``name [=] value``: with spaces between them."""
        stream = self.stream
        while True:
            default = stream.accept("DEFAULT")
            if accept_charset(stream):
                stream.accept("=")
                self.alter.charset = parse_charset_name(stream) or DEFAULT
                self.alter.converts_last = False
            elif stream.accept("COLLATE"):
                stream.accept("=")
                self.alter.charset = table_collation_charset(stream) or self.alter.charset
            elif default:
                raise stream.unexpected("CHARACTER SET or COLLATE")
            else:
                self.option()
            if (
                stream.at_end()
                or stream.peek().word in (",", ";")
                or stream.at("PARTITION", "BY")
                or stream.at("REMOVE", "PARTITIONING")
            ):
                return

    def option(self) -> None:
        stream = self.stream
        if stream.accept("UNION"):
            # A MERGE table then shows another set of rows.
            stream.accept("=")
            stream.skip_parentheses()
            self.alter.changes_rows = True
            return
        if stream.at("DATA", "DIRECTORY") or stream.at("INDEX", "DIRECTORY"):
            stream.next()
        elif stream.peek().word not in _OPTIONS and stream.peek(1).word != "=":
            raise stream.unexpected("a clause of ALTER TABLE")
        word = stream.name("an option").upper()
        stream.accept("=")
        value = stream.next()
        if value.kind in (TokenKind.END, TokenKind.SYMBOL):
            raise SchemaError(f"expected a value of option {word}, found {value.shown}")
        self.alter.recomputes |= word in ("ENGINE", "TYPE")
        self.alter.loses_rows |= word == "ENGINE" and value.text.upper() == "BLACKHOLE"

    def order(self) -> None:
        """ORDER BY column [ASC | DESC], …: after a comma, a column or the next clause."""
        stream = self.stream
        stream.expect("BY")
        while True:
            stream.qualified_name("")
            stream.accept(".")
            stream.accept_any("ASC", "DESC")
            after = stream.peek(2)
            if not stream.at(",") or not (
                after.kind is TokenKind.END or after.word in (",", ";", ".", "ASC", "DESC")
            ):
                return
            if stream.peek(1).word == "FORCE":
                return
            stream.next()
