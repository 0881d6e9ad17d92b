"""A `LogBuffer`, and a stand-in for the tail that fills it."""

from __future__ import annotations

from dataclasses import dataclass, field

from helpers.parity.decoding import make_event
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Span
from pyspark_mysqlbinlog.protocol.blocks import unpack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["EMPTY", "Log", "at", "mark", "new_log", "numbers"]

EMPTY = SchemaHistory()


def at(pos: int, file: int = 1) -> Position:
    return Position(file, pos, f"b.{file:06d}")


def mark(position: Position) -> BoundaryState:
    return BoundaryState(position, EMPTY)


@dataclass
class Log:
    """A stand-in for the tail: it appends transactions and rotations to the buffer.

    Attributes
    ----------
    here : the last boundary; after a rotation, the start of the new file.
    captured : (number, end) of every captured transaction; a rotation does not change the end.
    """

    buffer: LogBuffer
    here: Position
    captured: list[tuple[int, Position]] = field(default_factory=list)
    count: int = 0

    def transaction(
        self, size: int = 100, *, captured: bool = True, number: int | None = None
    ) -> Position:
        """Append a transaction of `size` bytes, whose number is its event's table ID."""
        if number is None:
            self.count += 1
            number = self.count
        end = self.here._replace(pos=self.here.pos + size)
        if captured:
            self.buffer.append([self.event(number, size)])
            self.captured.append((number, end))
        self.buffer.boundary(mark(end), size, captured=captured)
        self.here = end
        return end

    def event(self, number: int, size: int) -> Event:
        body = number.to_bytes(6, "little") + bytes(size - 25)
        return make_event(EventType.WRITE_ROWS_EVENT, body, self.here.pos, self.here.file)

    def rotate(self) -> Position:
        self.here = at(4, self.here.number + 1)
        self.buffer.advance(mark(self.here))
        return self.here


def new_log(
    *, capacity: int = 1 << 20, granularity: int = 0, most_spans: int = 1000, start: int = 4
) -> Log:
    start_mark = mark(at(start))
    buffer = LogBuffer(
        start_mark, capacity=capacity, granularity=granularity, most_spans=most_spans
    )
    return Log(buffer, at(start))


def numbers(spans: list[Span]) -> list[int]:
    """Return the numbers of the transactions whose events the spans contain."""
    found = []
    for span in spans:
        assert span.blocks is not None
        found += [int.from_bytes(event.body[:6], "little") for event in unpack_events(span.blocks)]
    return found
