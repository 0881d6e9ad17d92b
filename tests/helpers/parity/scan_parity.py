"""Comparison of `LogScanner`, in pieces of any size, with reading a log event by event.

For any log, both must keep the same events, leave `EventReader` and `EventFilter` in the same
state, and stop at the same position with the same error.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from helpers.logs.events import LogBuilder, format_description_body, raw_event
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.binlog_files import files
from pyspark_mysqlbinlog.protocol.blocks import pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event, EventType
from pyspark_mysqlbinlog.protocol.receive_buffer import ReceiveBuffer
from pyspark_mysqlbinlog.protocol.server.dump_stream import next_event_of
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

__all__ = [
    "FILE",
    "Captures",
    "always",
    "by_scan",
    "by_both",
    "compare",
    "framed",
    "in_format",
    "captures",
    "captures_half",
]

FILE = "mysql-bin.000001"
MARKER = HEADER_LENGTH + 12  # before the events of a payload: see protocol/blocks.py
Captures = Callable[[str, str], bool]


def captures(database: str, table: str) -> bool:
    return table in {"t", "u"}


def captures_half(database: str, table: str) -> bool:
    return bool(zlib.crc32(f"{database}.{table}".encode()) & 1)


class Passed(NamedTuple):
    """A copy of values of a `Run`, which is valid only until the next one."""

    end: int
    ends: list[int]
    rows_end: bool


@dataclass
class Outcome:
    """The result of reading a log.

    Attributes
    ----------
    places : the position at each boundary.
    state : of the reader and the filter at the end.
    runs : the runs of the scan.
    left : number of events that the scan left to the filter.
    """

    kept: list[Event] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    error: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    runs: list[Passed] = field(default_factory=list)
    left: int = 0

    def end(self, walker: EventReader, filtering: EventFilter, error: Exception | None) -> Outcome:
        self.error = "" if error is None else f"{type(error).__name__}: {error}"
        # Attributes about the last event only, and those with which its text was read.
        passing = {"ended", "statement", "context", "_contexts", "_captures", "_transaction"}
        self.state = {k: v for k, v in vars(filtering).items() if k not in passing}
        transaction = filtering._transaction
        self.state |= {k: getattr(transaction, k) for k in transaction.__slots__ if k != "ended"}
        self.state |= vars(walker)
        return self

    @property
    def reported(self) -> tuple[list[Event], list[tuple[str, int]], str, dict[str, Any]]:
        return self.kept, self.places, self.error, self.state


class Stream(ReceiveBuffer):
    """A log that arrives in pieces of given sizes, parsed as a dump or as a file."""

    def __init__(self, data: bytes, sizes: Iterator[int], *, packets: bool, capacity: int) -> None:
        rest = io.BytesIO(data)

        def receive(memory: memoryview) -> int:
            return rest.readinto(memory[: min(next(sizes), len(memory))])

        super().__init__(receive, capacity)
        self.packets = packets

    def next_event(self) -> bytes | None:
        return next_event(self.take, packets=self.packets)


def next_event(read: Callable[[int], bytes], *, packets: bool) -> bytes | None:
    if packets:
        return next_event_of(read, "h:1", FILE, 4)
    return files._next_event(read, FILE, 4)


def inside(event: Event) -> Iterable[Event]:
    """Return the event, or the events of a payload."""
    is_payload = event.type == EventType.TRANSACTION_PAYLOAD_EVENT
    return TransactionPayloadReader(event) if is_payload else (event,)


def placed(event: Event) -> Event:
    """Return an event as blocks contain it: without the end of its payload."""
    if event.offset is None:
        return event
    return event._replace(end=event.start, checksum=None)


def by_both(data: bytes, walker: EventReader, filtering: EventFilter, *, packets: bool) -> Outcome:
    found = Outcome()
    read = io.BytesIO(data).read
    try:
        while (raw := next_event(read, packets=packets)) is not None:
            event = walker.feed(raw)
            for each in [] if event is None else inside(event):
                found.kept += map(placed, filtering.feed(each))
                if filtering.ended:
                    found.places.append((each.file, each.end))
    except MySQLBinlogError as error:
        return found.end(walker, filtering, error.with_location(walker.file, walker.pos))
    return found.end(walker, filtering, None)


def by_scan(
    stream: Any,
    walker: EventReader,
    filtering: EventFilter,
    *,
    whole_maps: bool = False,
    limit: int = 1 << 62,
    pause_every: int | None = None,
) -> Outcome:
    """Return the scan's result for a log.

    limit : no run extends beyond it.
    pause_every : number of bytes after which a run must end within a transaction, repeatedly.
    """
    found = Outcome()

    def due(_: int | None) -> int:
        assert pause_every is not None
        return pause_every * (1 + sum(run.rows_end for run in found.runs))

    scanner = LogScanner(filtering, whole_maps=whole_maps, pause_at=due if pause_every else None)
    scanner.open(stream, walker)
    try:
        while (item := scanner.next(lambda _: limit)) is not None:
            if isinstance(item, Run):
                found.runs.append(Passed(item.end, list(item.ends), item.rows_end))
                packed = item.pack()
                kept = list(unpack_events([packed.block])) if packed is not None else []
                inner = {event.start for event in kept if event.offset is not None}
                size = sum(HEADER_LENGTH + len(event.body) for event in kept)
                if item.offset is None:
                    size += MARKER * len(inner)
                assert item.kept_bytes == size
                if packed is not None:
                    assert packed.last_end == kept[-1].end
                    assert packed.block == pack_events(kept)[0]
                found.kept += kept
                found.places += [(item.file, end) for end in item.ends]
            else:
                found.left += 1
                found.kept += map(placed, filtering.feed(item))
                scanner.learn(item)
                if filtering.ended:
                    found.places.append((item.file, item.end))
    except MySQLBinlogError as error:
        return found.end(walker, filtering, error.with_location(walker.file, walker.pos))
    return found.end(walker, filtering, None)


def framed(raws: Iterable[bytes]) -> bytes:
    """Return events as a dump sends them; none here fills a packet."""
    return b"".join(
        (len(raw) + 1).to_bytes(3, "little") + bytes([n & 0xFF, 0]) + raw
        for n, raw in enumerate(raws)
    )


def compare(
    data: bytes,
    *,
    packets: bool,
    captured: Captures = captures,
    sizes: Callable[[], Iterator[int]] = lambda: iter(lambda: 1 << 20, 0),
    capacity: int = 1 << 16,
    walker: Callable[[], EventReader] = lambda: EventReader(FILE, 4),
    **choices: Any,
) -> Outcome:
    """Check that both ways give the same result; return the scan's.

    sizes : of the pieces in which the log arrives.
    choices : arguments of `by_scan`.
    """
    expected = by_both(data, walker(), EventFilter(captured), packets=packets)
    stream = Stream(data, sizes(), packets=packets, capacity=capacity)
    found = by_scan(stream, walker(), EventFilter(captured), **choices)
    assert found.reported == expected.reported
    return found


def in_format(log: LogBuilder) -> list[bytes]:
    """Return a log's events after a FORMAT_DESCRIPTION, as a dump repeats it."""
    body = format_description_body(algorithm=int(log.checksum))
    return [raw_event(EventType.FORMAT_DESCRIPTION_EVENT, body, log_pos=0), *log.raws]


def always(size: int) -> Callable[[], Iterator[int]]:
    return lambda: iter(lambda: size, 0)
