"""Row images to a struct: one typed Arrow column for each column of the table.

The query's schema fixes the struct's fields before the first row is read. An image's columns
are matched to them by name, once per kind of image. A field that the image lacks is null and listed
as missing. A column that does not fit (see `struct_match`) is rescued as JSON text, stops
the read, or is skipped, depending on the query's options.

With several tables the struct is nested, `after.shop.orders.id`. A table's columns contain only its
own rows, and are expanded to the batch by Arrow's take when it is finished. A row therefore costs
only its own table's columns, and a null row costs nothing.

A typed column cannot hold an invalid date (0000-00-00, 2026-11-00). Depending on `zeroDates`, it
becomes null and is listed with its text in `invalid_dates`, or it stops the read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.payloads.payload import MAX_COMPILED_COLUMNS
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, ImagePlan
from pyspark_mysqlbinlog.decoder.payloads.variant import (
    Keys,
    encode_metadata,
    encode_tree,
    within_limit,
)
from pyspark_mysqlbinlog.decoder.schemas.struct_match import Convert, widening
from pyspark_mysqlbinlog.decoder.schemas.struct_types import VARIANT, StructOptions, arrow_type
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Read, cut_short, skipping
from pyspark_mysqlbinlog.decoder.values.days import MICROS_PER_DAY, day_number
from pyspark_mysqlbinlog.errors import (
    SchemaChangedError,
    SchemaError,
    UnrepresentableValueError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import SPATIAL_TYPES, ColumnSchema

__all__ = ["StructColumn", "StructPayload", "TableRows", "Unplaced"]

_MAX_INT32 = (1 << 31) - 1
_MAX_LAYOUTS = 1_024

Put = Callable[[Any], None]
# The handling of a column that does not fit the struct.
Unplaced = Literal["rescue", "stop", "ignore"]


class StructColumn:
    """One Arrow column under construction."""

    __slots__ = ("name", "type", "values")

    def __init__(self, name: str, type_: pa.DataType) -> None:
        self.name = name
        self.type = type_
        self.values: list[Any] = []

    def finish(self) -> pa.Array[Any]:
        values = self.values
        if pa.types.is_struct(self.type):
            array = _pairs(values, self.type)
        elif pa.types.is_decimal(self.type) and any(isinstance(value, str) for value in values):
            # Digits as text: Arrow parses them faster than Python makes a Decimal of each.
            try:
                digits = pa.array(values, type=pa.string())
            except pa.ArrowTypeError:
                # Includes integers, from when the column was an integer.
                texts = [None if value is None else str(value) for value in values]
                digits = pa.array(texts, type=pa.string())
            array = digits.cast(self.type)
        else:
            array = pa.array(values, type=self.type)
        # Bound `append` methods refer to this list.
        values.clear()
        if not isinstance(array, pa.Array):
            raise UnsupportedEventError(
                f"column `{self.name}` has values of more than 2 GB in one batch, the limit of an"
                " Arrow column; exclude it with excludeColumns"
            )
        return array


def _pairs(values: list[Any], type_: pa.StructType) -> pa.Array[Any]:
    """Build GEOMETRY's (srid, wkb) or a variant's (value, metadata); None is a null pair."""
    # A variant's fields are not nullable, even if the variant itself is null.
    filler = (None, None) if type_.field(0).nullable else (b"", b"")
    columns = zip(*[filler if pair is None else pair for pair in values], strict=True)
    arrays = [
        pa.array(list(column), type=field.type)
        for column, field in zip(columns, type_, strict=True)
    ] or [pa.array([], type=field.type) for field in type_]
    mask = pa.array([pair is None for pair in values], type=pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)


class _Steps(NamedTuple):
    """The reads of an image with one null bitmap, in its order, and its nulls."""

    reads: tuple[tuple[Read, Put], ...]
    nulls: tuple[Put, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """One kind of image, with its columns matched to those of the struct.

    Attributes
    ----------
    columns : per column of the image: its read, its put for a value, its put for a null.
    missing : names of the struct's columns that the image lacks.
    put_missing : the null puts of these.
    """

    rows: TableRows
    columns: tuple[tuple[Read, Put, Put], ...]
    missing: tuple[str, ...]
    put_missing: tuple[Put, ...]
    compiled: dict[bytes, _Steps] = field(default_factory=dict)

    def steps(self, nulls: bytes) -> _Steps:
        bits = int.from_bytes(nulls, "little")
        steps = _Steps(
            tuple(
                (read, put) for at, (read, put, _) in enumerate(self.columns) if not bits >> at & 1
            ),
            self.put_missing
            + tuple(null for at, (_, _, null) in enumerate(self.columns) if bits >> at & 1),
        )
        if len(self.compiled) * len(self.columns) >= MAX_COMPILED_COLUMNS:
            self.compiled.clear()
        self.compiled[nulls] = steps
        return steps


class TableRows:
    """The rows of one table: its columns, and the indexes of its rows in the batch."""

    __slots__ = ("by_name", "columns", "places", "type")

    def __init__(self, type_: pa.StructType) -> None:
        self.type = type_
        self.columns = [StructColumn(field.name, field.type) for field in type_]
        self.by_name = {column.name: column for column in self.columns}
        self.places: list[int] = []

    def column(self, name: str) -> StructColumn | None:
        """Find a column by name, in any case: MySQL and Spark compare column names that way."""
        found = self.by_name.get(name)
        if found is None:
            lower = fold(name)
            found = next((each for each in self.columns if fold(each.name) == lower), None)
        return found

    def finish(self, count: int) -> pa.Array[Any]:
        """Return the table's column of a batch of `count` rows; null for other tables' rows."""
        if not self.places:
            return pa.nulls(count, self.type)
        array: pa.Array[Any] = pa.StructArray.from_arrays(
            [column.finish() for column in self.columns], fields=list(self.type)
        )
        if len(self.places) < count:
            spread: list[int | None] = [None] * count
            for at, place in enumerate(self.places):
                spread[place] = at
            array = array.take(pa.array(spread, type=pa.int32()))
        self.places.clear()
        return array


class StructPayload:
    """A struct per image, of exactly the Arrow type given.

    Parameters
    ----------
    side : ``before`` or ``after``, the prefix of names in `invalid_dates`.
    type_ : the struct; its fields are the table's columns, or with `nested` databases, whose
        fields are tables.
    unplaced : handling of a column that does not fit: ``rescue`` returns it in `rescued`, ``stop``
        raises SchemaChangedError, ``ignore`` skips a column that the struct lacks, and raises for
        one with another type there.
    """

    __slots__ = (
        "_count",
        "_layouts",
        "_side",
        "_type",
        "invalid_dates",
        "nested",
        "options",
        "rescued",
        "size",
        "tables",
        "unplaced",
    )

    def __init__(
        self,
        side: str,
        type_: pa.DataType,
        options: StructOptions,
        *,
        nested: bool = False,
        unplaced: Unplaced = "stop",
    ) -> None:
        if not isinstance(type_, pa.StructType):
            raise SchemaError(f"the Arrow schema has {side} as {type_}, expected a struct")
        self._side = side
        self._type = type_
        self.options = options
        self.nested = nested
        self.unplaced = unplaced
        self._layouts: dict[ImagePlan, _Layout] = {}
        self.tables: dict[tuple[str, str], TableRows] = {}
        if nested:
            for database in type_:
                assert isinstance(database.type, pa.StructType)
                for table in database.type:
                    assert isinstance(table.type, pa.StructType)
                    self.tables[database.name, table.name] = TableRows(table.type)
        else:
            self.tables["", ""] = TableRows(type_)
        self._count = 0
        self.invalid_dates: list[str] = []
        self.rescued: list[str] = []
        self.size = 0

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        layout = self._layouts.get(image) or self._layout(image)
        values = pos + image.bitmap_length
        if values > len(data):
            raise cut_short("its null bitmap", image.bitmap_length, data, pos)
        nulls = data[pos:values]
        steps = layout.compiled.get(nulls) or layout.steps(nulls)
        begin, pos = pos, values
        for read, put in steps.reads:
            value, pos = read(data, pos)
            put(value)
        for put in steps.nulls:
            put(None)
        layout.rows.places.append(self._count)
        self._count += 1
        self.size += pos - begin + 8 * len(layout.rows.columns)
        return pos

    def append_null(self) -> None:
        self._count += 1

    def missing(self, image: ImagePlan) -> tuple[str, ...]:
        return (self._layouts.get(image) or self._layout(image)).missing

    def finish(self) -> pa.Array[Any]:
        count, self._count, self.size = self._count, 0, 0
        if not self.nested:
            return self.tables["", ""].finish(count)
        filled = [False] * count
        databases: list[pa.Array[Any]] = []
        for database in self._type:
            assert isinstance(database.type, pa.StructType)
            tables = [self.tables[database.name, table.name] for table in database.type]
            empty = [True] * count
            for table in tables:
                for place in table.places:
                    empty[place] = False
                    filled[place] = True
            databases.append(
                pa.StructArray.from_arrays(
                    [table.finish(count) for table in tables],
                    fields=list(database.type),
                    mask=pa.array(empty, type=pa.bool_()),
                )
            )
        return pa.StructArray.from_arrays(
            databases,
            fields=list(self._type),
            mask=pa.array([not each for each in filled], type=pa.bool_()),
        )

    def rows_of(self, table: tuple[str, str]) -> TableRows:
        """Return the builder of (database, table); SchemaChangedError if the struct has none."""
        if not self.nested:
            return self.tables["", ""]
        rows = self.tables.get(table)
        if rows is None:
            # A server with case-insensitive names may log another spelling than it shows.
            lower = [fold(name) for name in table]
            rows = next(
                (rows for key, rows in self.tables.items() if [fold(n) for n in key] == lower),
                None,
            )
        if rows is None:
            raise SchemaChangedError(
                f"the query's struct has no table {'.'.join(table)}; restart the query to read its"
                " schema again, or set payload=json"
            )
        return rows

    def _layout(self, image: ImagePlan) -> _Layout:
        """Match an image's columns to the struct's; done once per kind of image."""
        rows = self.rows_of(image.table)
        columns: list[tuple[Read, Put, Put]] = []
        held = set()
        for plan in image.columns:
            if plan.codec is None or plan.schema is None:
                columns.append((skipping(plan.skip), _drop, _drop))
                continue
            placed = self.place(rows, plan.name, plan.schema)
            if placed is None:
                columns.append(self._without_place(plan, plan.codec))
                continue
            column, convert = placed
            held.add(column.name)
            read, put = self._read_and_put(plan.name, plan.schema, plan.codec, column, convert)
            columns.append((read, put, column.values.append))
        missing = [column for column in rows.columns if column.name not in held]
        layout = _Layout(
            rows,
            tuple(columns),
            tuple(column.name for column in missing),
            tuple(column.values.append for column in missing),
        )
        # With minimal images there is one per set of columns that statements change.
        if len(self._layouts) >= _MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[image] = layout
        return layout

    def place(
        self, rows: TableRows, name: str, schema: ColumnSchema
    ) -> tuple[StructColumn, Convert] | None:
        """Return a column's field and the conversion for it; None if it is rescued or ignored."""
        column = rows.column(name)
        if column is None:
            if self.unplaced != "stop":
                return None
            raise SchemaChangedError(
                f"column `{name}` ({schema.type}) is in the binlog but not in the query's struct:"
                " the table's columns have changed since the query began; restart the query to read"
                " its schema again, or set schemaEvolutionMode=rescue or payload=json, or exclude"
                " the column with excludeColumns"
            )
        found = arrow_type(schema, self.options)
        convert = widening(found, column.type)
        if convert is not None:
            return column, convert
        if self.unplaced == "rescue":
            return None
        raise SchemaChangedError(
            f"column `{name}` ({schema.type}) has the type {found} in the binlog, expected"
            f" {column.type} as in the query's struct: its type was changed; restart the query to"
            " read its schema again, or set schemaEvolutionMode=rescue or payload=json, or exclude"
            " the column with excludeColumns"
        )

    def _without_place(self, plan: ColumnPlan, codec: Codec) -> tuple[Read, Put, Put]:
        """Return the read and puts of a column that does not fit: as JSON text, or a skip."""
        if self.unplaced == "ignore":
            return skipping(plan.skip), _drop, _drop
        key, rescued = plan.json_key, self.rescued

        def put(text: str) -> None:
            rescued.append(key + text)

        def put_null(_: None) -> None:
            rescued.append(key + "null")

        return codec.read_json, put, put_null

    def _read_and_put(
        self, name: str, schema: ColumnSchema, codec: Codec, column: StructColumn, convert: Convert
    ) -> tuple[Read, Put]:
        """Return the read of a value, and the put into its column, which may convert it."""
        append = column.values.append
        kind = schema.type
        on_invalid = self._on_invalid_date(name)

        if arrow_type(schema, self.options) != column.type:
            return codec.read, lambda value: append(convert(value))
        if pa.types.is_boolean(column.type) and kind == "tinyint":
            return codec.read, lambda value: append(value != 0)
        if kind == "time" and self.options.time_type == "string":
            return codec.read, lambda value: append(codec.json(value)[1:-1])
        if kind == "json":
            if column.type == VARIANT:
                return codec.read, lambda tree: append(_variant(tree))
            return codec.read_json, append
        if kind in SPATIAL_TYPES:
            return codec.read, lambda value: append(_checked_geometry(name, value))

        def put_date(ymd: int) -> None:
            days = day_number(ymd)
            append(days)
            if days is None:
                on_invalid(codec.json(ymd))

        def put_datetime(value: tuple[int, int]) -> None:
            days = day_number(value[0])
            if days is None:
                append(None)
                on_invalid(codec.json(value))
            else:
                append(days * MICROS_PER_DAY + value[1])

        def put_timestamp(micros: int | None) -> None:
            append(micros)
            if micros is None:
                on_invalid(codec.json(micros))

        puts: dict[str, Put] = {
            "date": put_date,
            "datetime": put_datetime,
            "timestamp": put_timestamp,
        }
        return codec.read, puts.get(kind, append)

    def _on_invalid_date(self, name: str) -> Callable[[str], None]:
        """Return the function that handles the JSON text of an invalid date."""

        def note(text: str) -> None:
            self.invalid_dates.append(f"{self._side}.{name}={text[1:-1].replace('T', ' ')}")

        def fail(text: str) -> None:
            raise UnrepresentableValueError(
                f"column `{name}` holds the invalid date {text[1:-1].replace('T', ' ')}, and"
                " zeroDates=fail; correct the value on the server, or set zeroDates=null"
            )

        return fail if self.options.zero_dates == "fail" else note


def _variant(tree: Any) -> tuple[bytes, bytes]:
    keys: Keys = {}
    value = within_limit(encode_tree(tree, keys))
    return value, encode_metadata(keys)


def _checked_geometry(name: str, value: tuple[int | None, bytes]) -> tuple[int | None, bytes]:
    if value[0] is not None and value[0] > _MAX_INT32:
        raise UnrepresentableValueError(
            f"column `{name}` has the SRID {value[0]}, expected at most {_MAX_INT32}, the limit of"
            " an int; set payload=json or variant"
        )
    return value


def _drop(_: Any) -> None:
    """The put of an excluded column."""
