"""Builders of event bodies, of raw events as in a file or a dump, and of whole logs.

`LogBuilder` counts positions as a server does, so its events can be read, filtered and packed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack
from zlib import crc32

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, Event, EventType

__all__ = [
    "LogBuilder",
    "dummy_rows_body",
    "format_description_body",
    "gtid_body",
    "incident_body",
    "query_body",
    "raw_event",
    "rotate_body",
    "rows_body",
    "rows_query_body",
    "table_map",
    "walked",
    "xa_prepare_body",
]

TIMESTAMP = 1_600_000_000
UUID = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")


def raw_event(
    kind: int,
    body: bytes,
    *,
    log_pos: int,
    flags: int = 0,
    checksum: bool = True,
    timestamp: int = TIMESTAMP,
    server_id: int = 5,
) -> bytes:
    """Return header, body and, with `checksum`, the CRC32."""
    length = HEADER_LENGTH + len(body) + (4 if checksum else 0)
    raw = HEADER.pack(timestamp, int(kind), server_id, length, log_pos & 0xFFFFFFFF, flags) + body
    return raw + pack("<I", crc32(raw)) if checksum else raw


def format_description_body(version: str = "5.7.41-log", algorithm: int = 1) -> bytes:
    """Return the body without its CRC32. Servers before 5.6.1 write no algorithm byte."""
    numbers = bytes([0x38, 0x0D, 0x00, 0x08, 0x00, 0x12] + [0x04] * 32)
    head = pack("<H50sIB", 4, version.encode(), 0, HEADER_LENGTH) + numbers
    return head if version.startswith(("5.1", "5.5")) else head + bytes([algorithm])


def rotate_body(file: str, pos: int = 4) -> bytes:
    return pack("<Q", pos) + file.encode()


def query_body(sql: str, database: str = "d", variables: bytes = b"", thread: int = 7) -> bytes:
    name = database.encode()
    head = pack("<IIBHH", thread, 0, len(name), 0, len(variables))
    return head + variables + name + b"\x00" + sql.encode("utf-8", "surrogateescape")


def gtid_body(number: int = 1) -> bytes:
    return b"\x01" + UUID + pack("<Q", number) + b"\x02" + bytes(16)


def rows_query_body(sql: str) -> bytes:
    return bytes([len(sql.encode()) & 0xFF]) + sql.encode()


def xa_prepare_body(gtrid: bytes, *, one_phase: bool = False, bqual: bytes = b"") -> bytes:
    return pack("<BIII", one_phase, 1, len(gtrid), len(bqual)) + gtrid + bqual


def incident_body(message: str = "") -> bytes:
    return pack("<H", 1) + (bytes([len(message)]) + message.encode() if message else b"")


def table_map(table_id: int, table: str, database: str = "d") -> bytes:
    """Return the TABLE_MAP body of a table with one INT column."""
    names = b"".join(bytes([len(name)]) + name.encode() + b"\x00" for name in (database, table))
    return table_id.to_bytes(6, "little") + b"\x01\x00" + names + b"\x01\x03\x00\x01"


def rows_body(table_id: int, *values: int, last: bool = True) -> bytes:
    """Return the WRITE_ROWS v2 body of one INT column; `last` sets STMT_END."""
    head = table_id.to_bytes(6, "little") + pack("<HH", int(last), 2) + b"\x01\xff"
    return head + b"".join(b"\xfe" + pack("<i", value) for value in values)


def dummy_rows_body() -> bytes:
    """Return a rows body without table and rows, which only ends the statement."""
    return (0xFFFFFF).to_bytes(6, "little") + pack("<HH", 1, 2) + b"\x00"


@dataclass
class LogBuilder:
    """One binlog file to which events are appended.

    Attributes
    ----------
    raws : the raw events.
    pos : where the next event begins.
    """

    file: str = "mysql-bin.000001"
    checksum: bool = True
    pos: int = 4
    timestamp: int = TIMESTAMP
    raws: list[bytes] = field(default_factory=list)

    def add(self, kind: EventType | int, body: bytes, flags: int = 0) -> LogBuilder:
        # FORMAT_DESCRIPTION has a CRC32 even if the other events have none.
        checksum = self.checksum or kind == EventType.FORMAT_DESCRIPTION_EVENT
        length = HEADER_LENGTH + len(body) + 4 * checksum
        self.pos += length
        self.raws.append(
            raw_event(
                kind,
                body,
                log_pos=self.pos,
                flags=flags,
                checksum=checksum,
                timestamp=self.timestamp,
            )
        )
        return self

    def format_description(self, version: str = "5.7.41-log") -> LogBuilder:
        body = format_description_body(version, int(self.checksum))
        return self.add(EventType.FORMAT_DESCRIPTION_EVENT, body)

    def query(self, sql: str, database: str = "d") -> LogBuilder:
        return self.add(EventType.QUERY_EVENT, query_body(sql, database))

    def begin(self, gtid: int | None = None) -> LogBuilder:
        if gtid is not None:
            self.add(EventType.GTID_LOG_EVENT, gtid_body(gtid))
        return self.query("BEGIN")

    def rows(self, table_id: int, table: str, *values: int) -> LogBuilder:
        """Add one statement: table map and WRITE_ROWS."""
        self.add(EventType.TABLE_MAP_EVENT, table_map(table_id, table))
        return self.add(EventType.WRITE_ROWS_EVENT, rows_body(table_id, *values))

    def xid(self) -> LogBuilder:
        return self.add(EventType.XID_EVENT, bytes(8))

    def rotate(self, file: str) -> LogBuilder:
        return self.add(EventType.ROTATE_EVENT, rotate_body(file))

    def position(self, pos: int | None = None) -> Position:
        return Position.of(self.file, self.pos if pos is None else pos)

    def events(self) -> list[Event]:
        """Return the events as `EventReader` reads them; FORMAT_DESCRIPTION is optional."""
        return walked(self.raws, self.file, checksum=self.checksum)

    def write(self, folder: Path) -> Path:
        """Write the file by rename: a reader of an earlier one still reads that one."""
        path, written = folder / self.file, folder / f".{self.file}.written"
        written.write_bytes(b"\xfebin" + b"".join(self.raws))
        return written.replace(path)


def walked(raws: Iterable[bytes], file: str, *, checksum: bool = True) -> list[Event]:
    """Return raw events as read by an `EventReader` that has read a FORMAT_DESCRIPTION."""
    walker = EventReader(file, 4)
    body = format_description_body(algorithm=int(checksum))
    walker.feed(raw_event(EventType.FORMAT_DESCRIPTION_EVENT, body, log_pos=0))
    return [event for raw in raws if (event := walker.feed(raw)) is not None]
