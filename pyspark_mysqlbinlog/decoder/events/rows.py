"""The head of a rows event: table, operation and columns.

Layout (libbinlogevents, Rows_event). Extra data exists from v2 (5.6); its length includes itself::

    table_id u48 | flags u16 | [v2: extra length u16 | extra data] | column count lenenc
    | present u8[(count + 7) / 8] | [update: present after u8[(count + 7) / 8]] | row images

An image is a null bitmap over the present columns and the values of those that are not NULL. An
update has before and after images in turn. The after images of a partial update may
have differences instead of JSON documents: see payloads/partial_updates.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.events import EventType, type_name
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["OPERATIONS", "STMT_END_FLAG", "RowsHead"]

# The last rows event of its statement: the table maps are no longer needed.
STMT_END_FLAG = 0x01

# Operation and version of each type of rows event.
OPERATIONS: dict[int, tuple[str, int]] = {
    EventType.WRITE_ROWS_EVENT_V1: ("c", 1),
    EventType.UPDATE_ROWS_EVENT_V1: ("u", 1),
    EventType.DELETE_ROWS_EVENT_V1: ("d", 1),
    EventType.WRITE_ROWS_EVENT: ("c", 2),
    EventType.UPDATE_ROWS_EVENT: ("u", 2),
    EventType.DELETE_ROWS_EVENT: ("d", 2),
    EventType.PARTIAL_UPDATE_ROWS_EVENT: ("u", 2),
}


@dataclass(frozen=True, slots=True)
class RowsHead:
    """The part of a rows event before its rows.

    Attributes
    ----------
    op : ``c``, ``u`` or ``d``.
    before, after : bitmaps of the columns present in each image; None without such an image.
    rows_start : offset of the first row image in the body.
    """

    table_id: int
    flags: int
    op: str
    column_count: int
    before: bytes | None
    after: bytes | None
    rows_start: int

    @classmethod
    def parse(cls, event_type: int, body: bytes) -> RowsHead:
        """Parse the head of a body. MalformedEventError if it is cut short."""
        op, version = OPERATIONS[event_type]
        reader = Reader(body, type_name(event_type))
        table_id = reader.u48()
        flags = reader.u16()
        if version == 2:
            extra = reader.u16()
            if extra < 2:
                raise MalformedEventError(
                    f"{type_name(event_type)} has {extra} bytes of extra data, expected at least"
                    " the 2 of their length"
                )
            reader.take(extra - 2)
        count = reader.lenenc_int()
        first = reader.take((count + 7) // 8)
        before = None if op == "c" else first
        after = first if op == "c" else None
        if op == "u":
            after = reader.take((count + 7) // 8)
        return cls(table_id, flags, op, count, before, after, reader.pos)
