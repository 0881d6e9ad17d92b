"""Expand MariaDB's compressed events (log_bin_compress) into the plain events that they encode.

Only the tail of an event is compressed: the statement of a QUERY, the row images of a rows event.
The tail is (MariaDB's log_event.cc, binlog_buf_uncompress)::

    0x80 | algorithm << 4 | bytes of the length | length, big-endian | zlib data

where algorithm 0 is zlib.
"""

from __future__ import annotations

import zlib

from pyspark_mysqlbinlog.errors import MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import EventType, type_name
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["COMPRESSED_TYPES", "expand"]

# Compressed type -> plain type; rows events have a v1 and a v2.
_PLAIN: dict[int, EventType] = {
    EventType.MARIADB_QUERY_COMPRESSED_EVENT: EventType.QUERY_EVENT,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1: EventType.WRITE_ROWS_EVENT_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1: EventType.UPDATE_ROWS_EVENT_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1: EventType.DELETE_ROWS_EVENT_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT: EventType.WRITE_ROWS_EVENT,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT: EventType.UPDATE_ROWS_EVENT,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT: EventType.DELETE_ROWS_EVENT,
}
COMPRESSED_TYPES = frozenset(int(kind) for kind in _PLAIN)
_UPDATES = (EventType.UPDATE_ROWS_EVENT_V1, EventType.UPDATE_ROWS_EVENT)
_V2 = (
    EventType.WRITE_ROWS_EVENT,
    EventType.UPDATE_ROWS_EVENT,
    EventType.DELETE_ROWS_EVENT,
)
# No server makes a larger packet; a larger length is damaged.
_MAX_LENGTH = 1 << 30


def expand(kind: int, body: bytes) -> tuple[int, bytes]:
    """Return (type, body) of the plain event that a compressed event encodes."""
    plain = _PLAIN[kind]
    reader = Reader(body, type_name(kind))
    if plain == EventType.QUERY_EVENT:
        reader.take(8)
        database_length = reader.u8()
        reader.take(2)
        reader.take(reader.u16())
        reader.nul_terminated(database_length)
    else:
        reader.take(8)
        if plain in _V2:
            reader.take(max(reader.u16() - 2, 0))
        bitmap = (reader.lenenc_int() + 7) // 8
        reader.take(bitmap * (2 if plain in _UPDATES else 1))
    head = body[: reader.pos]
    return int(plain), head + _inflate(reader)


def _inflate(reader: Reader) -> bytes:
    first = reader.u8()
    if not first & 0x80 or first & 0x70:
        raise UnsupportedEventError(
            f"{reader.what} has compression header 0x{first:02x}, expected 0x81 to 0x84 (zlib)"
        )
    length = int.from_bytes(reader.take(first & 0x07), "big")
    if length > _MAX_LENGTH:
        raise MalformedEventError(
            f"{reader.what} expands to {length} bytes, expected at most {_MAX_LENGTH}"
        )
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(reader.rest(), length + 1)
    except zlib.error as error:
        raise MalformedEventError(f"{reader.what} cannot be expanded: {error}") from None
    if len(data) != length or not stream.eof or stream.unused_data:
        raise MalformedEventError(
            f"{reader.what} must expand to {length} bytes, found {len(data)} and"
            f" {len(stream.unused_data)} bytes left over"
        )
    return data
