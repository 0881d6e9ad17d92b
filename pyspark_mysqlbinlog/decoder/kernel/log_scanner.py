"""Reads a binlog ahead: in runs where the compiled scan supports it, otherwise event by event.

`EventReader` and `EventFilter` own the state of the binlog, and handle all unusual events. The scan
passes the events in between, row changes of tables with known names, without a Python object per
event; then it updates the state of the two. A run contains the kept events, either of whole
transactions, or of a part of the transaction in progress.

A TRANSACTION_PAYLOAD is replaced by the events in it. The scan decompresses small ones itself, if
zstd's library is installed; the stream of others is its input, part by part.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from pyspark_mysqlbinlog.decoder.events.table_map import table_id_of
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import (
    EventBlock,
    PackedEvents,
    event_at,
    packed_payload,
)
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.receive_buffer import EventStream
from pyspark_mysqlbinlog.protocol.transaction_payload import (
    TransactionPayloadReader,
    zstd_stream,
)

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._scan import Scanner

__all__ = ["LogScanner", "Run", "ScanListener"]

_NEVER = (1 << 63) - 1
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)


class Run:
    """Consecutive events that the scan has passed. Valid until the next run is requested.

    Attributes
    ----------
    file, start, end : their position.
    time : of the last one, in seconds, from its header.
    log_bytes : of its events; inside a payload, in the decompressed stream.
    kept_bytes : of the captured events, packed.
    last : of the last one: bytes, and the CRC32 of all but its own checksum.
    rows_end : the scan stopped after a rows event, at the requested position.
    offset : inside a payload, of the event after it in the decompressed stream; else None. Then
        `start` and `end` are those of its events (see `Event.offset`).
    """

    def __init__(
        self,
        scanner: Scanner,
        file: str,
        start: int,
        payload: TransactionPayloadReader | None = None,
    ) -> None:
        self._scanner = scanner
        self.file = file
        self.start = start
        self.end = scanner.pos
        self.log_bytes = self.end - start
        self.time = scanner.time
        self.kept_bytes = scanner.kept
        self.last = scanner.last
        self.rows_end = scanner.stop == "pause"
        self.offset: int | None = None
        self._payload = payload
        if payload is not None:
            self.offset = scanner.pos
            is_whole = scanner.pos == payload.size
            self.start, self.end = payload.start, payload.end if is_whole else payload.start
            self.last = (payload.end - payload.start, payload.checksum) if is_whole else (0, 0)

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

    @property
    def gtids(self) -> list[tuple[int, int, bytes]]:
        """(transaction, count, header and body of the first GTID event) of consecutive GTIDs.

        In order; `transaction` is the index of the first one in `ends`, if there are any.
        """
        return self._scanner.gtids()

    def time_of(self, transaction: int) -> int:
        """Return the commit time of one of its transactions that has captured events."""
        # The captured events of a transaction end with its COMMIT.
        stop = self._endings[2][transaction + 1]
        _, _, data = self._scanner.pack(stop - 1, stop)
        return int.from_bytes(data[:4], "little")

    def last_at(self, pos: int) -> tuple[int, int]:
        """Return `last` for the events before the end of one of its transactions."""
        return self._scanner.last_of(bisect_left(self.ends, pos))

    def pack(self) -> PackedEvents | None:
        """Pack the captured events; None if there are none."""
        return self._pack(0, self._scanner.segment_count)

    def pack_transactions(self, first: int, stop: int) -> PackedEvents | None:
        """Pack the captured events of some of its transactions; None if there are none."""
        segments = self._endings[2]
        return self._pack(segments[first], segments[stop])

    def _pack(self, first: int, stop: int) -> PackedEvents | None:
        if first == stop:
            return None
        first_end, last_end, data = self._scanner.pack(first, stop)
        if self._payload is not None:
            # The scan read the decompressed stream, so the marker of the payload is added here.
            return packed_payload(self.file, self._payload.start, first_end, data)
        return PackedEvents(EventBlock(self.file, first_end, self._scanner.trailer, data), last_end)


class ScanListener(Protocol):
    """Receives what a scan without a filter passes."""

    def payload(self, event: Event) -> None:
        """Note a payload whose events come next."""

    def passed(
        self, data: memoryview, packets: bool, walker: EventReader | TransactionPayloadReader
    ) -> None:
        """Note the bytes of events that were verified.

        packets : as in `EventStream`.
        walker : at the first of them.
        """


class LogScanner:
    """Scanner with the known tables of a binlog, which are kept from one stream to the next.

    Parameters
    ----------
    filtering : selects the captured events, and owns the state of the transaction. Without it,
        runs contain row changes of all tables, and none of them are kept.
    whole_maps : table maps of captured tables are passed only if an equal one was learnt with
        `learn`, because the caller inspects each.
    pause_at : returns a position; inside a transaction, a run ends after the first rows event that
        ends there or later. Called with None, or with the offset inside a payload that is read:
        then it returns another offset.
    listener : without a filter, receives what is passed.
    part : which part of payloads is read: from an offset in the first payload, and up to one in the
        payload that begins at the limit of `next`.
    """

    def __init__(
        self,
        filtering: EventFilter | None = None,
        *,
        whole_maps: bool = False,
        pause_at: Callable[[int | None], int] | None = None,
        part: tuple[int, int] = (0, 0),
        listener: ScanListener | None = None,
    ) -> None:
        from pyspark_mysqlbinlog.decoder.kernel._scan import (  # noqa: PLC0415 (may be missing)
            Scanner,
            ZstdStream,
            has_zstd,
        )

        self._decompress = ZstdStream if has_zstd() else zstd_stream
        self._filtering = filtering
        self._pause_at = pause_at
        self._listener = listener
        self._scanner = Scanner(whole_maps=whole_maps)
        self._walker: EventReader | None = None
        self._stream: EventStream | None = None
        self._payload: TransactionPayloadReader | None = None
        self._from_offset, self._to_offset = part
        self._verified = 0
        # Known state of the next step: the stream has too few bytes, or the event is for Python.
        self._next = ""

    def learn(self, event: Event) -> None:
        """Add a table map that the filter was fed, so that the scan may pass it."""
        if event.type == _TABLE_MAP and self._filtering is not None:
            is_captured = self._filtering.is_captured_id(table_id_of(event.body))
            self._scanner.learn(event.body, is_captured)

    def forget_maps(self) -> None:
        """Require every captured table's map to be parsed again."""
        self._scanner.forget_maps()

    def open(self, stream: EventStream, walker: EventReader) -> None:
        """Continue with another stream of events."""
        self._stream, self._walker = stream, walker
        self._payload = None
        self._verified, self._next = 0, ""

    def enter(self, payload: Event) -> None:
        """Continue with the events of a payload, then after it."""
        if self._listener is not None:
            self._listener.payload(payload)
        self._payload = TransactionPayloadReader(payload, self._decompress)
        self._verified, self._next = 0, ""
        if self._from_offset:
            self._payload.skip_to(self._from_offset)
            self._from_offset = 0

    def next(self, limit: Callable[[str], int], *, runs: bool = True) -> Run | Event | None:
        """Return a run, or an event that the filter was not fed; None at the end of the stream.

        Parameters
        ----------
        limit : file -> the position that no run may exceed.
        runs : whether a run may be returned. Otherwise a payload is returned as it is, for `enter`.
        """
        outer_stream, outer_walker = self._stream, self._walker
        assert outer_stream is not None
        assert outer_walker is not None
        try:
            while True:
                payload = self._payload
                stream, walker = payload or outer_stream, payload or outer_walker
                if (runs or payload) and self._next != "odd" and walker.has_format:
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
                    if payload is None:
                        return None
                    self._payload = None
                    continue
                event = walker.feed(raw)
                del raw  # may be large, and the event has its own copy
                if event is not None and event.type == _PAYLOAD and runs:
                    self.enter(event)
                elif event is not None:
                    return event
        except MySQLBinlogError as error:
            # If the server rejects a dump midway, the error has the position reached.
            raise error.with_location(outer_walker.file, outer_walker.pos) from None

    def _scan(
        self, stream: EventStream, walker: EventReader | TransactionPayloadReader, limit: int
    ) -> Run | None:
        filtering, scanner = self._filtering, self._scanner
        payload = self._payload
        group = None if filtering is None else filtering.group
        # A payload's events are a part of their transaction: its GTID is before them.
        between = filtering is not None and filtering.between_transactions and payload is None
        if payload is not None:
            limit = self._limit_in(payload, limit)
        # The first event of a payload goes to the filter, which checks that it may begin there.
        begins = payload is not None and not payload.pos
        if filtering is not None and not between and (group is None or begins):
            self._next = "odd"
            return None
        scanner.open(
            stream.view(),
            walker.pos,
            limit,
            packets=stream.packets,
            checksum=walker.has_checksums,
            may_lack_positions=walker.may_lack_positions,
            shift=walker.shift,
            verified=self._verified,
            in_payload=payload is not None,
        )
        if between:
            scanner.scan_transactions()
        elif group is None:
            scanner.skip_rows()
        else:
            scanner.scan_group(
                group.captured_ids,
                frame_waits=group.frame_waits,
                text_waits=group.text_waits,
                rows_seen=group.rows_seen,
                pause_at=self._pause_position(),
            )
        stop = scanner.stop
        self._next = stop if stop in ("more", "odd") else ""
        if not scanner.consumed:
            self._verified = scanner.verified
            return None
        run = Run(scanner, walker.file, walker.pos, payload)
        if filtering is not None:
            if group is None:
                filtering.advance_transactions()
            else:
                self._advance_group(filtering, walker)
        if self._listener is not None:
            self._listener.passed(stream.view()[: scanner.consumed], stream.packets, walker)
        stream.consume(scanner.consumed)
        self._verified = scanner.verified
        walker.advance(scanner.pos)
        return run

    def _pause_position(self) -> int:
        if self._pause_at is None:
            return _NEVER
        return self._pause_at(None if self._payload is None else self._payload.pos)

    def _limit_in(self, payload: TransactionPayloadReader, limit: int) -> int:
        """Return the limit of a run in a payload: an offset in its stream."""
        if limit >= payload.end:
            return payload.size
        return self._to_offset if limit == payload.start else 0

    def _advance_group(
        self, filtering: EventFilter, walker: EventReader | TransactionPayloadReader
    ) -> None:
        scanner = self._scanner
        if isinstance(walker, TransactionPayloadReader):
            at = walker.event_at
        else:
            at = partial(event_at, walker.file)
        statement = [at(end, data) for end, data in scanner.statement()]
        filtering.advance_group(
            scanner.new_ids(),
            statement,
            is_new_statement=scanner.new_statement,
            text_waits=scanner.text_waits,
            text=statement[0] if scanner.text_waits and scanner.text_is_here else None,
            rows_seen=scanner.rows_seen,
            kept_rows_events=scanner.kept_rows_events,
        )
