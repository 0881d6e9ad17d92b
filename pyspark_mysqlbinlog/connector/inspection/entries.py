"""The events of a log with what they mean: transaction, table, operation, rows.

One pass, event by event: each `Entry` is complete when its event has been read. Only the heads of
events and the lengths of rows are decoded here; `rows` decodes the values of an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT
from pyspark_mysqlbinlog.connector.inspection.columns import Columns, ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.sources import LoggedEvent, Source
from pyspark_mysqlbinlog.connector.inspection.tally import EventRowCounter
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS, RowsHead
from pyspark_mysqlbinlog.decoder.events.table_map import DUMMY_TABLE_IDS, TableMap, TableMapRegistry
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionContext
from pyspark_mysqlbinlog.decoder.payloads.partial_updates import (
    PARTIAL_UPDATE,
    json_diffs,
    whole_updates,
)
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, ImagePlan, RowPlan
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.decoder.values.codec import cut_short
from pyspark_mysqlbinlog.decoder.values.json_diff import Diff, parse_diffs
from pyspark_mysqlbinlog.errors import MalformedEventError, MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.checksum import CHECKSUM_LENGTH
from pyspark_mysqlbinlog.protocol.events import Event, EventType, type_name
from pyspark_mysqlbinlog.protocol.messages import parse_server_version

__all__ = [
    "NULL",
    "Cell",
    "Entries",
    "Entry",
    "Row",
    "Transaction",
    "Undecoded",
    "event_rows",
    "read_value",
]

_QUERY = int(EventType.QUERY_EVENT)
_LOAD_QUERY = int(EventType.EXECUTE_LOAD_QUERY_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)


class _Null:
    """NULL in a row. None is another value: the zero date of TIMESTAMP."""

    def __repr__(self) -> str:
        return "NULL"


NULL = _Null()


class Undecoded(NamedTuple):
    """Bytes that are not a value of their column's type, and the reason.

    The server writes such bytes for virtual columns (see ColumnSchema.before_image_unreliable).
    """

    raw: bytes
    reason: str


class Cell(NamedTuple):
    """A value of a row image.

    Attributes
    ----------
    at : index of the column in the table.
    value : as the column's codec returns it, NULL, or Undecoded.
    raw : its bytes in the image, with those of a length before it; empty for NULL.
    """

    at: int
    column: ColumnPlan
    value: Any
    raw: bytes = b""

    @property
    def json(self) -> str:
        """The value as JSON text, as with payload=json."""
        if self.value is NULL:
            return "null"
        if isinstance(self.value, Undecoded):
            return f'{{"undecoded": "{self.value.raw.hex()}"}}'
        assert self.column.codec is not None
        return self.column.codec.json(self.value)


class Row(NamedTuple):
    """A row change; `before` or `after` is None if the operation has no such image.

    Attributes
    ----------
    diffs : of a partial update: index of a JSON column -> its differences. The column is in `after`
        only if the before image has its document.
    """

    before: tuple[Cell, ...] | None
    after: tuple[Cell, ...] | None
    diffs: Mapping[int, tuple[Diff, ...]] = MappingProxyType({})


@dataclass(slots=True)
class Transaction:
    """The transaction of an event, up to this event.

    Attributes
    ----------
    begin : position of its first event.
    bytes : in the log: compressed, if it is.
    gtid, thread_id : None if the log does not contain them.
    time : of its first event, in seconds since 1970 UTC.
    """

    file: str
    begin: int
    time: int
    gtid: str | None = None
    thread_id: int | None = None
    events: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Entry:
    """An event of a log, and what it means.

    Attributes
    ----------
    transaction : None if the event belongs to none, such as a ROTATE.
    is_first, ends : the event is the first or last one of its transaction.
    table_map : of a TABLE_MAP, or of a rows event.
    head : of a rows event.
    rows : number of rows.
    statement : of a QUERY; None if it is damaged.
    """

    logged: LoggedEvent
    transaction: Transaction | None
    is_first: bool = False
    ends: bool = False
    table_map: TableMap | None = None
    head: RowsHead | None = None
    rows: int = 0
    statement: LoggedStatement | None = None

    @property
    def event(self) -> Event:
        return self.logged.event

    @property
    def size(self) -> int:
        """Bytes in the log, or in the stream of the payload that contains it."""
        return len(self.logged.raw)

    @property
    def is_inner(self) -> bool:
        """Whether the event is inside a TRANSACTION_PAYLOAD."""
        return self.event.offset is not None

    @property
    def table(self) -> tuple[str, str] | None:
        """(database, table) of a table map or rows event."""
        if self.table_map is None:
            return None
        return self.table_map.database, self.table_map.table


class Entries:
    """Reads the entries of a log.

    Parameters
    ----------
    columns : is fed the log's DDL; the source's own unless others are given.

    Attributes
    ----------
    server_version : of the server that wrote the current file; empty if it is not known yet.
    """

    def __init__(self, source: Source, columns: Columns | None = None) -> None:
        self._source = source
        self._columns = columns or source.columns()
        self._maps = TableMapRegistry()
        self._counter = EventRowCounter()
        self._context = TransactionContext()
        self._transaction: Transaction | None = None
        self._explained: dict[Table, str] = {}
        self.server_version = ""

    def __iter__(self) -> Iterator[Entry]:
        for logged in self._source.events():
            event = logged.event
            try:
                yield self._entry(logged)
            except MySQLBinlogError as error:
                raise error.with_location(event.file, event.start) from None

    def _entry(self, logged: LoggedEvent) -> Entry:
        event = logged.event
        kind = event.type
        statement: LoggedStatement | None = None
        if kind in (_QUERY, _LOAD_QUERY):
            statement = LoggedStatement.read(
                event.body, self.server_version, loads_data=kind == _LOAD_QUERY
            )
        elif kind == _FORMAT_DESCRIPTION:
            # A new file, maybe of a restarted server: ids refer to other tables.
            self._maps.clear()
            if event.file in self._source.files_after_gaps and event.start == FIRST_EVENT:
                self._columns.forget()
            self._counter.forget()
            # A transaction that a crash of the server cut off has no end.
            self._context = TransactionContext()
            self.server_version = parse_server_version(event.body)
        is_first = self._follow(event, statement if kind == _QUERY else None)
        entry = Entry(
            logged, self._transaction, is_first, self._context.state.ended, statement=statement
        )
        trailer = CHECKSUM_LENGTH if logged.has_checksum else 0
        if kind == _TABLE_MAP:
            entry.table_map = self._maps.add(event.file, event.body)
            self._counter.learn(event, entry.table_map, logged.raw, trailer)
        elif kind in OPERATIONS:
            entry.head = RowsHead.parse(kind, event.body)
            entry.table_map = self._maps.get(event.file, entry.head.table_id)
            if entry.table_map is None and entry.head.table_id not in DUMMY_TABLE_IDS:
                raise MalformedEventError(
                    f"{type_name(kind)} has table id {entry.head.table_id}, expected a TABLE_MAP"
                    " with that id before it; begin at the transaction's first event"
                )
            entry.rows = self._counter.rows(event, logged.raw, trailer)
        self._count(entry)
        if statement is not None and kind == _QUERY:
            self._columns.follow(event, statement)
        return entry

    def _follow(self, event: Event, statement: LoggedStatement | None) -> bool:
        """Find the event's transaction; return whether the event begins it."""
        context, state = self._context, self._context.state
        was_open = state.in_progress
        if statement is None:
            context.follow(event)
        else:
            context.follow(event, statement.query, statement.statement)
        is_first = not was_open and (state.in_progress or state.ended)
        if is_first:
            self._transaction = Transaction(event.file, event.start, event.timestamp)
        elif not was_open:
            self._transaction = None
        if self._transaction is not None:
            self._transaction.gtid = context.gtid
            self._transaction.thread_id = context.thread_id
        return is_first

    def _count(self, entry: Entry) -> None:
        transaction = entry.transaction
        if transaction is not None:
            transaction.events += 1
            transaction.rows += entry.rows
            if not entry.is_inner:
                transaction.bytes += entry.size

    def columns(self, entry: Entry) -> ColumnsOfTable | None:
        """Return how the rows of an entry are read; None if it has none."""
        if entry.table_map is None or entry.head is None:
            return None
        return self._columns.of(entry.event, entry.table_map)

    def explains(self, entry: Entry) -> str:
        """Return why the columns of an entry have no names, if that was not returned before."""
        columns = self.columns(entry)
        if columns is None or entry.table is None:
            return ""
        if self._explained.get(entry.table, "") == columns.unknown:
            return ""
        self._explained[entry.table] = columns.unknown
        return columns.unknown

    def rows(self, entry: Entry) -> Iterator[Row]:
        """Yield the rows of the entry that was read last.

        A JSON column with a diff has the document that results from it.
        """
        columns = self.columns(entry)
        if columns is None or entry.table_map is None or entry.head is None:
            return
        event, plan = entry.event, columns.plan
        try:
            if event.type != PARTIAL_UPDATE:
                yield from event_rows(event, entry.head, plan)
                return
            partial = (event, entry.head, entry.table_map.types, plan.columns)
            rows = (
                row
                for _, update in whole_updates(*partial)
                for row in event_rows(update, RowsHead.parse(update.type, update.body), plan)
            )
            for row, diffs in zip(rows, json_diffs(*partial), strict=True):
                parsed = {
                    at: tuple(parse_diffs(raw, f"column `{plan.columns[at].name}`"))
                    for at, raw in diffs.items()
                }
                yield row._replace(diffs=parsed)
        except MySQLBinlogError as error:
            error = error.with_location(event.file, event.start)
            raise error.with_location(table=entry.table_map.full_name) from None


def event_rows(event: Event, head: RowsHead, plan: RowPlan) -> Iterator[Row]:
    """Yield the rows of a rows event that is not a partial update."""
    data = event.body
    if head.column_count != plan.table_map.column_count:
        raise MalformedEventError(
            f"{type_name(event.type)} has {head.column_count} columns, expected the"
            f" {plan.table_map.column_count} of its table map"
        )
    is_update = head.op == "u"
    images = [
        None if present is None else (plan.image(present, is_updated=before), _indexes(present))
        for present, before in ((head.before, is_update), (head.after, False))
    ]
    pos = head.rows_start
    while pos < len(data):
        cells: list[tuple[Cell, ...] | None] = []
        start = pos
        for image in images:
            if image is None:
                cells.append(None)
            else:
                here, pos = _image(*image, data, pos)
                cells.append(here)
        yield Row(cells[0], cells[1])
        if pos == start:
            raise MalformedEventError(f"{type_name(event.type)} has row images of no bytes")


def _indexes(present: bytes) -> list[int]:
    return [at for at in range(8 * len(present)) if present[at >> 3] >> (at & 7) & 1]


def _image(
    image: ImagePlan, indexes: list[int], data: bytes, pos: int
) -> tuple[tuple[Cell, ...], int]:
    values = pos + image.bitmap_length
    if values > len(data):
        raise cut_short("its null bitmap", image.bitmap_length, data, pos)
    nulls = int.from_bytes(data[pos:values], "little")
    pos = values
    cells = []
    for at, column in enumerate(image.columns):
        start = pos
        if nulls >> at & 1:
            value: Any = NULL
        elif column.codec is None:
            # The column is unreliable in this image: see ColumnSchema.
            pos = column.skip(data, pos)
            continue
        else:
            value, pos = read_value(column, data, pos)
        cells.append(Cell(indexes[at], column, value, data[start:pos]))
    return tuple(cells), pos


def read_value(column: ColumnPlan, data: bytes, pos: int) -> tuple[Any, int]:
    """Return a column's value, and the position after it; an error if even that is unknown."""
    assert column.codec is not None
    try:
        return column.codec.read(data, pos)
    except MySQLBinlogError as error:
        end = column.skip(data, pos)
        return Undecoded(data[pos:end], error.message), end
