"""GTID sets in bytes, as PREVIOUS_GTIDS events and COM_BINLOG_DUMP_GTID contain them.

Without tags (all servers from 5.6 on)::

    sources u64 | for each: uuid 16 bytes | intervals u64 | for each: first u64, end u64 (excluded)

With tags (8.3 and later; `Gtid_set::encode` in sql/rpl_gtid_set.cc) the first 8 bytes are the
format 1, the number of sources in 6 bytes, and the format again. Each source has its tag after the
uuid: its length as a number of the serialization library (`Reader.varlen`), and its bytes. A server
writes this format only for sets that have tags, and reads both.

MariaDB's GTID_LIST event has no sets: for each domain and server the last GTID.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = [
    "Interval",
    "MariadbLastGtid",
    "encode_gtid_set",
    "parse_gtid_set",
    "parse_mariadb_gtid_list",
]

_TAGGED_FORMAT = 1
# uuid, tag, first and last number (included).
Interval = tuple[str, str, int, int]
_GTID_LIST_COUNT_BITS = 28


class MariadbLastGtid(NamedTuple):
    """The last GTID of a domain and server."""

    domain: int
    server_id: int
    number: int


def parse_gtid_set(body: bytes) -> list[Interval]:
    """Return the intervals of a set.

    Raises
    ------
    MalformedEventError : it is cut short, has bytes after its end, or an empty interval.
    """
    reader = Reader(body, "PREVIOUS_GTIDS")
    head = reader.u64()
    is_tagged = head >> 56 == _TAGGED_FORMAT and head & 0xFF == _TAGGED_FORMAT
    count = (head >> 8) & ((1 << 48) - 1) if is_tagged else head
    found: list[Interval] = []
    for _ in range(count):
        uuid = str(UUID(bytes=reader.take(16)))
        tag = reader.take(reader.varlen()) if is_tagged else b""
        for _ in range(reader.u64()):
            first, end = reader.u64(), reader.u64()
            if not 0 < first < end or not tag.isascii():
                raise MalformedEventError(
                    f"PREVIOUS_GTIDS has the interval {first} to {end - 1} of {uuid} with tag"
                    f" {tag!r}, expected increasing numbers from 1 on"
                )
            found.append((uuid, tag.decode(), first, end - 1))
    if reader.pos != reader.end:
        raise MalformedEventError(
            f"PREVIOUS_GTIDS has {reader.end - reader.pos} bytes after its {count} sources"
        )
    return found


def encode_gtid_set(intervals: Sequence[Interval]) -> bytes:
    """Return the bytes of a set, whose intervals are in order."""
    sources: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for uuid, tag, first, last in intervals:
        sources.setdefault((uuid, tag), []).append((first, last + 1))
    is_tagged = any(tag for _, tag in sources)
    head = len(sources)
    if is_tagged:
        head = _TAGGED_FORMAT << 56 | len(sources) << 8 | _TAGGED_FORMAT
    parts = [struct.pack("<Q", head)]
    for (uuid, tag), numbers in sources.items():
        parts.append(UUID(uuid).bytes)
        if is_tagged:
            # A tag has at most 32 characters: one byte, whose lowest bit is 0.
            parts.append(bytes([len(tag) << 1]) + tag.encode())
        parts.append(struct.pack("<Q", len(numbers)))
        parts += [struct.pack("<QQ", *each) for each in numbers]
    return b"".join(parts)


def parse_mariadb_gtid_list(body: bytes) -> list[MariadbLastGtid]:
    """Return the entries of a GTID_LIST: the last GTIDs before the file.

    count in 28 bits, flags in 4 | for each: domain u32 | server id u32 | number u64

    Raises
    ------
    MalformedEventError : it is cut short.
    """
    reader = Reader(body, "GTID_LIST")
    count = reader.u32() & ((1 << _GTID_LIST_COUNT_BITS) - 1)
    return [MariadbLastGtid(reader.u32(), reader.u32(), reader.u64()) for _ in range(count)]
