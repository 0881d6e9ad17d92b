"""Entries as JSON, one object per line; docs/reference/command-line.md lists the fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import Cell, Entries, Entry, Row
from pyspark_mysqlbinlog.connector.inspection.literals import diff_json
from pyspark_mysqlbinlog.connector.inspection.text import event_name, gtid_set_text
from pyspark_mysqlbinlog.decoder.events.transactions import valid_text
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate, parse_rows_query, parse_server_version

__all__ = ["change_json", "json_line", "statement_json"]


def json_line(entries: Entries, entry: Entry, *, with_rows: bool) -> str:
    """Return the object of an entry, with the images of its rows if requested."""
    line = json.dumps(_fields(entry), ensure_ascii=False)
    if not with_rows or entry.head is None:
        return line
    return f'{line[:-1]}, "changes": [{", ".join(_changes(entries, entry))}]}}'


def change_json(entries: Entries, entry: Entry, row: Row) -> str:
    """Return the object of one change."""
    event, transaction = entry.event, entry.transaction
    assert entry.head is not None
    assert entry.table is not None
    fields = {
        "time": _time(event.timestamp),
        "op": entry.head.op,
        "database": entry.table[0],
        "table": entry.table[1],
        "file": event.file,
        "pos": event.start,
        "gtid": None if transaction is None else transaction.gtid,
    }
    return f"{json.dumps(fields, ensure_ascii=False)[:-1]}, {_change(entries, entry, row)}}}"


def statement_json(entry: Entry) -> str:
    """Return the object of a statement, among changes."""
    event, statement = entry.event, entry.statement
    assert statement is not None
    fields = {
        "time": _time(event.timestamp),
        "op": "statement",
        "default_database": valid_text(statement.query.database),
        "query": valid_text(statement.text),
        "file": event.file,
        "pos": event.start,
        "gtid": None if entry.transaction is None else entry.transaction.gtid,
    }
    return json.dumps(fields, ensure_ascii=False)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(entry: Entry) -> dict[str, Any]:
    event, transaction = entry.event, entry.transaction
    fields: dict[str, Any] = {
        "file": event.file,
        "pos": event.start,
        "end": event.end,
        "size": entry.size,
        "time": _time(event.timestamp),
        "type": event_name(event.type),
        "server_id": event.server_id,
    }
    if entry.is_inner:
        fields["payload_offset"] = event.offset
    if transaction is not None:
        fields["tx_pos"] = transaction.begin
        fields["gtid"] = transaction.gtid
    if entry.table_map is not None:
        fields["database"], fields["table"] = entry.table_map.database, entry.table_map.table
        fields["table_id"] = entry.table_map.table_id
    if entry.head is not None:
        fields["op"], fields["rows"] = entry.head.op, entry.rows
    if entry.statement is not None:
        fields["default_database"] = valid_text(entry.statement.query.database)
        fields["query"] = valid_text(entry.statement.text)
    fields |= _details(entry)
    if transaction is not None and entry.ends:
        fields["transaction"] = {
            "rows": transaction.rows,
            "events": transaction.events,
            "bytes": transaction.bytes,
        }
    return fields


def _details(entry: Entry) -> dict[str, Any]:
    body = entry.event.body
    match entry.event.type:
        case EventType.FORMAT_DESCRIPTION_EVENT:
            return {"server_version": parse_server_version(body)}
        case EventType.ROTATE_EVENT:
            rotate = Rotate.parse(body)
            return {"next_file": rotate.file, "next_pos": rotate.pos}
        case EventType.PREVIOUS_GTIDS_LOG_EVENT:
            return {"gtid_set": gtid_set_text(body)}
        case EventType.XID_EVENT:
            return {"xid": int.from_bytes(body[:8], "little")}
        case EventType.ROWS_QUERY_LOG_EVENT:
            return {"query": valid_text(parse_rows_query(body))}
        case _:
            return {}


def _changes(entries: Entries, entry: Entry) -> Iterator[str]:
    for row in entries.rows(entry):
        yield f"{{{_change(entries, entry, row)}}}"


def _change(entries: Entries, entry: Entry, row: Row) -> str:
    """Return the members of a row's object."""
    sides = []
    for side, cells in (("before", row.before), ("after", row.after)):
        if cells is not None:
            sides.append(f'"{side}": {_image(cells)}')
    if row.diffs:
        columns = entries.columns(entry)
        assert columns is not None
        sides.append(f'"json_diffs": {_diffs(row, columns)}')
    return ", ".join(sides)


def _diffs(row: Row, columns: ColumnsOfTable) -> str:
    parts = (
        f"{columns.plan.columns[at].json_key} [{', '.join(map(diff_json, diffs))}]"
        for at, diffs in row.diffs.items()
    )
    return f"{{{', '.join(parts)}}}"


def _image(cells: tuple[Cell, ...]) -> str:
    return f"{{{', '.join(f'{cell.column.json_key} {cell.json}' for cell in cells)}}}"
