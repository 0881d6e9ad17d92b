"""Statement rows: a truncate (`t`), and DDL that changes or removes rows (`ddl`).

Row events do not contain what such a statement does to rows, but a replica needs it. DDL is
classified by its effect on existing rows (see decoder/sql/ddl_effect.py). DDL that only changes the
table's definition returns no row. Other DDL does, with the class before the statement, as a
comment: ``/* data-losing */ DROP TABLE t``. The truncation of a partition is a truncate, and the
statement names the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.payloads.envelope import StatementRow
from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, ddl_effect
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.decoder.sql.redaction import without_literals
from pyspark_mysqlbinlog.names import Table, folding
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["StatementRows"]


class StatementRows:
    """Builds the rows of a range's QUERY events.

    Parameters
    ----------
    captures : whether (database, table) is captured.
    history : of the range, with every version that is valid within it.
    number : a file's number in positions.
    operations : the words of the option; ``truncate`` and ``ddl`` matter.
    server_version : file -> of the server that wrote it, which determines the meaning of executable
        comments; the same for inline ranges (without FORMAT_DESCRIPTION) and fetched ones.
    case_sensitive : otherwise the server stores names in lower case, whatever a statement has.
    hides_literals : rows show statements without their literals, which may be values of rows.
    """

    def __init__(
        self,
        captures: Callable[[str, str], bool],
        history: SchemaHistory,
        number: Callable[[str], int],
        operations: frozenset[str],
        *,
        server_version: Callable[[str], str],
        case_sensitive: bool,
        hides_literals: bool = False,
    ) -> None:
        self._captures = captures
        self._history = history
        self._server_version = server_version
        self._number = number
        self._truncates = "truncate" in operations
        self._ddl = "ddl" in operations
        self._fold = folding(case_sensitive)
        self._hides_literals = hides_literals

    def of(self, event: Event) -> list[StatementRow]:
        """Return the rows of one QUERY event that passed the event filter."""
        return self.of_logged(
            event, LoggedStatement.read(event.body, self._server_version(event.file))
        )

    def of_logged(self, event: Event, logged: LoggedStatement) -> list[StatementRow]:
        """Return the rows of an event that is already parsed."""
        text, statement = self._shown(logged), logged.statement
        # A DELETE that passed the event filter is the server's own, for an emptied MEMORY table.
        if statement.kind is StatementKind.TRUNCATE or statement.whole_table:
            tables = self._captured(statement.tables[:1] if statement.tables else ())
            return [self._row("t", event, name, text) for name in tables if self._truncates]
        if statement.kind not in DDL_KINDS:
            return []
        if statement.truncated_partitions and self._truncates:
            tables = self._captured(statement.tables[:1] if statement.tables else ())
            return [self._row("t", event, name, text) for name in tables]
        if not self._ddl:
            return []
        return list(self._ddl_rows(event, logged))

    def _ddl_rows(self, event: Event, logged: LoggedStatement) -> Iterator[StatementRow]:
        text, statement = logged.text, logged.statement
        for name in self.touched(event, statement):
            # A table that did not exist (DROP … IF EXISTS may name it) lost no rows.
            was_there = self._was_there(event, name)
            if was_there is False and statement.kind is StatementKind.DROP_TABLE:
                continue
            before, after = self.around(event, statement, name)
            effect = ddl_effect(statement, text, before, after, logged.context)
            if effect is not DdlEffect.SHAPE_ONLY:
                shown = self._shown(logged)
                yield self._row("ddl", event, name, f"/* {effect.value} */ {shown}")

    def _shown(self, logged: LoggedStatement) -> str:
        if not self._hides_literals:
            return logged.text
        return without_literals(logged.text, logged.context)

    def around(
        self, event: Event, statement: Statement, name: Table
    ) -> tuple[TableSchema | None, TableSchema | None]:
        """Return a table before and after a statement that may rename it; None if unknown."""
        old = new = name
        if statement.kind is StatementKind.ALTER_TABLE:
            for pair in statement.renames:
                old, new = self._folded(pair[0]), self._folded(pair[1])
        begin, end = self._position(event, event.start), self._position(event, event.end)
        return self._history.at(begin, *old), self._history.at(end, *new)

    def touched(self, event: Event, statement: Statement) -> list[Table]:
        """Return the captured tables that a statement affects."""
        if statement.drops_database:
            database = self._fold(statement.database or "")
            inside = (name for name in self._history.tables() if name[0] == database)
            return self._captured(tuple(name for name in inside if self._was_there(event, name)))
        captured = self._captured(statement.tables or ())
        if statement.kind is StatementKind.ALTER_TABLE and statement.renames:
            # The table has two names in the statement, and returns one row.
            old, new = (self._folded(each) for each in statement.renames[0])
            if old in captured and new in captured:
                captured.remove(new)
        return captured

    def _was_there(self, event: Event, name: Table) -> bool | None:
        """Whether a table existed before the statement; None if unknown."""
        return self._history.exists(self._position(event, event.start), *name)

    def _row(self, op: str, event: Event, name: Table, text: str) -> StatementRow:
        schema = self._history.at(self._position(event, event.start), *name)
        return StatementRow(op, *name, text, schema.primary_key if schema is not None else None)

    def _captured(self, tables: tuple[Table, ...]) -> list[Table]:
        return [name for name in map(self._folded, tables) if self._captures(*name)]

    def _folded(self, table: Table) -> Table:
        return self._fold(table[0]), self._fold(table[1])

    def _position(self, event: Event, pos: int) -> Position:
        return Position(self._number(event.file), pos, event.file)
