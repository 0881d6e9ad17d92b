"""The bounded buffer between the tail and Spark: an index of boundaries, and bytes while they fit.

The log that the tail has walked is kept as a row of spans, each from one boundary to a later one
with something wanted in between. A span carries its packed events while the buffer has room for
them; when it has none, only the span's place is kept, and whoever needs the rows fetches them
again. Small transactions are gathered into one span up to a granularity, so the index stays small
too. When there are too many spans the tail waits. So memory is bounded by bytes and by number of
spans, whatever the backlog and however large one transaction.

Every method takes the lock; the tail calls one per transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Condition
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event

__all__ = ["MOST_CARRIED", "LogBuffer", "Mark", "Piece", "Span"]

# DDL statements in one batch; each may make another version of a table in its offset.
_MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """A boundary and what holds there."""

    position: Position
    history: SchemaHistory
    pending_xa: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A place inside of a transaction where a task may begin to read.

    Attributes
    ----------
    log_bytes : from the boundary before its transaction to here.
    prelude : what the events behind it can't be read without: the transaction's first events and
        the table maps of the statement that is going on.
    pending_xa : prepared XA transactions at this place that hold no wanted rows.
    """

    start: Position
    log_bytes: int
    prelude: tuple[EventBlock, ...]
    pending_xa: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the log that holds wanted changes.

    Attributes
    ----------
    start : the boundary at which the previous span ended, or a later one.
    end : the boundary after its last transaction.
    log_bytes : length in the log, unwanted events included.
    blocks : the wanted events; None when there was no room for them.
    kept_bytes : length of `blocks`.
    rows : wanted rows, where they are counted.
    pieces : where it may be cut inside of a long transaction.
    """

    start: Position
    end: Mark
    log_bytes: int
    blocks: tuple[EventBlock, ...] | None
    kept_bytes: int
    rows: int = 0
    pieces: tuple[Piece, ...] = ()


# Spark warns of a "very large task" from 1,000 KiB on, and dies of 60 MB ones: what is larger than
# this is never carried, and so never kept.
MOST_CARRIED = 900_000


class LogBuffer:
    """Spans in log order, written by the tail and read by Spark's offset calls.

    Parameters
    ----------
    start : the boundary from which the tail walks.
    capacity : bytes of events to keep.
    granularity : log bytes up to which transactions share a span.
    most_spans : how far the index may run ahead.
    """

    def __init__(
        self, start: Mark, *, capacity: int, granularity: int, most_spans: int = 50_000
    ) -> None:
        self._capacity = capacity
        self._granularity = granularity
        self._most_spans = most_spans
        self._changed = Condition()
        self._spans: deque[Span] = deque()
        self._kept_bytes = 0
        self._base = start.position
        self._tip = start
        # The furthest boundary that Spark knows: its spelling must not change any more.
        self._handed_out = start.position
        self._cut: Position | None = None
        # The last boundary before the cut, once the tail is behind it.
        self._before_cut: Mark | None = None
        # The span that is still growing, and the transaction that may become part of it.
        self._open: list[Event] | None = []
        self._open_kept = 0
        self._open_log_bytes = 0
        self._open_wanted: Mark | None = None
        self._open_start = start.position
        self._open_rows = 0
        self._open_pieces: list[Piece] = []
        self._transaction: list[Event] | None = []
        self._transaction_kept = 0
        self._error: Exception | None = None
        self._closed = False
        self._unlimited = False
        # The boundaries behind DDL.
        self._changes: deque[Mark] = deque()

    # --- the tail's side

    def append(self, events: list[Event]) -> None:
        """Wanted events of the transaction in progress."""
        kept = sum(HEADER_LENGTH + len(event.body) for event in events)
        self._transaction_kept += kept
        if self._transaction is None:
            return
        room = self._capacity - self._kept_bytes - self._open_kept
        if self._transaction_kept > min(room, MOST_CARRIED):
            # No room, or too much for a task to carry: whoever needs it fetches it.
            self._transaction = None
        else:
            self._transaction.extend(events)

    def boundary(
        self,
        mark: Mark,
        log_bytes: int,
        *,
        wanted: bool,
        rows: int = 0,
        pieces: Sequence[Piece] = (),
    ) -> None:
        """The transaction in progress ends at `mark`, `log_bytes` after the last boundary."""
        with self._changed:
            known = self._tip.history
            is_change = mark.history is not known and mark.history != known
            if self._crosses_cut(mark):
                self._before_cut = self._tip
            if is_change or self._crosses_cut(mark):
                self._close_span()
            self._tip = mark
            if is_change:
                self._changes.append(mark)
                if not wanted:
                    self._open_start = mark.position
            if wanted:
                if self._open_kept + self._transaction_kept > MOST_CARRIED:
                    # What is small enough to be carried must not share a span with what is not.
                    self._close_span()
                before = self._open_log_bytes
                self._open_pieces += (
                    replace(piece, log_bytes=before + piece.log_bytes) for piece in pieces
                )
                self._open_rows += rows
            self._open_log_bytes += log_bytes
            if wanted:
                self._take_transaction()
                self._open_wanted = mark
                if self._open_log_bytes >= self._granularity:
                    self._close_span()
                self._changed.notify_all()
        self._transaction, self._transaction_kept = [], 0

    def moved(self, mark: Mark) -> None:
        """The last boundary has a new spelling: the next file's beginning."""
        with self._changed:
            # Whoever knows the old spelling must find it again.
            if self._crosses_cut(mark):
                self._before_cut = self._tip
                self._close_span()
            elif self._tip.position <= self._handed_out:
                pass
            elif self._open_wanted is not None and self._open_wanted.position == self._tip.position:
                self._open_wanted = mark
            elif self._spans and self._spans[-1].end.position == self._tip.position:
                self._spans[-1] = replace(self._spans[-1], end=mark)
                self._open_start = mark.position
            if self._changes and self._changes[-1].position == self._tip.position:
                self._changes[-1] = mark
            self._tip = mark
            self._changed.notify_all()

    def forget_transaction(self) -> None:
        """The connection broke: what came after the last boundary will come again."""
        self._transaction, self._transaction_kept = [], 0

    def wait_for_room(self) -> None:
        """Block while the index is too far ahead of Spark."""
        with self._changed:
            if self._unlimited and len(self._spans) >= self._most_spans:
                self._coarsen()
            # What Spark holds can't be joined: without limits the index then grows instead.
            self._changed.wait_for(lambda: not self.is_full or self._closed or self._unlimited)

    def fail(self, error: Exception) -> None:
        """The tail has ended; nothing more will come after the last boundary."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def close(self) -> None:
        """Let a waiting tail go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    # --- Spark's side

    def cut_at(self, position: Position) -> None:
        """Let no span reach across `position`: a run is to end there."""
        with self._changed:
            self._cut = position

    def take_all(self) -> None:
        """Never wait again, for a batch without limits: the index gets coarser instead."""
        with self._changed:
            self._unlimited = True
            if self.is_full:
                self._coarsen()
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """The tail waits for Spark to take something."""
        return len(self._spans) >= self._most_spans

    @property
    def tip(self) -> Mark:
        """The last boundary that the tail has walked, wanted or not."""
        return self._tip

    @property
    def error(self) -> Exception | None:
        return self._error

    def furthest(
        self,
        start: Position,
        most_bytes: int | None,
        until: Position | None = None,
        most_rows: int | None = None,
    ) -> Mark | None:
        """The last boundary after `start` that is worth a batch; None when there is none.

        At most `most_bytes` of log and `most_rows` rows behind `start`, but at least one span; not
        behind `until`. Nor behind more DDL than the offset should hold versions of tables: then it
        is the boundary there, with rows in front of it or not.
        """
        with self._changed:
            self._close_span()
            total = rows = 0
            best: Mark | None = None
            changes = [mark for mark in self._changes if mark.position > start]
            last = changes[_MOST_CHANGES - 1] if len(changes) > _MOST_CHANGES else None
            if last is not None and until is not None and last.position > until:
                last = None
            for span in self._spans:
                end = span.end.position
                if end <= start:
                    continue
                if until is not None and end > until:
                    break
                if last is not None and end > last.position:
                    best = last
                    break
                total += span.log_bytes
                rows += span.rows
                too_large = most_bytes is not None and total > most_bytes
                too_many = most_rows is not None and rows > most_rows
                if best is not None and (too_large or too_many):
                    break
                best = span.end
            if best is None:
                best = last
            if best is not None:
                self._handed_out = best.position
            return best

    def take_tip(self, until: Position | None = None) -> Mark | None:
        """The last boundary that was walked; None when something wanted lies before it.

        None, too, when it lies behind `until`: the tail walks on while Spark's calls look at it.
        """
        with self._changed:
            if self._open_wanted is not None or (
                self._spans and self._spans[-1].end.position > self._handed_out
            ):
                return None
            tip: Mark | None = self._tip
            if until is not None and self._tip.position > until:
                tip = self._before_cut
            if tip is None or tip.position < self._handed_out:
                return None
            self._handed_out = self._open_start = tip.position
            self._open_log_bytes = 0
            return tip

    def exceeds(self, start: Position, most_bytes: int | None, most_rows: int | None) -> bool:
        """Whether there is more behind `start` than one batch may have, or than the index holds."""
        with self._changed:
            if self.is_full:
                return not self._unlimited
            spans = [span for span in self._spans if span.end.position > start]
            total = sum(span.log_bytes for span in spans)
            rows = sum(span.rows for span in spans)
            return (most_bytes is not None and total > most_bytes) or (
                most_rows is not None and rows > most_rows
            )

    def spans(self, start: Position, end: Position) -> list[Span] | None:
        """What lies between two boundaries; None when the buffer can't tell."""
        with self._changed:
            if start < self._base or end > self._tip.position:
                return None
            if self._open_wanted is not None and end > self._open_start:
                return None
            for span in self._spans:
                if span.start < end < span.end.position or span.start < start < span.end.position:
                    return None
            return [span for span in self._spans if start < span.end.position <= end]

    @property
    def released(self) -> Position:
        """Spark will not ask for anything before this again."""
        return self._base

    def release(self, upto: Position) -> None:
        """Spark will not ask for anything at or before `upto` again."""
        with self._changed:
            while self._spans and self._spans[0].end.position <= upto:
                self._kept_bytes -= self._spans.popleft().kept_bytes
            while self._changes and self._changes[0].position <= upto:
                self._changes.popleft()
            self._base = max(self._base, upto)
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Block until `ready`, an error, or the time is over; false when it is."""
        deadline = None if timeout is None else monotonic() + timeout
        with self._changed:
            while not ready() and self._error is None:
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return False
                # Boundaries of unwanted traffic do not notify: look again now and then.
                self._changed.wait(0.02 if left is None else min(left, 0.02))
            return True

    # --- inside, under the lock

    def _crosses_cut(self, mark: Mark) -> bool:
        return self._cut is not None and self._tip.position <= self._cut < mark.position

    def _take_transaction(self) -> None:
        if self._open_wanted is None:
            self._open = []
        if self._open is None or self._transaction is None:
            # A span has all of its events or none: whoever fetches, fetches the whole span.
            self._open, self._open_kept = None, 0
        else:
            self._open.extend(self._transaction)
            self._open_kept += self._transaction_kept

    def _close_span(self) -> None:
        mark = self._open_wanted
        if mark is None:
            return
        blocks = None if self._open is None else tuple(pack_events(self._open))
        kept = sum(len(block.data) for block in blocks or ())
        self._kept_bytes += kept
        self._spans.append(
            Span(
                self._open_start,
                mark,
                self._open_log_bytes,
                blocks,
                kept,
                self._open_rows,
                tuple(self._open_pieces),
            )
        )
        self._open, self._open_kept, self._open_log_bytes, self._open_rows = [], 0, 0, 0
        self._open_pieces = []
        self._open_wanted = None
        self._open_start = mark.position

    def _coarsen(self) -> None:
        """Join each two neighbours behind what Spark has, without their bytes."""
        spans = list(self._spans)
        known = sum(span.end.position <= self._handed_out for span in spans)
        joined = spans[:known]
        for at in range(known, len(spans) - 1, 2):
            first, second = spans[at : at + 2]
            joined.append(
                Span(
                    first.start,
                    second.end,
                    first.log_bytes + second.log_bytes,
                    None,
                    0,
                    first.rows + second.rows,
                    first.pieces
                    + tuple(
                        replace(piece, log_bytes=first.log_bytes + piece.log_bytes)
                        for piece in second.pieces
                    ),
                )
            )
        if (len(spans) - known) % 2:
            joined.append(spans[-1])
        self._spans = deque(joined)
        self._kept_bytes = sum(span.kept_bytes for span in joined)
