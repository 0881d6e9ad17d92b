"""A walk through a log: where its transactions end, into a buffer of boundaries.

The tail walks a server's log so, and a batch read its files, to cut them between transactions. What
the events are fetched from, and how far, is up to whoever walks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.fingerprints import at_beginning, behind
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer, Mark, Piece
from pyspark_mysqlbinlog.connector.tail.lag import Lag
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.decoder.payloads.row_counter import RowCounter
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, ROWS_EVENT_TYPES, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate

__all__ = ["FollowedSchemas", "TransactionScanner"]

_ROTATE = int(EventType.ROTATE_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
# Log bytes between two places where a long transaction may be cut, and how many of them to keep.
_PIECE_BYTES = 4 << 20
_MOST_PIECES = 512
_LARGEST_PRELUDE = 64 << 10


class FollowedSchemas(Protocol):
    """What is known of the tables, and what must see the events that may change it."""

    @property
    def history(self) -> SchemaHistory: ...

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        """DDL or TRUNCATE, which ends at a position."""
        ...

    def look_at(self, event: Event, boundary: Position) -> None:
        """A wanted table's TABLE_MAP, in the transaction behind a boundary."""
        ...


class TransactionScanner:
    """Takes a log's events in order, or runs of them.

    Parameters
    ----------
    filtering : decides what is wanted; nobody else feeds it.
    position : gives the place of a byte in one of the log's files.
    schemas : None where nobody follows them; then the start's history holds all along.
    counter : tells the buffer how many wanted rows a transaction has.
    last_start : the furthest position in a file from which it can be read again.
    lag : is told how far the walk is.
    head : of the start's file; None where nobody needs fingerprints.

    Attributes
    ----------
    mark : the last boundary.
    scanned : the end of the last event that was walked: at or behind the boundary.
    """

    def __init__(
        self,
        start: Mark,
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
        self.mark = start
        self.scanned = start.position
        self._filtering = filtering
        self._buffer = buffer
        self._position = position
        self._schemas = schemas
        self._counter = counter
        self._last_start = last_start
        self._lag = lag
        self._head = head
        # A boundary that nobody can start from, until the next file gives it another spelling.
        self._late: Mark | None = None
        self._begin_transaction()

    @property
    def history(self) -> SchemaHistory:
        """What is known of the tables behind the last event."""
        return self.mark.history if self._schemas is None else self._schemas.history

    def piece_due(self) -> int:
        """The position behind which a long transaction gets its next place to be cut."""
        last = self._pieces[-1].log_bytes if self._pieces else 0
        return self.scanned.pos + self._piece_bytes - (self._log_bytes - last)

    def take_run(self, run: Run) -> None:
        """Events that the compiled scan has passed."""
        end = self._position(run.file, run.end)
        if run.ends:
            number, history = end.number, self.history
            pending_xa = self._filtering.pending_xa

            def mark_at(pos: int) -> Mark:
                known = behind(self._head, run, pos)
                return Mark(Position(number, pos, run.file), history, pending_xa, known)

            self.mark = mark_at(run.end)
            self._buffer.transactions(run, self._log_bytes, mark_at)
            self._tell_wanted(run)
            if run.kept_bytes:
                self._buffer.wait_for_room()
            self._begin_transaction()
        else:
            self._log_bytes += run.end - run.start
            if run.kept_bytes:
                self._kept_any = True
                self._buffer.append_run(run)
            if run.rows_end:
                self._maybe_piece(end, run)
        self.scanned = end
        if self._lag is not None:
            self._lag.walked(end, run.time, between=bool(run.ends))

    def take(self, event: Event) -> None:
        """The next event, which the filter was not fed yet."""
        filtering = self._filtering
        kept = filtering.feed(event)
        end = self._position(event.file, event.end)
        self._log_bytes += event.end - event.start
        if self._schemas is not None and filtering.statement is not None:
            self._schemas.follow(event, filtering.statement, end)
        if kept:
            if self._schemas is not None and event.type == _TABLE_MAP:
                self._schemas.look_at(event, self.mark.position)
            self._kept_any = True
            self._buffer.append(kept)
            if self._counter is not None:
                self._rows += sum(self._counter.rows(each) for each in kept)
        if event.type in ROWS_EVENT_TYPES:
            self._maybe_piece(end, event)
        if filtering.ended:
            if self._lag is not None and self._kept_any:
                self._lag.wanted(end, event.timestamp)
            known = behind(self._head, event)
            self._boundary(Mark(end, self.history, filtering.pending_xa, known))
        elif event.type == _ROTATE:
            if self._lag is not None:
                self._lag.file_ended(end.number, end.pos)
            # With fingerprints, the next file's beginning has one when its head has come.
            if self._head is None:
                self._next_file(end.next_file(Rotate.parse(event.body).file))
        elif event.type == _FORMAT_DESCRIPTION:
            if self._head is not None:
                self._head = FileHead(event.timestamp, event.server_id)
            # After a crash there is no ROTATE: the next file just begins.
            self._next_file(end._replace(pos=FIRST_EVENT))
        self.scanned = end
        if self._lag is not None:
            self._lag.walked(end, event.timestamp, between=filtering.between_transactions)

    def _tell_wanted(self, run: Run) -> None:
        """The first and the last of a run's wanted transactions: it is a short stretch of log."""
        kept = run.kept_until
        if self._lag is None or not kept[-1]:
            return
        first = bisect_right(kept, 0) - 1
        last = bisect_left(kept, kept[-1]) - 1
        for transaction in {first: None, last: None}:
            end = self._position(run.file, run.ends[transaction])
            self._lag.wanted(end, run.time_of(transaction))

    def _boundary(self, mark: Mark) -> None:
        # A file outgrows what a dump may start at in its last transaction only: a boundary behind
        # that is told as the next file's beginning, as soon as there is one.
        if mark.position.pos > self._last_start:
            self._late = mark
            return
        self._take_boundary(mark)

    def end_sequence(self) -> None:
        """No more files come whose positions can be compared with those so far."""
        if self._late is not None:
            # No dump need start there: what comes next begins with the next sequence.
            self._take_boundary(self._late)

    def _take_boundary(self, mark: Mark) -> None:
        self.mark, self._late = mark, None
        self._buffer.boundary(
            mark, self._log_bytes, wanted=self._kept_any, rows=self._rows, pieces=self._pieces
        )
        if self._kept_any:
            self._buffer.wait_for_room()
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        self._late = None
        self._log_bytes, self._rows, self._kept_any = 0, 0, False
        self._pieces: list[Piece] = []
        self._piece_bytes = _PIECE_BYTES

    def _maybe_piece(self, end: Position, found: Event | Run) -> None:
        """A long transaction is cut behind some of its rows events, so that many can read it."""
        last = self._pieces[-1].log_bytes if self._pieces else 0
        if self._log_bytes - last < self._piece_bytes or end.pos > self._last_start:
            return
        events = self._filtering.prelude()
        if sum(HEADER_LENGTH + len(event.body) for event in events) > _LARGEST_PRELUDE:
            return  # a statement whose own text is huge: not even packed, at each rows event
        prelude = tuple(pack_events(events))
        pending_xa, known = self._filtering.pending_xa, behind(self._head, found)
        self._pieces.append(Piece(end, self._log_bytes, prelude, pending_xa, known))
        if len(self._pieces) > _MOST_PIECES:
            del self._pieces[::2]
            self._piece_bytes *= 2

    def _next_file(self, begin: Position) -> None:
        """The boundary at the end of a file is spelled as the beginning of the next."""
        known = at_beginning(self._head)
        if self._late is not None:
            self._boundary(replace(self._late, position=begin, fingerprint=known))
        elif begin != self.mark.position:
            self.mark = replace(self.mark, position=begin, fingerprint=known)
            self._buffer.moved(self.mark)
