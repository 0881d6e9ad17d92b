"""Captured events of a range, in commit order, and without those that do not count.

Events that XA prepares count at the XA COMMIT, if there is one. Those that are rolled back, to a
savepoint or completely, do not count. So a transaction is held until that is decided, if it is XA
or has a savepoint. All others are passed on at their end, or when they are large.

What is held is bounded. A transaction that does not fit, or was prepared before the range, is read
again when it is known to count: over one more connection, or from its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyspark_mysqlbinlog.checkpoints.position import Position, base_name
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import Log
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.tail.prepared_xa import search_before_range
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import (
    Part,
    Prepared,
    PreparedXa,
    RolledBack,
    SavepointSet,
    XaCommitted,
    XaRolledBack,
    size_of,
    without_rows_since,
)
from pyspark_mysqlbinlog.decoder.filtering.unsafe_events import check_rolled_back_late
from pyspark_mysqlbinlog.errors import UnsupportedTransactionError
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents, unpack_events
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["RangeTransactions", "range_filter", "unpacked"]

# Captured bytes: of one transaction, and of all that are prepared.
_MAX_HELD_BYTES = 4 << 20
_MAX_PREPARED_BYTES = 16 << 20

# A position, and an offset in the payload that begins there.
_Place = tuple[int, int]
_BEGINNING = (0, 0)


@dataclass(slots=True)
class _Held:
    """Captured events of a transaction.

    Attributes
    ----------
    parts, size : what is held, and its bytes.
    marks : savepoint -> the number of parts before it, and its place.
    rolled_back : intervals whose statements do not count.
    passed_on : its first events were passed on.
    lost_from : from here on its events are not held; None: all are.
    first : the first event of the transaction.
    """

    parts: list[Part] = field(default_factory=list)
    size: int = 0
    marks: dict[str, tuple[int, _Place]] = field(default_factory=dict)
    rolled_back: list[tuple[_Place, _Place]] = field(default_factory=list)
    passed_on: bool = False
    lost_from: _Place | None = None
    first: Event | None = None

    def lose(self, since: _Place = _BEGINNING) -> None:
        self.lost_from = since
        self.parts, self.size = [], 0


class RangeTransactions:
    """Takes the captured events of a range, and returns those that count.

    Parameters
    ----------
    filtering : is fed by this object, and by the compiled scan.
    log : from which transactions are read again.
    new_filter : returns a filter with the same captures, for reading from a boundary on.
    all_counts : the range begins inside of a transaction; the planner has found that all of its
        events count.
    stopped : whether to abort the reading.
    """

    def __init__(
        self,
        filtering: EventFilter,
        log: Log,
        new_filter: Callable[[], EventFilter],
        *,
        all_counts: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._filtering = filtering
        # Without the interrupt: an interrupted reading would end without an error.
        self._log: Log = replace(log, interrupt=None) if isinstance(log, ReconnectingLog) else log
        self._new_filter = new_filter
        self._all_counts = all_counts
        self._stopped = stopped
        self._held = _Held()
        self._prepared: dict[str, _Held] = {}

    def prelude(self, event: Event) -> list[Event]:
        """Feed an event of the transaction in which the range begins; return what counts."""
        return self._filtering.feed(event)

    def take_run(self, packed: PackedEvents | None) -> Iterator[Part]:
        """Take a run of a part of a transaction; yield the captured events that count now."""
        return self._take([] if packed is None else [packed])

    def take(self, event: Event) -> Iterator[Part]:
        """Feed the next event; yield the captured events that count now."""
        filtering = self._filtering
        kept = filtering.feed(event)
        if self._held.first is None and filtering.in_transaction:
            self._held.first = event
        if filtering.outcome is None and not filtering.ended:
            yield from self._take(kept)
            return
        self._keep(kept)
        if filtering.outcome is not None:
            yield from self._decide(event)
        if filtering.ended:
            held = self._held
            yield from held.parts if held.lost_from is None else self._lost(held, (event.end, 0))
            self._held, self._all_counts = _Held(), False

    def _take(self, parts: Sequence[Part]) -> Iterator[Part]:
        self._keep(parts)
        if self._held.size > _MAX_HELD_BYTES:
            yield from self._overflow(self._held)

    def _keep(self, parts: Sequence[Part]) -> None:
        held = self._held
        if held.lost_from is None:
            held.parts += parts
            held.size += sum(map(size_of, parts))

    def rest(self, end: int, offset: int = 0) -> Iterator[Part]:
        """Yield what is held of a transaction that another range continues from `end` on.

        The planner has found that all of it counts.

        offset : if a payload begins at `end`: the offset in its stream.
        """
        held = self._held
        yield from held.parts
        if held.lost_from is not None:
            yield from self._lost(held, (end, offset))

    def _decide(self, event: Event) -> Iterator[Part]:
        outcome, held = self._filtering.outcome, self._held
        here = event.start, event.offset or 0
        if isinstance(outcome, SavepointSet):
            held.marks[outcome.name] = len(held.parts), here
        elif isinstance(outcome, RolledBack):
            self._roll_back(held, outcome.to, here)
        elif isinstance(outcome, Prepared):
            self._prepare(outcome.xa)
        elif isinstance(outcome, XaRolledBack):
            self._prepared.pop(outcome.xid, None)
        elif isinstance(outcome, XaCommitted):
            known = self._prepared.pop(outcome.xa.xid, None)
            if known is not None and known.lost_from is None:
                yield from outcome.placed(known.parts)
            else:
                yield from outcome.placed(self._read_again(outcome.xa, known, event))

    def _roll_back(self, held: _Held, savepoint: str | None, here: _Place) -> None:
        if self._all_counts or (savepoint is None and held.passed_on):
            how = "ends in ROLLBACK" if savepoint is None else "is rolled back to a savepoint"
            check_rolled_back_late(_MAX_HELD_BYTES, how)
        if savepoint is None:
            self._held = _Held()
            return
        mark, place = held.marks[savepoint]
        held.rolled_back.append((place, here))
        if held.lost_from is None:
            held.parts = without_rows_since(held.parts, mark)

    def _prepare(self, xa: PreparedXa) -> None:
        self._prepared[xa.xid] = self._held
        self._held = _Held()
        prepared = self._prepared.values()
        for each in prepared:
            if sum(one.size for one in prepared) <= _MAX_PREPARED_BYTES:
                break
            each.lose()

    def _overflow(self, held: _Held) -> Iterator[Part]:
        if self._all_counts or not self._filtering.is_held:
            yield from held.parts
            held.passed_on, held.parts, held.size = True, [], 0
        elif self._filtering.has_xa:
            held.lose()
        else:
            mark, place = min(held.marks.values(), key=lambda each: each[1])
            yield from held.parts[:mark]
            held.passed_on = True
            held.lose(place)

    def _read_again(self, xa: PreparedXa, known: _Held | None, commit: Event) -> Iterator[Part]:
        if isinstance(self._log, ReconnectingLog) and base_name(xa.file) != base_name(commit.file):
            # The schemas are known by positions, which do not order files of two names.
            raise UnsupportedTransactionError(
                f"XA COMMIT of {xa.xid}, which was prepared at {xa.file}:{xa.begin}, before the"
                " binlog got another base name; start again with a new checkpoint after this"
                " position, and compare the tables"
            ).with_location(commit.file, commit.start)
        if isinstance(self._log, FileLog):
            self._log = self._log.with_file(xa.file)
        begin = self._log.position(xa.file, xa.begin)
        if known is None:
            # The parts that were rolled back to a savepoint are unknown; usually all parts fit.
            filtering = self._new_filter()
            again = RangeTransactions(filtering, self._log, self._new_filter)
            for event in self._events(begin, (xa.end, 0)):
                for _ in again.take(event):
                    pass
            # The entry is only the xid if no captured rows of the transaction count.
            if filtering.pending_xa not in ((str(xa),), (xa.xid,)):
                raise log_replaced(f"{xa.xid} is not prepared there", xa.file, xa.begin)
            known = again._prepared.get(xa.xid, _Held())
            if known.lost_from is None:
                yield from known.parts
                return
        yield from self._captured(begin, (xa.end, 0), known)

    def _lost(self, held: _Held, end: _Place) -> Iterator[Part]:
        first = held.first
        assert first is not None
        yield from self._captured(self._log.position(first.file, first.start), end, held)

    def _captured(self, begin: Position, end: _Place, held: _Held) -> Iterator[Part]:
        """Yield the captured events of a transaction that count, from `lost_from` on."""
        assert held.lost_from is not None
        filtering = self._new_filter()
        for event in self._events(begin, end):
            kept: Sequence[Part] = filtering.feed(event)
            here = event.start, event.offset or 0
            if any(begin <= here < end for begin, end in held.rolled_back):
                kept = without_rows_since(kept, 0)
            if here >= held.lost_from:
                yield from kept

    def _events(self, begin: Position, end: _Place) -> Iterator[Event]:
        """Yield the events of a file between two places."""
        last = begin.pos
        for event in self._log.events(begin):
            here = event.start, event.offset or 0
            if event.file != begin.file or here >= end or self._stopped():
                break
            last = event.end
            yield event
        if last < end[0] and not self._stopped():
            raise log_replaced(f"it ends at {last}, before {end[0]}", begin.file, begin.pos)


def unpacked(parts: Iterable[Part]) -> Iterator[Event]:
    """Yield the events of parts."""
    for part in parts:
        if isinstance(part, Event):
            yield part
        else:
            yield from unpack_events((part.block,))


def range_filter(
    log: Log,
    partition: RangePartition,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[EventFilter, RangeTransactions]:
    """Return the filter of a range, and its transactions, which feed it."""

    def made(
        pending_xa: tuple[str, ...] = (),
        earlier_xa: Callable[[str, Event], PreparedXa | None] | None = None,
    ) -> EventFilter:
        return EventFilter(
            captures,
            pending_xa,
            partition.server_version,
            operations=operations,
            earlier_xa=earlier_xa,
        )

    search = search_before_range(log, partition.start, captures, stopped)
    filtering = made(partition.pending_xa, search)
    all_counts = bool(partition.prelude)
    return filtering, RangeTransactions(
        filtering, log, made, all_counts=all_counts, stopped=stopped
    )
