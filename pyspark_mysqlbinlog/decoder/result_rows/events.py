"""Row images as events, which the decoders take like a log's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark_mysqlbinlog.decoder.events.rows import STMT_END_FLAG
from pyspark_mysqlbinlog.decoder.result_rows.columns import TABLE_ID, ResultPlan
from pyspark_mysqlbinlog.protocol.blocks import EventBlock
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, EventType
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

__all__ = ["event_blocks"]


def event_blocks(
    plan: ResultPlan,
    images: Iterable[bytes],
    *,
    file: str,
    pos: int,
    timestamp: int,
    server_id: int,
) -> Iterator[EventBlock]:
    """A TABLE_MAP, and a WRITE_ROWS event (v2) for each part of the images.

    All of them begin at the same place, which no log has: so each is a block of its own, in which
    positions never go back.

    Parameters
    ----------
    images : whole row images, one or more in each part.
    file, pos : where the events begin.
    timestamp, server_id : of their headers.
    """

    def block(kind: EventType, *body: bytes) -> EventBlock:
        length = HEADER_LENGTH + sum(map(len, body))
        end = pos + length
        header = HEADER.pack(timestamp, kind, server_id, length, end & 0xFFFFFFFF, 0)
        return EventBlock(file, end, 0, b"".join((header, *body)))

    count = len(plan.columns)
    head = b"".join(
        (
            TABLE_ID.to_bytes(6, "little"),
            STMT_END_FLAG.to_bytes(2, "little"),
            b"\x02\x00",  # no extra data
            lenenc_int(count),
            b"\xff" * ((count + 7) // 8),  # all columns are there
        )
    )
    yield block(EventType.TABLE_MAP_EVENT, plan.table_map)
    for part in images:
        yield block(EventType.WRITE_ROWS_EVENT, head, part)
