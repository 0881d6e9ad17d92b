"""Builders of `before` and `after`: row images to one Arrow column.

All builders have the same methods: append an image, append a null, finish. `JsonPayload` writes one
JSON text per image, `StructPayload` and `VariantPayload` build structs and variants. NULLs and
missing columns are resolved per null bitmap, before any value is read: each (present columns, null
bitmap) is compiled once, here into the constant texts and the reads between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.payloads.plan import ImagePlan
from pyspark_mysqlbinlog.decoder.values.codec import ReadJson, cut_short, quote, skipping
from pyspark_mysqlbinlog.errors import UnsupportedEventError

__all__ = [
    "MAX_COMPILED_COLUMNS",
    "JsonPayload",
    "JsonWithTexts",
    "PayloadBuilder",
    "PayloadFactory",
    "json_payload",
    "json_with_texts",
    "skip_image",
]

# Maximum number of columns in all compiled null bitmaps of one kind of image; then the cache is
# cleared. A sparse table of 600 columns has nearly as many bitmaps as rows.
MAX_COMPILED_COLUMNS = 16_384
# Bytes of text from which on an extra copy is worth avoiding.
_LARGE = 4 << 20


class PayloadBuilder(Protocol):
    """Builds one column of row images.

    Attributes
    ----------
    size : approximate bytes held, to limit batches.
    invalid_dates : values of the appended images that became null although they are not NULL, in
        the format of `source.invalid_dates`: ``after.d=0000-00-00``. The caller clears it.
    rescued : values of the appended images that the column has no field for, as members of a JSON
        object: ``"c":1``. The caller clears it.
    """

    size: int
    invalid_dates: list[str]
    rescued: list[str]

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        """Read the image at `pos`; return the position after it."""

    def append_null(self) -> None:
        """Append a row that has no such image."""

    def missing(self, image: ImagePlan) -> tuple[str, ...]:
        """Return the names of the columns missing in such an image, without excluded columns."""

    def finish(self) -> pa.Array[Any]:
        """Return the column of the images since the last finish; the builder is then empty."""


# (before or after, the column's Arrow type) -> its builder.
PayloadFactory = Callable[[str, pa.DataType], PayloadBuilder]


def skip_image(image: ImagePlan, data: bytes, pos: int) -> int:
    """Skip one row image; return the position after it."""
    values = pos + image.bitmap_length
    if values > len(data):
        raise cut_short("its null bitmap", image.bitmap_length, data, pos)
    nulls = int.from_bytes(data[pos:values], "little")
    pos = values
    for at, column in enumerate(image.columns):
        if not nulls >> at & 1:
            pos = column.skip(data, pos)
    return pos


@dataclass(frozen=True, slots=True)
class _Texts:
    """The constant texts of an image, with an empty text per value, and the indexes of these."""

    template: tuple[str, ...]
    reads: tuple[tuple[int, ReadJson], ...]


class JsonPayload:
    """One JSON object per image: columns in table order, NULL as null, missing columns omitted."""

    __slots__ = ("_texts", "_type", "invalid_dates", "rescued", "size")
    # Whether the document of a JSON column is a JSON string that contains its text.
    quotes_documents = False

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._texts: list[bytes | None] = []
        self.invalid_dates: list[str] = []
        self.rescued: list[str] = []
        self.size = 0

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        values = pos + image.bitmap_length
        nulls = data[pos:values]
        if values > len(data):
            raise cut_short("its null bitmap", image.bitmap_length, data, pos)
        texts = image.cache.get(nulls) or _compile(
            image, nulls, quotes_documents=self.quotes_documents
        )
        parts = list(texts.template)
        pos = values
        for at, read_json in texts.reads:
            parts[at], pos = read_json(data, pos)
        text = "".join(parts).encode()
        self.size += len(text)
        self._texts.append(text)
        return pos

    def append_null(self) -> None:
        self._texts.append(None)

    def missing(self, image: ImagePlan) -> tuple[str, ...]:
        return image.missing

    def finish(self) -> pa.Array[Any]:
        # The stubs omit that data beyond one array's capacity gives a ChunkedArray.
        texts, self._texts = self._texts, []
        array: Any
        if self.size > _LARGE and self.size < 1 << 31:
            array = _joined(texts, self._type)
        else:
            array = pa.array(texts, type=self._type)
        self.size = 0
        if not isinstance(array, pa.Array):
            raise UnsupportedEventError(
                "a row's JSON is larger than 2 GB, the limit of an Arrow string column;"
                " exclude its largest columns"
            )
        return array


def _joined(texts: list[bytes | None], arrow_type: pa.DataType) -> pa.Array[Any]:
    """Build a column of large texts; Arrow's own builder would double and copy its memory."""
    lengths = [0 if text is None else len(text) for text in texts]
    offsets = pa.array([0, *accumulate(lengths)], type=pa.int32()).buffers()[1]
    valid = pa.array([text is not None for text in texts], type=pa.bool_()).buffers()[1]
    held = [text for text in texts if text is not None]
    texts.clear()
    data = held.pop() if len(held) == 1 else b"".join(held)
    return pa.Array.from_buffers(arrow_type, len(lengths), [valid, offsets, pa.py_buffer(data)])


def json_payload(_side: str, arrow_type: pa.DataType) -> JsonPayload:
    """The factory of payload=json."""
    return JsonPayload(arrow_type)


class JsonWithTexts(JsonPayload):
    """Like `JsonPayload`, but each document of a JSON column is a string.

    Its end is then unambiguous for a reader, and JSON's null differs from NULL.
    """

    __slots__ = ()
    quotes_documents = True


def json_with_texts(_side: str, arrow_type: pa.DataType) -> JsonWithTexts:
    """The factory of payload=json with jsonType=text."""
    return JsonWithTexts(arrow_type)


def _quoting(read_json: ReadJson) -> ReadJson:
    def read(data: bytes, pos: int) -> tuple[str, int]:
        text, pos = read_json(data, pos)
        return quote(text), pos

    return read


def _compile(image: ImagePlan, nulls: bytes, *, quotes_documents: bool) -> _Texts:
    """Return texts and reads of images with this null bitmap (1 = NULL, present columns only)."""
    bits = int.from_bytes(nulls, "little")
    template: list[str] = []
    reads: list[tuple[int, ReadJson]] = []
    constant = "{"
    comma = ""
    for at, column in enumerate(image.columns):
        is_null = bits >> at & 1
        if column.codec is None:
            if not is_null:
                template += [constant, ""]
                reads.append((len(template) - 1, skipping(column.skip, "")))
                constant = ""
        elif is_null:
            constant += f"{comma}{column.json_key}null"
            comma = ","
        else:
            template += [f"{constant}{comma}{column.json_key}", ""]
            read_json = column.codec.read_json
            if quotes_documents and column.schema is not None and column.schema.type == "json":
                read_json = _quoting(read_json)
            reads.append((len(template) - 1, read_json))
            constant, comma = "", ","
    texts = _Texts((*template, constant + "}"), tuple(reads))
    if len(image.cache) * len(image.columns) >= MAX_COMPILED_COLUMNS:
        image.cache.clear()
    image.cache[nulls] = texts
    return texts
