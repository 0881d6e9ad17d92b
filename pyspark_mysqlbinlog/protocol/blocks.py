"""Verified events packed back to back, the form in which Spark tasks carry them.

Each event is its 19-byte header as in the binlog, and its body. The checksum is removed, because it
was verified when the event was read. The header's log_pos gives the position modulo 2^32; the
block's first event gives the upper bits. A block has events of one file in the order of their
positions, and consecutive events are less than 2 GiB apart, so that no wrap of log_pos is missed.

Events inside a TRANSACTION_PAYLOAD have no positions of their own: the server writes a log_pos of
0. A marker precedes them, and their log_pos is the offset in the payload's decompressed stream::

    header with the type TRANSACTION_PAYLOAD and log_pos = the payload's position, otherwise 0
    | offset after the first event u64 | bytes of the events u32 | events
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from pyspark_mysqlbinlog.protocol.events import (
    HEADER,
    HEADER_LENGTH,
    CommitPlace,
    Event,
    EventType,
)

__all__ = [
    "EventBlock",
    "PackedEvents",
    "event_at",
    "pack_events",
    "packed_payload",
    "unpack_events",
]

_LONGEST_GAP = 1 << 31
_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)
_MARKER = Struct("<QI")


class EventBlock(NamedTuple):
    """Events of one file. TRANSACTION_PAYLOAD itself cannot be one of them.

    Attributes
    ----------
    end : position after the first event; the payload's position if that event is inside a payload.
    trailer : number of bytes by which each event is longer in the binlog, because of its checksum.
        Negative for an event that is compressed there. Events inside payloads have none.
    data : the events.
    committed : see `Event.committed`; the same for all events.
    """

    file: str
    end: int
    trailer: int
    data: bytes
    committed: CommitPlace | None = None


class PackedEvents(NamedTuple):
    """A block, and what appending to another block requires.

    Attributes
    ----------
    last_end : position after its last event.
    is_inner : all events are inside payloads, so the block's trailer applies to none of them.
    """

    block: EventBlock
    last_end: int
    is_inner: bool = False


def packed_payload(
    file: str, start: int, first_end: int, data: bytes, committed: CommitPlace | None = None
) -> PackedEvents:
    """Return events of the payload that begins at `start`.

    data : the events, back to back, with offsets as log_pos.
    first_end : the offset after the first of them.
    """
    header = HEADER.pack(0, _PAYLOAD, 0, 0, start & 0xFFFFFFFF, 0)
    data = b"".join((header, _MARKER.pack(first_end, len(data)), data))
    return PackedEvents(EventBlock(file, start, 0, data, committed), start, is_inner=True)


def pack_events(events: Iterable[Event | PackedEvents]) -> list[EventBlock]:
    """Pack events and already packed events into as few blocks as their positions allow."""
    blocks: list[EventBlock] = []
    parts: list[bytes] = []
    file, first_end, last_end = "", 0, 0
    committed: CommitPlace | None = None
    # None while all events are from payloads.
    trailer: int | None = None
    here: int | None
    for event in _with_payloads_packed(events):
        if isinstance(event, PackedEvents):
            block = event.block
            begin, end = (block.file, block.end), event.last_end
            place = block.committed
            here = None if event.is_inner else block.trailer
        else:
            length = event.end - event.start
            begin, end = (event.file, event.end), event.end
            place = event.committed
            here = length - HEADER_LENGTH - len(event.body)
        is_other = (None not in (here, trailer) and here != trailer) or place != committed
        is_near = begin[0] == file and 0 <= begin[1] - last_end < _LONGEST_GAP
        if parts and (is_other or not is_near):
            blocks.append(EventBlock(file, first_end, trailer or 0, b"".join(parts), committed))
            parts = []
        if not parts:
            (file, first_end), trailer, committed = begin, here, place
        elif trailer is None:
            trailer = here
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
        blocks.append(EventBlock(file, first_end, trailer or 0, b"".join(parts), committed))
    return blocks


def _with_payloads_packed(
    events: Iterable[Event | PackedEvents],
) -> Iterator[Event | PackedEvents]:
    """Pack each sequence of events inside one payload."""
    parts: list[bytes] = []
    file, start, first_end, last_end = "", -1, 0, 0
    committed: CommitPlace | None = None

    def packed() -> PackedEvents:
        data = b"".join(parts)
        parts.clear()
        return packed_payload(file, start, first_end, data, committed)

    for event in events:
        if isinstance(event, PackedEvents) or event.offset is None:
            if parts:
                yield packed()
            yield event
            continue
        length = HEADER_LENGTH + len(event.body)
        end = event.offset + length
        here, place = (file, start, committed), (event.file, event.start, event.committed)
        if parts and (here != place or not 0 <= end - last_end < _LONGEST_GAP):
            yield packed()
        if not parts:
            (file, start, committed), first_end = place, end
        last_end = end
        log_pos = end & 0xFFFFFFFF
        parts.append(
            HEADER.pack(event.timestamp, event.type, event.server_id, length, log_pos, event.flags)
        )
        parts.append(event.body)
    if parts:
        yield packed()


def event_at(file: str, end: int, data: bytes) -> Event:
    """Return one event from its header and body, and the position after it."""
    timestamp, kind, server_id, length, _, flags = HEADER.unpack_from(data)
    return Event(file, end - length, end, timestamp, kind, server_id, flags, data[HEADER_LENGTH:])


def unpack_events(blocks: Iterable[EventBlock]) -> Iterator[Event]:
    """Yield the packed events."""
    for file, first_end, trailer, data, committed in blocks:
        end, at, size = first_end, 0, len(data)
        while at < size:
            timestamp, kind, server_id, length, log_pos, flags = HEADER.unpack_from(data, at)
            end += (log_pos - end) & 0xFFFFFFFF
            body = at + HEADER_LENGTH
            if kind == _PAYLOAD:
                first, inner_size = _MARKER.unpack_from(data, body)
                at = body + _MARKER.size
                inner = EventBlock(file, first, 0, data[at : at + inner_size], committed)
                yield from _unpack_payload(end, inner)
                at += inner_size
                continue
            at += length - trailer
            event = Event(file, end - length, end, timestamp, kind, server_id, flags, data[body:at])
            yield event if committed is None else event._replace(committed=committed)


def _unpack_payload(start: int, block: EventBlock) -> Iterator[Event]:
    for event in unpack_events((block,)):
        yield event._replace(start=start, end=start, offset=event.start)
