"""The end of a range in a binlog that is read from the range's start."""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import check_fingerprint
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT, Log
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.errors import InvalidPositionError
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["RangeBounds", "check_between"]

_ROTATE = int(EventType.ROTATE_EVENT)


class RangeBounds:
    """Follows reading from `start` to `end`, whatever the files are named.

    Parameters
    ----------
    is_boundary : the end is between two events; otherwise it is the size of the files when they
        were listed, and an event that crosses it does not count.
    known : the fingerprint of `end`: BinlogReplacedError if a different event ends there, one
        crosses it, or there is none.
    offset : if the end is inside a payload, which then begins at `end`: the offset in its stream.

    Attributes
    ----------
    reached : everything before `end` was read.
    """

    def __init__(
        self,
        log: Log,
        start: Position,
        end: Position,
        known: PositionFingerprint | None = None,
        *,
        is_boundary: bool = True,
        offset: int = 0,
    ) -> None:
        if start.order > end.order:
            # Reading nothing would lose changes without an error.
            raise InvalidPositionError(
                f"the range ends at {end}, before its start, {start}",
                file=end.file,
                position=end.pos,
            )
        self._log = log
        self._end = end
        self._known = known
        self._is_boundary = is_boundary
        self._offset = offset
        # Everything before this position was read.
        self._last = start
        self.reached = False

    @property
    def _place(self) -> tuple[str, int]:
        return self._end.file, self._end.pos

    def limit(self, _file: str) -> int:
        """Return the last position in the next file that can belong to the range."""
        # The name may be one that a ROTATE set; the last position read has the file's number.
        return self._end.pos if self._last.number >= self._end.number else NO_LIMIT

    def admits(self, event: Event) -> bool:
        """Whether the next event belongs to the range; InvalidPositionError if only a part does."""
        end, end_order = self._end, self._end.order
        here = self._log.position(event.file, event.start)
        if here.order >= end_order:
            # Only the events of a payload at the end may still belong to it.
            if here.order > end_order or (event.offset or 0) >= self._offset:
                self.reached = True
                return False
            if event.checksum is not None:
                raise log_replaced(
                    f"the TRANSACTION_PAYLOAD there ends before its offset {self._offset}",
                    *self._place,
                )
            self._last = here
            return True
        last = Position(here.number, event.end, here.file)
        order = last.order
        if order > end_order:
            if not self._is_boundary:
                self.reached = True
                return False
            if self._known is not None:
                # The fingerprint shows that the end was a boundary.
                raise log_replaced(f"an event begins at {here} and ends after it", *self._place)
            raise InvalidPositionError(
                f"the end is inside an event that begins at {here}; set a position that SHOW"
                " BINLOG EVENTS lists",
                file=end.file,
                position=end.pos,
            )
        if order == end_order:
            self._check_known(event)
        if event.type == _ROTATE and (order == end_order or end.number > here.number):
            last = here.next_file(Rotate.parse(event.body).file)
            order = last.order
        self._last = last
        self.reached = order > end_order or (order == end_order and not self._offset)
        return True

    def passed(self, run: Run) -> None:
        """Record a run that was read, up to a position before the limit."""
        self._last = self._log.position(run.file, run.end)
        order, end_order = self._last.order, self._end.order
        is_inside = run.offset is not None and run.start == run.end
        if order == end_order and not is_inside:
            self._check_known(run)
        at_end = (run.offset or 0) if is_inside else 0
        self.reached = order > end_order or (order == end_order and at_end >= self._offset)

    def _check_known(self, last: Event | Run) -> None:
        """Check the fingerprint of `last`, which ends at the range's end."""
        known = self._known
        if known is not None:
            head = FileHead(known.created, known.server_id)
            check_fingerprint(self._end, after_event(head, last), known)

    def check_reached(self) -> None:
        """Raise InvalidPositionError if the binlog has ended before the range."""
        if not self.reached and self._last.order < self._end.order:
            if self._known is not None:
                raise log_replaced(f"it ends at {self._last}, before it", *self._place)
            raise InvalidPositionError(
                f"the binlog ends at {self._last}, expected at least this position: the server"
                " lost the end of its binlog or was restored; start again with a new checkpoint",
                file=self._end.file,
                position=self._end.pos,
            )


def check_between(filtering: EventFilter, end: Position) -> None:
    """Raise InvalidPositionError if a range does not end between two transactions."""
    if filtering.in_transaction:
        raise InvalidPositionError(
            "the end is inside a transaction; set a position between two transactions",
            file=end.file,
            position=end.pos,
        )
