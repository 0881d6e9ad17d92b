"""Event checksums: the last four bytes of an event, the CRC32 of all bytes before them.

The FORMAT_DESCRIPTION event contains the file's algorithm (libbinlogevents'
enum_binlog_checksum_alg). That event itself always has a checksum if its server supports checksums.
"""

from __future__ import annotations

from enum import IntEnum
from zlib import crc32

from pyspark_mysqlbinlog.errors import ChecksumError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import HEADER, Event, EventHeader, type_name

__all__ = ["CHECKSUM_LENGTH", "ChecksumAlgorithm", "checksum_algorithm", "event_checksum", "verify"]

CHECKSUM_LENGTH = 4


class ChecksumAlgorithm(IntEnum):
    """The checksum after an event's body: none, or a CRC32 of four bytes."""

    OFF = 0
    CRC32 = 1


def checksum_algorithm(code: int) -> ChecksumAlgorithm:
    """Return the algorithm for its byte in the binlog; 255 (undefined) means none."""
    if code == 255:
        return ChecksumAlgorithm.OFF
    try:
        return ChecksumAlgorithm(code)
    except ValueError:
        raise UnsupportedEventError(
            f"the binlog uses checksum algorithm {code}, expected 0 (none) or 1 (CRC32); set"
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
            f"{name} of {len(raw)} bytes has a wrong checksum: expected CRC32 0x{computed:08x},"
            f" found 0x{stored:08x}; the binlog was damaged on disk or in transit: compare with"
            " mysqlbinlog --verify-binlog-checksum"
        )


def event_checksum(event: Event) -> int:
    """Return the CRC32 of an event, even if the binlog has no checksums.

    For a compressed event of MariaDB, it is the CRC32 of the expanded form, which no binlog
    contains. For the last event of a TRANSACTION_PAYLOAD, it is that of the payload. For the other
    events of a payload it is 0, because they do not end at a position of the binlog.
    """
    if event.checksum is not None:
        return event.checksum
    if event.offset is not None:
        return 0
    header = HEADER.pack(
        event.timestamp,
        event.type,
        event.server_id,
        event.end - event.start,
        event.end & 0xFFFFFFFF,
        event.flags,
    )
    return crc32(event.body, crc32(header))
