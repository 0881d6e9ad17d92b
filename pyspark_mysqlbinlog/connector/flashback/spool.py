"""Records on disk, written in one order and read in the other.

A window may have millions of changes, and its newest one is undone first. A record is its bytes
followed by their number, so that a file is read from its end without an index in memory.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from typing import Self

__all__ = ["Spool"]

_LENGTH = struct.Struct("<Q")
# At most so many bytes are read at once, unless a record has more.
_READ_BYTES = 1 << 20


class Spool:
    """A temporary file of records, in the folder of the environment variable TMPDIR.

    Use it in a `with` block: the file is removed at its end.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="mysqlbinlog-")  # noqa: SIM115 (see `__exit__`)
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, record: bytes) -> None:
        """Append a record."""
        self._file.seek(self._end)
        self._file.write(record)
        self._file.write(_LENGTH.pack(len(record)))
        self._end += len(record) + _LENGTH.size

    def newest_first(self) -> Iterator[bytes]:
        """Yield the records, the last one first."""
        begin, data = self._end, b""
        end = self._end
        while end > 0:
            if end - begin < _LENGTH.size:
                begin, data = self._before(end, _READ_BYTES)
            (length,) = _LENGTH.unpack_from(data, end - begin - _LENGTH.size)
            end -= _LENGTH.size + length
            if end < begin:
                begin, data = self._before(end + length + _LENGTH.size, length + _READ_BYTES)
            yield data[end - begin : end - begin + length]

    def _before(self, end: int, size: int) -> tuple[int, bytes]:
        """Return where the bytes before a position begin, and the bytes."""
        begin = max(end - size, 0)
        self._file.seek(begin)
        return begin, self._file.read(end - begin)
