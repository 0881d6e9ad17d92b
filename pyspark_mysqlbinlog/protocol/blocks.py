"""Verified events packed back to back, the form in which Spark tasks carry them.

Each event is its 19-byte header as in the binlog, and its body. The checksum is removed, because it
was verified when the event was read. The header's log_pos gives the position modulo 2^32; the
block's first event gives the upper bits. A block has events of one file, and consecutive events
are less than 2 GiB apart, so that no wrap of log_pos is missed.

Events inside a TRANSACTION_PAYLOAD have no positions of their own (the server writes a log_pos of
0). In a block, their log_pos is the offset in the payload's decompressed stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, Event

__all__ = ["EventBlock", "PackedEvents", "event_at", "pack_events", "unpack_events"]

_LONGEST_GAP = 1 << 31


class EventBlock(NamedTuple):
    """Events of one file.

    Attributes
    ----------
    end : position after the first event.
    trailer : by how many bytes each event is longer in the binlog: its checksum. Negative for an
        event that is compressed there.
    data : the events.
    payload : position of the TRANSACTION_PAYLOAD that contains the events; `end` is then an offset
        in its decompressed stream. -1 for events outside of one.
    """

    file: str
    end: int
    trailer: int
    data: bytes
    payload: int = -1


class PackedEvents(NamedTuple):
    """A block and the position after its last event, which appending another block requires."""

    block: EventBlock
    last_end: int


def pack_events(events: Iterable[Event | PackedEvents]) -> list[EventBlock]:
    """Pack events and already packed events into as few blocks as their positions allow."""
    blocks: list[EventBlock] = []
    parts: list[bytes] = []
    # What all events of a block share: file, payload, trailer.
    shared = ("", -1, 0)
    first_end = last_end = 0

    def finished() -> EventBlock:
        file, payload, trailer = shared
        return EventBlock(file, first_end, trailer, b"".join(parts), payload)

    for event in events:
        if isinstance(event, PackedEvents):
            block = event.block
            begin, end = block.end, event.last_end
            here = (block.file, block.payload, block.trailer)
        else:
            size = HEADER_LENGTH + len(event.body)
            if event.offset is None:
                length, end, payload = event.end - event.start, event.end, -1
            else:
                length, end, payload = size, event.offset + size, event.start
            begin = end
            here = (event.file, payload, length - size)
        if parts and (here != shared or begin - last_end >= _LONGEST_GAP):
            blocks.append(finished())
            parts = []
        if not parts:
            first_end, shared = begin, here
        last_end = end
        if isinstance(event, PackedEvents):
            parts.append(event.block.data)
            continue
        log_pos = end & 0xFFFFFFFF
        parts.append(
            HEADER.pack(event.timestamp, event.type, event.server_id, length, log_pos, event.flags)
        )
        parts.append(event.body)
    if parts:
        blocks.append(finished())
    return blocks


def event_at(file: str, end: int, data: bytes) -> Event:
    """Return one event from its header and body, and the position after it."""
    timestamp, kind, server_id, length, _, flags = HEADER.unpack_from(data)
    return Event(file, end - length, end, timestamp, kind, server_id, flags, data[HEADER_LENGTH:])


def unpack_events(blocks: Iterable[EventBlock]) -> Iterator[Event]:
    """Yield the packed events."""
    for file, first_end, trailer, data, payload in blocks:
        end, at, size = first_end, 0, len(data)
        while at < size:
            timestamp, kind, server_id, length, log_pos, flags = HEADER.unpack_from(data, at)
            end += (log_pos - end) & 0xFFFFFFFF
            body = at + HEADER_LENGTH
            at += length - trailer
            start = end - length
            if payload < 0:
                yield Event(file, start, end, timestamp, kind, server_id, flags, data[body:at])
            else:
                here = (file, payload, payload)
                yield Event(*here, timestamp, kind, server_id, flags, data[body:at], start)
