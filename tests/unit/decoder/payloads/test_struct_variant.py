"""The struct and variant payloads: recorded logs, exact Arrow types, boundary values."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
)

from helpers.logs.recorded_logs import CASCADES, DEFAULTS, SCENARIOS, load
from helpers.parity.decoding import (
    ALL_OPERATIONS,
    StaticSchemas,
    captured_ordinal,
    make_event,
    simple_schema,
    table_map_body_for,
)
from helpers.parity.implementations import DecodesEvents, make_decoder
from helpers.parity.payload_faces import as_json_rows
from helpers.replay import Replay, captured_schemas
from helpers.values.json_documents import encode_document
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.connector.schemas.struct_schema import payload_type, struct_of
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.kernel.implementation import using
from pyspark_mysqlbinlog.decoder.payloads import variant
from pyspark_mysqlbinlog.decoder.payloads.payload import PayloadFactory
from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload, Unplaced
from pyspark_mysqlbinlog.decoder.payloads.variant_payload import VariantPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_match import widening
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    SchemaChangedError,
    UnrepresentableValueError,
)
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

NOTHING_EXCLUDED = ColumnFilter.parse()
DEFAULT = StructOptions()


def struct_decoder(
    schemas: list[TableSchema],
    options: StructOptions = DEFAULT,
    *,
    promised: list[TableSchema] | None = None,
    columns: ColumnFilter = NOTHING_EXCLUDED,
    unplaced: Unplaced = "stop",
    **settings: Any,
) -> tuple[DecodesEvents, pa.Schema]:
    """Return a decoder whose struct has the tables of `promised`, by default those of `schemas`."""
    promised = promised or schemas
    nested = len(promised) > 1
    kind = payload_type(promised, options, columns, nested=nested)
    arrow = arrow_schema(output_schema(kind, rescued=unplaced == "rescue"))

    def payload(side: str, arrow_type: pa.DataType) -> StructPayload:
        return StructPayload(side, arrow_type, options, nested=nested, unplaced=unplaced)

    return decoder_for(schemas, arrow, payload, columns, **settings), arrow


def variant_decoder(
    schemas: list[TableSchema], columns: ColumnFilter = NOTHING_EXCLUDED, **settings: Any
) -> tuple[DecodesEvents, pa.Schema]:
    arrow = arrow_schema(output_schema(VariantType()))
    made = decoder_for(schemas, arrow, lambda _, type_: VariantPayload(type_), columns, **settings)
    return made, arrow


def decoder_for(
    schemas: list[TableSchema],
    arrow: pa.Schema,
    payload: PayloadFactory,
    columns: ColumnFilter,
    **settings: Any,
) -> DecodesEvents:
    return make_decoder(
        StaticSchemas(schemas),
        arrow,
        0,
        ALL_OPERATIONS,
        payload=payload,
        excluded=columns.excludes,
        **settings,
    )


def rows_of(
    made: tuple[DecodesEvents, pa.Schema], events: list[Event]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows; check that each batch has exactly the Arrow schema, including metadata."""
    decoder, arrow = made
    for batch in decoder.decode(events):
        batch.validate(full=True)
        assert batch.schema.equals(arrow, check_metadata=True)
        yield from batch.to_pylist()


# --- recorded logs


@pytest.mark.parametrize("batch_rows", [16_384, 1])
@pytest.mark.parametrize("payload", ["struct", "variant"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_log_replayed_from_structs_or_variants_equals_select(
    scenario: str, payload: str, batch_rows: int
) -> None:
    described, events = load(scenario)
    schemas = captured_schemas(described)
    make = struct_decoder if payload == "struct" else variant_decoder
    made = make(schemas, batch_rows=batch_rows, file_ordinal=captured_ordinal)
    replay = Replay(schemas, DEFAULTS.get(scenario), CASCADES.get(scenario))
    replay.apply(as_json_rows(rows_of(made, events), schemas, payload))
    assert replay.count > 0
    for name, table in described["tables"].items():
        replay.assert_equals(described["database"], name, table["rows"])


# --- types: (column, options, Spark's type in a struct)

INT = ColumnSchema("c", "int")
INTERVAL = StructOptions(time_type="interval")
MICROS = StructOptions(time_type="micros")
GEOMETRY = StructType([StructField("srid", IntegerType()), StructField("wkb", BinaryType())])


@pytest.mark.parametrize(
    ("column", "options", "expected"),
    [
        (ColumnSchema("c", "tinyint"), DEFAULT, ByteType()),
        (ColumnSchema("c", "tinyint", 1), DEFAULT, ByteType()),
        (ColumnSchema("c", "tinyint", 1), StructOptions(tiny_int1_is_boolean=True), BooleanType()),
        (ColumnSchema("c", "tinyint"), StructOptions(tiny_int1_is_boolean=True), ByteType()),
        (ColumnSchema("c", "tinyint", unsigned=True), DEFAULT, ShortType()),
        (ColumnSchema("c", "smallint"), DEFAULT, ShortType()),
        (ColumnSchema("c", "smallint", unsigned=True), DEFAULT, IntegerType()),
        (ColumnSchema("c", "mediumint"), DEFAULT, IntegerType()),
        (ColumnSchema("c", "mediumint", unsigned=True), DEFAULT, IntegerType()),
        (ColumnSchema("c", "int"), DEFAULT, IntegerType()),
        (ColumnSchema("c", "int", unsigned=True), DEFAULT, LongType()),
        (ColumnSchema("c", "bigint"), DEFAULT, LongType()),
        (ColumnSchema("c", "bigint", unsigned=True), DEFAULT, DecimalType(20, 0)),
        (ColumnSchema("c", "float"), DEFAULT, FloatType()),
        (ColumnSchema("c", "double"), DEFAULT, DoubleType()),
        (ColumnSchema("c", "decimal", 38, 30), DEFAULT, DecimalType(38, 30)),
        (ColumnSchema("c", "decimal", 39, 0), DEFAULT, StringType()),
        (ColumnSchema("c", "bit", 1), DEFAULT, BooleanType()),
        (ColumnSchema("c", "bit", 2), DEFAULT, LongType()),
        (ColumnSchema("c", "bit", 63), DEFAULT, LongType()),
        (ColumnSchema("c", "bit", 64), DEFAULT, DecimalType(20, 0)),
        (ColumnSchema("c", "year"), DEFAULT, IntegerType()),
        (ColumnSchema("c", "date"), DEFAULT, DateType()),
        (ColumnSchema("c", "datetime", 6), DEFAULT, TimestampNTZType()),
        (ColumnSchema("c", "timestamp", 6), DEFAULT, TimestampType()),
        (ColumnSchema("c", "time", 6), DEFAULT, StringType()),
        (ColumnSchema("c", "time", 6), INTERVAL, DayTimeIntervalType()),
        (ColumnSchema("c", "time", 6), MICROS, LongType()),
        (ColumnSchema("c", "varchar", 9, charset="utf8mb4"), DEFAULT, StringType()),
        (ColumnSchema("c", "longtext", charset="latin1"), DEFAULT, StringType()),
        (ColumnSchema("c", "enum", labels=("a",)), DEFAULT, StringType()),
        (ColumnSchema("c", "set", labels=("a",)), DEFAULT, StringType()),
        (ColumnSchema("c", "binary", 3), DEFAULT, BinaryType()),
        (ColumnSchema("c", "longblob"), DEFAULT, BinaryType()),
        (ColumnSchema("c", "json"), DEFAULT, StringType()),
        (ColumnSchema("c", "json"), StructOptions(json_type="variant"), VariantType()),
        (ColumnSchema("c", "multipolygon"), DEFAULT, GEOMETRY),
    ],
)
def test_column_has_its_spark_type_in_the_struct(
    column: ColumnSchema, options: StructOptions, expected: DataType
) -> None:
    made = struct_of(simple_schema(column), options, NOTHING_EXCLUDED)
    assert made == StructType([StructField("c", expected)])


# --- single rows


def events_of(
    schema: TableSchema, images: list[bytes], present: bytes | None = None
) -> list[Event]:
    """Return a table map and one INSERT of these images (null bitmap and values)."""
    count = len(schema.columns)
    held = present or ((1 << count) - 1).to_bytes((count + 7) // 8, "little")
    head = (7).to_bytes(6, "little") + b"\x01\x00\x02\x00" + bytes([count]) + held
    return [
        make_event(EventType.TABLE_MAP_EVENT, table_map_body_for(schema)),
        make_event(EventType.WRITE_ROWS_EVENT, head + b"".join(images), start=2000),
    ]


def one_struct(
    column: ColumnSchema, value: bytes, options: StructOptions = DEFAULT
) -> tuple[Any, list[str] | None]:
    schema = simple_schema(column)
    (row,) = rows_of(struct_decoder([schema], options), events_of(schema, [b"\x00" + value]))
    return row["after"]["c"], row["source"]["invalid_dates"]


def one_variant(column: ColumnSchema, value: bytes) -> Any:
    schema = simple_schema(column)
    (row,) = rows_of(variant_decoder([schema]), events_of(schema, [b"\x00" + value]))
    return VariantVal(row["after"]["value"], row["after"]["metadata"]).toPython()["c"]


def time2(hours: int, minutes: int, seconds: int, *, negative: bool = False) -> bytes:
    packed = hours << 12 | minutes << 6 | seconds
    return ((1 << 23) + (-packed if negative else packed)).to_bytes(3, "big")


def date3(year: int, month: int, day: int) -> bytes:
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("column", "value", "options", "expected"),
    [
        (ColumnSchema("c", "time", 0), time2(838, 59, 59), DEFAULT, "838:59:59"),
        (ColumnSchema("c", "time", 0), time2(838, 59, 59, negative=True), INTERVAL,
         -dt.timedelta(hours=838, minutes=59, seconds=59)),
        (ColumnSchema("c", "time", 0), time2(0, 0, 1, negative=True), MICROS, -1_000_000),
        (ColumnSchema("c", "tinyint", 1), b"\x00", StructOptions(tiny_int1_is_boolean=True), False),
        (ColumnSchema("c", "tinyint", 1), b"\xff", StructOptions(tiny_int1_is_boolean=True), True),
        (ColumnSchema("c", "bit", 64), b"\xff" * 8, DEFAULT, Decimal(2**64 - 1)),
        (ColumnSchema("c", "bigint", unsigned=True), b"\xff" * 8, DEFAULT,
         Decimal(2**64 - 1)),
        (ColumnSchema("c", "date"), date3(1, 1, 1), DEFAULT, dt.date(1, 1, 1)),
        (ColumnSchema("c", "date"), date3(9999, 12, 31), DEFAULT, dt.date(9999, 12, 31)),
        (ColumnSchema("c", "date"), date3(2024, 2, 29), DEFAULT, dt.date(2024, 2, 29)),
    ],
)  # fmt: skip
def test_boundary_values_are_exact_in_the_struct(
    column: ColumnSchema, value: bytes, options: StructOptions, expected: object
) -> None:
    assert one_struct(column, value, options) == (expected, None)


# (column, stored value, its text in SELECT)
NO_DAYS = [
    (ColumnSchema("c", "date"), date3(0, 0, 0), "0000-00-00"),
    (ColumnSchema("c", "date"), date3(2026, 0, 0), "2026-00-00"),
    (ColumnSchema("c", "date"), date3(2026, 11, 0), "2026-11-00"),
    (ColumnSchema("c", "date"), date3(2026, 0, 20), "2026-00-20"),
    (ColumnSchema("c", "date"), date3(0, 5, 12), "0000-05-12"),
    (ColumnSchema("c", "date"), date3(2026, 2, 31), "2026-02-31"),
    (ColumnSchema("c", "timestamp", 0), b"\x00" * 4, "0000-00-00 00:00:00"),
    (ColumnSchema("c", "timestamp", 3), b"\x00" * 6, "0000-00-00 00:00:00.000"),
    (ColumnSchema("c", "datetime", 0), b"\x80\x00\x00\x00\x00", "0000-00-00 00:00:00"),
    (ColumnSchema("c", "datetime", 0),
     (1 << 39 | (2026 * 13 + 2) << 22 | 31 << 17 | 10 << 12).to_bytes(5, "big"),
     "2026-02-31 10:00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "shown"), NO_DAYS)
def test_invalid_date_is_null_in_structs_text_in_variants_or_rejected(
    column: ColumnSchema, value: bytes, shown: str
) -> None:
    assert one_struct(column, value) == (None, [f"after.c={shown}"])
    assert one_variant(column, value) == shown
    with pytest.raises(UnrepresentableValueError) as caught:
        one_struct(column, value, StructOptions(zero_dates="fail"))
    assert str(caught.value) == (
        f"column `c` holds the invalid date {shown}, and zeroDates=fail; correct the value on the"
        " server, or set zeroDates=null (at mysql-bin.000003:2000, table d.t)"
    )


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_only_rows_with_an_invalid_date_list_it(batch_rows: int) -> None:
    schema = simple_schema(ColumnSchema("c", "date"), ColumnSchema("n", "int"))
    zero, day = date3(0, 0, 0), date3(2026, 11, 20)
    dates = [day, zero, zero, day, day, zero, day]
    images = [b"\x00" + date + bytes([at, 0, 0, 0]) for at, date in enumerate(dates)]
    rows = list(rows_of(struct_decoder([schema], batch_rows=batch_rows), events_of(schema, images)))
    assert [row["after"]["n"] for row in rows] == list(range(7))
    assert [row["seq"]["row"] for row in rows] == list(range(7))
    assert [row["source"]["invalid_dates"] for row in rows] == [
        None if date == day else ["after.c=0000-00-00"] for date in dates
    ]


# --- a struct that differs from the columns in the binlog


TWO = simple_schema(ColumnSchema("a", "int"), ColumnSchema("b", "varchar", 9, charset="utf8mb4"))
ROW = b"\x00" + b"\x05\x00\x00\x00" + b"\x02hi"


def test_column_missing_from_the_struct_raises_schema_changed_error() -> None:
    promised = simple_schema(ColumnSchema("a", "int"))
    made = struct_decoder([TWO], promised=[promised])
    with pytest.raises(
        SchemaChangedError, match=r"column `b` \(varchar\) is in the binlog but not"
    ):
        list(rows_of(made, events_of(TWO, [ROW])))


def test_column_of_another_type_than_the_struct_raises_schema_changed_error() -> None:
    promised = simple_schema(ColumnSchema("a", "smallint"), TWO.columns[1])
    for unplaced in ("stop", "ignore"):
        made = struct_decoder([TWO], promised=[promised], unplaced=unplaced)
        with pytest.raises(
            SchemaChangedError, match=r"column `a` \(int\) has the type int32 .* expected int16"
        ):
            list(rows_of(made, events_of(TWO, [ROW])))


def test_values_that_do_not_fit_the_struct_are_rescued_row_by_row() -> None:
    """NULL is rescued, too; excluded columns are not. Batches have one row or several."""
    promised = simple_schema(ColumnSchema("a", "smallint"))
    images = [ROW, b"\x02" + b"\x06\x00\x00\x00", b"\x03", ROW]
    expected = [
        {"after": {"a": 5, "b": "hi"}},
        {"after": {"a": 6, "b": None}},
        {"after": {"a": None, "b": None}},
        {"after": {"a": 5, "b": "hi"}},
    ]
    for batch_rows in (1, 3, 100):
        made = struct_decoder([TWO], promised=[promised], unplaced="rescue", batch_rows=batch_rows)
        rows = list(rows_of(made, events_of(TWO, images)))
        assert [json.loads(row["_rescued_data"]) for row in rows] == expected
        assert [row["after"] for row in rows] == [{"a": None}] * 4
        assert [row["source"]["missing"] for row in rows] == [["after.a"]] * 4
    columns = ColumnFilter.parse("d.t.b")
    made = struct_decoder([TWO], promised=[promised], unplaced="rescue", columns=columns)
    (row,) = rows_of(made, events_of(TWO, [ROW]))
    assert json.loads(row["_rescued_data"]) == {"after": {"a": 5}}


def test_column_missing_from_the_struct_is_skipped_with_ignore() -> None:
    promised = simple_schema(ColumnSchema("a", "int"))
    made = struct_decoder([TWO], promised=[promised], unplaced="ignore")
    (row,) = rows_of(made, events_of(TWO, [ROW]))
    assert (row["after"], row["source"]["missing"]) == ({"a": 5}, None)


# (type in the binlog, type in the struct, whether the struct's type has all its values)
WIDENINGS: list[tuple[pa.DataType, pa.DataType, bool]] = [
    (pa.int8(), pa.int16(), True),
    (pa.int64(), pa.int32(), False),
    (pa.int64(), pa.decimal128(20, 0), True),
    (pa.int64(), pa.decimal128(20, 2), False),
    (pa.int32(), pa.decimal128(12, 2), True),
    (pa.decimal128(20, 0), pa.int64(), False),
    (pa.int32(), pa.float64(), True),
    (pa.int64(), pa.float64(), False),
    (pa.int16(), pa.float32(), True),
    (pa.int32(), pa.float32(), False),
    (pa.float64(), pa.float32(), False),
    (pa.float32(), pa.float64(), True),
    (pa.decimal128(5, 2), pa.decimal128(6, 3), True),
    (pa.decimal128(5, 2), pa.decimal128(6, 4), False),
    (pa.decimal128(5, 2), pa.decimal128(5, 1), False),
    (pa.decimal128(5, 2), pa.string(), True),
    (pa.int64(), pa.string(), True),
    (pa.float64(), pa.string(), False),
    (pa.string(), pa.binary(), False),
    (pa.string(), pa.int64(), False),
    (pa.bool_(), pa.int64(), False),
    (pa.date32(), pa.timestamp("us"), False),
    (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), False),
]


@pytest.mark.parametrize(("found", "wanted", "fits"), WIDENINGS)
def test_only_lossless_type_changes_are_widened(
    found: pa.DataType, wanted: pa.DataType, fits: bool
) -> None:
    """The minimum and maximum of an integer type are unchanged in the wider type."""
    convert = widening(found, wanted)
    assert (convert is not None) == fits
    if convert is None or not pa.types.is_integer(found):
        return
    bits = found.bit_width
    values = [-(1 << (bits - 1)), (1 << (bits - 1)) - 1]
    shown: Any = pa.array([convert(value) for value in values]).cast(wanted)
    assert [Decimal(str(value)) for value in shown.to_pylist()] == values


def test_struct_of_several_tables_is_null_except_for_the_table_of_the_row() -> None:
    others = [
        TableSchema("d", "u", (ColumnSchema("x", "int"),)),
        TableSchema("e", "t", (ColumnSchema("y", "json"),)),
    ]
    options = StructOptions(json_type="variant")
    made = struct_decoder([TWO], options, promised=[TWO, *others])
    (row,) = rows_of(made, events_of(TWO, [ROW]))
    assert row["after"] == {"d": {"t": {"a": 5, "b": "hi"}, "u": None}, "e": None}
    assert row["before"] is None


# --- excluded columns


@pytest.mark.parametrize("payload", ["struct", "variant"])
def test_excluded_columns_are_in_no_image_and_not_listed_as_missing(payload: str) -> None:
    schema = simple_schema(*TWO.columns, ColumnSchema("z", "int"), key=("b",))
    columns = ColumnFilter.parse("d.t.B")
    make = struct_decoder if payload == "struct" else variant_decoder
    made = make([schema], columns=columns)
    whole, nulls = ROW + b"\x09\x00\x00\x00", b"\x02\x05\x00\x00\x00\x09\x00\x00\x00"
    events = events_of(schema, [whole, nulls])
    partial = events_of(schema, [b"\x00\x05\x00\x00\x00"], present=b"\x01")[1]
    rows = list(rows_of(made, [*events, partial]))
    images = [
        row["after"]
        if payload == "struct"
        else VariantVal(row["after"]["value"], row["after"]["metadata"]).toPython()
        for row in rows
    ]
    assert images[:2] == [{"a": 5, "z": 9}] * 2
    assert images[2] == ({"a": 5, "z": None} if payload == "struct" else {"a": 5})
    assert [row["source"]["missing"] for row in rows] == [None, None, ["after.z"]]
    assert {tuple(row["source"]["key"]) for row in rows} == {("b",)}


# --- broken images


@pytest.mark.parametrize("make", [struct_decoder, variant_decoder])
@pytest.mark.parametrize("length", range(1, len(ROW)))
def test_row_image_cut_at_any_byte_is_rejected(make: Any, length: int) -> None:
    with pytest.raises(MalformedEventError, match="cut short"):
        list(rows_of(make([TWO]), events_of(TWO, [ROW[:length]])))


# --- the variant encoding, read back by pyspark


def read_back(value: bytes, keys: variant.Keys) -> Any:
    return VariantVal(value, variant.encode_metadata(keys)).toPython()


@pytest.mark.parametrize(
    ("number", "size"),
    [
        (0, 2), (127, 2), (-128, 2), (128, 3), (-129, 3), (32767, 3), (-32768, 3), (32768, 5),
        (2**31 - 1, 5), (-(2**31), 5), (2**31, 9), (2**63 - 1, 9), (-(2**63), 9),
        (2**63, 18), (2**64 - 1, 18),
    ],
)  # fmt: skip
def test_variant_integers_take_the_narrowest_type(number: int, size: int) -> None:
    encoded = variant.encode_integer(number)
    assert len(encoded) == size
    assert read_back(encoded, {}) == number


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 6), ("-1.50", 6), ("999999999", 6), ("0.000000001", 6), ("1000000000", 10),
        ("0.0000000001", 10), ("-123456789012345678", 10), ("0.0000000000000000001", 18),
        ("9" * 38, 18), ("-" + "9" * 8 + "." + "9" * 30, 18),
    ],
)  # fmt: skip
def test_variant_decimals_are_exact_in_the_narrowest_type(text: str, size: int) -> None:
    encoded = variant.encode_decimal(text)
    assert len(encoded) == size
    fraction = text.partition(".")[2]
    assert encoded[1] == len(fraction)
    unscaled = int.from_bytes(encoded[2:], "little", signed=True)
    assert unscaled == int(text.replace(".", ""))


@pytest.mark.parametrize("length", [0, 1, 63, 64, 255, 256, 65535, 65536, 1 << 24])
def test_variant_with_strings_of_any_length_reads_back_unchanged(length: int) -> None:
    keys: variant.Keys = {}
    tree = {"b": "x" * length, "a": [True, None, "é" * 31, "é" * 32], "": {}}
    assert read_back(variant.encode_tree(tree, keys), keys) == tree


@pytest.mark.parametrize("count", [0, 1, 31, 32, 255, 256, 257, 70_000])
def test_variant_objects_and_arrays_of_any_size_read_back_unchanged(count: int) -> None:
    keys: variant.Keys = {}
    tree = {f"k{at * 7919 % count}": at for at in range(count)}
    encoded = variant.encode_tree({"o": tree, "l": list(range(count))}, keys)
    assert read_back(encoded, keys) == {"o": tree, "l": list(range(count))}


def test_variant_keys_are_sorted_by_utf_16_code_units() -> None:
    # U+FFFD is first by code points; by UTF-16 units, the surrogates of U+1F680 are.
    keys: variant.Keys = {}
    encoded = variant.encode_tree({"\ufffd": 1, "\U0001f680": 2, "z": 3}, keys)
    assert encoded[:5] == bytes([2, 3, keys["z"], keys["\U0001f680"], keys["\ufffd"]])


@pytest.fixture
def python_implementation() -> Iterator[None]:
    """Select Python: the kernel's limit is compiled in (kernel/test_documents.py tests it)."""
    with using("python"):
        yield


@pytest.mark.usefixtures("python_implementation")
def test_row_variant_over_the_size_limit_raises_unrepresentable_value_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(variant, "SIZE_LIMIT", 12)
    (row,) = rows_of(variant_decoder([TWO]), events_of(TWO, [ROW]))
    assert len(row["after"]["value"]) == 12
    longer = b"\x00" + b"\x05\x00\x00\x00" + b"\x09" + b"h" * 9
    with pytest.raises(
        UnrepresentableValueError, match="the row's variant is 19 bytes, expected at"
    ):
        list(rows_of(variant_decoder([TWO]), events_of(TWO, [longer])))


@pytest.mark.usefixtures("python_implementation")
@pytest.mark.parametrize(
    ("largest", "larger"), [("h" * 9, "h" * 10), ([1, 2], [1, 2, 3]), ({"k": 1}, {"k": 300})]
)
def test_json_variant_over_the_size_limit_raises_unrepresentable_value_error(
    monkeypatch: pytest.MonkeyPatch, largest: Any, larger: Any
) -> None:
    """The limit applies to the whole value of a text, array or object, with its header."""
    column = ColumnSchema("c", "json")
    options = StructOptions(json_type="variant")
    fits, too_large = (
        len(document).to_bytes(4, "little") + document
        for document in map(encode_document, (largest, larger))
    )
    size = len(variant.encode_tree(largest, {}))
    monkeypatch.setattr(variant, "SIZE_LIMIT", size)
    made, _ = one_struct(column, fits, options)
    assert len(made["value"]) == size
    with pytest.raises(UnrepresentableValueError, match=rf"is \d+ bytes, expected at most {size},"):
        one_struct(column, too_large, options)
