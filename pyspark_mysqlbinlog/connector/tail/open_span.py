"""The span that is still growing, after the last one of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Piece, Span
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents, pack_events
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["Events", "OpenSpan"]

# Captured events as received.
Events = Sequence[Event | PackedEvents]


class OpenSpan:
    """The binlog from a boundary on.

    Attributes
    ----------
    start : the boundary at which it begins.
    end : the last boundary after captured changes; None if there are none.
    log_bytes : of everything from `start` on, captured or not.
    kept_bytes : of the events that it keeps.
    """

    def __init__(self, start: BoundaryState) -> None:
        self._begin(start)

    def _begin(self, start: BoundaryState) -> None:
        self.start = start
        self.end: BoundaryState | None = None
        self.log_bytes = 0
        self.kept_bytes = 0
        self._events: list[Event | PackedEvents] | None = []
        self._rows = 0
        self._pieces: list[Piece] = []

    @property
    def is_kept(self) -> bool:
        return self._events is not None

    def skip_to(self, boundary: BoundaryState) -> None:
        """Begin at a later boundary, if there are no captured changes before it."""
        assert self.end is None
        self._begin(boundary)

    def respell(self, old: BoundaryState, new: BoundaryState) -> None:
        """Replace a boundary by its new spelling: the next file's beginning."""
        if self.start.position == old.position:
            self.start = new
        if self.end is not None and self.end.position == old.position:
            self.end = new

    def add(
        self,
        boundary: BoundaryState,
        events: Events | None,
        kept_bytes: int,
        rows: int = 0,
        pieces: Sequence[Piece] = (),
    ) -> None:
        """Add a captured transaction that ends at `boundary`; `log_bytes` does not include it yet.

        events : None if they are not all kept.
        """
        if self._events is None or events is None:
            # A span has all of its events or none: a fetch always covers the whole span.
            self._events, self.kept_bytes = None, 0
        else:
            self._events.extend(events)
            self.kept_bytes += kept_bytes
        self.end = boundary
        self._rows += rows
        before = self.log_bytes
        self._pieces += (replace(piece, log_bytes=before + piece.log_bytes) for piece in pieces)

    def close(self) -> Span:
        """Return the span and begin another one at its end."""
        assert self.end is not None
        blocks = None if self._events is None else tuple(pack_events(self._events))
        kept = sum(len(block.data) for block in blocks or ())
        span = Span(
            self.start, self.end, self.log_bytes, blocks, kept, self._rows, tuple(self._pieces)
        )
        self._begin(self.end)
        return span
