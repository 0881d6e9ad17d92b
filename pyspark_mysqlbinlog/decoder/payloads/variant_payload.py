"""Row images to Spark's VARIANT: an object per image, whose keys are the columns present.

A missing column (partial image) has no key; a NULL is a variant null. All images of one kind have
the same keys, so that their dictionary and the order of their ids are made once. Only the keys of
JSON documents and geometries are added row by row. The mapping of values is in
docs/reference/type-mapping.md; `variant` encodes the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.payloads import variant
from pyspark_mysqlbinlog.decoder.payloads.payload import MAX_COMPILED_COLUMNS
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, ImagePlan
from pyspark_mysqlbinlog.decoder.schemas.struct_types import MOST_DIGITS, VARIANT
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Read, cut_short, skipping
from pyspark_mysqlbinlog.decoder.values.days import MICROS_PER_DAY, day_number
from pyspark_mysqlbinlog.errors import SchemaError
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, SPATIAL_TYPES, ColumnSchema

__all__ = ["VariantPayload"]

_MAX_LAYOUTS = 1_024
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})

Encode = Callable[[Any], bytes]


class _Steps(NamedTuple):
    """The values of an image with one null bitmap, and those that must be read.

    The template has one more value than there are fields: an empty one, for excluded columns.
    """

    template: tuple[bytes, ...]
    reads: tuple[tuple[int, Read, Encode], ...]
    adds_keys: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """One kind of image.

    Attributes
    ----------
    columns : per column of the image: the index of its value, read, encode, and whether it adds
        keys.
    keys : the columns' names with their ids.
    ids, order : of the object, see `variant.encode_object`.
    metadata : the dictionary of `keys`.
    """

    columns: tuple[tuple[int, Read, Encode, bool], ...]
    keys: variant.Keys
    ids: tuple[int, ...]
    order: tuple[int, ...]
    metadata: bytes
    compiled: dict[bytes, _Steps] = field(default_factory=dict)

    def steps(self, nulls: bytes) -> _Steps:
        bits = int.from_bytes(nulls, "little")
        held = [column for at, column in enumerate(self.columns) if not bits >> at & 1]
        steps = _Steps(
            (variant.NULL,) * len(self.keys) + (b"",),
            tuple((place, read, encode) for place, read, encode, _ in held),
            any(adds_keys for _, _, _, adds_keys in held),
        )
        if len(self.compiled) * len(self.columns) >= MAX_COMPILED_COLUMNS:
            self.compiled.clear()
        self.compiled[nulls] = steps
        return steps


class VariantPayload:
    """One VARIANT object per image."""

    __slots__ = ("_keys", "_layouts", "_metadata", "_values", "invalid_dates", "rescued", "size")

    def __init__(self, type_: pa.DataType) -> None:
        if type_ != VARIANT:
            raise SchemaError(f"the Arrow schema has {type_}, expected a variant's {VARIANT}")
        self._values: list[bytes | None] = []
        self._metadata: list[bytes] = []
        self._layouts: dict[ImagePlan, _Layout] = {}
        # The dictionary of the current row, if its values add keys.
        self._keys: variant.Keys = {}
        self.invalid_dates: list[str] = []
        self.rescued: list[str] = []
        self.size = 0

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        layout = self._layouts.get(image) or self._layout(image)
        begin = pos + image.bitmap_length
        if begin > len(data):
            raise cut_short("its null bitmap", image.bitmap_length, data, pos)
        nulls = data[pos:begin]
        steps = layout.compiled.get(nulls) or layout.steps(nulls)
        values = list(steps.template)
        if steps.adds_keys:
            self._keys.clear()
            self._keys.update(layout.keys)
        pos = begin
        for place, read, encode in steps.reads:
            value, pos = read(data, pos)
            values[place] = encode(value)
        encoded = variant.within_limit(variant.encode_object(values, layout.ids, layout.order))
        metadata = layout.metadata
        if steps.adds_keys and len(self._keys) > len(layout.keys):
            metadata = variant.encode_metadata(self._keys)
        self._values.append(encoded)
        self._metadata.append(metadata)
        self.size += len(encoded) + len(metadata)
        return pos

    def append_null(self) -> None:
        self._values.append(None)
        self._metadata.append(b"")

    def missing(self, image: ImagePlan) -> tuple[str, ...]:
        return image.missing

    def finish(self) -> pa.Array[Any]:
        mask = pa.array([value is None for value in self._values], type=pa.bool_())
        # Not nullable, even if the variant itself is null.
        values = pa.array([value or b"" for value in self._values], type=pa.binary())
        metadata = pa.array(self._metadata, type=pa.binary())
        self._values, self._metadata = [], []
        self.size = 0
        return pa.StructArray.from_arrays([values, metadata], fields=list(VARIANT), mask=mask)

    def _layout(self, image: ImagePlan) -> _Layout:
        names = [column.name for column in image.columns if column.codec is not None]
        keys = {name: at for at, name in enumerate(names)}
        # A column's id is also the index of its value: both count the columns that are output.
        ids = tuple(keys[name] for name in sorted(names, key=variant.key_order))
        layout = _Layout(
            tuple(self._column(column, keys, len(names)) for column in image.columns),
            keys,
            ids,
            ids,
            variant.encode_metadata(keys),
        )
        if len(self._layouts) >= _MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[image] = layout
        return layout

    def _column(
        self, column: ColumnPlan, keys: variant.Keys, excluded: int
    ) -> tuple[int, Read, Encode, bool]:
        if column.codec is None or column.schema is None:
            return excluded, skipping(column.skip), _nothing, False
        kind = column.schema.type
        if kind == "json":
            return keys[column.name], column.codec.read, self._encode_document, True
        if kind in SPATIAL_TYPES:
            return keys[column.name], column.codec.read, self._encode_geometry, True
        encode = _encoder(column.schema, column.codec)
        return keys[column.name], column.codec.read, encode, False

    def _encode_document(self, tree: Any) -> bytes:
        return variant.encode_tree(tree, self._keys)

    def _encode_geometry(self, value: tuple[int | None, bytes]) -> bytes:
        srid, wkb = value
        number = variant.NULL if srid is None else variant.encode_integer(srid)
        return variant.encode_fields(
            {"srid": number, "wkb": variant.encode_binary(wkb)}, self._keys
        )


def _encoder(schema: ColumnSchema, codec: Codec) -> Encode:
    """Return the encoder of the codec's values, for a column whose values add no keys."""
    kind = schema.type
    if kind == "bit" and (schema.length or 1) == 1:
        return _boolean
    if kind in INTEGER_TYPES or kind in ("bit", "year"):
        return variant.encode_integer
    if kind == "decimal":
        whole = (schema.length or 10) <= MOST_DIGITS
        return variant.encode_decimal if whole else variant.encode_string
    if kind == "float":
        return variant.encode_float
    if kind == "double":
        return variant.encode_double
    if kind == "vector":
        return _floats
    if kind in _BINARIES:
        return variant.encode_binary

    def text(value: Any) -> bytes:
        """Encode as SELECT shows it: JSON text without its quotes and the T of ISO times."""
        return variant.encode_string(codec.json(value)[1:-1].replace("T", " "))

    def date(ymd: int) -> bytes:
        days = day_number(ymd)
        return text(ymd) if days is None else variant.encode_date(days)

    def datetime(value: tuple[int, int]) -> bytes:
        days = day_number(value[0])
        if days is None:
            return text(value)
        return variant.encode_timestamp_ntz(days * MICROS_PER_DAY + value[1])

    def timestamp(micros: int | None) -> bytes:
        return text(micros) if micros is None else variant.encode_timestamp(micros)

    temporal: dict[str, Encode] = {
        "time": text,
        "date": date,
        "datetime": datetime,
        "timestamp": timestamp,
    }
    return temporal.get(kind, variant.encode_string)


def _boolean(value: object) -> bytes:
    return variant.TRUE if value else variant.FALSE


def _floats(values: list[float]) -> bytes:
    return variant.encode_array([variant.encode_float(value) for value in values])


def _nothing(_: object) -> bytes:
    """The encoding of an excluded column."""
    return b""
