"""Binlog files on disk, as the same raw events that a dump gives.

A file is the four bytes 0xfe 'bin' and events back to back. One that its server still writes may
end inside an event; whoever reads it says whether that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark_mysqlbinlog.errors import FormatError, MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH

__all__ = ["MAGIC", "read_events"]

MAGIC = b"\xfebin"
_ENCRYPTED_MAGIC = b"\xfdbin"
_READ_BUFFER = 1 << 18


def read_events(path: Path, pos: int = 4) -> Iterator[bytes]:
    """Raw events (header and checksum included) from `pos` on, to the end of the file.

    The FORMAT_DESCRIPTION at the file's beginning always comes first, also in front of a later
    start: without it the rest can't be read.
    """
    with path.open("rb", buffering=_READ_BUFFER) as stream:
        magic = stream.read(len(MAGIC))
        if magic == _ENCRYPTED_MAGIC:
            raise UnsupportedEventError(
                "the file is encrypted; decrypt it, or read it through its server", file=path.name
            )
        if magic != MAGIC:
            raise FormatError(
                f"this is no binlog: it begins with 0x{magic.hex()}, expected 0x{MAGIC.hex()}",
                file=path.name,
            )
        here = len(MAGIC)
        while True:
            header = stream.read(HEADER_LENGTH)
            if not header:
                return
            length = int.from_bytes(header[9:13], "little")
            if len(header) < HEADER_LENGTH or length < HEADER_LENGTH:
                raise MalformedEventError(
                    f"expected an event's header of {HEADER_LENGTH} bytes that counts itself,"
                    f" found {len(header)} bytes with an event length of {length}; the file is cut"
                    " short or damaged",
                    file=path.name,
                    position=here,
                )
            rest = stream.read(length - HEADER_LENGTH)
            if len(rest) < length - HEADER_LENGTH:
                raise MalformedEventError(
                    f"an event claims {length} bytes, found {HEADER_LENGTH + len(rest)}: the file"
                    " is cut short or damaged, or its server still writes it",
                    file=path.name,
                    position=here,
                )
            yield header + rest
            here += length
            if here < pos:
                stream.seek(pos)
                here = pos
