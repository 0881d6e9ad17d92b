"""Follows DDL: what each wanted table looks like from which position on.

A CREATE TABLE tells a table's columns, DROP ends them. Any other DDL of a wanted table can't be
followed by this version: live, it stops the stream in front of the first row that might get wrong
names. What a look at the server has already settled (see `baseline`) is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark_mysqlbinlog.charsets import charset_of_collation
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.schema_packing import UnknownFrom
from pyspark_mysqlbinlog.decoder.ddl import parse_create_table, parse_database_charset
from pyspark_mysqlbinlog.decoder.sql_tokens import SqlContext
from pyspark_mysqlbinlog.decoder.statements import Statement, StatementKind
from pyspark_mysqlbinlog.errors import SchemaChangedError, SchemaError
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["SchemaTracker", "last_change"]

_KIND = StatementKind
_CREATES = (_KIND.CREATE_TABLE, _KIND.CREATE_TABLE_LIKE)


class SchemaTracker:
    """A schema history that grows with the log.

    Parameters
    ----------
    history : what is known at the start.
    wants : whether (database, table) is wanted; others are not followed.
    charsets : the databases' default charsets at the start.
    case_sensitive : otherwise the server keeps names in lower case, whatever a statement says.
    strict : raise SchemaChangedError for DDL that can't be followed. Otherwise the history notes
        that the table is not known from there on.

    Attributes
    ----------
    history : after the last statement that was followed.
    """

    def __init__(
        self,
        history: SchemaHistory,
        wants: Callable[[str, str], bool],
        charsets: dict[str, str],
        *,
        case_sensitive: bool,
        strict: bool = True,
    ) -> None:
        self.history = history
        self._fold: Callable[[str], str] = str if case_sensitive else str.lower
        self._wants = wants
        self._charsets = dict(charsets)
        self._made: set[str] = set()
        self._strict = strict

    def follow(
        self, event: Event, statement: Statement, context: SqlContext, end: Position
    ) -> None:
        """Take a DDL statement into account; what it says holds from `end` on."""
        kind = statement.kind
        if kind is _KIND.TRUNCATE:
            return
        query = Query.parse(event.body)
        if kind is _KIND.CREATE_DATABASE or kind is _KIND.ALTER_DATABASE:
            self._database_charset(query, statement)
        elif kind is _KIND.DROP_DATABASE:
            for database, table in self.history.tables():
                if database == self._fold(statement.database or ""):
                    self._forget(end, (database, table), "its database was dropped")
        elif statement.tables is None:
            self._unknown(end, None, statement)
        else:
            for database, table in statement.tables:
                name = self._fold(database), self._fold(table)
                if self._wants(*name) and not self._settled(end, name):
                    self._table(query, statement, context, end, name)

    def _table(
        self,
        query: Query,
        statement: Statement,
        context: SqlContext,
        end: Position,
        table: tuple[str, str],
    ) -> None:
        if statement.kind in _CREATES:
            if statement.if_not_exists and not self._is_absent(end, table):
                return  # logged although nothing may have been created
            self._create(query, statement, context, end, table)
        elif statement.kind is _KIND.DROP_TABLE:
            self._forget(end, table, "it was dropped")
        else:
            self._unknown(end, table, statement)

    def _is_absent(self, end: Position, table: tuple[str, str]) -> bool:
        """Whether the table is known not to be there.

        A stream begins with all wanted tables that there are. A look back at the log does not: a
        table is absent if it was dropped, or if its database was made, in the log.
        """
        if self.history.at(end, *table) is not None:
            return False
        versions = self.history.versions(*table)
        dropped = bool(versions) and isinstance(versions[-1][1], UnknownFrom)
        return self._strict or dropped or table[0] in self._made

    def _create(
        self,
        query: Query,
        statement: Statement,
        context: SqlContext,
        end: Position,
        table: tuple[str, str],
    ) -> None:
        try:
            schema = parse_create_table(
                query.sql,
                query.database,
                self._charset_in(table[0], query),
                lambda *name: self.history.at(end, *map(self._fold, name)),
                context,
            )
        except SchemaError as error:
            self._unknown(end, table, statement, f": {error.message}")
        else:
            database, name = table
            self.history = self.history.with_table(
                end, replace(schema, database=database, table=name)
            )

    def _charset_in(self, database: str, query: Query) -> str | None:
        """The charset that a CREATE TABLE inherits: the database's, else the server's.

        A database whose CREATE is not in the log has the server's default until it was altered;
        the check against the table map is the net below that.
        """
        known = self._charsets.get(database)
        if known is None and query.collation_server is not None:
            return charset_of_collation(query.collation_server)
        return known

    def _database_charset(self, query: Query, statement: Statement) -> None:
        database = self._fold(statement.database or query.database)
        charset = parse_database_charset(query.sql)
        if charset is None and statement.kind is _KIND.CREATE_DATABASE:
            self._charsets.pop(database, None)
            charset = self._charset_in(database, query)
        if charset is not None:
            self._charsets[database] = charset
        if statement.kind is _KIND.CREATE_DATABASE and not statement.if_not_exists:
            self._made.add(database)

    def _settled(self, end: Position, table: tuple[str, str]) -> bool:
        """Whether the history already says something from this statement or a later one on."""
        last = last_change(self.history, table)
        return last is not None and last >= end

    def _forget(self, end: Position, table: tuple[str, str], reason: str) -> None:
        if self._wants(*table) and not self._settled(end, table):
            self.history = self.history.without(end, *table, f"{reason} at {end}", gone=True)

    def _unknown(
        self, end: Position, table: tuple[str, str] | None, statement: Statement, why: str = ""
    ) -> None:
        name = None if table is None else ".".join(table)
        if self._strict:
            raise SchemaChangedError(
                f"{statement.head!r} changes {name or 'a table'} in a way that is not followed"
                f" yet{why}; start again with a new checkpoint and a startingOffset behind {end}",
                table=name,
            )
        if table is not None:
            self.history = self.history.without(
                end, *table, f"{statement.head!r}, which ends at {end}, is not followed yet{why}"
            )


def last_change(history: SchemaHistory, table: tuple[str, str]) -> Position | None:
    """Where the last version of a table begins; None when there is none."""
    versions = history.versions(*table)
    return versions[-1][0] if versions else None
