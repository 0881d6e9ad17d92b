"""Partial updates of JSON documents: MySQL's binary diffs, applied to a binary document.

With binlog_row_value_options=PARTIAL_JSON (8.0.3 and later), a rows event may have the difference
to the before image instead of the document. Layout (sql-common/json_diff.cc)::

    diff  operation u8 | path length lenenc | path | not for removal: value length lenenc | value
    operation: 0 replace, 1 insert, 2 remove

A path is `$` and legs: `.name`, `."quoted name"`, `[index]`, `[last]`, `[last-1]`. A value is a
document as in `json_binary`.

Only the containers on a path are rebuilt; all other values are copied, because offsets count from
their container. A diff that does not fit the document is an error: the server applies it to the
same document.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.values.json_binary import INLINED, MAX_DEPTH
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["Diff", "apply_diffs", "parse_diffs"]

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_OPERATIONS = {_REPLACE: "replace", _INSERT: "insert", _REMOVE: "remove"}
_LARGE_OBJECT, _LARGE_ARRAY = 0x01, 0x03
_OBJECTS, _ARRAYS = (0x00, _LARGE_OBJECT), (0x02, _LARGE_ARRAY)
_STRING, _OPAQUE = 0x0C, 0x0F
# Bytes of a literal and of the numbers.
_SIZES = {0x04: 1, 0x05: 2, 0x06: 2, 0x07: 4, 0x08: 4, 0x09: 8, 0x0A: 8, 0x0B: 8}
_LITERAL_NULL = b"\x04\x00"

_LEG = re.compile(
    r'\.(?P<quoted>"(?:[^"\\]|\\.)*")|\.(?P<name>[^.\[\]"\s*]+)'
    r"|\[(?P<last>last(?:-(?P<back>[0-9]{1,10}))?|[0-9]{1,10})\]"
)


class _Index(NamedTuple):
    """A leg `[number]`; from the end if `is_last`."""

    number: int
    is_last: bool


_Leg = str | _Index


class _Value(NamedTuple):
    """A value: its type, and its bytes after the type."""

    code: int
    data: bytes


_Member = tuple[bytes, _Value]  # elements of arrays have empty keys


class Diff(NamedTuple):
    """One difference.

    Attributes
    ----------
    operation : its number in the binlog.
    value : a binary document; None to remove.
    """

    operation: int
    path: bytes
    value: bytes | None

    @property
    def verb(self) -> str:
        """``replace``, ``insert`` or ``remove``."""
        return _OPERATIONS[self.operation]


def parse_diffs(diffs: bytes, what: str) -> Iterator[Diff]:
    """Yield the differences in their order; MalformedEventError that names `what`."""
    reader = Reader(diffs, f"the JSON diff of {what}")
    while reader.remaining:
        operation = reader.u8()
        if operation not in _OPERATIONS:
            raise MalformedEventError(f"{reader.what} has operation {operation}, expected 0 to 2")
        path = reader.lenenc_bytes()
        value = None
        if operation != _REMOVE:
            value = reader.lenenc_bytes()
            if not value:
                raise MalformedEventError(f"{reader.what} has an empty value")
        yield Diff(operation, path, value)


def apply_diffs(document: bytes, diffs: bytes, what: str) -> bytes:
    """Return the document after all diffs; MalformedEventError that names `what` if one fails."""
    if not diffs:
        return document
    document = document or _LITERAL_NULL
    value = _Value(document[0], document[1:])
    for diff in parse_diffs(diffs, what):
        new = None if diff.value is None else _Value(diff.value[0], diff.value[1:])
        try:
            value = _changed(value, [*_legs(diff.path)], diff.operation, new)
        except _MismatchError as mismatch:
            raise MalformedEventError(
                f"the JSON diff of {what} does not fit the before image: can't {diff.verb}"
                f" {diff.path[:80]!r}: {mismatch}"
            ) from None
    return bytes((value.code,)) + value.data


class _MismatchError(Exception):
    """Why a diff can't be applied."""


def _legs(path: bytes) -> Iterator[_Leg]:
    try:
        text = path.decode()
    except UnicodeDecodeError:
        raise _MismatchError("the path is not UTF-8") from None
    at, count = 1, 0
    while at < len(text):
        found = _LEG.match(text, at)
        count += 1
        if text[0] != "$" or found is None or count > MAX_DEPTH:
            break
        at = found.end()
        if found["quoted"] is not None:
            try:
                yield str(json.loads(found["quoted"], strict=False))
            except ValueError:
                raise _MismatchError("the path has an invalid name") from None
        elif found["name"] is not None:
            yield found["name"]
        elif found["last"].startswith("last"):
            yield _Index(int(found["back"] or 0), is_last=True)
        else:
            yield _Index(int(found["last"]), is_last=False)
    if at != len(text) or not count:
        raise _MismatchError("the path is not one of names and array cells")


def _changed(value: _Value, legs: list[_Leg], operation: int, new: _Value | None) -> _Value:
    """Return the value with a change at a path below it."""
    is_object = value.code in _OBJECTS
    if not is_object and value.code not in _ARRAYS:
        raise _MismatchError("the path leads into a value that is no object or array")
    leg, *rest = legs
    members = [*_members(value)]
    if isinstance(leg, str):
        if not is_object:
            raise _MismatchError("an array has no members")
        at, is_there = _find(members, leg.encode())
        key = leg.encode()
    else:
        if is_object:
            raise _MismatchError("an object has no cells")
        at, is_there = _cell(leg, len(members))
        key = b""
    if not rest and operation == _INSERT:
        if is_object and is_there:
            raise _MismatchError("the member exists")
        assert new is not None
        members.insert(at, (key, new))
        return _container(members, is_object=is_object)
    if not is_there:
        raise _MismatchError("nothing is there")
    if rest:
        members[at] = key, _changed(members[at][1], rest, operation, new)
    elif new is None:
        del members[at]
    else:
        members[at] = key, new
    return _container(members, is_object=is_object)


def _find(members: list[_Member], key: bytes) -> tuple[int, bool]:
    """Return a key's index, or where it belongs: keys are sorted by length, then by bytes."""
    keys = [other for other, _ in members]
    if key in keys:
        return keys.index(key), True
    return bisect_left(keys, (len(key), key), key=lambda other: (len(other), other)), False


def _cell(leg: _Index, count: int) -> tuple[int, bool]:
    """Return the index of a cell and whether it exists; otherwise the index to insert at."""
    is_there = leg.number < count
    if leg.is_last:
        return (count - 1 - leg.number if is_there else 0), is_there
    return min(leg.number, count), is_there


def _members(container: _Value) -> Iterator[_Member]:
    """Yield the keys and values of an object, or the values of an array."""
    code, data = container
    is_object = code in _OBJECTS
    width = 4 if code in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
    count, size = _uint(data, 0, width), _uint(data, width, width)
    keys = 2 * width
    values = keys + (count * (width + 2) if is_object else 0)
    if values + count * (width + 1) > size or size > len(data):
        raise _MismatchError(f"{count} elements do not fit into {len(data)} bytes")
    data = data[:size]
    for index in range(count):
        key = b""
        if is_object:
            entry = keys + index * (width + 2)
            start = _uint(data, entry, width)
            key = _take(data, start, _uint(data, entry + width, 2))
        entry = values + index * (width + 1)
        kind = data[entry]
        at = entry + 1 if kind in INLINED[width] else _uint(data, entry + 1, width)
        yield key, _Value(kind, _take(data, at, _size(kind, data, at)))


def _size(kind: int, data: bytes, at: int) -> int:
    """Return the bytes of the value at an offset."""
    if kind in _SIZES:
        return _SIZES[kind]
    if kind in _OBJECTS or kind in _ARRAYS:
        width = 4 if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
        return _uint(data, at + width, width)
    if kind not in (_STRING, _OPAQUE):
        raise _MismatchError(f"a value has the type 0x{kind:02x}")
    begin = at + (kind == _OPAQUE)
    length = 0
    for more in range(5):
        byte = _take(data, begin + more, 1)[0]
        length |= (byte & 0x7F) << 7 * more
        if byte < 0x80:
            return begin + more + 1 + length - at
    raise _MismatchError("a length has more than 5 bytes")


def _container(members: list[_Member], *, is_object: bool) -> _Value:
    """Encode an object or array, small if it fits."""
    small = _encoded(members, 2, is_object=is_object)
    if small is not None:
        return _Value(_OBJECTS[0] if is_object else _ARRAYS[0], small)
    large = _encoded(members, 4, is_object=is_object)
    if large is None:
        raise _MismatchError("the document becomes larger than 4 GiB")
    return _Value(_LARGE_OBJECT if is_object else _LARGE_ARRAY, large)


def _encoded(members: list[_Member], width: int, *, is_object: bool) -> bytes | None:
    """Encode with offsets of `width` bytes; None if they do not suffice."""
    limit = 1 << 8 * width
    offset = 2 * width + len(members) * (width + 1 + (width + 2 if is_object else 0))
    keys, entries, texts, values = [], [], [], []
    if is_object:
        for key, _ in members:
            if offset >= limit or len(key) > 0xFFFF:
                return None
            keys += [offset.to_bytes(width, "little"), len(key).to_bytes(2, "little")]
            texts.append(key)
            offset += len(key)
    for _, (kind, data) in members:
        entries.append(bytes((kind,)))
        if kind in INLINED[width]:
            entries.append(data.ljust(width, _sign(kind, data)))
            continue
        if offset >= limit:
            return None
        entries.append(offset.to_bytes(width, "little"))
        values.append(data)
        offset += len(data)
    if offset >= limit or len(members) >= limit:
        return None
    head = len(members).to_bytes(width, "little") + offset.to_bytes(width, "little")
    return b"".join((head, *keys, *entries, *texts, *values))


def _sign(kind: int, data: bytes) -> bytes:
    """Return the byte that fills up an inlined value."""
    is_signed = kind in (0x05, 0x07)
    return b"\xff" if is_signed and data[-1:] >= b"\x80" else b"\x00"


def _uint(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_take(data, at, size), "little")


def _take(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise _MismatchError(f"expected {size} bytes at offset {at}, found {len(data) - at}")
    return data[at : at + size]
