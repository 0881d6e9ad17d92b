"""Binlog files on disk, as the same raw events that a dump sends.

A file is the four bytes 0xfe 'bin' and events back to back. All of it may be compressed (see
`compressed_files`). A file that its server still writes, or that was copied meanwhile, may end
inside an event. The caller decides whether that is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Self

from pyspark_mysqlbinlog.errors import FormatError, MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import (
    binlog_name,
    is_compressed,
    open_content,
)
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, EventHeader, EventType
from pyspark_mysqlbinlog.protocol.receive_buffer import CAPACITY, ReceiveBuffer

__all__ = ["MAGIC", "FileEnds", "FileStream", "file_ends", "is_binlog"]

MAGIC = b"\xfebin"
_ENCRYPTED_MAGIC = b"\xfdbin"
# MySQL 8.0 encrypts whole files, with a magic of their own. In those of MariaDB and of Percona
# Server 5.7 the events after this one are encrypted.
_START_ENCRYPTION_TYPES = (EventType.MARIADB_START_ENCRYPTION_EVENT, 159)
# Types of the events that begin or end a transaction of MariaDB.
_POSITIONED_TYPES = frozenset(
    {
        EventType.MARIADB_GTID_EVENT,
        EventType.XID_EVENT,
        EventType.XA_PREPARE_LOG_EVENT,
        EventType.QUERY_EVENT,
    }
)
_MAX_POSITIONED_BYTES = 1 << 16  # of a GTID, XID or XA PREPARE, or of a QUERY that is COMMIT
_UPPER_LOG_POS = 15  # offset of the upper two bytes of log_pos in a header


class FileStream:
    """The events of one file in a buffer (see `receive_buffer.EventStream`), from the first one.

    Parameters
    ----------
    may_be_cut : the file may end inside an event; that event is then ignored.

    Raises
    ------
    FormatError : the file is not a binlog, or its compressed data is damaged.
    UnsupportedEventError : the file is encrypted.
    """

    packets = False

    def __init__(self, path: Location, *, may_be_cut: bool = False) -> None:
        self._name = binlog_name(path)
        self._may_be_cut = may_be_cut
        self._file = open_content(path)
        try:
            _check_magic(self._file.read(len(MAGIC)) or b"", self._name)
        except BaseException:
            self._file.close()
            raise
        self._here = len(MAGIC)
        self._buffer = ReceiveBuffer(self._file.readinto)
        self.view = self._buffer.view
        self.fill = self._buffer.fill

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def consume(self, size: int) -> None:
        self._buffer.consume(size)
        self._here += size

    def next_event(self) -> bytes | None:
        raw = _next_event(self._buffer.take, self._name, self._here, may_be_cut=self._may_be_cut)
        if raw is not None and raw[4] in _START_ENCRYPTION_TYPES:
            raise _encrypted(self._name, self._here)
        self._here += len(raw or b"")
        return raw

    def next_header(self) -> EventHeader | None:
        """Return the header of the next event, which is not consumed; None at the end."""
        while len(view := self._buffer.view()) < HEADER_LENGTH:
            if not self._buffer.fill():
                return None
        return EventHeader.parse(bytes(view[:HEADER_LENGTH]))

    def skip(self, size: int) -> None:
        """Continue after the next `size` bytes."""
        if size <= len(self._buffer.view()):
            self.consume(size)
        else:
            self.seek(self._here + size)

    def seek(self, pos: int) -> None:
        """Continue at another position."""
        self._buffer.clear()
        self._file.seek(pos)
        self._here = pos


def is_binlog(path: Location) -> bool:
    """Whether a file begins like a binlog, encrypted ones included."""
    with open_content(path) as file:
        return file.read(len(MAGIC)) in (MAGIC, _ENCRYPTED_MAGIC)


class FileEnds(NamedTuple):
    """The size of a binlog file, and its first and last bytes."""

    size: int
    begin: bytes
    end: bytes


def file_ends(path: Location, first: int = 0, last: int = 0) -> FileEnds:
    """Return a file's size and ends; a compressed file is decompressed once for it."""
    if is_compressed(path):
        status = path.stat()
        return _ends_of_content(path, status.st_size, status.st_mtime_ns, first, last)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        begin = file.read(first)
        file.seek(max(size - last, 0))
        return FileEnds(size, begin, file.read() if last else b"")


# Cached, because every task checks the ends of its files.
@lru_cache(maxsize=1024)
def _ends_of_content(path: Location, _size: int, _changed: int, first: int, last: int) -> FileEnds:
    size, begin, end = 0, b"", b""
    memory = memoryview(bytearray(CAPACITY))
    with open_content(path) as file:
        while count := file.readinto(memory):
            size += count
            begin += memory[: max(first - len(begin), 0)][:count]
            end = (end + memory[:count])[-last:] if last else b""
    return FileEnds(size, begin, end)


def _check_magic(magic: bytes, name: str) -> None:
    if magic == _ENCRYPTED_MAGIC:
        raise _encrypted(name, 0)
    if magic != MAGIC:
        raise FormatError(
            f"this is not a binlog: it begins with 0x{magic.hex()}, expected 0x{MAGIC.hex()}",
            file=name,
        )


def _encrypted(name: str, here: int) -> UnsupportedEventError:
    return UnsupportedEventError(
        "the file is encrypted, and only its server has the key; read it from the server, which"
        " sends its events decrypted (option host instead of path)",
        file=name,
        position=here,
    )


def _next_event(
    read: Callable[[int], bytes], name: str, here: int, *, may_be_cut: bool = False
) -> bytes | None:
    """Return the event at `here`; None at the end. `read` returns fewer bytes only at the end."""
    header = read(HEADER_LENGTH)
    if not header or (may_be_cut and len(header) < HEADER_LENGTH):
        return None
    length = int.from_bytes(header[9:13], "little")
    if len(header) < HEADER_LENGTH or length < HEADER_LENGTH:
        raise MalformedEventError(
            f"expected an event header of {HEADER_LENGTH} bytes with an event length of at least"
            f" that, found {len(header)} bytes with an event length of {length}; the file is cut"
            " short or damaged",
            file=name,
            position=here,
        )
    rest = read(length - HEADER_LENGTH)
    if len(rest) < length - HEADER_LENGTH:
        if may_be_cut and _is_cut(EventHeader.parse(header), rest, here):
            return None
        raise MalformedEventError(
            f"an event has a length of {length} bytes, found {HEADER_LENGTH + len(rest)}: the file"
            " is cut short or damaged, or its server still writes it",
            file=name,
            position=here,
        )
    return header + rest


def _is_cut(header: EventHeader, rest: bytes, here: int) -> bool:
    """Whether the file ends inside this event; else its length is damaged, and hides later events.

    Parameters
    ----------
    rest : the bytes of the file after the header.
    here : position of the header.
    """
    if header.log_pos:
        return (here + header.length) & 0xFFFFFFFF == header.log_pos
    # This event of MariaDB has no position (see event_reader.py), but the events that begin and end
    # transactions have one. If a later event has its own position, the file does not end here. The
    # upper bytes of such a position are known, and its event begins shortly before it.
    first = here + HEADER_LENGTH
    for upper in range(first >> 16, (first + len(rest) >> 16) + 1):
        pattern = (upper & 0xFFFF).to_bytes(2, "little")
        low = max((upper << 16) - first - _MAX_POSITIONED_BYTES, 0) + _UPPER_LOG_POS
        high = min((upper + 1 << 16) - first, len(rest))
        found = rest.find(pattern, low, high)
        while found >= 0:
            if _is_positioned(rest, found - _UPPER_LOG_POS, first):
                return False
            found = rest.find(pattern, found + 1, high)
    return True


def _is_positioned(rest: bytes, at: int, first: int) -> bool:
    """Whether an event with its own position begins at `at` in `rest`, which begins at `first`."""
    if len(rest) - at < HEADER_LENGTH:
        return False
    header = EventHeader.parse(rest, at)
    return (
        header.type in _POSITIONED_TYPES
        and header.length >= HEADER_LENGTH
        and header.log_pos == first + at + header.length & 0xFFFFFFFF
    )
