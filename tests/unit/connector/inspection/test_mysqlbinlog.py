"""Rows and values of inspect -v equal those of MySQL 9's mysqlbinlog -vv, on every log."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.logs.mysqlbinlog import PrintedRow, PrintedValue, printed_statements
from helpers.needed_servers import need
from helpers.replay import Number, json_token
from helpers.servers import MySQL9Server
from pyspark_mysqlbinlog.connector.inspection.columns import Columns, ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import NULL, Cell, Entries, Row
from pyspark_mysqlbinlog.connector.inspection.literals import diffs_text, name_text
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.inspection.text import statements
from pyspark_mysqlbinlog.decoder.events.rows import STMT_END_FLAG
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.positional import positional_plan
from pyspark_mysqlbinlog.protocol.events import Event

DATA = Path(__file__).resolve().parents[3] / "data"
LOGS = sorted([*DATA.glob("binlogs*/*.binlog"), *DATA.glob("relay57/relay-bin.*")])
_VERBS = {"c": "INSERT INTO", "u": "UPDATE", "d": "DELETE FROM"}
# mysqlbinlog cuts a row at a GEOMETRY, or at a virtual column with invalid JSON.
CUT = {
    "geometry.001.binlog",
    "virtual_columns.001.binlog",
    "virtual_columns.002.binlog",
    "full_metadata.001.binlog",
}


@pytest.fixture(scope="module", autouse=True)
def _mysqlbinlog() -> None:
    need(MySQL9Server)


class InspectedRow(NamedTuple):
    """A row, and the position of its event."""

    event: int
    verb: str
    table: str
    row: Row


class TypesOnly(Columns):
    """Columns as mysqlbinlog has them: only the types of the table map."""

    def of(self, event: Event, table_map: TableMap) -> ColumnsOfTable:
        bare = frozenset(range(table_map.column_count))
        return ColumnsOfTable(positional_plan(table_map), "not asked for", bare)


def inspected(path: Path) -> Iterator[list[InspectedRow]]:
    """Yield the rows of each statement that has rows."""
    source = BinlogFiles([str(path)])
    entries = Entries(source, TypesOnly(source.position))
    statement: list[InspectedRow] = []
    for entry in entries:
        if entry.head is None or entry.table is None:
            continue
        verb, table = _VERBS[entry.head.op], name_text(*entry.table)
        start = entry.event.offset or entry.event.start
        statement += [InspectedRow(start, verb, table, row) for row in entries.rows(entry)]
        if entry.head.flags & STMT_END_FLAG:
            if statement:
                yield statement
            statement = []
    assert not statement


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_inspected_rows_and_values_equal_those_of_mysqlbinlog(path: Path) -> None:
    printed = printed_statements(path)
    found = [*inspected(path)]
    assert len(found) == len(printed)
    is_cut, compared = False, 0
    for statement, rows in zip(found, printed, strict=True):
        left = deque(statement)
        for printed_row in rows:
            event, verb, table, row = left.popleft()
            assert (verb, table) == (printed_row.verb, printed_row.table)
            compared += _compare(row, printed_row)
            while printed_row.is_cut and left and left[0].event == event:
                left.popleft()
            is_cut = is_cut or printed_row.is_cut
        assert not left
    assert is_cut == (path.name in CUT)
    assert compared or not found


def _compare(row: Row, printed: PrintedRow) -> int:
    """Compare the values that both have; return their number."""
    count = 0
    for side, cells in (("WHERE", row.before), ("SET", row.after)):
        printed_row = {value.column: value for value in printed.images.get(side, ())}
        if cells is None:
            assert not printed_row
            continue
        found = {cell.at + 1: cell for cell in cells}
        diffs = {at + 1: diff for at, diff in row.diffs.items()} if side == "SET" else {}
        assert printed_row.keys() <= found.keys() | diffs.keys()
        assert printed.is_cut or found.keys() | diffs.keys() == printed_row.keys()
        for column, value in printed_row.items():
            if column in diffs:
                calls = diffs_text(f"@{column}", diffs[column])
                assert value.text.decode().replace(" ", "") == calls.replace(" ", "")
            else:
                count += _assert_same(found[column], value)
    return count


def _assert_same(cell: Cell, printed: PrintedValue) -> bool:
    text, kind = printed.text, printed.kind
    if text == b"NULL":
        assert cell.value is NULL
        return True
    assert cell.value is not NULL
    value = cell.value
    name = re.split(r"[( ]", kind)[0]
    match name:
        case "INT" | "TINYINT" | "SHORTINT" | "MEDIUMINT" | "LONGINT":
            signed, _, unsigned = text.decode().partition(" ")
            assert str(value) in (signed, unsigned.strip("()"))
        case "FLOAT":
            assert f"{value:.6g}" == f"{float(text):.6g}"
        case "DOUBLE":
            assert value == float(text)
        case "DECIMAL":
            assert Decimal(cell.json) == Decimal(text.decode())
        case "BIT":
            assert int(value) == int(text[2:-1], 2)
        case "SET":
            # The stored bytes, lowest byte first.
            bits = text[2:-1]
            stored = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
            assert value == int.from_bytes(stored, "little")
        case "YEAR":
            # mysqlbinlog also adds 1900 to the year 0000.
            assert value == int(text) or (value, text) == (0, b"1900")
        case "ENUM":
            assert value == int(text)
        case "TIMESTAMP":
            assert (value or 0) == int(Decimal(text.decode()) * 1_000_000)
        case "DATE":
            assert cell.json[1:-1] == text.decode().strip("'").replace(":", "-")
        case "TIME" | "DATETIME":
            assert cell.json[1:-1].replace("T", " ") == text.decode().strip("'")
        case "VECTOR":
            assert [f"{each:.5e}" for each in value] == text.decode().strip("'[]").split(",")
        case "JSON":
            return _assert_same_json(cell, text)
        case _ if name.endswith(("STRING", "TEXT")):
            assert value == _unescaped(text)
        case _:
            raise AssertionError(f"{kind}: mysqlbinlog prints a type that is not compared")
    return True


_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"f": b"\f", b"b": b"\b", b"v": b"\v"}


def _unescaped(text: bytes) -> bytes:
    assert (text[:1], text[-1:]) == (b"'", b"'")

    def character(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code[1:], 16)]) if len(code) == 3 else _ESCAPES.get(code, code)

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", character, text[1:-1], flags=re.DOTALL)


def _assert_same_json(cell: Cell, text: bytes) -> bool:
    shown = _unescaped(text)
    found = json.loads(cell.json, parse_int=Number, parse_float=Number)
    if isinstance(found, str) and not isinstance(found, Number):
        # mysqlbinlog prints a string without its quotes.
        assert found.encode() == shown
        return True
    try:
        printed_row = json.loads(shown, parse_int=Number, parse_float=Number, strict=False)
    except ValueError:
        # Binary strings are printed raw.
        return False
    if printed_row is None or found is None:
        assert printed_row is found
    else:
        assert json_token(printed_row) == json_token(found)
    return True


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_inspected_row_counts_per_table_equal_those_of_mysqlbinlog(path: Path) -> None:
    printed = printed_statements(path)
    printed_counts = Counter((row.verb, row.table) for rows in printed for row in rows)
    source = BinlogFiles([str(path)])
    entries = Entries(source)
    texts = (text for entry in entries for text in statements(entries, entry))
    matches = (re.match(r"### (INSERT INTO|UPDATE|DELETE FROM) (.*)$", text) for text in texts)
    found = Counter((each[1], each[2]) for each in matches if each is not None)
    if path.name in CUT:
        assert printed_counts <= found
    else:
        assert printed_counts == found
