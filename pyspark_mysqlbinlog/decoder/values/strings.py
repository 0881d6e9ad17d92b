"""CHAR, VARCHAR, TEXT, their binary counterparts, ENUM and SET.

Strings are a little-endian length of 1 to 4 bytes and that many bytes. CHAR is stored without its
trailing spaces, and BINARY without its trailing zeros (Field_string::pack). SELECT shows CHAR the
same way but BINARY in full, so BINARY is padded again. ENUM and SET are stored as numbers; the
labels are in the schema.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from pyspark_mysqlbinlog.decoder.values.codec import (
    Codec,
    Skip,
    cut_short,
    fixed_skip,
    make_codec,
    quote,
)
from pyspark_mysqlbinlog.errors import MalformedEventError, SchemaMismatchError

__all__ = ["binary", "enum", "label_set", "prefixed_skip", "text"]

RawRead = Callable[[bytes, int], tuple[bytes, int]]


def _raw_read(what: str, length_bytes: int) -> RawRead:
    """Read length and bytes."""
    if length_bytes == 1:

        def read1(data: bytes, pos: int) -> tuple[bytes, int]:
            start = pos + 1
            if start > len(data):
                raise cut_short(what, 1, data, pos)
            end = start + data[pos]
            if end > len(data):
                raise cut_short(what, end - start, data, start)
            return data[start:end], end

        return read1

    def read(data: bytes, pos: int) -> tuple[bytes, int]:
        start = pos + length_bytes
        if start > len(data):
            raise cut_short(what, length_bytes, data, pos)
        end = start + int.from_bytes(data[pos:start], "little")
        if end > len(data):
            raise cut_short(what, end - start, data, start)
        return data[start:end], end

    return read


def prefixed_skip(what: str, length_bytes: int) -> Skip:
    """Return the skip for values that are a length of `length_bytes` and that many bytes."""

    def skip(data: bytes, pos: int) -> int:
        start = pos + length_bytes
        if start > len(data):
            raise cut_short(what, length_bytes, data, pos)
        end = start + int.from_bytes(data[pos:start], "little")
        if end > len(data):
            raise cut_short(what, end - start, data, start)
        return end

    return skip


def text(what: str, length_bytes: int, decode: Callable[[bytes], str]) -> Codec:
    """CHAR, VARCHAR, TEXT. Value: str, decoded by the column's charset."""
    raw_read = _raw_read(what, length_bytes)

    def read(data: bytes, pos: int) -> tuple[str, int]:
        raw, pos = raw_read(data, pos)
        return decode(raw), pos

    def read_json(data: bytes, pos: int) -> tuple[str, int]:
        raw, pos = raw_read(data, pos)
        return quote(decode(raw)), pos

    return make_codec(read, prefixed_skip(what, length_bytes), quote, read_json)


def binary(what: str, length_bytes: int, padded: int | None = None) -> Codec:
    """BINARY (padded: its n), VARBINARY, BLOB. Value: bytes; JSON: base64."""
    raw_read = _raw_read(what, length_bytes)

    def read_padded(data: bytes, pos: int) -> tuple[bytes, int]:
        raw, pos = raw_read(data, pos)
        if len(raw) > (padded or 0):
            raise MalformedEventError(f"{what} holds {len(raw)} bytes, expected at most {padded}")
        return raw.ljust(padded or 0, b"\x00"), pos

    def json(value: bytes) -> str:
        return f'"{b64encode(value).decode("ascii")}"'

    read = raw_read if padded is None else read_padded
    return make_codec(read, prefixed_skip(what, length_bytes), json)


def enum(what: str, size: int, labels: tuple[str, ...]) -> Codec:
    """ENUM: the 1-based number of the label; 0 is '' (an invalid value, as SELECT shows it)."""
    texts = ("", *labels)
    quoted = tuple(map(quote, texts))

    def reader(choices: tuple[str, ...]) -> Callable[[bytes, int], tuple[str, int]]:
        def read(data: bytes, pos: int) -> tuple[str, int]:
            end = pos + size
            if end > len(data):
                raise cut_short(what, size, data, pos)
            number = int.from_bytes(data[pos:end], "little")
            if number >= len(choices):
                raise SchemaMismatchError(
                    f"{what} holds label {number}, but the schema has {len(labels)} labels"
                )
            return choices[number], end

        return read

    read, read_json = reader(texts), reader(quoted)
    return make_codec(read, fixed_skip(what, size), quote, read_json)


def label_set(what: str, size: int, labels: tuple[str, ...]) -> Codec:
    """SET: one bit per label, low bit first. Value: the labels joined by commas, as SELECT.

    As in MySQL, no comma follows a leading empty label ''.
    """

    def read(data: bytes, pos: int) -> tuple[str, int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        bits = int.from_bytes(data[pos:end], "little")
        if bits >> len(labels):
            raise SchemaMismatchError(
                f"{what} holds label {bits.bit_length()}, but the schema has {len(labels)} labels"
            )
        text = ""
        for at, label in enumerate(labels):
            if bits >> at & 1:
                text = f"{text},{label}" if text else label
        return text, end

    return make_codec(read, fixed_skip(what, size), quote)
