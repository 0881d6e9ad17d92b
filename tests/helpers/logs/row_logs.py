"""Logs of rows events, built event by event."""

from __future__ import annotations

from helpers.parity.decoding import make_event, table_map_body
from helpers.values.value_bytes import VALUES, field_of
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = [
    "DELETE",
    "FILE",
    "INT",
    "UPDATE",
    "VALUES_OF",
    "WRITE",
    "EventLog",
    "RowLog",
    "T",
    "int_row",
    "ints",
]

FILE = "mysql-bin.000003"


class EventLog:
    """A list of consecutive events from an arbitrary position on."""

    def __init__(self, pos: int = 100, file: str = FILE) -> None:
        self.pos = pos
        self.file = file
        self.events: list[Event] = []

    def add(self, kind: int, body: bytes) -> Event:
        event = make_event(EventType(kind), body, self.pos, self.file)
        self.pos = event.end
        self.events.append(event)
        return event


class RowLog(EventLog):
    """An event log with rows of any columns."""

    def table_map(
        self, columns: list[tuple[ColumnSchema, int]], table: str = "t", table_id: int = 7
    ) -> None:
        fields = [field_of(*each) for each in columns]
        nullable = [column.nullable for column, _ in columns]
        self.add(EventType.TABLE_MAP_EVENT, table_map_body(fields, nullable, table, table_id))

    def rows(
        self,
        kind: int,
        columns: int,
        *images: bytes,
        table_id: int = 7,
        present: bytes | None = None,
    ) -> Event:
        """Add a rows event.

        present : the lowest bytes of the images' column bitmap; by default all columns are present.
        """
        size = (columns + 7) // 8
        bitmap = b"\xff" * size if present is None else present.ljust(size, b"\x00")
        head = table_id.to_bytes(6, "little") + b"\x01\x00\x02\x00" + bytes([columns]) + bitmap
        if kind == EventType.UPDATE_ROWS_EVENT:
            head += bitmap
        return self.add(kind, head + b"".join(images))


WRITE, UPDATE, DELETE = 30, 31, 32
INT = ColumnSchema("c", "int")
T = TableSchema("d", "t", (INT,), ("c",))


def int_row(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "little")


def ints(*numbers: int, table: str = "t", table_id: int = 7, log: RowLog | None = None) -> RowLog:
    log = log or RowLog()
    log.table_map([(INT, 0)], table, table_id)
    log.rows(WRITE, 1, *map(int_row, numbers), table_id=table_id)
    return log


# (column, old layout?) -> encoded values.
VALUES_OF: dict[tuple[ColumnSchema, int], list[bytes]] = {}
for _column, _old, _raw, _ in VALUES:
    VALUES_OF.setdefault((_column, _old), []).append(bytes.fromhex(_raw))
