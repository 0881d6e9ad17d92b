"""The fields of a rows event: head, bitmaps, and the values of each row.

The layout is that of decoder/events/rows.py and decoder/payloads/partial_updates.py. Where a value
ends is known from its column's codec, which also reads it.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import Cell, read_value
from pyspark_mysqlbinlog.connector.inspection.layout.fields import FieldReader
from pyspark_mysqlbinlog.connector.inspection.layout.layouts import (
    bits_text,
    column_names,
    flags_text,
)
from pyspark_mysqlbinlog.connector.inspection.literals import literal, name_text, printable
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.payloads.partial_updates import PARTIAL_UPDATE
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan
from pyspark_mysqlbinlog.decoder.values.json_binary import json_document
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = ["read_rows"]

_FLAGS = {
    0x01: "STMT_END",
    0x02: "NO_FOREIGN_KEY_CHECKS",
    0x04: "RELAXED_UNIQUE_CHECKS",
    0x08: "COMPLETE_ROWS",
    0x10: "USE_SQL_FOREIGN_KEY",
}
_MAX_SHOWN_VALUE = 200
_DIFF_OPERATIONS = {0: "replace", 1: "insert", 2: "remove"}


def read_rows(reader: FieldReader, kind: int, columns: ColumnsOfTable | None) -> None:
    """Read the body of a rows event; without columns, only its head."""
    op, version = OPERATIONS[kind]
    table_id = reader.uint("table id", 6)
    if columns is not None:
        table_map = columns.plan.table_map
        reader.explain(f"{table_id} = {name_text(table_map.database, table_map.table)}")
    reader.take_as("flags", 2, lambda raw: flags_text(int.from_bytes(raw, "little"), _FLAGS))
    if version == 2:
        extra = reader.uint("length of the extra data, itself included", 2)
        reader.take("extra data", extra - 2)
    reader.section = "bitmaps"
    count = reader.lenenc("column count")
    if columns is None:
        reader.rest("columns and rows")
        return
    names = _names(columns, count)
    size = (count + 7) // 8
    present = [
        reader.take_as(f"columns of the {side} image", size, lambda raw: bits_text(raw, names))
        for side in _sides(op)
    ]
    row = 0
    while reader.remaining:
        row += 1
        begin = reader.pos
        for side, bitmap in zip(_sides(op), present, strict=True):
            reader.section = f"row {row} {side}"
            partial: set[int] = set()
            if kind == PARTIAL_UPDATE and side == "after":
                partial = _read_options(reader, columns, names)
            _read_image(reader, columns, _indexes(bitmap, count), names, partial)
        if reader.pos == begin:
            raise MalformedEventError("a rows event has row images of no bytes")


def _sides(op: str) -> tuple[str, ...]:
    return {"c": ("after",), "u": ("before", "after"), "d": ("before",)}[op]


def _names(columns: ColumnsOfTable, count: int) -> list[str]:
    plan = columns.plan
    if len(plan.columns) != count:
        raise MalformedEventError(
            f"a rows event has {count} columns, expected the {len(plan.columns)} of its table map"
        )
    if columns.unknown:
        return column_names(count)
    return [name_text(column.name) for column in plan.columns]


def _indexes(bitmap: bytes, count: int) -> list[int]:
    return [at for at in range(count) if bitmap[at >> 3] >> (at & 7) & 1]


def _read_options(reader: FieldReader, columns: ColumnsOfTable, names: list[str]) -> set[int]:
    """Return the columns that have JSON diffs."""
    documents = [
        at for at, code in enumerate(columns.plan.table_map.types) if code == FieldType.JSON
    ]
    if not reader.lenenc("row value options"):
        reader.explain("0 = whole documents")
        return set()
    reader.explain("1 = JSON diffs")
    size = (len(documents) + 7) // 8
    of_documents = [names[at] for at in documents]
    bits = reader.take_as("columns with JSON diffs", size, lambda raw: bits_text(raw, of_documents))
    return {documents[at] for at in _indexes(bits, len(documents))}


def _read_image(
    reader: FieldReader,
    columns: ColumnsOfTable,
    present: list[int],
    names: list[str],
    partial: set[int],
) -> None:
    here = [names[at] for at in present]
    bitmap = reader.take_as(
        "null bitmap", (len(present) + 7) // 8, lambda raw: bits_text(raw, here)
    )
    nulls = set(_indexes(bitmap, len(present)))
    reader.explain(f"NULL: {reader.fields[-1].meaning}")
    for number, at in enumerate(present):
        if number in nulls:
            continue
        if at in partial:
            _read_diffs(reader, names[at])
        else:
            _read_value(reader, columns, at, names[at])


def _read_value(reader: FieldReader, columns: ColumnsOfTable, at: int, name: str) -> None:
    table_map = columns.plan.table_map
    column = columns.plan.columns[at]
    meaning = _meaning(reader, columns, at, column)
    stored = stored_size(table_map.types[at], table_map.metadata[at])
    if stored.is_prefix:
        size = reader.uint(f"length of {name}", stored.size)
        reader.take(name, size, meaning)
    else:
        reader.skip_with(name, column.skip, meaning)


def _meaning(reader: FieldReader, columns: ColumnsOfTable, at: int, column: ColumnPlan) -> str:
    if column.codec is None or column.before_image_unreliable:
        return "not decoded"
    value, _ = read_value(column, reader.data, reader.pos)
    text = literal(Cell(at, column, value), columns)
    return text if len(text) <= _MAX_SHOWN_VALUE else f"{text[:_MAX_SHOWN_VALUE]}…"


def _read_diffs(reader: FieldReader, name: str) -> None:
    end = reader.uint(f"length of the diffs of {name}", 4) + reader.pos
    document = json_document(name, 4)
    while reader.pos < end:
        operation = reader.uint(f"operation on {name}", 1)
        reader.explain(f"{operation} = {_DIFF_OPERATIONS.get(operation, 'unknown')}")
        reader.text("path", reader.lenenc("length of the path"))
        if _DIFF_OPERATIONS.get(operation) == "remove":
            continue
        size = reader.lenenc("length of the value")
        raw = reader.take("value", size)
        value, _ = document.read(size.to_bytes(4, "little") + raw, 0)
        reader.explain(printable(document.json(value))[:_MAX_SHOWN_VALUE])
