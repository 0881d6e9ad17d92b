"""Blocks of a fetched range's captured events, from the compiled scan, ahead of the decoder.

The compiled equivalent of the event loop in `reader`: the same events, the same errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace

from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken, prefetched
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.ranges.range_end import RangeBounds, check_between
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.sub_batches import SubBatchBoundaries
from pyspark_mysqlbinlog.connector.ranges.transactions import range_filter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import Part, size_of
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events, unpack_events

__all__ = ["captured_blocks", "scanned_blocks"]

# Blocks are gathered to this size, less than what is usually scanned at a time: a scan of that size
# is not copied again. And the number of bytes that are buffered for the decoder.
_BLOCK_BYTES = 1 << 18
_AHEAD_BYTES = 4 << 20


def captured_blocks(
    log: ScannedLog,
    partition: RangePartition,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
    boundaries: SubBatchBoundaries | None = None,
) -> Generator[EventBlock]:
    """Yield the blocks of a range, fetched in a thread if that can save time.

    boundaries : records how far the log was read.
    """
    if not isinstance(log, ReconnectingLog) and _cores() == 1:
        # A file's bytes are local: on one core the thread would only alternate with the decoder.
        return scanned_blocks(
            log, partition, captures, operations=operations, boundaries=boundaries
        )
    return prefetched(
        lambda interrupt: scanned_blocks(
            replace(log, interrupt=interrupt) if isinstance(log, ReconnectingLog) else log,
            partition,
            captures,
            operations=operations,
            interrupt=interrupt,
            boundaries=boundaries,
        ),
        lambda block: len(block.data),
        _AHEAD_BYTES,
    )


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def scanned_blocks(
    log: ScannedLog,
    partition: RangePartition,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
    interrupt: CancelToken | None = None,
    boundaries: SubBatchBoundaries | None = None,
) -> Generator[EventBlock]:
    """Yield the blocks, without a thread; stops early if the interrupt is set.

    A long part of the binlog may have no captured event; then only the interrupt can end it.
    """

    def stopped() -> bool:
        return interrupt is not None and interrupt.stopped

    filtering, transactions = range_filter(
        log, partition, captures, operations=operations, stopped=stopped
    )
    scanner = LogScanner(filtering, part=(partition.offset, partition.end_offset))
    gathered = _Gathered()
    for event in unpack_events(partition.prelude):
        gathered.add(transactions.prelude(event))
        scanner.learn(event)
    bounds = RangeBounds(
        log,
        partition.start,
        partition.end,
        partition.end_fingerprint,
        offset=partition.end_offset,
    )
    if boundaries is not None:
        boundaries.begin(partition.fingerprint)
    try:
        for found in log.scan(partition.start, scanner, bounds.limit):
            before, captured = gathered.size, 0
            if isinstance(found, Run):
                bounds.passed(found)
                packed = found.pack()
                is_between = bool(found.ends)
                if is_between:
                    gathered.add([] if packed is None else [packed])
                else:
                    gathered.add(transactions.take_run(packed))
            else:
                if not bounds.admits(found):
                    break
                # The parts of a transaction that is read again may be many.
                for part in transactions.take(found):
                    gathered.add([part])
                    if gathered.size >= _BLOCK_BYTES:
                        captured += gathered.size - before
                        yield from gathered.take()
                        before = 0
                scanner.learn(found)
                is_between = filtering.ended
            if boundaries is not None:
                end = log.position(found.file, found.end)
                captured += gathered.size - before
                boundaries.on_read(found, end, captured, is_between=is_between)
            if gathered.size >= _BLOCK_BYTES:
                yield from gathered.take()
            if bounds.reached:
                break
            if stopped():
                return
        if partition.ends_inside:
            gathered.add(transactions.rest(partition.end.pos, partition.end_offset))
    except Exception:
        # Decode what came before the error first.
        yield from gathered.take()
        raise
    yield from gathered.take()
    bounds.check_reached()
    if not partition.ends_inside:
        check_between(filtering, partition.end)


class _Gathered:
    """Gathers events into blocks."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self.size = 0

    def add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._parts.append(part)
            self.size += size_of(part)

    def take(self) -> list[EventBlock]:
        parts, self._parts, self.size = self._parts, [], 0
        return pack_events(parts)
