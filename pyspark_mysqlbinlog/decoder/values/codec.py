"""The codec: how one column's value is read, skipped and written as JSON text.

A codec is made once per column of a table map and then called once per cell, so it is a bundle of
plain functions over (data, pos), closed over what the column's type needs. All reads are checked:
`struct` refuses a buffer that is too short, and slices are compared with the end first. NULL never
gets here: the row image's null bitmap is the loop's affair.
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

# A str as a JSON string: quotes, backslashes and controls escaped, everything else as it is.
quote = encode_basestring


@dataclass(frozen=True, slots=True)
class Codec:
    """One column's value.

    Attributes
    ----------
    read : (data, pos) -> (value, position after it). What a value is, the maker says.
    skip : (data, pos) -> position after the value.
    json : value -> JSON text.
    read_json : the two in one call, for the hot path.

    All raise MalformedEventError, never read past the end and never return a short value.
    """

    read: Read
    skip: Skip
    json: Callable[[Any], str]
    read_json: ReadJson


def make_codec(
    read: Read, skip: Skip, json: Callable[[Any], str], read_json: ReadJson | None = None
) -> Codec:
    """A codec whose read_json is read, then json, unless there is a faster one."""

    def read_then_json(data: bytes, pos: int) -> tuple[str, int]:
        value, pos = read(data, pos)
        return json(value), pos

    return Codec(read, skip, json, read_json or read_then_json)


def skipping(skip: Skip, value: Any = None) -> Read:
    """The read of an excluded column: passed over, and always the same value."""

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        return value, skip(data, pos)

    return read


def cut_short(what: str, length: int, data: bytes, pos: int) -> MalformedEventError:
    """The error of a value that the event ends in the middle of."""
    return MalformedEventError(
        f"row image is cut short in {what}: expected {length} bytes at offset {pos}, found"
        f" {max(len(data) - pos, 0)}"
    )


def fixed_skip(what: str, length: int) -> Skip:
    """Skip for values that always take `length` bytes."""

    def skip(data: bytes, pos: int) -> int:
        end = pos + length
        if end > len(data):
            raise cut_short(what, length, data, pos)
        return end

    return skip
