"""Spans in binlog order, with prefix sums, so that limits are found by bisection.

An index may have tens of thousands of spans while the tail is far ahead, and Spark requests an
offset every few milliseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Span

__all__ = ["SpanIndex"]


class SpanIndex:
    """A sequence of spans that grows at its end and is released at its beginning.

    Indexes count from the first span that is not released.
    """

    def __init__(self) -> None:
        self._fill(())

    def _fill(self, spans: Iterable[Span]) -> None:
        # Spans before `_first` are released, and removed in bulk.
        self._first = 0
        self._spans: list[Span] = []
        self._ends: list[Position] = []
        # Before each span and after the last: binlog bytes and rows since some earlier position.
        self._log_bytes = [0]
        self._rows = [0]
        self.kept_bytes = 0
        for span in spans:
            self.append(span)

    def __len__(self) -> int:
        return len(self._spans) - self._first

    def __getitem__(self, at: int) -> Span:
        return self._spans[self._first + at if at >= 0 else at]

    def __iter__(self) -> Iterator[Span]:
        return iter(self.slice(0, len(self)))

    def slice(self, begin: int, end: int) -> list[Span]:
        return self._spans[self._first + begin : self._first + end]

    def append(self, span: Span) -> None:
        self._spans.append(span)
        self._ends.append(span.end.position)
        self._log_bytes.append(self._log_bytes[-1] + span.log_bytes)
        self._rows.append(self._rows[-1] + span.rows)
        self.kept_bytes += span.kept_bytes

    def replace_last(self, span: Span) -> None:
        """Replace the last span by one that differs only in its end's spelling."""
        self._spans[-1] = span
        self._ends[-1] = span.end.position

    def index_after(self, position: Position) -> int:
        """Return how many end at or before a position: the index of the first after it."""
        return bisect_right(self._ends, position, self._first) - self._first

    def within(self, begin: int, most_bytes: int | None, most_rows: int | None) -> int:
        """Return the exclusive end of the spans from `begin` on that are within limits."""
        end = len(self._spans)
        first = self._first + begin
        for sums, most in ((self._log_bytes, most_bytes), (self._rows, most_rows)):
            if most is not None:
                end = min(end, bisect_right(sums, sums[first] + most, first) - 1)
        return end - self._first

    def release(self, count: int) -> None:
        """Release the first spans."""
        for at in range(self._first, self._first + count):
            self.kept_bytes -= self._spans[at].kept_bytes
            self._spans[at] = _GONE
        self._first += count
        if self._first > 64 and self._first > len(self):
            for part in (self._spans, self._ends, self._log_bytes, self._rows):
                del part[: self._first]
            self._first = 0

    def coarsen(self, first: int) -> bool:
        """Join pairs of neighbours from `first` on, without events; False if there is no pair."""
        known, others = self.slice(0, first), self.slice(first, len(self))
        if len(others) < 2:
            return False
        pairs = zip(others[::2], others[1::2], strict=False)
        joined = [_joined(*pair) for pair in pairs]
        self._fill([*known, *joined, *others[2 * len(joined) :]])
        return True


def _joined(first: Span, second: Span) -> Span:
    moved = (replace(piece, log_bytes=first.log_bytes + piece.log_bytes) for piece in second.pieces)
    return Span(
        first.start,
        second.end,
        first.log_bytes + second.log_bytes,
        None,
        0,
        first.rows + second.rows,
        (*first.pieces, *moved),
    )


_NOWHERE = BoundaryState(Position(0, 0, ""), SchemaHistory())
_GONE = Span(_NOWHERE, _NOWHERE, 0, None, 0)
