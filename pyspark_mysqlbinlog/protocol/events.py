"""Event types, flags and the 19-byte header that every event begins with.

Layout (v4, MySQL 5.0 and later; libbinlogevents' Log_event_header)::

    timestamp u32 | type u8 | server_id u32 | event_length u32 | log_pos u32 | flags u16

event_length counts the header and the checksum; log_pos is the position *after* the event, modulo
2^32, and 0 in artificial events, which the server makes for the stream.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "ARTIFICIAL_FLAG",
    "HEADER",
    "HEADER_LENGTH",
    "IDENTIFYING_GTID_TYPES",
    "IGNORABLE_FLAG",
    "MYSQL_GTID_TYPES",
    "RELAY_LOG_FLAG",
    "ROWS_EVENT_TYPES",
    "THREAD_SPECIFIC_FLAG",
    "TRANSACTION_GTID_TYPES",
    "CommitPlace",
    "Event",
    "EventHeader",
    "EventType",
    "type_name",
]

HEADER = struct.Struct("<IBIIIH")
HEADER_LENGTH = HEADER.size  # 19

_ROW_BITS = 30

# LOG_EVENT_THREAD_SPECIFIC_F: the statement uses, or may use, a temporary table (see
# `event_filter`).
THREAD_SPECIFIC_FLAG = 0x04
# LOG_EVENT_ARTIFICIAL_F: made by the server for this stream, not in the file.
ARTIFICIAL_FLAG = 0x20
# LOG_EVENT_RELAY_LOG_F: written by a replica into its relay log, not by its source.
RELAY_LOG_FLAG = 0x40
# LOG_EVENT_IGNORABLE_F: a reader that does not support the type can skip it.
IGNORABLE_FLAG = 0x80


class EventType(IntEnum):
    """Every type that a MySQL server writes, and MariaDB's own types from 160 on."""

    UNKNOWN_EVENT = 0
    START_EVENT_V3 = 1
    QUERY_EVENT = 2
    STOP_EVENT = 3
    ROTATE_EVENT = 4
    INTVAR_EVENT = 5
    LOAD_EVENT = 6
    SLAVE_EVENT = 7
    CREATE_FILE_EVENT = 8
    APPEND_BLOCK_EVENT = 9
    EXEC_LOAD_EVENT = 10
    DELETE_FILE_EVENT = 11
    NEW_LOAD_EVENT = 12
    RAND_EVENT = 13
    USER_VAR_EVENT = 14
    FORMAT_DESCRIPTION_EVENT = 15
    XID_EVENT = 16
    BEGIN_LOAD_QUERY_EVENT = 17
    EXECUTE_LOAD_QUERY_EVENT = 18
    TABLE_MAP_EVENT = 19
    PRE_GA_WRITE_ROWS_EVENT = 20
    PRE_GA_UPDATE_ROWS_EVENT = 21
    PRE_GA_DELETE_ROWS_EVENT = 22
    WRITE_ROWS_EVENT_V1 = 23
    UPDATE_ROWS_EVENT_V1 = 24
    DELETE_ROWS_EVENT_V1 = 25
    INCIDENT_EVENT = 26
    HEARTBEAT_LOG_EVENT = 27
    IGNORABLE_LOG_EVENT = 28
    ROWS_QUERY_LOG_EVENT = 29
    WRITE_ROWS_EVENT = 30
    UPDATE_ROWS_EVENT = 31
    DELETE_ROWS_EVENT = 32
    GTID_LOG_EVENT = 33
    ANONYMOUS_GTID_LOG_EVENT = 34
    PREVIOUS_GTIDS_LOG_EVENT = 35
    TRANSACTION_CONTEXT_EVENT = 36
    VIEW_CHANGE_EVENT = 37
    XA_PREPARE_LOG_EVENT = 38
    PARTIAL_UPDATE_ROWS_EVENT = 39
    TRANSACTION_PAYLOAD_EVENT = 40
    HEARTBEAT_LOG_EVENT_V2 = 41
    GTID_TAGGED_LOG_EVENT = 42
    MARIADB_ANNOTATE_ROWS_EVENT = 160
    MARIADB_BINLOG_CHECKPOINT_EVENT = 161
    MARIADB_GTID_EVENT = 162
    MARIADB_GTID_LIST_EVENT = 163
    MARIADB_START_ENCRYPTION_EVENT = 164
    MARIADB_QUERY_COMPRESSED_EVENT = 165
    MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED_EVENT = 169
    MARIADB_UPDATE_ROWS_COMPRESSED_EVENT = 170
    MARIADB_DELETE_ROWS_COMPRESSED_EVENT = 171


# The first event of a transaction, where the server writes one.
TRANSACTION_GTID_TYPES = frozenset(
    {
        EventType.GTID_LOG_EVENT,
        EventType.ANONYMOUS_GTID_LOG_EVENT,
        EventType.GTID_TAGGED_LOG_EVENT,
        EventType.MARIADB_GTID_EVENT,
    }
)
# Those that contain a GTID.
IDENTIFYING_GTID_TYPES = TRANSACTION_GTID_TYPES - {EventType.ANONYMOUS_GTID_LOG_EVENT}
# Those of MySQL, after which BEGIN is an event of its own.
MYSQL_GTID_TYPES = TRANSACTION_GTID_TYPES - {EventType.MARIADB_GTID_EVENT}

ROWS_EVENT_TYPES = frozenset(
    {
        EventType.WRITE_ROWS_EVENT_V1,
        EventType.UPDATE_ROWS_EVENT_V1,
        EventType.DELETE_ROWS_EVENT_V1,
        EventType.WRITE_ROWS_EVENT,
        EventType.UPDATE_ROWS_EVENT,
        EventType.DELETE_ROWS_EVENT,
        EventType.PARTIAL_UPDATE_ROWS_EVENT,
    }
)


def type_name(event_type: int) -> str:
    """Return the type's name, or ``type 99`` for an undefined type."""
    try:
        return EventType(event_type).name
    except ValueError:
        return f"type {event_type}"


class EventHeader(NamedTuple):
    """The 19 bytes that every event begins with."""

    timestamp: int
    type: int
    server_id: int
    length: int
    log_pos: int
    flags: int

    @classmethod
    def parse(cls, data: bytes, offset: int = 0) -> EventHeader:
        return cls._make(HEADER.unpack_from(data, offset))


class CommitPlace(NamedTuple):
    """Where a prepared XA transaction was committed: its rows belong there in the commit order.

    Attributes
    ----------
    file, pos : the start of the XA COMMIT.
    begin : the start of the transaction's first event, in the file of its events.
    """

    file: str
    pos: int
    begin: int


class Event(NamedTuple):
    """One verified event of a binlog, without header and checksum.

    Attributes
    ----------
    file : name of the binlog file.
    start : position of its first byte (not modulo 2^32).
    end : position after its last byte.
    timestamp : seconds since 1970 UTC, when the statement began.
    body : what follows the header, checksum removed.
    offset : for an event inside a TRANSACTION_PAYLOAD, where it begins in the decompressed stream;
        None outside. Its `start` is that of the payload, and so is its `end`, except for the last
        one, which ends where the payload ends: only there all of it has been read.
    checksum : of a payload if the binlog has checksums, and of the last event in a payload, the
        CRC32 of the payload; else None.
    committed : of an event that XA prepared: where it was committed; else None.
    """

    file: str
    start: int
    end: int
    timestamp: int
    type: int
    server_id: int
    flags: int
    body: bytes
    offset: int | None = None
    checksum: int | None = None
    committed: CommitPlace | None = None

    @property
    def first_seq(self) -> tuple[int, int]:
        """`pos` and `row` of `seq` for its first row; the rows after it add to `row`.

        Outside of a payload this is (`start`, 0). Inside, `row` begins with the offset: an event
        has more bytes than rows, so all rows of a payload differ, and their order is the commit
        order. Each GiB of the stream adds 1 to `pos`, because `row` has 32 bits; a payload has more
        bytes than its stream has GiB (see `transaction_payload`).

        A prepared XA transaction counts from its XA COMMIT in the same way: outside of a payload,
        the offset is that from its first event.
        """
        pos, offset = self.start, self.offset
        if self.committed is not None:
            pos = self.committed.pos
            offset = self.start - self.committed.begin if offset is None else offset
        if offset is None:
            return pos, 0
        return pos + (offset >> _ROW_BITS), offset & ((1 << _ROW_BITS) - 1)
