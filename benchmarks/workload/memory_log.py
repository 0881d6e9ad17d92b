"""A log's bytes in memory, in the place of a file's: what the decode takes without the reading."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Self

from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, EventHeader

__all__ = ["MemoryStream"]

# As much as the product reads at a time, so that the scan stops as often.
_WINDOW = 1 << 19
_MAGIC_LENGTH = 4


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


class MemoryStream:
    """What `protocol.files.FileStream` is, over memory; the file is read once for all of them."""

    packets = False

    def __init__(self, path: Path, *, may_be_cut: bool = False) -> None:
        del may_be_cut  # a benchmark's log is whole
        self._content = memoryview(_content(path))
        self._at = _MAGIC_LENGTH
        self._end = _MAGIC_LENGTH

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def view(self) -> memoryview:
        return self._content[self._at : self._end]

    def consume(self, size: int) -> None:
        self._at += size

    def fill(self) -> bool:
        end = min(self._at + _WINDOW, len(self._content))
        has_more = end > self._end
        self._end = end
        return has_more

    def next_event(self) -> bytes | None:
        if self._at == len(self._content):
            return None
        length = int.from_bytes(self._content[self._at + 9 : self._at + 13], "little")
        assert HEADER_LENGTH <= length <= len(self._content) - self._at
        raw = bytes(self._content[self._at : self._at + length])
        self._at += length
        self._end = max(self._end, self._at)
        return raw

    def next_header(self) -> EventHeader | None:
        if self._at == len(self._content):
            return None
        return EventHeader.parse(bytes(self._content[self._at : self._at + HEADER_LENGTH]))

    def skip(self, size: int) -> None:
        self.seek(self._at + size)

    def seek(self, pos: int) -> None:
        self._at = self._end = pos
