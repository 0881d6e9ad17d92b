"""A log, read ahead by runs where the compiled scan understands it, else event by event.

`EventReader` and `EventFilter` own the state of the log, and everything unusual is theirs. The
scan passes what comes in between, row changes of tables whose names were met before, without a
Python object per event; then it tells the two where they are. A run holds what it kept: either
whole transactions, or a part of the one in progress.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.decoder.events.table_map import table_id_of
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, PackedEvents, event_at
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.receive_buffer import EventStream

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._scan import Scanner

__all__ = ["LogScanner", "Run"]

_NEVER = (1 << 63) - 1
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)


class Run:
    """Neighbouring events that the scan has passed. What it says holds until the next is asked for.

    Attributes
    ----------
    file, start, end : where they lie.
    time : of the last one, in seconds, as its header tells it.
    kept_bytes : of what is wanted of them, packed.
    last : of the last of them: bytes, and the CRC32 of all but its own checksum.
    rows_end : the scan stopped behind a rows event, where it was asked to.
    """

    def __init__(self, scanner: Scanner, file: str, start: int) -> None:
        self._scanner = scanner
        self.file = file
        self.start = start
        self.end = scanner.pos
        self.time = scanner.time
        self.kept_bytes = scanner.kept
        self.last = scanner.last
        self.rows_end = scanner.stop == "asked"

    @cached_property
    def _endings(self) -> tuple[array[int], array[int], array[int]]:
        return self._scanner.endings()

    @property
    def ends(self) -> array[int]:
        """Where its transactions end; empty for a run inside of one."""
        return self._endings[0]

    @property
    def kept_until(self) -> array[int]:
        """Bytes kept before each of its transactions, and of all of them."""
        return self._endings[1]

    def time_of(self, transaction: int) -> int:
        """When one of its transactions, of which something is wanted, was committed."""
        # What is wanted of it ends with its COMMIT.
        behind = self._endings[2][transaction + 1]
        _, _, data = self._scanner.pack(behind - 1, behind)
        return int.from_bytes(data[:4], "little")

    def last_at(self, pos: int) -> tuple[int, int]:
        """`last` of what lies before the end of one of its transactions."""
        return self._scanner.last_of(bisect_left(self.ends, pos))

    def pack(self) -> PackedEvents | None:
        """What is wanted of it; None when nothing is."""
        return self._pack(0, self._scanner.segment_count)

    def pack_transactions(self, first: int, behind: int) -> PackedEvents | None:
        """What is wanted of some of its transactions; None when nothing is."""
        segments = self._endings[2]
        return self._pack(segments[first], segments[behind])

    def _pack(self, first: int, behind: int) -> PackedEvents | None:
        if first == behind:
            return None
        first_end, last_end, data = self._scanner.pack(first, behind)
        return PackedEvents(EventBlock(self.file, first_end, self._scanner.trailer, data), last_end)


class LogScanner:
    """What the scan knows of a log's tables, from one stream of its events to the next.

    Parameters
    ----------
    filtering : decides what is wanted, and owns the state of the transaction. Without one, runs
        are row changes of whatever tables, of which nothing is kept.
    whole_maps : table maps of wanted tables are passed only if an equal one was `learnt`, since
        somebody looks at each.
    ask_at : gives a position; inside of a transaction, a run ends behind the first rows event that
        ends there or later.
    """

    def __init__(
        self,
        filtering: EventFilter | None = None,
        *,
        whole_maps: bool = False,
        ask_at: Callable[[], int] | None = None,
    ) -> None:
        from pyspark_mysqlbinlog.decoder.kernel._scan import (  # noqa: PLC0415 - may be missing
            Scanner,
        )

        self._filtering = filtering
        self._ask_at = ask_at
        self._scanner = Scanner(whole_maps=whole_maps)
        self._walker: EventReader | None = None
        self._stream: EventStream | None = None
        self._verified = 0
        # What is known of the next step: that the stream has too little, or that it is the twin's.
        self._next = ""

    def learn(self, event: Event) -> None:
        """A table map that the filter was fed, and that may pass from now on."""
        if event.type == _TABLE_MAP and self._filtering is not None:
            is_wanted = self._filtering.is_captured_id(table_id_of(event.body))
            self._scanner.learn(event.body, is_wanted)

    def forget_maps(self) -> None:
        """Every wanted table's map is to be looked at again."""
        self._scanner.forget_maps()

    def open(self, stream: EventStream, walker: EventReader) -> None:
        """Go on with another stream of events."""
        self._stream, self._walker = stream, walker
        self._verified, self._next = 0, ""

    def next(self, limit: Callable[[str], int], *, runs: bool = True) -> Run | Event | None:
        """A run, or an event that the filter was not fed yet; None at the end of the stream.

        Parameters
        ----------
        limit : file -> the position that no run goes beyond.
        runs : whether there may be one now.
        """
        stream, walker = self._stream, self._walker
        assert stream is not None
        assert walker is not None
        try:
            while True:
                if runs and self._next != "odd" and walker.has_format:
                    if self._next != "more":
                        run = self._scan(stream, walker, limit(walker.file))
                        if run is not None:
                            return run
                    if self._next == "more":
                        self._next = ""
                        if stream.fill():
                            continue
                self._next, self._verified = "", 0
                raw = stream.next_event()
                if raw is None:
                    return None
                event = walker.feed(raw)
                del raw  # may be large, and the event has its own copy
                if event is not None:
                    return event
        except MySQLBinlogError as error:
            # A dump that the server refuses in its middle is refused at the place it had reached.
            raise error.with_location(walker.file, walker.pos) from None

    def _scan(self, stream: EventStream, walker: EventReader, limit: int) -> Run | None:
        filtering, scanner = self._filtering, self._scanner
        group = None if filtering is None else filtering.group
        between = filtering is not None and filtering.between_transactions
        if filtering is not None and not between and group is None:
            self._next = "odd"
            return None
        scanner.open(
            stream.view(),
            walker.pos,
            limit,
            packets=stream.packets,
            checksum=walker.has_checksums,
            verified=self._verified,
        )
        if between:
            scanner.scan_transactions()
        elif group is None:
            scanner.skip_rows()
        else:
            scanner.scan_group(
                group.wanted_ids,
                frame_waits=group.frame_waits,
                text_waits=group.text_waits,
                rows_seen=group.rows_seen,
                ask_at=_NEVER if self._ask_at is None else self._ask_at(),
            )
        stop = scanner.stop
        self._next = "" if stop == "asked" else stop
        if not scanner.consumed:
            self._verified = scanner.verified
            return None
        run = Run(scanner, walker.file, walker.pos)
        if filtering is not None:
            if group is None:
                filtering.advance_transactions()
            else:
                self._advance_group(filtering, walker.file)
        stream.consume(scanner.consumed)
        self._verified = scanner.verified
        walker.advance(scanner.pos)
        return run

    def _advance_group(self, filtering: EventFilter, file: str) -> None:
        scanner = self._scanner
        statement = [event_at(file, end, data) for end, data in scanner.statement()]
        filtering.advance_group(
            scanner.new_ids(),
            statement,
            is_new_statement=scanner.new_statement,
            text_waits=scanner.text_waits,
            text=statement[0] if scanner.text_waits and scanner.text_is_here else None,
            rows_seen=scanner.rows_seen,
            kept_rows_events=scanner.kept_rows_events,
        )
