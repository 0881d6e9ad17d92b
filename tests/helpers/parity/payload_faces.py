"""Conversion of struct and variant payloads to JSON, so that the replay reads all three.

Each value is converted to the JSON text of its column's type. A value whose Python type does not
match the column's type in the struct or variant is an error. So a replay that equals SELECT
verifies these payloads as it verifies JSON.
"""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from typing import Any

from pyspark.sql.types import VariantVal

from pyspark_mysqlbinlog.tables import INTEGER_TYPES, SPATIAL_TYPES, ColumnSchema, TableSchema

__all__ = ["as_json_rows", "struct_image", "variant_image"]

_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
Row = Mapping[str, Any]


def as_json_rows(
    rows: Iterable[Row], schemas: Iterable[TableSchema], payload: str
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a payload as rows of payload=json; structs of several tables are nested."""
    by_name = {(schema.database, schema.table): schema for schema in schemas}
    for row in rows:
        schema = by_name[row["database"], row["table"]]
        missing = row["source"]["missing"] or []
        dates = dict(entry.rsplit("=", 1) for entry in row["source"]["invalid_dates"] or [])
        images: dict[str, str | None] = {}
        for side in ("before", "after"):
            image = row[side]
            if image is not None and payload == "struct" and len(by_name) > 1:
                image = _of_table(image, schema)
            if image is None:
                images[side] = None
            elif payload == "struct":
                images[side] = struct_image(schema, side, image, missing, dates)
            else:
                images[side] = variant_image(schema, image)
        source = {**row["source"], "invalid_dates": None}
        assert not dates or payload == "struct", "only a struct can't hold a date"
        yield {**row, **images, "source": source}


def _of_table(image: Row, schema: TableSchema) -> Any:
    """Return the table's own part of a nested struct; all other parts must be null."""
    for database, tables in image.items():
        if database != schema.database:
            assert tables is None
        else:
            others = {name: each for name, each in tables.items() if name != schema.table}
            assert set(others.values()) <= {None}, f"{schema.full_name} and others: {others}"
    found = image[schema.database][schema.table]
    assert found is not None
    return found


def struct_image(
    schema: TableSchema, side: str, image: Row, missing: list[str], dates: dict[str, str]
) -> str:
    """Return a struct as a JSON object."""
    assert list(image) == [column.name for column in schema.columns]
    parts = []
    for column in schema.columns:
        value, name = image[column.name], f"{side}.{column.name}"
        if name in missing:
            assert name not in dates, name
            assert value is None, f"{name} is missing, and {value!r}"
            continue
        if name in dates:
            assert value is None, f"{name} is no valid date, and {value!r}"
            assert column.type in _TIMES, name
            text = json.dumps(dates[name])
        else:
            text = "null" if value is None else _struct_value(column, value)
        parts.append(f"{json.dumps(column.name)}:{text}")
    return "{" + ",".join(parts) + "}"


def variant_image(schema: TableSchema, image: Any) -> str:
    """Return a variant as a JSON object with its keys in the table's order."""
    if not isinstance(image, VariantVal):
        image = VariantVal(image["value"], image["metadata"])
    # pyspark divides by a power of ten in the current decimal context.
    with localcontext(prec=60):
        values = image.toPython()
    assert isinstance(values, dict)
    columns = {column.name: column for column in schema.columns}
    assert set(values) <= set(columns)
    parts = [
        f"{json.dumps(name)}:{_nullable(_variant_value)(column, values[name])}"
        for name, column in columns.items()
        if name in values
    ]
    return "{" + ",".join(parts) + "}"


def _nullable(
    text_of: Callable[[ColumnSchema, Any], str],
) -> Callable[[ColumnSchema, Any], str]:
    return lambda column, value: "null" if value is None else text_of(column, value)


def _expect(column: ColumnSchema, value: object, kind: type) -> None:
    assert type(value) is kind, f"{column.name} ({column.type}): {value!r}, expected {kind}"


def _struct_value(column: ColumnSchema, value: Any) -> str:
    """Return the JSON text of a value of a struct with default options."""
    kind = column.type
    if kind == "bigint" and column.unsigned:
        _expect(column, value, Decimal)
        return str(value)
    if kind == "bit" and column.length == 64:
        _expect(column, value, Decimal)
        return str(value)
    if kind == "json":
        _expect(column, value, str)
        return str(value)
    if kind == "decimal" and (column.length or 0) <= 38:
        # All digits of the scale, never an exponent.
        _expect(column, value, Decimal)
        assert -value.as_tuple().exponent == column.scale, value
    return _value(column, value)


def _variant_value(column: ColumnSchema, value: Any) -> str:
    kind = column.type
    if kind == "json":
        return _tree(value)
    if kind == "decimal" and (column.length or 0) <= 38:
        _expect(column, value, Decimal)
        with localcontext(prec=60):
            return f"{value:.{column.scale}f}"
    if kind in {"bit", "bigint"} and isinstance(value, Decimal):
        assert value >= 1 << 63
        return str(value)
    if kind in _TIMES and isinstance(value, str):
        # An invalid date.
        return json.dumps(value)
    if kind == "timestamp":
        assert value.tzinfo is not None
    return _value(column, value)


def _value(column: ColumnSchema, value: Any) -> str:
    kind = column.type
    if kind == "bit" and column.length == 1:
        _expect(column, value, bool)
        return "true" if value else "false"
    if kind in INTEGER_TYPES | {"year", "bit"}:
        _expect(column, value, int)
        return str(value)
    if kind in {"float", "double"}:
        _expect(column, value, float)
        return repr(value)
    if kind == "decimal":
        if (column.length or 0) > 38:
            _expect(column, value, str)
            return str(value)
        return f"{value:f}"
    if kind in _BINARIES:
        _expect(column, value, bytes)
        return json.dumps(b64encode(value).decode())
    if kind == "date":
        _expect(column, value, dt.date)
        return json.dumps(value.isoformat())
    if kind in {"datetime", "timestamp"}:
        _expect(column, value, dt.datetime)
        assert (value.tzinfo is not None) == (kind == "timestamp"), value
        text = value.replace(tzinfo=None).isoformat("T", "microseconds")
        digits = column.length or 0
        assert set(text[20 + digits :]) <= {"0"}, f"{text} has more than {digits} digits"
        text = text[: 20 + digits] if digits else text[:19]
        return json.dumps(text + ("Z" if kind == "timestamp" else ""))
    if kind == "vector":
        _expect(column, value, list)
        return json.dumps(value)
    if kind in SPATIAL_TYPES:
        assert list(value) == ["srid", "wkb"], value
        wkb = b64encode(value["wkb"]).decode()
        return json.dumps({"srid": value["srid"], "wkb": wkb})
    _expect(column, value, str)
    return json.dumps(value)


def _tree(value: Any) -> str:
    """Return Python values as a JSON document with all digits of its numbers."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{_tree(each)}" for key, each in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_tree, value)) + "]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value)
