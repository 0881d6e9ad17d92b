"""A reader that records what it reads, as a map from an event's bytes to named fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["Field", "FieldReader"]


class Field(NamedTuple):
    """Consecutive bytes of an event.

    Attributes
    ----------
    begin, end : offsets in the event; `end` is after the last byte.
    section : the part of the event: header, post-header, body, row 1, checksum.
    meaning : the value as readable text; empty if the name is enough.
    """

    begin: int
    end: int
    section: str
    name: str
    meaning: str


class FieldReader:
    """Reads named fields in order; raises the errors of `Reader`.

    Parameters
    ----------
    data : header and body of an event, without its checksum.
    pos : where its body begins.

    Attributes
    ----------
    body : of the event.
    fields : those that were read. They have neither gaps nor overlaps.
    section : of the next field.
    """

    def __init__(self, data: bytes, what: str, pos: int = 0) -> None:
        self._reader = Reader(data, what, pos)
        self.body = data[pos:]
        self.fields: list[Field] = []
        self.section = ""

    @property
    def pos(self) -> int:
        """Offset of the next field."""
        return self._reader.pos

    @property
    def data(self) -> bytes:
        """The bytes that are read."""
        return self._reader.data

    @property
    def remaining(self) -> int:
        return self._reader.remaining

    def note(self, begin: int, name: str, meaning: object = "") -> None:
        """Name the bytes from an offset to the current one; no field if there are none."""
        if begin < self.pos:
            self.fields.append(Field(begin, self.pos, self.section, name, str(meaning)))

    def explain(self, meaning: object) -> None:
        """Set the meaning of the last field."""
        self.fields[-1] = self.fields[-1]._replace(meaning=str(meaning))

    def uint(self, name: str, size: int) -> int:
        """Read a little-endian number."""
        begin = self.pos
        value = self._reader.uint(size)
        self.note(begin, name, value)
        return value

    def lenenc(self, name: str) -> int:
        """Read a length-encoded number."""
        begin = self.pos
        value = self._reader.lenenc_int()
        self.note(begin, name, value)
        return value

    def varlen(self, name: str) -> int:
        """Read a variable-length integer of MySQL's serialization library."""
        begin = self.pos
        value = self._reader.varlen()
        self.note(begin, name, value)
        return value

    def varlens(self, name: str, count: int) -> list[int]:
        """Read several variable-length integers as one field."""
        begin = self.pos
        values = [self._reader.varlen() for _ in range(count)]
        self.note(begin, name)
        return values

    def take(self, name: str, size: int, meaning: object = "") -> bytes:
        """Read bytes."""
        begin = self.pos
        value = self._reader.take(size)
        self.note(begin, name, meaning)
        return value

    def take_as(self, name: str, size: int, meaning: Callable[[bytes], str]) -> bytes:
        """Read bytes that are explained by a function."""
        value = self.take(name, size)
        self.explain(meaning(value))
        return value

    def nul_terminated(self, name: str) -> None:
        """Read text and the 0x00 after it."""
        begin = self.pos
        while self._reader.u8():
            pass
        self.note(
            begin, name, repr(self._reader.data[begin : self.pos - 1].decode("utf-8", "replace"))
        )

    def skip_with(
        self, name: str, skip: Callable[[bytes, int], int], meaning: object = ""
    ) -> bytes:
        """Read the bytes that `skip` skips, which is called with the bytes and the offset."""
        return self.take(name, skip(self._reader.data, self.pos) - self.pos, meaning)

    def text(self, name: str, size: int) -> str:
        """Read text."""
        text = self.take(name, size).decode("utf-8", "surrogateescape")
        if size:
            self.explain(repr(text))
        return text

    def rest(self, name: str) -> bytes:
        """Read everything that is left."""
        return self.take(name, self.remaining)
