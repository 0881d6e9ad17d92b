"""Values, names and statements as text that a terminal can show.

Values are SQL literals. Whatever comes from the log may contain control characters, which could
write anything into a terminal: they are shown as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby

from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import NULL, Cell, Undecoded
from pyspark_mysqlbinlog.decoder.events.field_types import (
    FieldType,
    describe_field,
    real_string,
)
from pyspark_mysqlbinlog.decoder.values.json_binary import json_document
from pyspark_mysqlbinlog.decoder.values.json_diff import Diff
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, ColumnSchema

__all__ = [
    "diff_json",
    "diffs_text",
    "literal",
    "name_text",
    "one_line",
    "printable",
    "type_text",
]

# Control characters, and those that change the direction or the place of the text around them.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\x00": r"\0"}
_NOT_STRINGS = frozenset({"date", "time", "datetime", "timestamp", "json", "decimal"})
_TEMPORALS = frozenset({"date", "time", "datetime", "timestamp"})
_TEXTS = (FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING, FieldType.BLOB)
# The number of bits of each integer type.
_BITS: dict[int, int] = {
    FieldType.TINY: 8,
    FieldType.SHORT: 16,
    FieldType.INT24: 24,
    FieldType.LONG: 32,
    FieldType.LONGLONG: 64,
}


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable(text: str) -> str:
    """Return text with escapes for what a terminal would not show as a character."""
    return _UNPRINTABLE.sub(_escaped, text)


def one_line(text: str, width: int) -> str:
    """Return a statement in one line of at most `width` characters."""
    # Only the beginning is processed, because a statement may be long.
    shown = printable(" ".join(text[: 8 * width].split()))
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def name_text(*names: str) -> str:
    """Return quoted names, as in SQL."""
    return printable(quoted(*names))


def literal(cell: Cell, columns: ColumnsOfTable) -> str:
    """Return a value as an SQL literal; of an integer of unknown sign, both values."""
    value = cell.value
    if value is NULL:
        return "NULL"
    if isinstance(value, Undecoded):
        return f"x'{value.raw.hex()}' (undecoded: {printable(value.reason)})"
    code = columns.plan.table_map.types[cell.at]
    is_bare = cell.at in columns.bare
    schema = cell.column.schema
    kind = "" if schema is None else schema.type
    if isinstance(value, bytes):
        # For a bare column it is unknown whether the bytes are text.
        return _bytes_text(value, may_be_text=is_bare and kind != "geometry")
    if code == FieldType.BIT:
        return f"b'{int(value):b}'"
    if isinstance(value, str) and kind not in _NOT_STRINGS:
        return _string(value)
    if is_bare and kind in INTEGER_TYPES:
        if code in _BITS and value < 0:
            return f"{value} ({value + (1 << _BITS[code])} if unsigned)"
        if _real_type(columns, cell.at) == FieldType.SET:
            return f"b'{value:b}'"
    text = cell.json
    if kind in _TEMPORALS:
        # The form of an SQL literal; TIMESTAMP in UTC.
        return f"'{text[1:-1].replace('T', ' ').removesuffix('Z')}'"
    return _string(text) if kind in ("json", "vector") else text


def diffs_text(name: str, diffs: Iterable[Diff]) -> str:
    """Return the differences of a JSON column as calls of MySQL's functions, as mysqlbinlog does.

    name : of the column, quoted.
    """
    text = name
    for function, group in groupby(diffs, _function):
        arguments = [text]
        for diff in group:
            arguments.append(_string(diff.path.decode("utf-8", "replace")))
            if diff.value is not None:
                arguments.append(_json_argument(diff.value))
        text = f"{function}({', '.join(arguments)})"
    return text


def _function(diff: Diff) -> str:
    is_of_array = diff.verb == "insert" and diff.path.endswith(b"]")
    return f"JSON_{'ARRAY_' if is_of_array else ''}{diff.verb.upper()}"


def diff_json(diff: Diff) -> str:
    """Return a difference as a JSON object."""
    path = json.dumps(diff.path.decode("utf-8", "replace"), ensure_ascii=False)
    new = "" if diff.value is None else f', "value": {_document_text(diff.value)}'
    return f'{{"operation": "{diff.verb}", "path": {path}{new}}}'


def _document_text(document: bytes) -> str:
    codec = json_document("a JSON diff", 4)
    return codec.json(codec.read(len(document).to_bytes(4, "little") + document, 0)[0])


def _json_argument(document: bytes) -> str:
    text = _document_text(document)
    if text.startswith('"'):
        return _string(json.loads(text))
    return f"CAST({_string(text)} AS JSON)" if text.startswith(("{", "[")) else text


def _string(text: str) -> str:
    return f"'{printable(text.replace(chr(92), chr(92) * 2).replace(chr(39), chr(39) * 2))}'"


def _bytes_text(value: bytes, *, may_be_text: bool) -> str:
    if may_be_text:
        with suppress(UnicodeDecodeError):
            text = value.decode()
            if not _UNPRINTABLE.search(text):
                return _string(text)
    return f"x'{value.hex()}'"


def _real_type(columns: ColumnsOfTable, index: int) -> int:
    """Return the type, with ENUM and SET distinguished from STRING."""
    table_map = columns.plan.table_map
    code = table_map.types[index]
    return real_string(table_map.metadata[index])[0] if code == FieldType.STRING else code


def type_text(index: int, columns: ColumnsOfTable) -> str:
    """Return a description of a column's type, and what is unknown about it."""
    plan = columns.plan
    schema = plan.columns[index].schema
    if index not in columns.bare and schema is not None:
        return _declared(schema)
    code = plan.table_map.types[index]
    text = describe_field(code, plan.table_map.metadata[index])
    if code in _BITS:
        return f"{text}, sign unknown"
    if _real_type(columns, index) in (FieldType.ENUM, FieldType.SET):
        return f"{text}, labels unknown"
    if code in _TEXTS:
        return f"{text}, character set unknown"
    return f"{text}, UTC" if code in (FieldType.TIMESTAMP, FieldType.TIMESTAMP2) else text


def _declared(schema: ColumnSchema) -> str:
    text = schema.type
    if schema.scale is not None:
        text += f"({schema.length},{schema.scale})"
    elif schema.length:
        text += f"({schema.length})"
    if schema.unsigned:
        text += " unsigned"
    if schema.charset is not None and schema.type not in ("enum", "set"):
        text += f" {schema.charset}"
    if schema.type == "timestamp":
        text += ", UTC"
    return text
