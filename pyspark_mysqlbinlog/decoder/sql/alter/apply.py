"""Apply ALTER TABLE, CREATE INDEX and DROP INDEX to a TableSchema.

The whole statement is parsed (`clauses`). Its clauses are then applied in the server's order
instead of their order in the text (sql/sql_table.cc, mysql_prepare_alter_table): existing columns
are dropped, redefined or renamed in place; then new columns, and those with FIRST or AFTER, are
moved to their positions, which refer to the *new* names of other columns; then the keys. A new
default character set applies to all columns of the statement.

A binlog contains only statements that succeeded. If one does not fit (it names a missing column),
the schema was not that of the table, and an error is raised; also for an unknown clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER
from pyspark_mysqlbinlog.decoder.sql.alter.clauses import (
    DEFAULT,
    FIRST,
    AlterTable,
    ColumnChange,
    parse_alter,
)
from pyspark_mysqlbinlog.decoder.sql.alter.noop_convert import with_default_after
from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import ColumnDefinition
from pyspark_mysqlbinlog.decoder.sql.definitions.column_types import ParsedType, resolve
from pyspark_mysqlbinlog.decoder.sql.definitions.create import with_key
from pyspark_mysqlbinlog.decoder.sql.definitions.unique_keys import may_be_called, spelled
from pyspark_mysqlbinlog.decoder.sql.tokens import DEFAULT_CONTEXT, SqlContext
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UnknownSchemaError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema, UniqueKey, row_keys

__all__ = ["apply_alter"]

_Defined = Callable[[ColumnDefinition], ColumnSchema]


def apply_alter(
    sql: str,
    before: TableSchema,
    database_charset: str | None,
    session_charset: str | None,
    context: SqlContext = DEFAULT_CONTEXT,
) -> TableSchema:
    """Return the table after the statement, under its old name (the caller handles RENAME).

    Parameters
    ----------
    database_charset : of the table's database, for CHARACTER SET DEFAULT.
    session_charset : of the statement's default database, for CONVERT TO CHARACTER SET DEFAULT on
        MySQL; MariaDB uses that of the table's database there as well.

    Raises
    ------
    UnknownSchemaError
        for a statement that cannot be parsed, or that does not fit the table.
    """
    try:
        alter = parse_alter(sql, context)
        if context.mariadb:
            session_charset = database_charset
        after = _applied(alter, before, database_charset, session_charset, context)
        return with_default_after(alter, before, after, context)
    except MySQLBinlogError as error:
        raise UnknownSchemaError(error.message, table=before.full_name) from None


def _named(charset: str | None, default: str | None) -> str | None:
    if charset != DEFAULT:
        return charset
    if default is None:
        raise SchemaError("CHARACTER SET DEFAULT is that of a database that is not known")
    return default


def _applied(
    alter: AlterTable,
    before: TableSchema,
    database_charset: str | None,
    session_charset: str | None,
    context: SqlContext,
) -> TableSchema:
    convert_to = _named(alter.convert_to, session_charset)
    named = _named(alter.charset, database_charset)
    # With both, MariaDB uses the table option. MySQL requires that they agree, or uses the last one
    # if the option is DEFAULT: true for 5.6.24 and 5.7.41; later versions were not tested.
    is_default = alter.charset == DEFAULT and not context.mariadb
    if convert_to and is_default and convert_to != named and context.server_version >= 50800:
        raise SchemaError("it has both CONVERT TO and CHARACTER SET DEFAULT")
    takes_option = context.mariadb or (is_default and not alter.converts_last)
    charset = (named or convert_to if takes_option else convert_to or named) or before.charset
    columns = _Columns(before, alter)

    def defined(definition: ColumnDefinition) -> ColumnSchema:
        """Apply CONVERT TO, if present, to a definition with the table's default."""
        parsed = definition.parsed
        unconverted = parsed.charset or charset
        merely_collated = parsed.charset is None and parsed.collates_default
        if convert_to and unconverted != "binary" and not merely_collated:
            parsed.charset = convert_to
        return definition.schema(charset)

    if convert_to and not context.mariadb and context.server_version >= 50800:
        columns.check_no_text_redefined()
    columns.redefine(defined, convert_to)
    columns.place(defined)
    found = columns.columns
    spelling = {fold(column.name): column.name for column in found}
    if len(spelling) != len(found):
        raise SchemaError("two columns have the same name after it")
    if not found:
        raise SchemaError("no column is left after it")
    key = columns.key(before.primary_key)
    found = with_key(found, key)
    key = tuple(spelling[fold(name)] for name in key)
    unique_keys = spelled(columns.unique_keys(before.unique_keys), spelling)
    return replace(
        before,
        columns=found,
        primary_key=key,
        charset=charset,
        unique_keys=row_keys(found, key, unique_keys),
    )


def _may_equal(name: str, other: str) -> bool:
    """Whether two names, one beyond ASCII, are the same in any version's comparison of letters."""
    if name.isascii() and other.isascii():
        return False
    return len({each.replace("İ", "i").upper().casefold() for each in (name, other)}) == 1


class _Columns:
    """The columns while a statement is being applied."""

    def __init__(self, before: TableSchema, alter: AlterTable) -> None:
        self.before = before
        self.alter = alter
        self._check_conditional_names()
        there = {fold(column.name) for column in before.columns}
        self.dropped = self._existing(there)
        self.renamed = {fold(old): new for old, new in alter.renames}
        self.changes = self._unconditional(there)
        self.changed: dict[str, ColumnChange] = {}
        # In MariaDB a MODIFY may follow the ADD of its column, even if that replaces a dropped
        # column: the MODIFY's definition applies.
        self.added: set[str] = set()
        for each in self.changes:
            name = fold(each.definition.name)
            old = None if each.old is None else fold(each.old)
            if old is None:
                self.added.add(name)
            elif old in there and old not in self.dropped and old not in self.changed:
                self.changed[old] = each
            elif name not in self.added:
                raise SchemaError(f"it changes column {old!r}, which the table does not have")
        for old in self.renamed:
            if old not in there:
                raise SchemaError(f"it renames column {old!r}, which the table does not have")
        self._placed: list[_Placed] = []

    @property
    def columns(self) -> tuple[ColumnSchema, ...]:
        return tuple(placed.column for placed in self._placed)

    def _check_conditional_names(self) -> None:
        """Raise SchemaError if it depends on the server's version whether IF [NOT] EXISTS applies.

        MariaDB 11.8 compares 479 letters otherwise than `fold`, such as ſ and s. Without IF EXISTS
        such a clause fails in `apply_alter`; with it, it would be taken for void.
        """
        spelled = {column.name for column in self.before.columns}
        names = [name for name, if_exists in self.alter.drops if if_exists]
        names += [
            each.old or each.definition.name for each in self.alter.changes if each.conditional
        ]
        for name in names:
            alike = [] if name in spelled else [each for each in spelled if _may_equal(each, name)]
            if alike:
                raise SchemaError(
                    f"it names column {name!r} with IF [NOT] EXISTS, and it depends on the server's"
                    f" version whether column {alike[0]!r} has this name"
                )

    def _existing(self, there: set[str]) -> set[str]:
        dropped = set()
        for name, if_exists in self.alter.drops:
            if fold(name) in there:
                dropped.add(fold(name))
            elif not if_exists:
                raise SchemaError(f"it drops column {name!r}, which the table does not have")
        return dropped

    def _unconditional(self, there: set[str]) -> list[ColumnChange]:
        """Return the changes without those that IF [NOT] EXISTS makes void."""
        kept: list[ColumnChange] = []
        # Names of earlier clauses, of changes also if they are void (measured on 11.8).
        added: set[str] = set()
        for each in self.alter.changes:
            if each.old is not None:
                added.add(fold(each.definition.name))
                if not each.conditional or fold(each.old) in there:
                    kept.append(each)
                continue
            name = fold(each.definition.name)
            if each.conditional and (name in self.dropped or name in self.renamed):
                raise SchemaError(f"it drops column {name!r} and adds it IF NOT EXISTS")
            if not each.conditional or name not in (there | added):
                kept.append(each)
                added.add(name)
        return kept

    def check_no_text_redefined(self) -> None:
        """Raise SchemaError for MODIFY or CHANGE of a TEXT column with CONVERT TO.

        5.6 and 5.7 apply the new definition. 9.7.4 also gives the column the bytes that the
        conversion of the old one needs: TINYTEXT in place of a TEXT becomes MEDIUMTEXT (measured).
        Versions in between were not measured.
        """
        for column in self.before.columns:
            change = self.changed.get(fold(column.name))
            if change is None:
                continue
            kinds = {column.type, change.definition.parsed.type}
            if kinds & _TEXTS and kinds <= _TEXTS | {"char", "varchar"}:
                raise SchemaError(
                    f"it converts the table and redefines the text column {column.name!r}, whose"
                    " type this version of MySQL does not take from the definition alone"
                )

    def redefine(self, defined: _Defined, convert_to: str | None) -> None:
        for column in self.before.columns:
            name = fold(column.name)
            change = self.changed.get(name)
            if name in self.dropped:
                continue
            if change is not None:
                self._placed.append(_Placed(name, defined(change.definition)))
            else:
                kept = _converted(column, convert_to)
                kept = replace(kept, name=self.renamed.get(name, column.name))
                self._placed.append(_Placed(name, kept))

    def place(self, defined: _Defined) -> None:
        for each in self.changes:
            stands = each.old is not None and self.changed.get(fold(each.old)) is each
            if stands and each.after is None:
                continue
            column = defined(each.definition)
            was = fold(column.name)
            if each.old is not None:
                was = self._placed.pop(self._index(column.name)).was
            placed = _Placed(was, column)
            if each.after is None:
                self._placed.append(placed)
            elif each.after == FIRST:
                self._placed.insert(0, placed)
            else:
                self._placed.insert(self._index(each.after) + 1, placed)

    def _index(self, name: str) -> int:
        for index, placed in enumerate(self._placed):
            if fold(placed.column.name) == fold(name):
                return index
        raise SchemaError(f"it names column {name!r}, which the table does not have")

    def key(self, old: tuple[str, ...]) -> tuple[str, ...]:
        """Return the primary key: its columns keep their order, even if renamed."""
        alter = self.alter
        if alter.key is not None and not (alter.key_is_conditional and old):
            return alter.key
        if alter.drops_key:
            return ()
        return tuple(name for name in map(self._key_column, old) if name is not None)

    def unique_keys(self, old: Iterable[UniqueKey]) -> Iterator[UniqueKey]:
        """Yield the keys that certainly remain, and the new ones."""
        lost = self.alter.lost_indexes
        for name, columns in old:
            kept = [*map(self._key_column, columns)]
            is_lost = any(may_be_called((name, columns), each) for each in lost)
            if None not in kept and not is_lost:
                yield name, tuple(each for each in kept if each is not None)
        for change in self.changes:
            if change.definition.unique:
                yield change.definition.name, (change.definition.name,)
        yield from self.alter.unique_keys

    def _key_column(self, old: str) -> str | None:
        """Return the new name of the key's column of this old name; None if it is dropped.

        The server uses the first column that had the name or, if new, has it (sql_table.cc,
        mysql_prepare_alter_table); that may be another column than the key's.
        """
        found = (placed.column.name for placed in self._placed if placed.was == fold(old))
        return next(found, None)


class _Placed(NamedTuple):
    """A column at its position; `was` is its name in the old keys, in lower case."""

    was: str
    column: ColumnSchema


# Maximum length of a text in bytes.
_TEXT_BYTES = {"tinytext": 255, "text": 65535, "mediumtext": 16777215}
_TEXTS = frozenset({*_TEXT_BYTES, "longtext"})


def _converted(column: ColumnSchema, charset: str | None) -> ColumnSchema:
    """Apply CONVERT TO CHARACTER SET: as many characters, in a type that holds their bytes."""
    if charset is None or column.charset in (None, "binary"):
        return column
    if column.type in ("enum", "set"):
        return replace(column, charset=charset, labels=_relabelled(column, charset))
    return replace(_rewritten(column, charset), virtual=column.virtual, generated=column.generated)


def _rewritten(column: ColumnSchema, charset: str) -> ColumnSchema:
    length = column.length
    kind = column.type
    if kind in _TEXT_BYTES:
        assert column.charset is not None
        kind, length = "text", _TEXT_BYTES[kind] // MAX_BYTES_PER_CHARACTER[column.charset]
    if charset == "binary" and kind == "text":
        return resolve(ParsedType("blob", length), column.name, column.nullable, None)
    return resolve(ParsedType(kind, length, charset=charset), column.name, column.nullable, None)


# Character sets in which ASCII characters are not the ASCII bytes.
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})


def _relabelled(column: ColumnSchema, charset: str) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET that CONVERT TO does not change.

    The server keeps their bytes and reads them in the new character set (it converts only new
    labels: mysql_prepare_create_table), so that `é` of utf8 becomes `Ã©` in latin1.
    """
    old = column.charset or ""
    if old == charset or (old, charset) == ("utf8", "utf8mb4"):
        return column.labels
    if all(label.isascii() for label in column.labels) and not {old, charset} & _WIDE:
        return column.labels
    raise SchemaError(f"labels of column {column.name!r} change in {charset}")
