"""Reads a binlog ahead: in runs where the compiled scan supports it, otherwise event by event.

`EventReader` and `EventFilter` own the state of the binlog, and handle all unusual events. The scan
passes the events in between, row changes of tables with known names, without a Python object per
event; then it updates the state of the two. A run contains the kept events, either of whole
transactions, or of a part of the transaction in progress.
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
    """Consecutive events that the scan has passed. Valid until the next run is requested.

    Attributes
    ----------
    file, start, end : their position.
    time : of the last one, in seconds, from its header.
    kept_bytes : of the captured events, packed.
    last : of the last one: bytes, and the CRC32 of all but its own checksum.
    rows_end : the scan stopped after a rows event, at the requested position.
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
        """Ends of its transactions; empty for a run inside a transaction."""
        return self._endings[0]

    @property
    def kept_until(self) -> array[int]:
        """Bytes kept before each of its transactions, and of all of them."""
        return self._endings[1]

    def time_of(self, transaction: int) -> int:
        """Return the commit time of one of its transactions that has captured events."""
        # The captured events of a transaction end with its COMMIT.
        behind = self._endings[2][transaction + 1]
        _, _, data = self._scanner.pack(behind - 1, behind)
        return int.from_bytes(data[:4], "little")

    def last_at(self, pos: int) -> tuple[int, int]:
        """Return `last` for the events before the end of one of its transactions."""
        return self._scanner.last_of(bisect_left(self.ends, pos))

    def pack(self) -> PackedEvents | None:
        """Pack the captured events; None if there are none."""
        return self._pack(0, self._scanner.segment_count)

    def pack_transactions(self, first: int, behind: int) -> PackedEvents | None:
        """Pack the captured events of some of its transactions; None if there are none."""
        segments = self._endings[2]
        return self._pack(segments[first], segments[behind])

    def _pack(self, first: int, behind: int) -> PackedEvents | None:
        if first == behind:
            return None
        first_end, last_end, data = self._scanner.pack(first, behind)
        return PackedEvents(EventBlock(self.file, first_end, self._scanner.trailer, data), last_end)


class LogScanner:
    """Scanner with the known tables of a binlog, which are kept from one stream to the next.

    Parameters
    ----------
    filtering : selects the captured events, and owns the state of the transaction. Without it,
        runs are row changes of all tables, of which none are kept.
    whole_maps : table maps of captured tables are passed only if an equal one was learnt with
        `learn`, because the caller inspects each.
    ask_at : returns a position; inside a transaction, a run ends after the first rows event that
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
        # Known state of the next step: the stream has too few bytes, or the event is for Python.
        self._next = ""

    def learn(self, event: Event) -> None:
        """Add a table map that the filter was fed, so that the scan may pass it."""
        if event.type == _TABLE_MAP and self._filtering is not None:
            is_wanted = self._filtering.is_captured_id(table_id_of(event.body))
            self._scanner.learn(event.body, is_wanted)

    def forget_maps(self) -> None:
        """Require every captured table's map to be parsed again."""
        self._scanner.forget_maps()

    def open(self, stream: EventStream, walker: EventReader) -> None:
        """Continue with another stream of events."""
        self._stream, self._walker = stream, walker
        self._verified, self._next = 0, ""

    def next(self, limit: Callable[[str], int], *, runs: bool = True) -> Run | Event | None:
        """Return a run, or an event that the filter was not fed; None at the end of the stream.

        Parameters
        ----------
        limit : file -> the position that no run may exceed.
        runs : whether a run may be returned.
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
            # If the server rejects a dump midway, the error has the position reached.
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
            may_lack_positions=walker.may_lack_positions,
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
