"""Values as SQL that stores exactly the same bytes again, and conditions that only they meet.

Both are pure ASCII and mean the same whatever the session's character set and sql_mode are, except
for what `script.SESSION` sets. These values would be stored differently in another form:

- A text in another character set is converted, and letters may become others: an introducer names
  the column's own, and the bytes are in hexadecimal. A plain literal needs no backslash, because
  NO_BACKSLASH_ESCAPES changes its meaning.
- ``1.1`` is a DECIMAL, ``1.1e0`` a double with the nearest bits. A FLOAT needs the digits of its
  double.
- A label of an ENUM may look like a number, and an invalid value has no label: both ENUM and SET
  are given as numbers.

Some values are equal for the server, but have other bytes: texts under a collation, a zero and a
negative zero, JSON numbers of several types. So texts are compared as bytes, and the others by
their text, too. A column must not be compared with ``=`` in addition: where it equals a constant,
the optimizer replaces it by the constant in the other conditions (``d = -0e0 AND LEFT(d, 1) = '-'``
is true for each zero on MySQL 5.6 and 9.7).
"""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.flashback.json_expressions import json_expression
from pyspark_mysqlbinlog.connector.inspection.entries import NULL, Cell, Undecoded
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.values.json_binary import parse_json
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import UndoError
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, SPATIAL_TYPES

__all__ = ["condition", "is_invalid_enum", "stored_literal"]

_TEMPORALS = frozenset({"date", "time", "datetime", "timestamp"})
# In these, each ASCII letter is the same byte, and each such byte is that letter.
_ASCII_CHARSETS = frozenset({"ascii", "latin1", "utf8", "utf8mb4"})
_FLOATS = frozenset({"float", "double"})


def stored_literal(cell: Cell, table_map: TableMap) -> str:
    """Return SQL of a value that stores its bytes; UndoError if there is none."""
    value, kind = cell.value, _kind(cell)
    if value is NULL:
        return "NULL"
    if kind in ("enum", "set"):
        return str(int.from_bytes(cell.raw, "little"))
    charset = cell.column.schema.charset if cell.column.schema is not None else None
    if charset is not None:
        return _text(_bytes(cell, table_map), charset)
    if isinstance(value, Undecoded):
        raise UndoError(
            f"column `{cell.column.name}` has bytes that are no value of its type:"
            f" {value.raw.hex()} ({value.reason})"
        )
    if kind == "json":
        return json_expression(parse_json(_bytes(cell, table_map)), cell.column.name)
    if kind in SPATIAL_TYPES or kind == "vector":
        return f"x'{_bytes(cell, table_map).hex()}'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if kind == "bit":
        return f"b'{int(value):b}'"
    if kind in _FLOATS:
        return _double(value)
    if kind in _TEMPORALS:
        return _temporal(cell)
    if kind == "year":
        return f"'{value:04d}'"
    if kind in INTEGER_TYPES or kind == "decimal":
        return str(value)
    raise UndoError(f"column `{cell.column.name}` has the type {kind}, which is not supported")


def condition(cell: Cell, table_map: TableMap, *, seekable: bool) -> str:
    """Return a condition that the value meets, and no value with other bytes.

    seekable : an index of the column may be used to find it.
    """
    name, value, kind = quoted(cell.column.name), cell.value, _kind(cell)
    if value is NULL:
        return f"{name} IS NULL"
    literal = stored_literal(cell, table_map)
    if kind in ("enum", "set", "year"):
        number = value if kind == "year" else literal
        return f"CAST({name} AS UNSIGNED) = {number}"
    if literal.startswith(("'", "_")) and kind not in _TEMPORALS:
        raw = literal if literal.startswith("'") else literal[literal.index("x'") :]
        exact = f"CAST({name} AS BINARY) = {raw}"
        return f"{name} >= {literal} AND {name} <= {literal} AND {exact}" if seekable else exact
    if kind == "json":
        whole = f"JSON_EXTRACT({name}, '$') = {literal}"
        return f"{whole} AND CAST({name} AS CHAR) = CAST({literal} AS CHAR)"
    if kind in SPATIAL_TYPES or kind == "vector":
        return f"HEX({name}) = '{literal[2:-1].upper()}'"
    if kind == "bit":
        return f"{name} = {int(value)}"
    if kind in _FLOATS and value == 0:
        # The two zeros are equal, and only the negative one has a sign.
        sign = "=" if literal.startswith("-") else "<>"
        return f"ABS({name}) = 0e0 AND LEFT({name}, 1) {sign} '-'"
    return f"{name} = {literal}"


def is_invalid_enum(cell: Cell) -> bool:
    """Whether a value is the invalid one of an ENUM, which the strict mode does not store."""
    return _kind(cell) == "enum" and cell.value is not NULL and not any(cell.raw)


def _kind(cell: Cell) -> str:
    return "" if cell.column.schema is None else cell.column.schema.type


def _bytes(cell: Cell, table_map: TableMap) -> bytes:
    """Return the bytes of a value without those of its length."""
    stored = stored_size(table_map.types[cell.at], table_map.metadata[cell.at])
    return cell.raw[stored.size :] if stored.is_prefix else cell.raw


def _text(raw: bytes, charset: str) -> str:
    is_plain = charset in _ASCII_CHARSETS and raw.isascii() and b"\\" not in raw
    if is_plain and raw.decode("ascii").isprintable():
        return f"'{raw.decode('ascii').replace(chr(39), chr(39) * 2)}'"
    return f"_{charset} x'{raw.hex()}'"


def _double(value: float) -> str:
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _temporal(cell: Cell) -> str:
    # The form of an SQL literal; TIMESTAMP in UTC, which is the session's time zone.
    return f"'{cell.json[1:-1].replace('T', ' ').removesuffix('Z')}'"
