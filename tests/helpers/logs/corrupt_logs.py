"""Corrupt binlog files with correct lengths, positions and checksums.

The checksum detects a plain change of bytes, so the code after the checksum check would not be
tested. So each event is rebuilt with its changed body. Only a truncated file and a bit flipped in
the finished file stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import pack
from zlib import crc32

from hypothesis import strategies as st

from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, EventType

__all__ = ["RawEvent", "damaged", "from_bytes", "to_bytes"]

MAGIC = b"\xfebin"
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
# Table maps and rows events: they are the smaller part of a log, but get most of the damage.
_OF_INTEREST = frozenset({EventType.TABLE_MAP_EVENT, 23, 24, 25, 30, 31, 32})
_KINDS = sorted({int(kind) for kind in EventType})
_ODD_BYTES = st.sampled_from((0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)) | st.integers(0, 255)


@dataclass(frozen=True)
class RawEvent:
    """An event without position, length and checksum; `to_bytes` adds them."""

    kind: int
    body: bytes
    timestamp: int = 1_600_000_000
    server_id: int = 5
    flags: int = 0


def from_bytes(data: bytes) -> tuple[list[RawEvent], bool]:
    """Return the events of a binlog file, and whether they have checksums."""
    events: list[RawEvent] = []
    checksum, pos = True, len(MAGIC)
    while pos < len(data):
        timestamp, kind, server_id, length, _, flags = HEADER.unpack_from(data, pos)
        body = data[pos + HEADER_LENGTH : pos + length]
        if kind == _FORMAT_DESCRIPTION:
            checksum = body[-5] == 1
        trailer = 4 if checksum or kind == _FORMAT_DESCRIPTION else 0
        events.append(RawEvent(kind, body[: len(body) - trailer], timestamp, server_id, flags))
        pos += length
    return events, checksum


def to_bytes(events: list[RawEvent], *, checksum: bool) -> bytes:
    """Return a binlog file of these events."""
    parts, pos = [MAGIC], len(MAGIC)
    for event in events:
        trailer = 4 if checksum or event.kind == _FORMAT_DESCRIPTION else 0
        length = HEADER_LENGTH + len(event.body) + trailer
        pos += length
        raw = event.body
        head = (event.timestamp, event.kind, event.server_id, length, pos, event.flags)
        raw = HEADER.pack(*head) + event.body
        parts.append(raw + pack("<I", crc32(raw)) if trailer else raw)
    return b"".join(parts)


Damage = Callable[[st.DrawFn, list[RawEvent]], None]


def _choose(draw: st.DrawFn, events: list[RawEvent]) -> int:
    """Draw the index of an event, usually of a table map or rows event.

    Index 0 is avoided: without its FORMAT_DESCRIPTION nothing can be read.
    """
    interesting = [at for at, event in enumerate(events) if event.kind in _OF_INTEREST]
    if interesting and draw(st.integers(0, 5)) != 5:
        return draw(st.sampled_from(interesting))
    return draw(st.integers(min(1, len(events) - 1), len(events) - 1))


def _overwrite(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    body = bytearray(events[at].body)
    if body:
        begin = draw(st.integers(0, len(body) - 1))
        for offset, byte in enumerate(draw(st.lists(_ODD_BYTES, min_size=1, max_size=4)), begin):
            if offset < len(body):
                body[offset] = byte
    events[at] = replace(events[at], body=bytes(body))


def _flip(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    body = bytearray(events[at].body)
    if body:
        bit = draw(st.integers(0, 8 * len(body) - 1))
        body[bit // 8] ^= 1 << bit % 8
    events[at] = replace(events[at], body=bytes(body))


def _cut(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    body = events[at].body
    begin = draw(st.integers(0, len(body)))
    end = draw(st.sampled_from((len(body), begin + 1, begin + 2)))
    events[at] = replace(events[at], body=body[:begin] + body[end:])


def _insert(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    body = events[at].body
    where = draw(st.sampled_from((len(body), draw(st.integers(0, len(body))))))
    more = bytes(draw(st.lists(_ODD_BYTES, min_size=1, max_size=9)))
    events[at] = replace(events[at], body=body[:where] + more + body[where:])


def _drop(draw: st.DrawFn, events: list[RawEvent]) -> None:
    if len(events) > 2:
        del events[_choose(draw, events)]


def _repeat(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    events.insert(draw(st.integers(0, len(events))), events[at])


def _swap(draw: st.DrawFn, events: list[RawEvent]) -> None:
    one, other = _choose(draw, events), _choose(draw, events)
    events[one], events[other] = events[other], events[one]


def _splice(draw: st.DrawFn, events: list[RawEvent]) -> None:
    """Replace the tail of an event's body with the tail of another event's body."""
    at, other = _choose(draw, events), _choose(draw, events)
    body, rest = events[at].body, events[other].body
    cut = draw(st.integers(0, min(len(body), len(rest))))
    events[at] = replace(events[at], body=body[:cut] + rest[cut:])


def _rename(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    kind = draw(st.sampled_from((*sorted(_OF_INTEREST), *_KINDS)))
    events[at] = replace(events[at], kind=kind)


def _reflag(draw: st.DrawFn, events: list[RawEvent]) -> None:
    at = _choose(draw, events)
    events[at] = replace(
        events[at],
        flags=draw(st.integers(0, 0xFFFF)),
        timestamp=draw(st.sampled_from((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))),
    )


_ON_EVENTS: tuple[Damage, ...] = (
    _overwrite,
    _overwrite,
    _flip,
    _flip,
    _cut,
    _insert,
    _drop,
    _repeat,
    _swap,
    _splice,
    _rename,
    _reflag,
)


@st.composite
def damaged(draw: st.DrawFn, whole: list[RawEvent], *, checksum: bool) -> bytes:
    """Draw a binlog file with some damage, or with none."""
    events = list(whole)
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2, 3)))):
        draw(st.sampled_from(_ON_EVENTS))(draw, events)
    data = to_bytes(events, checksum=checksum)
    first = min(130, len(data) - 1)
    match draw(st.integers(0, 15)):
        case 15:
            return data[: draw(st.integers(first, len(data)))]
        case 14:
            at = draw(st.integers(first, len(data) - 1))
            return data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
    return data
