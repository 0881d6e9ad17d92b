"""Replay of decoded changes into empty tables, and comparison with SELECT.

The server is the oracle: the replayed rows must equal the rows that SELECT returns, and every
before image must equal the row that the replay has at that moment. Values are compared as tokens,
one spelling per value of a column's type: JSON texts (numbers digit for digit, as in the payload)
and SELECT's texts are both converted to tokens. Only these differences are allowed:

====================  =============================  ==========================
type                  payload                        SELECT
====================  =============================  ==========================
BIT                   true, 5                        1, 5 (hexadecimal)
FLOAT                 all digits                     6 digits, or FLOAT(m,d)'s d
DOUBLE(m,d)           all digits                     d digits
integers, YEAR        807261, 0                      00807261 (ZEROFILL), 0000
binaries              base64                         hexadecimal, upper case
spatial types         {"srid": 4326, "wkb": base64}  hexadecimal of SRID and WKB
JSON                  1e+300, -0.0                   1e300, -0
VECTOR                [1, 2.5]                       hexadecimal of the floats
JSON null             null, as NULL                  null, not NULL
DATETIME, TIMESTAMP   2026-11-20T10:00:00, …Z        2026-11-20 10:00:00
====================  =============================  ==========================
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pyspark_mysqlbinlog.tables import (
    INTEGER_TYPES,
    SPATIAL_TYPES,
    ColumnSchema,
    TableSchema,
)

__all__ = ["BINARIES", "Number", "Replay", "captured_schemas", "parse_column", "select_tokens"]

Token = str | None
BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


class Number(str):
    """A JSON number, kept as its text."""

    __slots__ = ()


def _load(text: str) -> dict[str, Any]:
    """Return a payload's JSON with numbers as text; a repeated name is an error."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        loaded = dict(pairs)
        assert len(loaded) == len(pairs), f"a name comes twice: {text[:200]}"
        return loaded

    def constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON: {text[:200]}")

    loaded = json.loads(
        text,
        parse_int=Number,
        parse_float=Number,
        parse_constant=constant,
        object_pairs_hook=once,
    )
    assert isinstance(loaded, dict), text[:200]
    return loaded


def payload_token(column: ColumnSchema, value: Any) -> Token:
    """Return the token of a value of the JSON payload."""
    if value is None:
        return None
    kind = column.type
    if kind == "bit":
        assert isinstance(value, bool if column.length == 1 else Number), (column, value)
        return str(int(value))
    if kind in INTEGER_TYPES or kind in {"year", "float", "double", "decimal"}:
        assert isinstance(value, Number), f"{column.name}: expected a number, found {value!r}"
        if kind == "float":
            return _float_token(column, value)
        return _double_token(column, value) if kind == "double" else str(value)
    if kind == "json":
        return json_token(value)
    if kind == "vector":
        assert isinstance(value, list), f"{column.name}: expected a list, found {value!r}"
        return struct.pack(f"<{len(value)}f", *map(float, value)).hex().upper()
    if kind in SPATIAL_TYPES:
        assert list(value) == ["srid", "wkb"], value
        srid = b"" if value["srid"] is None else int(value["srid"]).to_bytes(4, "little")
        return (srid + b64decode(value["wkb"], validate=True)).hex().upper()
    assert isinstance(value, str), f"{column.name}: expected a string, found {value!r}"
    assert not isinstance(value, Number), f"{column.name}: expected a string, found {value!r}"
    if kind in BINARIES:
        return b64decode(value, validate=True).hex().upper()
    if kind in {"datetime", "timestamp"}:
        # Only zero and partial-zero dates are spelled as in SELECT.
        is_zero = "-00" in value[4:10]
        assert value[10] == (" " if is_zero else "T"), value
        assert value.endswith("Z") == (kind == "timestamp" and not is_zero), value
        return value.replace("T", " ").rstrip("Z")
    return value


def select_token(column: ColumnSchema, text: str | None) -> Token:
    """Return the token of a value as SELECT shows it (binary columns and BIT in hexadecimal)."""
    if text is None:
        return None
    kind = column.type
    if kind == "bit":
        return str(int(text, 16))
    if kind in INTEGER_TYPES or kind == "year":
        return str(int(text))
    if kind == "float":
        return _float_token(column, text)
    if kind == "double":
        return _double_token(column, text)
    if kind == "json":
        # Not strict: 5.7 breaks the base64 of a long opaque value with unescaped newlines.
        loaded = json.loads(text, parse_int=Number, parse_float=Number, strict=False)
        return None if loaded is None else json_token(loaded)
    return text


def json_token(value: Any) -> str:
    """Return one spelling for each JSON value: keys sorted, numbers with all of their digits.

    value : as `json.loads` returns it, with `Number` for numbers.
    """
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}:{json_token(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_token, value)) + "]"
    if isinstance(value, Number):
        sign, digits, exponent = Decimal(value).as_tuple()
        text = "".join(map(str, digits)).lstrip("0")
        stripped = text.rstrip("0")
        shift = int(exponent) + len(text) - len(stripped)
        return f"{'-' if sign else ''}{stripped}e{shift}" if stripped else "-0" if sign else "0"
    return json.dumps(value)


def _float_token(column: ColumnSchema, text: str) -> str:
    # Both texts denote a float32, which has fewer significant digits below the normal range.
    text = repr(struct.unpack("<f", struct.pack("<f", float(text)))[0])
    shown = f"{float(text):.6g}" if column.scale is None else f"{float(text):.{column.scale}f}"
    return repr(float(shown))


def _double_token(column: ColumnSchema, text: str) -> str:
    shown = text if column.scale is None else f"{float(text):.{column.scale}f}"
    return repr(float(shown))


def select_tokens(schema: TableSchema, rows: Iterable[Sequence[str | None]]) -> list[list[Token]]:
    """Return SELECT's rows as tokens, sorted."""
    tokens = [
        [select_token(column, text) for column, text in zip(schema.columns, row, strict=True)]
        for row in rows
    ]
    return sorted(tokens, key=_sort_key)


def _sort_key(row: list[Token]) -> list[tuple[bool, str]]:
    return [(token is None, token or "") for token in row]


class _Table:
    """The rows of one table by primary key, or by all of their values if there is none."""

    def __init__(self, schema: TableSchema, defaults: Mapping[str, str | None]) -> None:
        self.schema = schema
        self.columns = {column.name: column for column in schema.columns}
        self.rows: dict[tuple[Token, ...], list[dict[str, Token]]] = {}
        self.defaults = {
            name: select_token(self.columns[name], text) for name, text in defaults.items()
        }

    def image(self, text: str) -> dict[str, Token]:
        loaded = _load(text)
        order = [name for name in self.columns if name in loaded]
        assert list(loaded) == order, f"expected columns {order}, found {list(loaded)}"
        return {name: payload_token(self.columns[name], value) for name, value in loaded.items()}

    def _key(self, row: Mapping[str, Token]) -> tuple[Token, ...] | None:
        names = self.schema.primary_key or tuple(self.columns)
        return tuple(row[name] for name in names) if all(name in row for name in names) else None

    def insert(self, image: dict[str, Token]) -> None:
        row = {**self.defaults, **image}
        assert len(row) == len(self.columns), f"not in the row: {self.columns.keys() - row.keys()}"
        key = self._key(row)
        assert key is not None
        same = self.rows.setdefault(key, [])
        assert not (same and self.schema.primary_key), f"the key {key} is there already"
        same.append(row)

    def take(self, before: dict[str, Token]) -> dict[str, Token]:
        """Remove and return the row of a before image; all values of the image must match."""
        key = self._key(before)
        if key is None:
            assert not self.schema.primary_key, f"a before image without the key: {before}"
            key = next(
                (
                    key
                    for key, rows in self.rows.items()
                    if all(rows[0][name] == token for name, token in before.items())
                ),
                None,
            )
        rows = self.rows.get(key) if key is not None else None
        assert rows, f"{self.schema.full_name}: no row for the before image {before}"
        row = rows.pop()
        if not rows and key is not None:
            del self.rows[key]
        differing = {
            name: (row[name], token) for name, token in before.items() if row[name] != token
        }
        assert not differing, f"{self.schema.full_name} {key}: (held, before image) {differing}"
        return row

    def tokens(self) -> list[list[Token]]:
        rows = [[row[name] for name in self.columns] for same in self.rows.values() for row in same]
        return sorted(rows, key=_sort_key)


class Replay:
    """Tables that start empty, to which changes are applied.

    Parameters
    ----------
    schemas : of all tables that occur in the rows.
    defaults : (database, table) -> column -> SELECT's text of the value after an INSERT whose image
        lacks the column (minimal images only).
    cascades : (database, parent, its key's column) -> (child, its column): ON DELETE CASCADE, which
        deletes rows without an event.
    """

    def __init__(
        self,
        schemas: Iterable[TableSchema],
        defaults: Mapping[tuple[str, str], Mapping[str, str | None]] | None = None,
        cascades: Mapping[tuple[str, str, str], tuple[str, str]] | None = None,
    ) -> None:
        self._cascades = dict(cascades or {})
        self._tables = {
            (schema.database, schema.table): _Table(
                schema, (defaults or {}).get((schema.database, schema.table), {})
            )
            for schema in schemas
        }
        self._last_seq: tuple[int, ...] | None = None
        self.count = 0

    def apply(self, rows: Iterable[Mapping[str, Any]], *, ordered: bool = True) -> None:
        """Apply changes.

        rows : mappings with op, database, table, before and after (JSON text or None), seq and
            source (mappings).
        ordered : the rows are in the order of `seq`; otherwise they are sorted by it first. A
            repeated `seq` is an error in both cases, also across calls.
        """
        for row in rows if ordered else sorted(rows, key=_seq):
            seq = _seq(row)
            assert self._last_seq is None or seq > self._last_seq, (self._last_seq, seq)
            self._last_seq = seq
            try:
                self._apply(row)
            except AssertionError as error:
                raise AssertionError(f"at {seq}, op {row['op']}: {error}") from error
            self.count += 1

    def _apply(self, row: Mapping[str, Any]) -> None:
        op, source = row["op"], row["source"]
        table = self._tables[row["database"], row["table"]]
        before = None if row["before"] is None else table.image(row["before"])
        after = None if row["after"] is None else table.image(row["after"])
        images = (before is not None, after is not None)
        expected = {"c": (False, True), "u": (True, True), "d": (True, False), "t": (False, False)}
        assert images == expected[op], f"op {op} has the images (before, after) {images}"
        missing = [
            f"{side}.{name}"
            for side, image in (("before", before), ("after", after))
            if image is not None
            for name in table.columns
            if name not in image
        ]
        assert list(source["missing"] or []) == missing, (source["missing"], missing)
        assert list(source["key"] or []) == list(table.schema.primary_key), source["key"]

        if op == "t":
            # The binlog does not contain which rows were in a truncated partition.
            assert "PARTITION" not in (source["query"] or "").upper(), source["query"]
            table.rows.clear()
            return
        held = {} if before is None else table.take(before)
        if after is not None:
            table.insert({**held, **after})
        elif op == "d":
            self._cascade(row["database"], row["table"], held)

    def _cascade(self, database: str, parent: str, deleted: Mapping[str, Token]) -> None:
        for (in_database, of_table, key), (child, column) in self._cascades.items():
            if (in_database, of_table) == (database, parent):
                rows = self._tables[database, child].rows
                for child_key, same in list(rows.items()):
                    rows[child_key] = [row for row in same if row[column] != deleted[key]]
                    if not rows[child_key]:
                        del rows[child_key]

    def tokens(self, database: str, table: str) -> list[list[Token]]:
        """Return the current rows as tokens, sorted."""
        return self._tables[database, table].tokens()

    def assert_equals(
        self, database: str, table: str, select: Iterable[Sequence[str | None]]
    ) -> None:
        """Check that the current rows equal SELECT's rows."""
        schema = self._tables[database, table].schema
        found, expected = self.tokens(database, table), select_tokens(schema, select)
        assert len(found) == len(expected), f"{table}: {len(found)} rows, SELECT {len(expected)}"
        for found_row, expected_row in zip(found, expected, strict=True):
            differing = {
                column.name: (found_value, expected_value)
                for column, found_value, expected_value in zip(
                    schema.columns, found_row, expected_row, strict=True
                )
                if found_value != expected_value
            }
            assert not differing, f"{table}: (replayed, SELECT) {differing}"


def _seq(row: Mapping[str, Any]) -> tuple[int, ...]:
    seq = row["seq"]
    return (seq["epoch"], seq["file"], seq["pos"], seq["row"])


_TYPE = re.compile(r"(?P<type>\w+)(?:\((?P<arguments>.*)\))?(?P<rest>[^)]*)", re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")


def parse_column(described: Mapping[str, Any]) -> ColumnSchema:
    """Return the column that SHOW COLUMNS describes: name, type, charset, nullable, extra."""
    found = _TYPE.fullmatch(described["type"])
    assert found is not None, described
    kind, arguments = found["type"], found["arguments"]
    if kind == "geomcollection":
        kind = "geometrycollection"  # as 8.0 and later name it
    length = scale = None
    labels: tuple[str, ...] = ()
    if kind in {"enum", "set"}:
        labels = tuple(label.replace("''", "'") for label in _LABEL.findall(arguments))
    elif arguments is not None and (kind not in INTEGER_TYPES | {"year"} or arguments == "1"):
        numbers = [int(number) for number in arguments.split(",")]
        length = numbers[0]
        scale = numbers[1] if len(numbers) > 1 else None
    if kind in {"time", "datetime", "timestamp"}:
        length = length or 0
    return ColumnSchema(
        name=described["name"],
        type=kind,
        length=length,
        scale=scale,
        unsigned="unsigned" in found["rest"],
        charset=described["charset"],
        labels=labels,
        nullable=described["nullable"] == "YES",
        virtual="VIRTUAL" in described["extra"],
        generated=described["extra"].endswith(" GENERATED"),
    )


def captured_schemas(scenario: Mapping[str, Any]) -> list[TableSchema]:
    """Return the tables of one recorded scenario as they are at its end."""
    # SHOW COLUMNS is in utf8 with three bytes and shows ``?`` for other characters. Labels with
    # such characters are taken from CREATE TABLE instead.
    creates = [each["sql"] for each in scenario["statements"] if "create table" in each["sql"]]

    def column(table: str, described: Mapping[str, Any]) -> ColumnSchema:
        parsed = parse_column(described)
        if parsed.type == "enum" and any("?" in label for label in parsed.labels):
            create = next(sql for sql in creates if sql.startswith(f"create table {table} "))
            found = re.search(rf"\b{parsed.name} enum\(('[^)]*')\)", create)
            assert found is not None, create
            return replace(parsed, labels=tuple(_LABEL.findall(found[1])))
        return parsed

    return [
        TableSchema(
            database=scenario["database"],
            table=name,
            columns=tuple(column(name, described) for described in table["columns"]),
            primary_key=tuple(c["name"] for c in table["columns"] if c["key"] == "PRI"),
        )
        for name, table in scenario["tables"].items()
    ]
