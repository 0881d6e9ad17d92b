"""JSON texts as typed columns, with the types and values of payload=struct.

Other tests compare the struct payload with SELECT for every type.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import compute

from helpers.logs.recorded_logs import SCENARIOS, load
from helpers.parity.decode_parity import PAYLOADS, Parity
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.errors import MirrorError, SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

# The stubs do not accept chunked arrays together with plain values.
pc: Any = compute


def _decoded(payload: str, schemas: list[TableSchema], events: list[Any]) -> pa.Table:
    parity = Parity(schemas, PAYLOADS[payload])
    decoded = parity.kernel(pack_events(events))
    assert decoded.error is None
    return pa.Table.from_batches(decoded.batches, parity.schema)


def _image(structs: pa.Table, side: str, schema: TableSchema, *, nested: bool) -> pa.Table:
    """Return one table's images of one side as an Arrow table."""
    column: Any = structs.column(side).combine_chunks()
    if nested:
        column = column.field(schema.database).field(schema.table)
    return pa.Table.from_struct_array(column.drop_null())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_json_rows_equal_struct_rows(scenario: str) -> None:
    described, events = load(scenario)
    schemas = captured_schemas(described)
    texts, structs = (_decoded(payload, schemas, events) for payload in ("json-text", "struct"))
    compared = 0
    for schema in schemas:
        names = texts.column("table")
        of_table = pc.equal(names, schema.table)
        for side in ("before", "after"):
            given = texts.filter(of_table).column(side).drop_null()
            expected = _image(structs.filter(of_table), side, schema, nested=len(schemas) > 1)
            read = RowImageReader(schema.columns, schema.full_name).from_json(given)
            assert read.schema.equals(expected.schema)
            for name in read.column_names:
                assert read.column(name).equals(expected.column(name)), (schema.full_name, name)
            compared += read.num_rows
    assert compared > 0


def _read(column: C, *values: str) -> list[Any]:
    texts = pa.chunked_array([[f'{{"c":{value}}}' for value in values]], pa.string())
    return RowImageReader([column], "d.t").from_json(texts).column("c").to_pylist()


DATE, MOMENT = C("c", "date"), C("c", "datetime", 6)
STAMP = C("c", "timestamp", 0)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (DATE, ['"2026-11-20"', '"0000-00-00"', "null", '"2026-11-00"', '"0000-05-12"'],
         [dt.date(2026, 11, 20), None, None, None, None]),
        (DATE, ['"0000-05-12"', '"0001-01-01"', '"9999-12-31"'],
         [None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        (DATE, ['"2026-02-31"', '"2024-02-29"'], [None, dt.date(2024, 2, 29)]),
        (MOMENT, ['"2026-11-20T10:00:00.123456"', '"0000-00-00 00:00:00.000000"', "null"],
         [dt.datetime.fromisoformat("2026-11-20T10:00:00.123456"), None, None]),
        (MOMENT, ['"2026-02-31 10:00:00.000000"'], [None]),
        (MOMENT, ['"2026-02-31T10:00:00.000000"', "null"], [None, None]),
        # The year 0, with a valid value and with another invalid date.
        (MOMENT, ['"0000-12-31T23:59:59.999999"', '"0001-01-01T00:00:00.000000"'],
         [None, dt.datetime.fromisoformat("0001-01-01")]),
        (MOMENT, ['"0000-05-12T10:00:00.000000"', '"2026-02-31T10:00:00.000000"'], [None, None]),
        (STAMP, ['"2026-11-20T10:00:00Z"', '"0000-00-00 00:00:00"'],
         [dt.datetime(2026, 11, 20, 10, tzinfo=dt.UTC), None]),
        (C("c", "decimal", 65, 30), ["0." + "0" * 30, "-12345." + "0" * 29 + "1", "null"],
         ["0." + "0" * 30, "-12345." + "0" * 29 + "1", None]),
        (C("c", "bigint", unsigned=True), ["18446744073709551615", "0"],
         [Decimal(18446744073709551615), Decimal(0)]),
        (C("c", "blob"), ['"AP8="', '""', "null"], [b"\x00\xff", b"", None]),
        (C("c", "point"), ['{"srid":null,"wkb":""}', "null", '{"srid":4326,"wkb":"AQ=="}'],
         [{"srid": None, "wkb": b""}, None, {"srid": 4326, "wkb": b"\x01"}]),
        (C("c", "json"), ['"null"', "null", '"{\\"a\\": 1}"'], ["null", None, '{"a": 1}']),
        (C("c", "float"), ["3.1415927", "1e+30"], [3.1415927410125732, 1.0000000150474662e30]),
    ],
)  # fmt: skip
def test_json_values_are_read_as_typed_values_with_invalid_dates_null(
    column: C, values: list[str], expected: list[Any]
) -> None:
    assert _read(column, *values) == expected


def test_large_texts_in_sliced_arrays_are_read_completely() -> None:
    column = C("c", "longtext", charset="utf8mb4")
    texts = [f'{{"c":"{"é" * length}"}}' for length in (0, 3_000_000, 1, 1_200_000)]
    array = pa.array(["x", *texts, "y"]).slice(1, 4)
    read = RowImageReader([column], "d.t").from_json(pa.chunked_array([array]))
    assert [len(str(value)) for value in read.column("c").to_pylist()] == [
        0,
        3_000_000,
        1,
        1_200_000,
    ]


def test_unexpected_json_column_is_rejected_unless_columns_are_selected() -> None:
    texts = pa.chunked_array([['{"c":1,"d":2}']])
    with pytest.raises(SchemaError, match="a column that its table lacks"):
        RowImageReader([C("c", "int")], "d.t").from_json(texts)
    read = RowImageReader([C("c", "int")], "d.t", only=True).from_json(texts)
    assert read.to_pylist() == [{"c": 1}]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (C("c", "tinyint"), "128"),
        (C("c", "int"), '"1"'),
        (C("c", "varchar", 9), "1"),
        (C("c", "decimal", 4, 2), "123.45"),
        (C("c", "decimal", 4, 2), "1.234"),
        (C("c", "bit", 1), "1"),
    ],
)
def test_json_value_that_does_not_fit_its_column_is_rejected(column: C, value: str) -> None:
    with pytest.raises(UnrepresentableValueError, match=r"does not fit|d\.t"):
        _read(column, value)


def test_srid_above_int32_stops_the_table() -> None:
    texts = pa.chunked_array([['{"c":{"srid":2147483648,"wkb":"AQ=="}}']])
    with pytest.raises(MirrorError, match=r"SRID 2147483648.*excludeColumns"):
        RowImageReader([C("c", "point")], "d.t").from_json(texts)
