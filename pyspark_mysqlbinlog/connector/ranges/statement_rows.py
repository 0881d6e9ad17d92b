"""The rows that statements give: a truncate (`t`), and DDL that changes or removes rows (`ddl`).

What such a statement does to rows is in no row event, so whoever keeps a copy must be told. DDL is
classed by what it does to the rows that are there (see decoder/sql/ddl_effect.py). One that only
changes the table's shape gives no row; the others do, and their class stands before the statement,
as a comment: ``/* data-losing */ DROP TABLE t``. A partition that is truncated is a truncate, whose
statement names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.payloads.envelope import StatementRow
from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, ddl_effect
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.names import Table, folding
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["StatementRows"]


class StatementRows:
    """What the QUERY events of a range give.

    Parameters
    ----------
    wants : whether (database, table) is wanted.
    history : of the range, with every version that holds anywhere in it.
    number : a file's number in positions.
    operations : the words of the option; ``truncate`` and ``ddl`` matter.
    server_version : file -> of the server that wrote it, which says what executable comments mean;
        the same for carried ranges, which have no FORMAT_DESCRIPTION, and pulled ones.
    case_sensitive : otherwise the server keeps names in lower case, whatever a statement says.
    """

    def __init__(
        self,
        wants: Callable[[str, str], bool],
        history: SchemaHistory,
        number: Callable[[str], int],
        operations: frozenset[str],
        *,
        server_version: Callable[[str], str],
        case_sensitive: bool,
    ) -> None:
        self._wants = wants
        self._history = history
        self._server_version = server_version
        self._number = number
        self._truncates = "truncate" in operations
        self._ddl = "ddl" in operations
        self._fold = folding(case_sensitive)

    def of(self, event: Event) -> list[StatementRow]:
        """The rows of one QUERY event that the event filter kept."""
        return self.told(event, LoggedStatement.read(event.body, self._server_version(event.file)))

    def told(self, event: Event, logged: LoggedStatement) -> list[StatementRow]:
        """The same, of an event that has been read."""
        text, statement = logged.text, logged.statement
        # A DELETE that the event filter let through is the server's, who emptied a MEMORY table.
        if statement.kind is StatementKind.TRUNCATE or statement.whole_table:
            tables = self._wanted(statement.tables[:1] if statement.tables else ())
            return [self._row("t", event, name, text) for name in tables if self._truncates]
        if statement.kind not in DDL_KINDS:
            return []
        if statement.truncated_partitions and self._truncates:
            tables = self._wanted(statement.tables[:1] if statement.tables else ())
            return [self._row("t", event, name, text) for name in tables]
        if not self._ddl:
            return []
        return list(self._ddl_rows(event, logged))

    def _ddl_rows(self, event: Event, logged: LoggedStatement) -> Iterator[StatementRow]:
        text, statement = logged.text, logged.statement
        for name in self.touched(event, statement):
            # A table that was not there, which DROP … IF EXISTS may name, lost nothing.
            was_there = self._was_there(event, name)
            if was_there is False and statement.kind is StatementKind.DROP_TABLE:
                continue
            before, after = self.around(event, statement, name)
            effect = ddl_effect(statement, text, before, after, logged.context)
            if effect is not DdlEffect.SHAPE_ONLY:
                yield self._row("ddl", event, name, f"/* {effect.value} */ {text}")

    def around(
        self, event: Event, statement: Statement, name: Table
    ) -> tuple[TableSchema | None, TableSchema | None]:
        """A table on both sides of a statement, which may rename it; None where it is not known."""
        old = new = name
        if statement.kind is StatementKind.ALTER_TABLE:
            for pair in statement.renames:
                old, new = self._folded(pair[0]), self._folded(pair[1])
        begin, end = self._position(event, event.start), self._position(event, event.end)
        return self._history.at(begin, *old), self._history.at(end, *new)

    def touched(self, event: Event, statement: Statement) -> list[Table]:
        """The wanted tables that a statement is about."""
        if statement.kind is StatementKind.DROP_DATABASE:
            database = self._fold(statement.database or "")
            inside = (name for name in self._history.tables() if name[0] == database)
            return self._wanted(tuple(name for name in inside if self._was_there(event, name)))
        wanted = self._wanted(statement.tables or ())
        if statement.kind is StatementKind.ALTER_TABLE and statement.renames:
            # The table has two names in the statement, and gets one row.
            old, new = (self._folded(each) for each in statement.renames[0])
            if old in wanted and new in wanted:
                wanted.remove(new)
        return wanted

    def _was_there(self, event: Event, name: Table) -> bool | None:
        """Whether a table was there in front of the statement; None where nobody knows."""
        state = self._history.state(self._position(event, event.start), *name)
        return None if state is None else not (isinstance(state, UnknownSchema) and state.gone)

    def _row(self, op: str, event: Event, name: Table, text: str) -> StatementRow:
        schema = self._history.at(self._position(event, event.start), *name)
        return StatementRow(op, *name, text, schema.primary_key if schema is not None else None)

    def _wanted(self, tables: tuple[Table, ...]) -> list[Table]:
        return [name for name in map(self._folded, tables) if self._wants(*name)]

    def _folded(self, table: Table) -> Table:
        return self._fold(table[0]), self._fold(table[1])

    def _position(self, event: Event, pos: int) -> Position:
        return Position(self._number(event.file), pos, event.file)
