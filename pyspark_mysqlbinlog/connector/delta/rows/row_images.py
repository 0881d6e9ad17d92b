"""Row images to typed Arrow columns: the types are those of payload=struct.

Struct images have these types (`from_structs`); JSON texts are parsed (`from_json`). Arrow's own
JSON reader parses many rows at once, and rejects a value that does not fit the given type, such as
a number that is too large, and an unexpected column. Types that it does not support are converted
here:

=======================  ===========================  =========================================
MySQL                    read as                      converted to
=======================  ===========================  =========================================
binaries                 text (base64)                binary
DATE                     text                         date32; null if invalid
DATETIME, TIMESTAMP      timestamp, or text if        timestamp; null if invalid
                         one of them is invalid
DECIMAL of over 38       decimal256                   text with all digits
geometries               struct of srid and base64    struct of srid and binary
=======================  ===========================  =========================================
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyarrow import json as arrow_json

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import cast_column, pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.decoder.schemas.struct_types import GEOMETRY, StructOptions, arrow_type
from pyspark_mysqlbinlog.errors import MirrorError, SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["RowImageReader", "typed_field"]


# Options for types that payload=struct supports in several ways.
_OPTIONS = StructOptions()
_MIN_BLOCK_BYTES = 1 << 20
_FIRST_DAY = pa.scalar(-719162, pa.int32()).cast(pa.date32())  # 0001-01-01
_FIRST_MICROS = -719162 * 86_400_000_000

# A column of a table: a ChunkedArray, which the stubs describe incompletely.
Column = Any
Finish = Callable[[Column], Column]


def typed_field(column: ColumnSchema) -> pa.Field[Any]:
    """Return a column's Arrow field, with Delta's name; nullable as all columns of a mirror."""
    return pa.field(delta_name(column.name), arrow_type(column, _OPTIONS))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How one column is read: the type for Arrow's reader, and the conversion after it."""

    read_as: pa.DataType
    finish: Finish | None = None


class RowImageReader:
    """Reads the images of one table's rows.

    Parameters
    ----------
    columns : those to read. All others are an error, or skipped.
    table : its name, for messages.
    only : skip other columns.
    """

    def __init__(self, columns: Iterable[ColumnSchema], table: str, *, only: bool = False) -> None:
        self._columns = tuple(columns)
        self._table = table
        self._others: Literal["ignore", "error"] = "ignore" if only else "error"
        self.schema = pa.schema([typed_field(column) for column in self._columns])

    def from_json(self, texts: pa.ChunkedArray[Any]) -> pa.Table:
        """Parse the rows of these texts; nulls for a null text.

        Raises SchemaError if a text has an unexpected column, and UnrepresentableValueError for a
        value that does not fit its column's type.
        """
        parts = [self._read_chunk(chunk) for chunk in texts.drop_null().chunks if len(chunk)]
        read = pa.concat_tables(parts) if parts else self.schema.empty_table()
        if not texts.null_count:
            return read
        places = pc.subtract(pc.cumulative_sum(pc.is_valid(texts).cast(pa.int64())), 1)
        return read.take(pc.if_else(pc.is_valid(texts), places, pa.scalar(None, pa.int64())))

    def select(self, names: Collection[str]) -> RowImageReader:
        """Return a reader of only these columns, with their names in Delta."""
        kept = (column for column in self._columns if delta_name(column.name) in names)
        return RowImageReader(kept, self._table, only=True)

    def from_structs(
        self, images: pa.ChunkedArray[Any], pick: Callable[[Column], Column] | None = None
    ) -> pa.Table:
        """Return the rows of structs that payload=struct made of a table; nulls for a null one.

        pick : returns the needed values of a column of all images; None for all.

        Raises as `from_json` does. An integer or a decimal of another width is accepted if its
        value stays the same; any other type than the column's is an error.
        """
        kind: Any = images.type
        held = {kind.field(at).name: at for at in range(kind.num_fields)}
        others = held.keys() - {column.name for column in self._columns}
        if others and self._others == "error":
            raise SchemaError(
                f"a row has a column that its table lacks at this position: {min(others)}",
                table=self._table,
            )
        columns = [
            # By index: a name with a dot would be taken for a path.
            pc.struct_field(images, [held[column.name]])
            if column.name in held
            else pa.chunked_array([pa.nulls(len(images), field.type)])
            for column, field in zip(self._columns, self.schema, strict=True)
        ]
        if pick is not None:
            columns = [*map(pick, columns)]
        columns = [
            self._as_typed(column, field.type)
            for column, field in zip(columns, self.schema, strict=True)
        ]
        return pa.table(columns, schema=self.schema)

    def _as_typed(self, values: Column, kind: pa.DataType) -> Column:
        if values.type == kind:
            return values
        try:
            if any(
                is_kind(values.type) and is_kind(kind)
                for is_kind in (pa.types.is_integer, pa.types.is_decimal)
            ):
                return values.cast(kind)
            reason = f"expected {kind}, found {values.type}"
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
        raise UnrepresentableValueError(
            f"a value does not fit its column's type: {reason}", table=self._table
        )

    def _read_chunk(self, texts: pa.Array[Any]) -> pa.Table:
        lines = pc.binary_join_element_wise(texts, "", "\n")
        try:
            read = self._parse(lines, careful=False)
        except pa.ArrowInvalid:
            # An invalid date, or an error.
            read = self._parse_carefully(lines)
        if read.num_rows != len(texts):
            raise UnrepresentableValueError(
                f"{read.num_rows} rows were parsed from {len(texts)} row images", table=self._table
            )
        return read

    def _parse_carefully(self, lines: pa.Array[Any]) -> pa.Table:
        try:
            return self._parse(lines, careful=True)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
        if "unexpected field" in reason:
            raise SchemaError(
                f"a row has a column that its table lacks at this position: {reason}",
                table=self._table,
            )
        raise UnrepresentableValueError(
            f"a value does not fit its column's type: {reason}", table=self._table
        )

    def _parse(self, lines: pa.Array[Any], *, careful: bool) -> pa.Table:
        readings = [_reading(column, careful=careful) for column in self._columns]
        schema = pa.schema(
            [
                (column.name, reading.read_as)
                for column, reading in zip(self._columns, readings, strict=True)
            ]
        )
        source: Any = pa.BufferReader(_bytes_of(lines))
        longest = pc.max(pc.binary_length(lines)).as_py()
        read = arrow_json.read_json(
            source,
            read_options=arrow_json.ReadOptions(block_size=max(_MIN_BLOCK_BYTES, 2 * longest)),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=self._others
            ),
        )
        columns = [
            read.column(column.name)
            if reading.finish is None
            else reading.finish(read.column(column.name))
            for column, reading in zip(self._columns, readings, strict=True)
        ]
        return pa.table(columns, schema=self.schema)


def _bytes_of(lines: pa.Array[Any]) -> pa.Buffer:
    """Return the texts in sequence, as they are in memory, without a copy."""
    offsets, data = lines.buffers()[1:3]
    assert offsets is not None
    assert data is not None
    ends = pa.Array.from_buffers(pa.int32(), lines.offset + len(lines) + 1, [None, offsets])
    first, last = ends[lines.offset].as_py(), ends[-1].as_py()
    return data.slice(first, last - first)


def _reading(column: ColumnSchema, *, careful: bool) -> _Reading:
    kind = arrow_type(column, _OPTIONS)
    if column.type == "date":
        return _Reading(pa.string(), _days)
    if pa.types.is_timestamp(kind):
        if careful:
            return _Reading(pa.string(), lambda texts: _moments(texts, kind))
        return _Reading(kind, _from_year_one)
    if pa.types.is_binary(kind):
        return _Reading(pa.string(), _binary)
    if kind == GEOMETRY:
        return _Reading(pa.struct([("srid", pa.int64()), ("wkb", pa.string())]), _geometries)
    if column.type == "decimal" and pa.types.is_string(kind):
        return _Reading(pa.decimal256(column.length or 10, column.scale or 0), _as_text)
    return _Reading(kind)


def _binary(texts: Column) -> Column:
    return pa.chunked_array([_decoded(chunk) for chunk in texts.chunks], pa.binary())


def _decoded(texts: pa.Array[Any]) -> pa.Array[Any]:
    """Decode base64."""
    values = [None if text is None else a2b_base64(text) for text in texts.to_pylist()]
    return pa.array(values, pa.binary())


def _geometries(values: Column) -> Column:
    chunks: list[Any] = []
    for chunk in values.chunks:
        assert isinstance(chunk, pa.StructArray)
        parts = [_srids(chunk.field("srid")), _decoded(chunk.field("wkb"))]
        made = pa.StructArray.from_arrays(parts, fields=list(GEOMETRY), mask=chunk.is_null())
        chunks.append(made)
    kind: Any = GEOMETRY
    return pa.chunked_array(chunks, kind)


def _srids(values: pa.Array[Any]) -> pa.Array[Any]:
    try:
        return values.cast(pa.int32())
    except pa.ArrowInvalid:
        # Every version of the table has this problem, so it is not a schema error.
        raise MirrorError(
            f"a geometry has the SRID {pc.max(values).as_py()}; Delta tables support at most"
            f" {2**31 - 1}: exclude its column with excludeColumns, and reload the table"
        ) from None


def _as_text(values: Column) -> Column:
    texts: Column = cast_column(values, pa.string())
    return texts


def _days(texts: Column) -> Column:
    """Parse dates; null for an invalid date, or one before the year 1."""
    days = _cast_or_null(texts, pa.date32())
    return pc.if_else(pc.less(days, _FIRST_DAY), pa.scalar(None, pa.date32()), days)


def _moments(texts: Column, kind: pa.DataType) -> Column:
    """Parse timestamps; null for an invalid date.

    A text without a T has a zero in its date; one with a T may still be the 31st of February.
    """
    has_t = pc.equal(pc.utf8_slice_codeunits(texts, 10, 11), "T")
    days = pc.if_else(has_t, texts, pa.scalar(None, pa.string()))
    return _from_year_one(_cast_or_null(days, kind))


def _from_year_one(moments: Column) -> Column:
    """Replace the year 0, which MySQL supports but structs do not, with null."""
    first = pa.scalar(_FIRST_MICROS, pa.int64()).cast(moments.type)
    is_before = pc.less(moments, first)
    if not pc.any(is_before).as_py():
        return moments
    return pc.if_else(is_before, pa.scalar(None, moments.type), moments)


def _cast_or_null(texts: Column, kind: pa.DataType) -> Column:
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        values = pc.unique(texts).to_pylist()
    wrong = [each for each in values if each is not None and not _casts(each, kind)]
    is_wrong = pc.is_in(texts, pa.array(wrong, pa.string()))
    return pc.if_else(is_wrong, pa.scalar(None, pa.string()), texts).cast(kind)


def _casts(text: str, kind: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
