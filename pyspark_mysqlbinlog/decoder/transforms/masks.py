"""Masks: texts that replace the values of a column before they leave the decoder.

A mask replaces a column's codec and its schema. The codec reads the value as before and returns the
mask's text; the schema is that of a text column. So every payload, the key columns and the types of
a Delta table follow from it, and no later code sees the value. NULL stays NULL.

========================  ==========================================================================
``hash``                  HMAC-SHA256 of the value with the secret, as 64 hexadecimal digits
``redact``                ``***``
``truncate(n)``           the first n characters
``keepLast(n)``           ``***`` and the last n characters; ``***`` alone if there are no more than
                          n, which would be the whole value
========================  ==========================================================================

The text of a value is the one that payload=json shows, without a string's quotes and escapes. A
hash of a binary value is that of its bytes. The same value has the same hash in every column.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pyspark_mysqlbinlog.decoder.transforms.concealed import read_concealed
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Read, make_codec, quote
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.tables import BLOB_TYPES, SPATIAL_TYPES, ColumnSchema

__all__ = [
    "REDACTED",
    "Mask",
    "Masking",
    "check_mask",
    "masked_codec",
    "masked_column",
    "parse_mask",
]

Kind = Literal["hash", "redact", "truncate", "keepLast"]

REDACTED = "***"
_WITHOUT_LENGTH: dict[str, Kind] = {"hash": "hash", "redact": "redact"}
_WITH_LENGTH: dict[str, Kind] = {"truncate": "truncate", "keeplast": "keepLast"}
_FORM = re.compile(r"([a-z]+)(?:\s*\(\s*(\d{1,6})\s*\))?", re.IGNORECASE | re.ASCII)
# Their texts are encodings or structures, so a number of characters is not a part of the value.
_WITHOUT_PARTS = SPATIAL_TYPES | {
    "binary",
    "varbinary",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
    "bit",
    "json",
    "vector",
}


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask; `length` is the number of characters that `truncate` and `keepLast` show."""

    kind: Kind
    length: int = 0

    def __str__(self) -> str:
        return f"{self.kind}({self.length})" if self.length else self.kind


@dataclass(frozen=True, slots=True)
class Masking:
    """The mask of one column.

    column : unmasked.
    """

    mask: Mask
    column: ColumnSchema
    secret: bytes = field(repr=False)


def parse_mask(text: str) -> Mask:
    """Parse ``hash``, ``redact``, ``truncate(n)`` or ``keepLast(n)``; ValueError for others."""
    found = _FORM.fullmatch(text.strip())
    if found is not None:
        word, length = found[1].lower(), found[2]
        if length is None and word in _WITHOUT_LENGTH:
            return Mask(_WITHOUT_LENGTH[word])
        if length is not None and int(length) and word in _WITH_LENGTH:
            return Mask(_WITH_LENGTH[word], int(length))
    raise ValueError("expected hash, redact, truncate(n) or keepLast(n), n at least 1")


def check_mask(column: ColumnSchema, mask: Mask) -> None:
    """Raise OptionError if a column's type has no such mask."""
    if mask.length and column.type in _WITHOUT_PARTS:
        raise OptionError(
            f"option maskColumns: {mask} is for texts, numbers and times, and column"
            f" `{column.name}` is a {column.type}; set hash or redact, or exclude it with"
            " excludeColumns"
        )


def masked_column(column: ColumnSchema) -> ColumnSchema:
    """Return the schema of a masked column: a text, NULL where the column was NULL.

    A BLOB type stays one, because it decides whether the value in a before image is reliable.
    """
    kind = "longtext" if column.type in BLOB_TYPES else "varchar"
    return replace(
        column, type=kind, length=None, scale=None, unsigned=False, charset="utf8mb4", labels=()
    )


def masked_codec(codec: Codec, masking: Masking) -> Codec:
    """Return the codec that reads a column's values masked.

    A value that cannot be decoded is a MalformedEventError without the value.
    """
    column = masking.column
    mask_value = _mask_of(codec, masking)
    read_value = codec.read

    name = f"the masked column `{column.name}` ({column.type})"

    def read(data: bytes, pos: int) -> tuple[str, int]:
        return read_concealed(read_value, mask_value, data, pos, name)

    return make_codec(read, codec.skip, quote, _quoted(read))


def _quoted(read: Read) -> Callable[[bytes, int], tuple[str, int]]:
    def read_json(data: bytes, pos: int) -> tuple[str, int]:
        text, pos = read(data, pos)
        return quote(text), pos

    return read_json


def _mask_of(codec: Codec, masking: Masking) -> Callable[[Any], str]:
    mask, secret = masking.mask, masking.secret
    text = _text_of(codec, masking.column)
    length = mask.length
    match mask.kind:
        case "redact":
            return lambda _: REDACTED
        case "truncate":
            return lambda value: text(value)[:length]
        case "keepLast":
            return lambda value: _last(text(value), length)
        case "hash":

            def hashed(value: Any) -> str:
                given = (
                    value
                    if isinstance(value, bytes)
                    else text(value).encode("utf-8", "surrogateescape")
                )
                return hmac.digest(secret, given, "sha256").hex()

            return hashed


def _last(text: str, length: int) -> str:
    return REDACTED + text[-length:] if len(text) > length else REDACTED


def _text_of(codec: Codec, column: ColumnSchema) -> Callable[[Any], str]:
    """Return value -> the text that payload=json shows, without quotes and escapes."""
    is_document = column.type == "json"

    def text(value: Any) -> str:
        if isinstance(value, str) and not is_document:
            return value
        shown = codec.json(value)
        return str(json.loads(shown)) if shown.startswith('"') and not is_document else shown

    return text
