"""Entries as text: a line for each event, and readable statements for rows.

A line has the position, the end and the size of its event, its time, its type and what it means.
Events of a transaction are indented, those inside a payload twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidInterval, GtidSet
from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import Cell, Entries, Entry, Row
from pyspark_mysqlbinlog.connector.inspection.literals import (
    diffs_text,
    literal,
    name_text,
    one_line,
    printable,
    type_text,
)
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import StatementKind
from pyspark_mysqlbinlog.protocol.events import Event, EventType, type_name
from pyspark_mysqlbinlog.protocol.gtid_sets import parse_gtid_set
from pyspark_mysqlbinlog.protocol.messages import (
    FormatDescription,
    Incident,
    Rotate,
    XaPrepare,
    parse_rows_query,
)
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = [
    "HEADING",
    "Paint",
    "event_name",
    "gtid_set_text",
    "is_change",
    "line",
    "row_statement",
    "statements",
    "time_text",
]

HEADING = f"{'position':>12}{'end':>12}{'size':>10}  {'time (UTC)':19}  event"
_STATEMENT_WIDTH = 100
_NAME_WIDTH = 24
Paint = Callable[[str, str], str]
_FRAME = frozenset(
    {
        StatementKind.BEGIN,
        StatementKind.COMMIT,
        StatementKind.ROLLBACK,
        StatementKind.SAVEPOINT,
        StatementKind.ROLLBACK_TO,
        StatementKind.RELEASE_SAVEPOINT,
        StatementKind.XA_START,
        StatementKind.XA_END,
    }
)
_VERBS = {"c": "INSERT INTO", "u": "UPDATE", "d": "DELETE FROM"}


def event_name(kind: int) -> str:
    """Return the name of a type, without the words that all of them have."""
    name = type_name(kind)
    for suffix in ("_LOG_EVENT", "_EVENT"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    # A version is at the end: WRITE_ROWS_EVENT_V1.
    return name.replace("_EVENT_", "_")


def time_text(seconds: float) -> str:
    """Return a time in UTC, as ``2017-02-13 01:38:44``."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def line(entry: Entry, paint: Paint = lambda _, text: text) -> str:
    """Return the line of an entry.

    paint : (kind of text, text) -> the text, in colour if the output has colours.
    """
    event = entry.event
    if entry.is_inner:
        place = f"{'+' + str(event.offset):>12}{'+' + str((event.offset or 0) + entry.size):>12}"
    else:
        place = f"{event.start:>12}{event.end:>12}"
    is_outer = entry.transaction is None or entry.is_first
    indent = "" if is_outer else "    " if entry.is_inner else "  "
    name = f"{indent}{event_name(event.type):<{_NAME_WIDTH - len(indent)}}"
    kind = "transaction" if entry.is_first else entry.head.op if entry.head else "event"
    begin = f"{place}{entry.size:>10}  {time_text(event.timestamp)}"
    return f"{paint('place', begin)}  {paint(kind, name)} {_meaning(entry)}".rstrip()


def _transaction_text(entry: Entry) -> str:
    """Return the sums of the transaction that ends with an entry."""
    transaction = entry.transaction
    assert transaction is not None
    return (
        f"transaction of {_count(transaction.rows, 'row')},"
        f" {_count(transaction.events, 'event')}, {_count(transaction.bytes, 'byte')}"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _meaning(entry: Entry) -> str:
    parts = [part for part in (_detail(entry),) if part]
    if entry.transaction is not None and entry.ends:
        parts.append(_transaction_text(entry))
    return "; ".join(parts)


def _detail(entry: Entry) -> str:
    event, kind = entry.event, entry.event.type
    if kind in OPERATIONS:
        rows = _count(entry.rows, "row")
        return rows if entry.table is None else f"{name_text(*entry.table)}  {rows}"
    if entry.statement is not None:
        query = entry.statement.query
        text = one_line(entry.statement.text, _STATEMENT_WIDTH)
        is_frame = entry.statement.statement.kind in (StatementKind.BEGIN, StatementKind.COMMIT)
        used = "" if is_frame or not query.database else f"use {name_text(query.database)}; "
        failed = f"  (error {query.error_code})" if query.error_code else ""
        return f"{used}{text}{failed}"
    match kind:
        case EventType.TABLE_MAP_EVENT:
            assert entry.table_map is not None
            columns = _count(entry.table_map.column_count, "column")
            name = name_text(entry.table_map.database, entry.table_map.table)
            return f"{name}  id {entry.table_map.table_id}, {columns}"
        case (
            EventType.GTID_LOG_EVENT
            | EventType.GTID_TAGGED_LOG_EVENT
            | EventType.MARIADB_GTID_EVENT
        ):
            return (entry.transaction and entry.transaction.gtid) or ""
        case EventType.XID_EVENT:
            return f"xid {int.from_bytes(event.body[:8], 'little')}"
        case _:
            return _other(event)


def _other(event: Event) -> str:
    match event.type:
        case EventType.FORMAT_DESCRIPTION_EVENT:
            # The checksum was verified and removed; the parser expects its four bytes.
            described = FormatDescription.parse(event.body + b"\0\0\0\0")
            return (
                f"server {printable(described.server_version)}, server id {event.server_id},"
                f" checksum {described.checksum.name}"
            )
        case EventType.ROTATE_EVENT:
            rotate = Rotate.parse(event.body)
            return f"to {printable(rotate.file)}:{rotate.pos}"
        case EventType.PREVIOUS_GTIDS_LOG_EVENT:
            return gtid_set_text(event.body) or "none"
        case EventType.ROWS_QUERY_LOG_EVENT:
            return one_line(parse_rows_query(event.body), _STATEMENT_WIDTH)
        case EventType.MARIADB_ANNOTATE_ROWS_EVENT:
            return one_line(event.body.decode("utf-8", "replace"), _STATEMENT_WIDTH)
        case EventType.XA_PREPARE_LOG_EVENT:
            prepare = XaPrepare.parse(event.body)
            return f"{prepare.xid}{' one phase' if prepare.one_phase else ''}"
        case EventType.INCIDENT_EVENT:
            incident = Incident.parse(event.body)
            return f"{incident.code} {printable(incident.message)}"
        case EventType.TRANSACTION_PAYLOAD_EVENT:
            size = TransactionPayloadReader(event).size
            return f"zstd, {_count(size, 'byte')} decompressed"
        case _:
            return ""


def gtid_set_text(body: bytes) -> str:
    """Return the set in a PREVIOUS_GTIDS."""
    return str(GtidSet.of(GtidInterval(*each) for each in parse_gtid_set(body)))


# --- rows as statements


def statements(entries: Entries, entry: Entry) -> Iterator[str]:
    """Yield the lines of an entry's rows as statements, in the form of mysqlbinlog."""
    columns = entries.columns(entry)
    if columns is None or entry.table is None or entry.head is None:
        return
    if reason := entries.explains(entry):
        yield f"### {name_text(*entry.table)}: columns without names: {printable(reason)}"
    for row in entries.rows(entry):
        yield from row_statement(entry, row, columns)


def row_statement(entry: Entry, row: Row, columns: ColumnsOfTable) -> Iterator[str]:
    """Yield the lines of one row of an entry."""
    assert entry.head is not None
    assert entry.table is not None
    yield f"### {_VERBS[entry.head.op]} {name_text(*entry.table)}"
    if row.before is not None:
        yield "### WHERE"
        yield from _image(row.before, columns)
    if row.after is not None:
        yield "### SET"
        after = tuple(cell for cell in row.after if cell.at not in row.diffs)
        yield from _image(after, columns)
        for at, diffs in row.diffs.items():
            column = _column_name(at, columns)
            # The logged differences; without any, the document is unchanged.
            yield f"###   {column}={diffs_text(column, diffs)} /* {type_text(at, columns)} */"


def is_change(entry: Entry) -> bool:
    """Whether an entry is a statement that may change something, unlike BEGIN or COMMIT."""
    return entry.statement is not None and entry.statement.statement.kind not in _FRAME


def _image(cells: tuple[Cell, ...], columns: ColumnsOfTable) -> Iterator[str]:
    for cell in cells:
        name = _column_name(cell.at, columns)
        yield f"###   {name}={literal(cell, columns)} /* {type_text(cell.at, columns)} */"


def _column_name(at: int, columns: ColumnsOfTable) -> str:
    name = columns.plan.columns[at].name
    return name if columns.unknown else name_text(name)
