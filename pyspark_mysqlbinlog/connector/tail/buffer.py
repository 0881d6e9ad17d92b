"""The bounded buffer between the tail and Spark: boundaries, with events while they fit.

The part of the binlog that the tail has read is a sequence of spans, each from one boundary to a
later one with captured changes in between. A span holds its packed events while the buffer has
capacity for them. Otherwise it holds only its positions, and the executor fetches the events again.
Small transactions are gathered into one span up to a granularity, so the index stays small too; a
transaction of that size starts a span of its own. If there are too many spans the tail waits. So
memory is bounded by bytes and by number of spans, whatever the backlog and the largest transaction.

Every method takes the lock; the tail calls one method per transaction or per run of transactions.
The properties return a single reference, which is read without the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Condition
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Piece, Span
from pyspark_mysqlbinlog.connector.tail.open_span import Events, OpenSpan
from pyspark_mysqlbinlog.connector.tail.span_index import SpanIndex
from pyspark_mysqlbinlog.decoder.filtering.outcomes import Part, size_of, without_rows_since
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event

__all__ = ["MAX_INLINE_BYTES_PER_TASK", "LogBuffer"]

# Maximum DDL statements in one batch: each may add a version of a table to the batch's offset.
_MAX_DDL_STATEMENTS = 20


# Spark warns of a "very large task" from 1,000 KiB on, and fails with 60 MB ones: larger events are
# never sent inline, and so never kept.
MAX_INLINE_BYTES_PER_TASK = 900_000


class LogBuffer:
    """Spans in binlog order, written by the tail and read by Spark's offset calls.

    Parameters
    ----------
    start : the boundary from which the tail reads.
    capacity : bytes of events to keep.
    granularity : binlog bytes up to which transactions share a span.
    most_spans : the maximum length of the index.
    """

    def __init__(
        self, start: BoundaryState, *, capacity: int, granularity: int, most_spans: int = 50_000
    ) -> None:
        self._capacity = capacity
        self._granularity = granularity
        self._most_spans = most_spans
        # Its lock is reentrant: methods that hold it call each other.
        self._changed = Condition()
        self._spans = SpanIndex()
        self._base = start.position
        self._tip = start
        # The last boundary that Spark knows: its spelling must not change any more.
        self._handed_out = start.position
        self._cut: Position | None = None
        # The last boundary before the cut, once the tail is past the cut.
        self._before_cut: BoundaryState | None = None
        # The span that is still growing, and the transaction that may be added to it.
        self._open = OpenSpan(start)
        self._transaction: list[Part] | None = []
        self._transaction_kept = 0
        self._error: Exception | None = None
        self._closed = False
        self._unlimited = False
        # The boundaries after DDL.
        self._changes: deque[BoundaryState] = deque()

    # --- the tail's side

    def append(self, events: list[Event]) -> None:
        """Add captured events of the transaction in progress."""
        self._append(sum(HEADER_LENGTH + len(event.body) for event in events), lambda: events)

    def append_run(self, run: Run) -> None:
        """Add the events of a run inside the transaction."""
        self._append(run.kept_bytes, lambda: _all(run.pack()))

    def boundary(
        self,
        boundary: BoundaryState,
        log_bytes: int,
        *,
        captured: bool,
        rows: int = 0,
        pieces: Sequence[Piece] = (),
    ) -> None:
        """End the transaction in progress at `boundary`, `log_bytes` after the last boundary."""
        with self._changed:
            is_change = self._is_change(boundary.history)
            crosses = self._crosses_cut(boundary.position)
            if crosses:
                self._before_cut = self._tip
            if is_change or crosses or (captured and self._is_large(log_bytes)):
                self._close_span()
            self._tip = boundary
            if is_change:
                self._changes.append(boundary)
            if captured:
                self._take_transaction(boundary, rows, pieces)
                self._changed.notify_all()
            self._open.log_bytes += log_bytes
            if captured and self._open.log_bytes >= self._granularity:
                self._close_span()
            elif is_change and not captured:
                self._open.skip_to(boundary)
            self._transaction, self._transaction_kept = [], 0

    def transactions(
        self, run: Run, log_bytes: int, boundary_at: Callable[[int], BoundaryState]
    ) -> None:
        """Add a run of whole transactions, like `append` and `boundary` for each of them.

        Parameters
        ----------
        log_bytes : from the last boundary to the beginning of the run.
        boundary_at : returns the boundary at a position of the run's file.
        """
        ends, kept = run.ends, run.kept_until
        # Received in one piece (see protocol/receive_buffer.py): each fits into a task.
        assert run.kept_bytes <= MAX_INLINE_BYTES_PER_TASK
        with self._changed:
            at, last_end = 0, run.start - log_bytes
            after_run = boundary_at(ends[-1])
            while at < len(ends):
                stop = self._uncut(run, at, last_end, after_run)
                if stop > at:
                    self._extend(run, at, stop, ends[stop - 1] - last_end, boundary_at)
                else:
                    stop = at + 1
                    size = kept[stop] - kept[at]
                    if size:
                        self._append(size, partial(_packed, run, at, stop))
                    self.boundary(boundary_at(ends[at]), ends[at] - last_end, captured=size > 0)
                last_end = ends[stop - 1]
                at = stop
            if kept[-1]:
                self._changed.notify_all()

    def advance(self, boundary: BoundaryState) -> None:
        """Respell the last boundary: as the next file's beginning."""
        with self._changed:
            # A caller that knows the old spelling must still find it.
            if self._crosses_cut(boundary.position):
                self._before_cut = self._tip
                self._close_span()
            elif self._tip.position > self._handed_out:
                self._open.respell(self._tip, boundary)
                if self._spans and self._spans[-1].end.position == self._tip.position:
                    self._spans.replace_last(replace(self._spans[-1], end=boundary))
            if self._changes and self._changes[-1].position == self._tip.position:
                self._changes[-1] = boundary
            self._tip = boundary
            self._changed.notify_all()

    def forget_transaction(self) -> None:
        """Drop the transaction in progress: the connection broke, and it will be sent again."""
        self.take_transaction()

    def take_transaction(self) -> list[Part] | None:
        """Remove the captured events of the transaction in progress; None if not all are kept."""
        with self._changed:
            parts = self._transaction
            self._transaction, self._transaction_kept = [], 0
            return parts

    @property
    def transaction_parts(self) -> int:
        """The number of parts that are kept of the transaction in progress."""
        return len(self._transaction or ())

    def drop_rows_since(self, mark: int) -> None:
        """Drop the rows of the transaction in progress after its first `mark` parts."""
        with self._changed:
            if self._transaction is not None:
                self._transaction = without_rows_since(self._transaction, mark)
                self._transaction_kept = sum(map(size_of, self._transaction))

    def append_again(self, parts: Sequence[Part] | None) -> None:
        """Add events that were taken before; None if the executor is to fetch them."""
        with self._changed:
            if parts is None:
                self._transaction = None
            else:
                self._append(sum(map(size_of, parts)), lambda: parts)

    def wait_for_room(self) -> None:
        """Block while the index is too far ahead of Spark."""
        with self._changed:
            if self._unlimited:
                self._coarsen()
            # Spans that Spark holds can't be joined: without limits the index then grows instead.
            self._changed.wait_for(lambda: not self.is_full or self._closed or self._unlimited)

    def set_error(self, error: Exception) -> None:
        """Record the error with which the tail ended; no more boundaries follow."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def close(self) -> None:
        """Release a waiting tail."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    # --- Spark's side

    def force_boundary_at(self, position: Position) -> None:
        """Let no span cross `position`, the target of a run."""
        with self._changed:
            self._cut = position

    def take_all(self) -> None:
        """Never wait again, for a batch without limits: coarsen the index instead."""
        with self._changed:
            self._unlimited = True
            self._coarsen()
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether the tail waits for Spark to release spans."""
        return len(self._spans) >= self._most_spans

    @property
    def tip(self) -> BoundaryState:
        """The last boundary that the tail has read, after captured changes or not."""
        return self._tip

    @property
    def error(self) -> Exception | None:
        return self._error

    def last_boundary_within(
        self,
        start: Position,
        most_bytes: int | None,
        until: Position | None = None,
        most_rows: int | None = None,
    ) -> BoundaryState | None:
        """Return the last boundary after `start` that is worth a batch; None if there is none.

        At most `most_bytes` of binlog and `most_rows` rows after `start`, but at least one span;
        not after `until`. The offset limits the versions of tables: with more DDL, the batch ends
        at the boundary after it, with or without rows before it.
        """
        with self._changed:
            self._close_span()
            best: BoundaryState | None = None
            changes = [boundary for boundary in self._changes if boundary.position > start]
            last = changes[_MAX_DDL_STATEMENTS - 1] if len(changes) > _MAX_DDL_STATEMENTS else None
            if last is not None and until is not None and last.position > until:
                last = None
            spans = self._spans
            begin = spans.index_after(start)
            end = len(spans) if until is None else spans.index_after(until)
            if last is not None and spans.index_after(last.position) < end:
                # Spans follow that DDL: the batch ends at the DDL if its limits allow so much.
                end = spans.index_after(last.position)
                if max(spans.within(begin, most_bytes, most_rows), begin + 1) >= end:
                    best = last
            if best is None and begin < end:
                # At least one span.
                end = min(end, max(spans.within(begin, most_bytes, most_rows), begin + 1))
                best = spans[end - 1].end
            if best is None:
                best = last
            if best is not None:
                self._handed_out = best.position
            return best

    def has_changes(self, start: Position, end: Position) -> bool:
        """Whether the schemas change after `start`, up to `end`."""
        with self._changed:
            return any(start < boundary.position <= end for boundary in self._changes)

    def advance_to_tip(self, until: Position | None = None) -> BoundaryState | None:
        """Return the last boundary read; None if captured changes are before it.

        Also None if it is after `until`: the tail continues while Spark's calls read it.
        """
        with self._changed:
            if self._open.end is not None or (
                self._spans and self._spans[-1].end.position > self._handed_out
            ):
                return None
            tip: BoundaryState | None = self._tip
            if until is not None and self._tip.position > until:
                tip = self._before_cut
            if tip is None or tip.position < self._handed_out:
                return None
            self._handed_out = tip.position
            self._open.skip_to(tip)
            return tip

    def exceeds(self, start: Position, most_bytes: int | None, most_rows: int | None) -> bool:
        """Whether more follows `start` than one batch may have, or than the index can hold."""
        with self._changed:
            if self.is_full:
                return not self._unlimited
            begin = self._spans.index_after(start)
            return self._spans.within(begin, most_bytes, most_rows) < len(self._spans)

    def spans(self, start: Position, end: Position) -> list[Span] | None:
        """Return the spans between two boundaries; None if the buffer does not have them."""
        with self._changed:
            if start < self._base or end > self._tip.position:
                return None
            if self._open.end is not None and end > self._open.start.position:
                return None
            spans = self._spans
            begin, stop = spans.index_after(start), spans.index_after(end)
            for at, place in ((begin, start), (stop, end)):
                if at < len(spans) and spans[at].start.position < place:
                    return None  # inside a span
            return spans.slice(begin, stop)

    def finished(self) -> list[Span]:
        """Return all spans, when the tail has finished."""
        with self._changed:
            self._close_span()
            return list(self._spans)

    @property
    def released_upto(self) -> Position:
        """The position up to which Spark has released everything."""
        return self._base

    def release(self, upto: Position) -> None:
        """Release everything up to `upto`: Spark will not ask for it again."""
        with self._changed:
            self._spans.release(self._spans.index_after(upto))
            while self._changes and self._changes[0].position <= upto:
                self._changes.popleft()
            self._base = max(self._base, upto)
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Block until `ready`, an error or the timeout; returns False on timeout."""
        deadline = None if timeout is None else monotonic() + timeout
        with self._changed:
            while not ready() and self._error is None:
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return False
                # Boundaries after uncaptured traffic do not notify: poll occasionally.
                self._changed.wait(0.02 if left is None else min(left, 0.02))
            return True

    # --- inside, under the lock

    def _append(self, size: int, events: Callable[[], Events]) -> None:
        """Add captured bytes of the transaction in progress; keep the events if they fit."""
        with self._changed:
            self._transaction_kept += size
            if self._transaction is None:
                return
            if self._transaction_kept > min(self._room, MAX_INLINE_BYTES_PER_TASK):
                # They do not fit, or are too large for a task: the executor fetches them.
                self._transaction = None
            else:
                self._transaction.extend(events())

    @property
    def _room(self) -> int:
        """Return the capacity for events of transactions that are not in the open span yet."""
        return self._capacity - self._spans.kept_bytes - self._open.kept_bytes

    def _uncut(self, run: Run, at: int, last_end: int, after_run: BoundaryState) -> int:
        """Return the index up to which a run's transactions, from `at` on, only extend the span.

        They do not cross the cut, and all fit; the last one may complete the span. `after_run` is
        the boundary after the run, in which tables do not change.
        """
        ends, kept = run.ends, run.kept_until
        here = after_run.position._replace(pos=ends[at])
        if self._is_change(after_run.history) or self._crosses_cut(here):
            return at
        stop, cut = len(ends), self._cut
        if cut is not None and cut.number == here.number and here <= cut:
            stop = bisect_right(ends, cut.pos, at)
        if self._open.is_kept:
            room = min(self._room, MAX_INLINE_BYTES_PER_TASK - self._open.kept_bytes)
            stop = min(stop, bisect_right(kept, kept[at] + room, at + 1) - 1)
        # The first captured transaction with which the span is long enough.
        long_enough = bisect_left(ends, self._granularity - self._open.log_bytes + last_end, at)
        if long_enough < stop:
            # The transactions before it are shorter than a span in total, so none of them is large.
            last = bisect_right(kept, kept[long_enough], long_enough + 1)
            if last < len(kept):
                before = ends[last - 2] if last - 1 > at else last_end
                if self._is_large(ends[last - 1] - before):
                    last -= 1
            stop = min(stop, last)
        return stop

    def _extend(
        self,
        run: Run,
        at: int,
        stop: int,
        log_bytes: int,
        boundary_at: Callable[[int], BoundaryState],
    ) -> None:
        """Add transactions of a run that only extend the open span, as `boundary` would."""
        ends, kept = run.ends, run.kept_until
        self._tip = boundary_at(ends[stop - 1])
        if kept[stop] == kept[at]:
            self._open.log_bytes += log_bytes
            return
        last_captured = bisect_left(kept, kept[stop], at + 1) - 1
        events = _packed(run, at, stop) if self._open.is_kept else None
        size = sum(len(each.block.data) for each in events or ())
        self._open.add(boundary_at(ends[last_captured]), events, size)
        self._open.log_bytes += log_bytes
        if self._open.log_bytes >= self._granularity and last_captured == stop - 1:
            self._close_span()

    def _is_large(self, log_bytes: int) -> bool:
        """Whether a transaction starts a span of its own.

        Otherwise small transactions before it would extend a batch beyond its limit.
        """
        return log_bytes >= self._granularity

    def _is_change(self, history: SchemaHistory) -> bool:
        known = self._tip.history
        return history is not known and history != known

    def _crosses_cut(self, position: Position) -> bool:
        return self._cut is not None and self._tip.position <= self._cut < position

    def _take_transaction(
        self, boundary: BoundaryState, rows: int, pieces: Sequence[Piece]
    ) -> None:
        if self._open.kept_bytes + self._transaction_kept > MAX_INLINE_BYTES_PER_TASK:
            # Spans that fit into a task must not be mixed with others.
            self._close_span()
        self._open.add(boundary, self._transaction, self._transaction_kept, rows, pieces)

    def _close_span(self) -> None:
        if self._open.end is not None:
            self._spans.append(self._open.close())

    def _coarsen(self) -> None:
        """While there are too many spans, join pairs that Spark does not have, without events."""
        while self.is_full and self._spans.coarsen(self._spans.index_after(self._handed_out)):
            pass


def _all(packed: PackedEvents | None) -> list[PackedEvents]:
    return [] if packed is None else [packed]


def _packed(run: Run, first: int, stop: int) -> list[PackedEvents]:
    """Return the captured events of some transactions of a run."""
    return _all(run.pack_transactions(first, stop))
