"""Event checksums: the last four bytes of an event, CRC32 of all before them.

Which algorithm a log uses stands in its FORMAT_DESCRIPTION event (libbinlogevents'
enum_binlog_checksum_alg), and that event itself always carries a checksum where its server knows
of checksums at all.
"""

from __future__ import annotations

from enum import IntEnum
from zlib import crc32

from pyspark_mysqlbinlog.errors import ChecksumError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import HEADER, Event, EventHeader, type_name

__all__ = ["CHECKSUM_LENGTH", "ChecksumAlgorithm", "checksum_algorithm", "event_checksum", "verify"]

CHECKSUM_LENGTH = 4


class ChecksumAlgorithm(IntEnum):
    """What follows an event's body: nothing, or four bytes of CRC32."""

    OFF = 0
    CRC32 = 1


def checksum_algorithm(code: int) -> ChecksumAlgorithm:
    """The algorithm for its byte in the log; 255 (never decided) means there is none."""
    if code == 255:
        return ChecksumAlgorithm.OFF
    try:
        return ChecksumAlgorithm(code)
    except ValueError:
        raise UnsupportedEventError(
            f"the log uses checksum algorithm {code}, expected 0 (none) or 1 (CRC32); set"
            " binlog_checksum=CRC32 on the server"
        ) from None


def verify(raw: bytes) -> None:
    """Check the CRC32 of a whole event, header and checksum included."""
    split = len(raw) - CHECKSUM_LENGTH
    stored = int.from_bytes(raw[split:], "little")
    computed = crc32(memoryview(raw)[:split])
    if stored != computed:
        name = type_name(EventHeader.parse(raw).type)
        raise ChecksumError(
            f"{name} of {len(raw)} bytes has CRC32 0x{stored:08x} where its bytes give"
            f" 0x{computed:08x}: the log is damaged on disk or on the way; compare with"
            " mysqlbinlog --verify-binlog-checksum"
        )


def event_checksum(event: Event) -> int:
    """The CRC32 that ends an event where the log has checksums; what it would be where it has none.

    Of a compressed event: that of its expanded form, which is in no log.
    """
    header = HEADER.pack(
        event.timestamp,
        event.type,
        event.server_id,
        event.end - event.start,
        event.end & 0xFFFFFFFF,
        event.flags,
    )
    return crc32(event.body, crc32(header))
