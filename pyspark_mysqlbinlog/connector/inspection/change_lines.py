"""Changes as one line each: the table, the key, and what changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import Cell, Entry, Row
from pyspark_mysqlbinlog.connector.inspection.literals import (
    diffs_text,
    literal,
    one_line,
    printable,
)
from pyspark_mysqlbinlog.connector.inspection.text import Paint

__all__ = ["change_line", "statement_line"]

_SIGNS = {"c": "+", "u": "~", "d": "-"}
_MAX_VALUE = 60
_MAX_STATEMENT = 200


def change_line(entry: Entry, row: Row, columns: ColumnsOfTable, paint: Paint) -> str:
    """Return the line of a change.

    An insert and a delete have all values of the row. An update has its key, or all values before
    it if there is none, and the values that it changed.
    """
    assert entry.head is not None
    assert entry.table is not None
    op = entry.head.op
    before, after = _texts(row.before, columns), _texts(row.after, columns)
    for at, diffs in row.diffs.items():
        name = printable(columns.plan.columns[at].name)
        after[name] = _short(diffs_text(name, diffs))
    if op == "u":
        key = columns.plan.key or ()
        # Minimal images have the key only in the before image.
        known = {name: before[name] for name in map(printable, key) if name in before}
        changed = (
            f"{name}: {before.get(name, '?')} → {text}"
            for name, text in after.items()
            if before.get(name) != text
        )
        what = f"{_members(known or before)}  {', '.join(changed)}"
    else:
        what = _members(after if op == "c" else before)
    head = f"{_clock(entry)} {_SIGNS[op]} {printable('.'.join(entry.table))}"
    return f"{paint(op, head)}  {what}"


def statement_line(entry: Entry, paint: Paint) -> str:
    """Return the line of a statement that is not the begin or end of a transaction."""
    assert entry.statement is not None
    text = one_line(entry.statement.text, _MAX_STATEMENT)
    return f"{paint('transaction', f'{_clock(entry)} !')} {text}"


def _clock(entry: Entry) -> str:
    """Return the time in the time zone of the terminal."""
    return f"{datetime.fromtimestamp(entry.event.timestamp).astimezone():%H:%M:%S}"


def _texts(cells: Iterable[Cell] | None, columns: ColumnsOfTable) -> dict[str, str]:
    return {printable(cell.column.name): _short(literal(cell, columns)) for cell in cells or ()}


def _short(text: str) -> str:
    # The end of a value may be what has changed.
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 20]}…{text[-19:]}"


def _members(texts: dict[str, str]) -> str:
    return " ".join(f"{name}={text}" for name, text in texts.items())
