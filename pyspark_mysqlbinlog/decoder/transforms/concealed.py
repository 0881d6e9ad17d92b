"""Reads values that must not be shown, not even by an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark_mysqlbinlog.decoder.values.codec import Read
from pyspark_mysqlbinlog.errors import MalformedEventError, MySQLBinlogError

__all__ = ["read_concealed"]

T = TypeVar("T")


def read_concealed(
    read: Read, convert: Callable[[Any], T], data: bytes, pos: int, name: str
) -> tuple[T, int]:
    """Return a converted value, and the position after it.

    A value that cannot be decoded is a MalformedEventError without the value.

    name : of the value, in the error.
    """
    # Raised outside of the handler, so that it has no reference to an error with the value.
    try:
        value, end = read(data, pos)
        return convert(value), end
    except MySQLBinlogError as error:
        kind = type(error).__name__
    raise MalformedEventError(
        f"a value of {name} cannot be decoded ({kind}); its error is not shown because it may"
        " contain the value"
    )
