"""Row images as events, which the decoders accept like those of a binlog."""

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
    """Return a TABLE_MAP, and a WRITE_ROWS event (v2) for each part of the images.

    Unlike in a binlog, all of them begin at the same position. Therefore, each is a block of its
    own, because positions within a block must not decrease.

    Parameters
    ----------
    images : whole row images, one or more in each part.
    file, pos : start position of the events.
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
            b"\xff" * ((count + 7) // 8),  # all columns are present
        )
    )
    yield block(EventType.TABLE_MAP_EVENT, plan.table_map)
    for part in images:
        yield block(EventType.WRITE_ROWS_EVENT, head, part)
