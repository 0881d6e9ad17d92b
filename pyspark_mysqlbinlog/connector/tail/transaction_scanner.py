"""Scan of a binlog for transaction boundaries, into a buffer.

The tail scans a server's binlog this way. A batch read scans its files, to split them between
transactions. The caller determines the source of the events, and the end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Protocol

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.gtids.tracker import GtidTracker
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event, at_beginning
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Piece
from pyspark_mysqlbinlog.connector.tail.lag import Lag
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import PreparedTransactions
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import (
    Outcome,
    Prepared,
    RolledBack,
    SavepointSet,
    XaRolledBack,
)
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.decoder.payloads.row_counter import RowCounter
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    HEADER_LENGTH,
    ROWS_EVENT_TYPES,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.messages import Rotate

__all__ = ["FollowedSchemas", "TransactionScanner"]

_ROTATE = int(EventType.ROTATE_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
# Binlog bytes between two split points of a long transaction, and how many of them to keep.
_PIECE_BYTES = 4 << 20
_MAX_PIECES = 512
_MAX_PRELUDE_BYTES = 64 << 10
_NEVER = (1 << 63) - 1


class FollowedSchemas(Protocol):
    """The schemas of the tables, updated by the events that may change them."""

    @property
    def history(self) -> SchemaHistory: ...

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        """Apply DDL or TRUNCATE that ends at a position."""
        ...

    def look_at(self, event: Event, boundary: Position) -> None:
        """Check a captured table's TABLE_MAP, in the transaction after a boundary."""
        ...


class TransactionScanner:
    """Takes a log's events in order, or runs of them.

    Parameters
    ----------
    filtering : determines what is captured; only this object feeds it.
    position : returns the position of a byte in one of the binlog files.
    schemas : None if they are not followed; then the start's history is valid throughout.
    counter : counts the captured rows of a transaction for the buffer.
    last_start : the last position in a file from which it can be read again.
    lag : records how far the scan is.
    head : of the start's file; None without fingerprints.

    Attributes
    ----------
    boundary : the last boundary.
    scanned : the end of the last event read: at or after the boundary.
    """

    def __init__(
        self,
        start: BoundaryState,
        filtering: EventFilter,
        buffer: LogBuffer,
        *,
        position: Callable[[str, int], Position] = Position.of,
        schemas: FollowedSchemas | None = None,
        counter: RowCounter | None = None,
        last_start: int,
        lag: Lag | None = None,
        head: FileHead | None = None,
    ) -> None:
        self.boundary = start
        self.scanned = start.position
        self._filtering = filtering
        self._buffer = buffer
        self._position = position
        self._schemas = schemas
        self._counter = counter
        self._last_start = last_start
        self._lag = lag
        self._head = head
        self._gtids = GtidTracker(start.executed)
        self._rows: int
        self._prepared = PreparedTransactions(start.pending_xa, position)
        # A boundary at which no dump can start, until the next file respells it; and the captured
        # rows up to there, None without captured events. The next transactions are added to it.
        self._late: BoundaryState | None = None
        self._late_rows: int | None = None
        # The last event of the transaction outside of a payload.
        self._outer: Event | None = None
        self._begin_transaction()

    @property
    def history(self) -> SchemaHistory:
        """The history of the tables after the last event."""
        return self.boundary.history if self._schemas is None else self._schemas.history

    @property
    def executed(self) -> GtidSet | None:
        """The GTIDs of all transactions up to the last one; None if unknown."""
        return self._gtids.executed

    def first_needed(self, start: Position) -> Position:
        """Return the first position whose rows a reading from `start` on may return."""
        return self._prepared.first_needed(start)

    def piece_due(self, offset: int | None = None) -> int:
        """The position after which a long transaction gets its next split point.

        offset : in a payload, how far it is scanned; then the result is an offset, too.
        """
        if not self._may_split:
            return _NEVER
        last = self._pieces[-1].log_bytes if self._pieces else 0
        here = self.scanned.pos if offset is None else offset
        return here + self._piece_bytes - (self._log_bytes - last)

    @property
    def _may_split(self) -> bool:
        """Whether the transaction in progress may be read by several tasks."""
        return not (self._has_rollback or self._filtering.has_xa)

    def take_run(self, run: Run) -> None:
        """Take events that the compiled scan has passed."""
        end = self._position(run.file, run.end)
        if run.ends:
            number, history, gtids = end.number, self.history, self._gtids
            pending_xa = self._filtering.pending_xa

            # Cached, because most runs have captured rows up to their end, which is requested
            # repeatedly.
            @cache
            def boundary_at(pos: int) -> BoundaryState:
                known = after_event(self._head, run, pos)
                executed = gtids.at(run, bisect_left(run.ends, pos))
                position = Position(number, pos, run.file)
                return BoundaryState(position, history, pending_xa, known, executed)

            self.boundary = boundary_at(run.end)
            self._buffer.transactions(run, self._log_bytes, boundary_at)
            gtids.executed = self.boundary.executed
            self._report_captured(run)
            if run.kept_bytes:
                self._buffer.wait_for_room()
            self._begin_transaction()
        else:
            self._log_bytes += run.log_bytes
            if run.kept_bytes:
                self._kept_any = True
                self._buffer.append_run(run)
            if run.rows_end:
                self._maybe_piece(end, run)
        self.scanned = end
        if self._lag is not None:
            self._lag.on_scanned(end, run.time, between=bool(run.ends))

    def take(self, event: Event) -> None:
        """Take the next event, before the filter has seen it."""
        filtering = self._filtering
        kept = filtering.feed(event)
        self._gtids.follow(event)
        end = self._position(event.file, event.end)
        self._log_bytes += _log_bytes(event)
        if self._schemas is not None and filtering.statement is not None:
            self._schemas.follow(event, filtering.statement, end)
        if kept:
            if self._schemas is not None and event.type == _TABLE_MAP:
                self._schemas.look_at(event, self.boundary.position)
            self._kept_any = True
            self._buffer.append(kept)
            if self._counter is not None:
                self._rows += sum(self._counter.rows(each) for each in kept)
        if filtering.outcome is not None:
            self._decide(filtering.outcome, end)
        if event.offset is None:
            self._outer = event
        if event.type in ROWS_EVENT_TYPES:
            self._maybe_piece(end, event)
        if filtering.ended:
            if self._lag is not None and self._kept_any:
                self._lag.on_captured(end, event.timestamp)
            self._gtids.end_transaction()
            known, executed = after_event(self._head, event), self._gtids.executed
            self._boundary(BoundaryState(end, self.history, filtering.pending_xa, known, executed))
        elif event.type == _ROTATE:
            if self._lag is not None:
                self._lag.file_ended(end.number, end.pos)
            # With fingerprints, the next file's beginning has one once its head is read.
            if self._head is None:
                self._next_file(end.next_file(Rotate.parse(event.body).file))
        elif event.type == _FORMAT_DESCRIPTION and not event.flags & ARTIFICIAL_FLAG:
            if self._head is not None:
                self._head = FileHead(event.timestamp, event.server_id)
            # After a crash there is no ROTATE: the next file just begins.
            self._next_file(end._replace(pos=FIRST_EVENT))
        self.scanned = end
        if self._lag is not None:
            self._lag.on_scanned(end, event.timestamp, between=filtering.between_transactions)

    def _decide(self, outcome: Outcome, end: Position) -> None:
        """Keep the events that count, of the transaction in progress or of a prepared one."""
        if isinstance(outcome, SavepointSet):
            self._marks[outcome.name] = self._buffer.transaction_parts
        elif isinstance(outcome, RolledBack):
            # A range that began inside the transaction would not know which events to leave out.
            self._pieces.clear()
            self._has_rollback = True
            if outcome.to is None:
                self._buffer.take_transaction()
                self._keep_late()
            else:
                self._buffer.drop_rows_since(self._marks[outcome.to])
        elif isinstance(outcome, Prepared):
            parts, rows = self._buffer.take_transaction(), self._rows
            if self._late_rows is not None:
                # The parts of both transactions: an executor will fetch this one.
                parts, rows = None, rows - self._late_rows
            self._prepared.add(outcome.xa, parts, rows)
            self._keep_late()
        elif isinstance(outcome, XaRolledBack):
            self._prepared.decide(outcome.xid, end)
        else:
            xa = outcome.xa
            parts, self._rows = self._prepared.decide(xa.xid, end)
            self._buffer.append_again(parts and list(outcome.placed(parts)))
            self._log_bytes += xa.end - xa.begin
            self._kept_any = True

    def _keep_late(self) -> None:
        """Continue with what the transactions before this one, up to the late boundary, have."""
        self._kept_any, self._rows = self._late_rows is not None, self._late_rows or 0
        if self._late_rows is not None:
            # An executor is to fetch them.
            self._buffer.append_again(None)

    def _report_captured(self, run: Run) -> None:
        """Report the first and last captured transaction of a run, which is a short part."""
        kept = run.kept_until
        if self._lag is None or not kept[-1]:
            return
        first = bisect_right(kept, 0) - 1
        last = bisect_left(kept, kept[-1]) - 1
        for transaction in {first: None, last: None}:
            end = self._position(run.file, run.ends[transaction])
            self._lag.on_captured(end, run.time_of(transaction))

    def _boundary(self, boundary: BoundaryState) -> None:
        # Only the last transaction of a file can exceed the maximum start of a dump. A boundary
        # after it is respelled as the next file's beginning, once there is one.
        if boundary.position.pos > self._last_start:
            self._late = boundary
            self._late_rows = self._rows if self._kept_any else None
            return
        self._take_boundary(boundary)

    def end_sequence(self) -> None:
        """End the sequence: no more files follow whose positions are comparable."""
        if self._late is not None:
            # No dump need start there: the next events begin with the next sequence.
            self._take_boundary(self._late)

    def _take_boundary(self, boundary: BoundaryState) -> None:
        self.boundary, self._late = boundary, None
        self._buffer.boundary(
            boundary, self._log_bytes, captured=self._kept_any, rows=self._rows, pieces=self._pieces
        )
        if self._kept_any:
            self._buffer.wait_for_room()
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        self._late, self._late_rows = None, None
        self._outer = None
        self._log_bytes, self._rows, self._kept_any = 0, 0, False
        self._pieces: list[Piece] = []
        self._piece_bytes = _PIECE_BYTES
        self._has_rollback = False
        self._marks: dict[str, int] = {}

    def _maybe_piece(self, end: Position, found: Event | Run) -> None:
        """Split a long transaction after some of its rows events, for parallel reads."""
        last = self._pieces[-1].log_bytes if self._pieces else 0
        if self._log_bytes - last < self._piece_bytes or end.pos > self._last_start:
            return
        if not self._may_split:
            return
        events = self._filtering.prelude()
        if sum(HEADER_LENGTH + len(event.body) for event in events) > _MAX_PRELUDE_BYTES:
            return  # the statement has a huge text: do not pack it at each rows event
        prelude = tuple(pack_events(events))
        offset = _offset_after(found)
        pending_xa, before = self._filtering.pending_xa, self._outer if offset else found
        known = None if before is None else after_event(self._head, before)
        self._pieces.append(Piece(end, self._log_bytes, prelude, pending_xa, known, offset))
        if len(self._pieces) > _MAX_PIECES:
            del self._pieces[::2]
            self._piece_bytes *= 2

    def _next_file(self, begin: Position) -> None:
        """Respell the boundary at the end of a file as the beginning of the next."""
        known = at_beginning(self._head)
        if self._late is not None:
            self._boundary(replace(self._late, position=begin, fingerprint=known))
        elif begin != self.boundary.position:
            self.boundary = replace(self.boundary, position=begin, fingerprint=known)
            self._buffer.advance(self.boundary)


def _log_bytes(event: Event) -> int:
    """Return the bytes of an event in the binlog; inside a payload, those of its stream.

    So limits and splits count the bytes that are decoded: a payload may be a hundredth of its
    stream. Small payloads, which the compiled scan passes whole, count with their bytes in the
    binlog.
    """
    if event.offset is None:
        return event.end - event.start
    return HEADER_LENGTH + len(event.body)


def _offset_after(found: Event | Run) -> int:
    """Return the offset in a payload after an event or run in it; 0 outside, and at its end."""
    if found.offset is None or found.start != found.end:
        return 0
    if isinstance(found, Run):
        return found.offset
    return found.offset + HEADER_LENGTH + len(found.body)
