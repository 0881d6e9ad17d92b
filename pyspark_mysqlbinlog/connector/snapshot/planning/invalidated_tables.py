"""Tables whose rows are unknown after a statement, as the tail finds it in the binlog.

DDL that rewrites or removes rows leaves no row events. Statements that only drop columns can be
followed. After any other such statement, and after one that renames columns ambiguously, only the
server has the table's rows: it must be snapshotted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.ranges.statement_rows import StatementRows
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.decoder.sql.column_changes import CannotFollowError, FollowRenames
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["InvalidatedTables"]

# A dropped table has no rows; a table that is created again has the rows in the binlog.
_REMOVES = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE})


class InvalidatedTables:
    """Records such tables, with the position after the statement.

    Parameters
    ----------
    captures : whether (database, table) is captured.
    renamed : the new names of columns, as `DeliveredColumns.renamed`.
    case_sensitive : otherwise the server stores names in lower case, whatever a statement has.
    """

    def __init__(
        self, captures: Callable[[str, str], bool], renamed: FollowRenames, *, case_sensitive: bool
    ) -> None:
        self._captures = captures
        self._renamed = renamed
        self._case_sensitive = case_sensitive
        self._noted: dict[tuple[Position, Table], None] = {}

    def note(
        self, event: Event, logged: LoggedStatement, end: Position, history: SchemaHistory
    ) -> None:
        """Record a statement that ends at a position; `history` covers both sides of it."""
        if logged.statement.kind not in DDL_KINDS:
            return
        rows = StatementRows(
            self._captures,
            history,
            lambda file: Position.of(file, event.start).number,
            frozenset({"truncate", "ddl"}),
            server_version=lambda _: "",
            case_sensitive=self._case_sensitive,
        )
        for table in self._unknown(rows, event, logged):
            self._noted[end, table] = None

    def between(self, start: Position, end: Position) -> dict[Table, Position]:
        """Return the last position of each table after `start`, up to `end`; call in binlog order.

        Drops what is before `start`.
        """
        # The tail's thread may add entries concurrently.
        for place in [place for place in tuple(self._noted) if place[0] <= start]:
            del self._noted[place]
        return {table: position for position, table in sorted(self._noted) if position <= end}

    def forget(self) -> None:
        """Drop all entries: positions start a new order, and everything so far was returned."""
        self._noted.clear()

    def _unknown(
        self, rows: StatementRows, event: Event, logged: LoggedStatement
    ) -> Iterator[Table]:
        statement = logged.statement
        statements = {(row.database, row.table): row for row in rows.of_logged(event, logged)}
        for table in rows.touched(event, statement):
            row = statements.get(table)
            if row is not None and (statement.kind in _REMOVES or statement.or_replace):
                continue
            before, after = rows.around(event, statement, table)
            if statement.kind is not StatementKind.ALTER_TABLE or statement.truncated_partitions:
                if row is not None:
                    yield table
            elif not self._can_follow(before, after, None if row is None else row.query):
                yield table

    def _can_follow(
        self, before: TableSchema | None, after: TableSchema | None, statement: str | None
    ) -> bool:
        """Whether an ALTER TABLE's result is known, with the renames found by `renamed`."""
        if before is None or after is None:
            return statement is None
        try:
            self._renamed(before, after, statement)
        except CannotFollowError:
            return False
        return True
