"""The codec: reads and skips one column's values, and writes them as JSON text.

A codec is made once per column of a table map and called once per cell. It therefore consists of
plain functions over (data, pos), closed over the properties of the column's type. All reads are
checked: `struct` rejects a buffer that is too short, and slices are compared with the end first.
NULL is never passed to a codec: the row loop handles it by the image's null bitmap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = [
    "Codec",
    "Read",
    "ReadJson",
    "Skip",
    "cut_short",
    "fixed_skip",
    "make_codec",
    "quote",
    "skipping",
]

Read = Callable[[bytes, int], tuple[Any, int]]
ReadJson = Callable[[bytes, int], tuple[str, int]]
Skip = Callable[[bytes, int], int]

# A str as a JSON string: quotes, backslashes and control characters escaped, no others.
quote = encode_basestring


@dataclass(frozen=True, slots=True)
class Codec:
    """Functions for the values of one column.

    Attributes
    ----------
    read : (data, pos) -> (value, position after it). The function that makes the codec defines the
        value.
    skip : (data, pos) -> position after the value.
    json : value -> JSON text.
    read_json : read and json in one call, for the hot path.

    All raise MalformedEventError, never read past the end and never return a short value.
    """

    read: Read
    skip: Skip
    json: Callable[[Any], str]
    read_json: ReadJson


def make_codec(
    read: Read, skip: Skip, json: Callable[[Any], str], read_json: ReadJson | None = None
) -> Codec:
    """Make a codec; unless given, read_json is read followed by json."""

    def read_then_json(data: bytes, pos: int) -> tuple[str, int]:
        value, pos = read(data, pos)
        return json(value), pos

    return Codec(read, skip, json, read_json or read_then_json)


def skipping(skip: Skip, value: Any = None) -> Read:
    """Return the read of an excluded column: it skips, and always returns the same value."""

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        return value, skip(data, pos)

    return read


def cut_short(what: str, length: int, data: bytes, pos: int) -> MalformedEventError:
    """Return the error for an event that ends inside a value."""
    return MalformedEventError(
        f"row image is cut short in {what}: expected {length} bytes at offset {pos}, found"
        f" {max(len(data) - pos, 0)}"
    )


def fixed_skip(what: str, length: int) -> Skip:
    """Return the skip for values that always have `length` bytes."""

    def skip(data: bytes, pos: int) -> int:
        end = pos + length
        if end > len(data):
            raise cut_short(what, length, data, pos)
        return end

    return skip
