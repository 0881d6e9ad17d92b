"""Row images to one Arrow column: the builders of `before` and `after`.

A builder has few verbs: append an image, append a null, pass over an image, finish. What a row
becomes is the builder's affair: `JsonPayload` writes one JSON text per image; `StructPayload` and
`VariantPayload` stand behind the same verbs. NULL values and missing columns are settled per null
bitmap, before any value is read: each (columns present, null bitmap) is compiled once, here into
the texts that never change and the reads between them.
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

# Columns in all null bitmaps compiled for one kind of image before starting over: a sparse table of
# 600 columns has nearly as many bitmaps as rows.
MAX_COMPILED_COLUMNS = 16_384
# Bytes of text from which on a copy too many is worth avoiding.
_LARGE = 4 << 20


class PayloadBuilder(Protocol):
    """Builds one column of row images.

    Attributes
    ----------
    size : bytes held, about; to cut batches by.
    invalid_dates : what of the images appended since it was last cleared became null though it is
        not NULL, as `source.invalid_dates` has it: ``after.d=0000-00-00``. The caller clears it.
    rescued : what of them has no place in the column, as members of a JSON object: ``"c":1``.
        Whoever reads it clears it.
    """

    size: int
    invalid_dates: list[str]
    rescued: list[str]

    def append(self, image: ImagePlan, data: bytes, pos: int) -> int:
        """Read the image at `pos`; returns the position after it."""

    def append_null(self) -> None:
        """A row that has no such image."""

    def missing(self, image: ImagePlan) -> tuple[str, ...]:
        """Names of the columns that such an image does not give, excluded ones left out."""

    def finish(self) -> pa.Array[Any]:
        """The column of what was appended since the last finish; the builder is empty again."""


# (before or after, the column's Arrow type) -> its builder.
PayloadFactory = Callable[[str, pa.DataType], PayloadBuilder]


def skip_image(image: ImagePlan, data: bytes, pos: int) -> int:
    """Pass over one row image; returns the position after it."""
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
    """The constant texts of an image, with an empty text for each value, and where those stand."""

    template: tuple[str, ...]
    reads: tuple[tuple[int, ReadJson], ...]


class JsonPayload:
    """One JSON object per image: columns in table order, NULL as null, missing columns left out."""

    __slots__ = ("_texts", "_type", "invalid_dates", "rescued", "size")
    # Whether a JSON column's document is a JSON string that holds its text.
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
        # The stubs don't know that more than fits one array gives a ChunkedArray.
        texts, self._texts = self._texts, []
        array: Any
        if self.size > _LARGE and self.size < 1 << 31:
            array = _joined(texts, self._type)
        else:
            array = pa.array(texts, type=self._type)
        self.size = 0
        if not isinstance(array, pa.Array):
            raise UnsupportedEventError(
                "a row's JSON is larger than 2 GB, the most that an Arrow string column holds;"
                " exclude its largest columns"
            )
        return array


def _joined(texts: list[bytes | None], arrow_type: pa.DataType) -> pa.Array[Any]:
    """A column of large texts: Arrow's own builder would grow by doubling, and copy as it does."""
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
    """As `JsonPayload`, with each document of a JSON column as a string.

    So a reader need not know where a document ends, and JSON's null is not NULL.
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
    """Texts and reads of images with this null bitmap (1 = NULL, present columns only)."""
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
