"""The row changes of captured tables from the start of a window to the end of the binlog.

They are read with the table's present definition on the server. That definition is theirs if no DDL
of the table follows in the binlog. This is checked: a table with such a statement fails with
UndoError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.flashback.table_facts import TableFacts
from pyspark_mysqlbinlog.connector.flashback.window import WindowBounds
from pyspark_mysqlbinlog.connector.inspection.entries import Cell, event_rows
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.connector.ranges.reader import captured_events
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS, RowsHead
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS, StatementKind
from pyspark_mysqlbinlog.decoder.events.table_map import TableMapRegistry
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionContext
from pyspark_mysqlbinlog.decoder.payloads.plan import RowPlan
from pyspark_mysqlbinlog.decoder.payloads.table_plans import TablePlans
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UndoError, UnknownTableError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Change", "Changes"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_PARTIAL_UPDATE = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
_OPERATIONS = frozenset({"insert", "update", "delete", "truncate", "ddl"})
_MAX_SHOWN = 100

Image = tuple[Cell, ...]


class Change(NamedTuple):
    """A row change.

    Attributes
    ----------
    op : ``c``, ``u`` or ``d``.
    before, after : the row's columns that are not generated; None without such an image.
    file, pos, row : of the event, and the number of the row in it.
    time : seconds since 1970 UTC.
    is_selected : it belongs to the window; otherwise it is not undone.
    """

    facts: TableFacts
    plan: RowPlan
    op: str
    before: Image | None
    after: Image | None
    file: str
    pos: int
    row: int
    time: int
    gtid: str | None
    is_selected: bool


class Changes:
    """Yields the changes of captured tables, oldest first.

    Parameters
    ----------
    log : is read from the window's start up to `end`.
    tables : the tables as the server has them now, by name.
    """

    def __init__(
        self,
        log: ScannedLog,
        bounds: WindowBounds,
        end: Position,
        captures: Callable[[str, str], bool],
        *,
        tables: Mapping[Table, TableFacts],
        server: ServerFacts,
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._end = end
        self._captures = captures
        self._tables = tables
        self._server = server
        self._fold = table_folding(server.case_sensitive)
        self._maps = TableMapRegistry()
        self._plans = TablePlans(_PresentSchemas(tables, self._fold))
        # Tables with changes that are undone.
        self._selected: set[Table] = set()
        # The error of rows that cannot be read. The usual cause is a later DDL statement, which is
        # then reported instead.
        self._unread: MySQLBinlogError | None = None

    def __iter__(self) -> Iterator[Change]:
        partition = RangePartition(
            start=self._bounds.start,
            end=self._end,
            schemas="",
            pending_xa=(),
            case_sensitive=self._server.case_sensitive,
            blocks=None,
            server_version=self._server.version,
        )
        events = captured_events(self._log, partition, self._captures, operations=_OPERATIONS)
        context = TransactionContext()
        begin = self._bounds.start
        for event in events:
            statement: LoggedStatement | None = None
            if event.type == _QUERY:
                statement = LoggedStatement.read(event.body, self._server.version)
            was_open = context.state.in_progress
            if statement is None:
                context.follow(event)
            else:
                context.follow(event, statement.query, statement.statement)
            here = self._position(event)
            if not was_open:
                begin = here
            is_selected = self._bounds.has(begin, context.gtid)
            try:
                if is_selected:
                    self._bounds.check_boundary(begin, here)
                if statement is not None:
                    self._check_statement(statement, is_selected=is_selected)
                elif event.type == _TABLE_MAP:
                    self._maps.add(event.file, event.body)
                elif event.type in OPERATIONS and self._unread is None:
                    yield from self._changes(event, context.gtid, is_selected=is_selected)
            except SchemaError as error:
                self._unread = self._unread or error.with_location(event.file, event.start)
            except MySQLBinlogError as error:
                raise error.with_location(event.file, event.start) from None
        if self._unread is not None:
            raise self._unread

    def _position(self, event: Event) -> Position:
        """Return the position at which an event counts: its own, or that of its XA COMMIT."""
        if event.committed is not None:
            return self._log.position(event.committed.file, event.committed.pos)
        return self._log.position(event.file, event.start)

    def _check_statement(self, logged: LoggedStatement, *, is_selected: bool) -> None:
        """Raise UndoError if a statement on a table makes its changes impossible to undo."""
        statement = logged.statement
        if (
            statement.kind not in DDL_KINDS
            and statement.kind is not StatementKind.TRUNCATE
            and not statement.whole_table
        ):
            return
        if statement.database is not None:
            named = {name for name in self._tables if name[0] == statement.database}
            named |= {name for name in self._selected if name[0] == statement.database}
        else:
            named = {self._fold(name) for name in statement.tables or ()}
        for name in sorted(named):
            if self._captures(*name) and (is_selected or name in self._selected):
                where = "in the window" if is_selected else "after the window"
                shown = " ".join(logged.text.split())[:_MAX_SHOWN]
                raise UndoError(
                    f"a statement on the table itself lies {where}: {shown}; no SQL statement on"
                    " rows undoes it, and the rows before it may have other columns",
                    table=".".join(name),
                )

    def _changes(self, event: Event, gtid: str | None, *, is_selected: bool) -> Iterator[Change]:
        head = RowsHead.parse(event.type, event.body)
        table_map = self._maps.get(event.file, head.table_id)
        if table_map is None:
            raise UndoError("a rows event has no table map before it")
        name = self._fold((table_map.database, table_map.table))
        if not is_selected and name not in self._selected:
            # The table has no earlier change that is undone.
            return
        facts = self._tables.get(name)
        try:
            if is_selected:
                self._selected.add(name)
            if facts is None:
                raise UnknownTableError("the server has no such base table any more")
            if is_selected:
                facts.check()
            plan = self._plans.plan(event, table_map)
            _check_whole(head, plan, facts, event)
            yield from self._rows(event, head, plan, facts, gtid, is_selected=is_selected)
        except MySQLBinlogError as error:
            raise error.with_location(table=table_map.full_name) from None

    def _rows(
        self,
        event: Event,
        head: RowsHead,
        plan: RowPlan,
        facts: TableFacts,
        gtid: str | None,
        *,
        is_selected: bool,
    ) -> Iterator[Change]:
        for number, row in enumerate(event_rows(event, head, plan)):
            yield Change(
                facts,
                plan,
                head.op,
                _stored(row.before, facts),
                _stored(row.after, facts),
                event.file,
                event.start,
                number,
                event.timestamp,
                gtid,
                is_selected,
            )


class _PresentSchemas:
    """A lookup of schemas that returns the present ones for every position."""

    def __init__(self, tables: Mapping[Table, TableFacts], fold: Callable[[Table], Table]) -> None:
        self._tables = tables
        self._fold = fold

    def at(self, _file: str, _pos: int, database: str, table: str) -> TableSchema | None:
        facts = self._tables.get(self._fold((database, table)))
        return None if facts is None else facts.schema

    def reason(self, *_: object) -> str:
        return ""

    def is_known_later(self, *_: object) -> bool:
        return False

    def span(self, *_: object) -> tuple[int, int | None]:
        return 0, None


def _stored(image: Image | None, facts: TableFacts) -> Image | None:
    """Return an image without generated columns."""
    if image is None or not facts.generated:
        return image
    return tuple(cell for cell in image if cell.column.name not in facts.generated)


def _check_whole(head: RowsHead, plan: RowPlan, facts: TableFacts, event: Event) -> None:
    """Raise UndoError unless each image has all columns that are not generated."""
    if event.type == _PARTIAL_UPDATE:
        raise UndoError(
            "the update has only the differences of JSON documents (binlog_row_value_options is"
            " PARTIAL_JSON), expected whole documents"
        )
    for present, side in ((head.before, "before"), (head.after, "after")):
        if present is None:
            continue
        missing = [
            column.name
            for at, column in enumerate(plan.columns)
            if not present[at >> 3] >> (at & 7) & 1 and column.name not in facts.generated
        ]
        if missing:
            raise UndoError(
                f"the row {side} the change lacks {', '.join(missing)} (binlog_row_image is MINIMAL"
                " or NOBLOB), expected all columns"
            )
