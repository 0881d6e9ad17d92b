"""A log in numbers: rows and bytes of each table, transactions by size, bursts and gaps.

A log of any size is read once, in bounded memory: transactions are summed up in parts, of which the
largest ones and the counts are kept. The time of a transaction is that of its last event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.selection import Selection
from pyspark_mysqlbinlog.connector.inspection.sources import LoggedEvent, Source
from pyspark_mysqlbinlog.connector.inspection.tally import (
    ENDED_FIELDS,
    KernelTally,
    OperationCount,
    Tally,
)
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event

__all__ = [
    "Gap",
    "LogStatistics",
    "Period",
    "TransactionSize",
    "collect",
    "size_ranges",
    "table_totals",
]

# pyarrow's annotations lack most of its functions.
_pc: Any = compute

SHOWN = 10
# Transactions that are summed up together.
_PART = 1 << 16
# Periods of the timeline; above that, they get longer. Each length is a multiple of the one before.
_MOST_PERIODS = 720
_LENGTHS = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400)
# Maximum seconds that are kept as candidates for the busiest ones.
_MOST_SECONDS = 1 << 16
_MIN_GAP_SECONDS = 2


class TransactionSize(NamedTuple):
    """One transaction; bytes are those in the log, compressed if they are compressed there."""

    file: str
    pos: int
    time: int
    bytes: int
    rows: int
    events: int


class Period(NamedTuple):
    """The changes in a period; `time` is its beginning, in seconds since 1970 UTC."""

    time: int
    transactions: int
    rows: int
    bytes: int


class Gap(NamedTuple):
    """Time without a transaction: before the one that begins at a position."""

    seconds: int
    after: int
    file: str
    pos: int


@dataclass(slots=True)
class LogStatistics:
    """The numbers of a log, or of a selection of it.

    Attributes
    ----------
    files : those that were read.
    types : events and bytes by type; inside payloads, decompressed bytes.
    tables : (database, table) -> operation (c, u, d) -> counts.
    first, last : times of the first and last transaction; None if there is none.
    by_bytes, by_rows : number of transactions by the bits of their size: at index n, those of
        2^(n-1) to 2^n - 1 bytes or rows.
    largest, most_rows : the transactions with the most bytes and rows.
    busiest : seconds with the most transactions.
    gaps : the longest times without a transaction, in the order of the log.
    timeline : periods of `period` seconds, in the order of time; empty ones are left out.
    """

    files: list[str] = field(default_factory=list)
    types: dict[int, tuple[int, int]] = field(default_factory=dict)
    tables: dict[Table, dict[str, OperationCount]] = field(default_factory=dict)
    transactions: int = 0
    rows: int = 0
    bytes: int = 0
    first: int | None = None
    last: int | None = None
    by_bytes: list[int] = field(default_factory=lambda: [0] * 64)
    by_rows: list[int] = field(default_factory=lambda: [0] * 64)
    largest: list[TransactionSize] = field(default_factory=list)
    most_rows: list[TransactionSize] = field(default_factory=list)
    busiest: list[Period] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    timeline: list[Period] = field(default_factory=list)
    period: int = 1


def collect(
    source: Source,
    selection: Selection,
    entries: Callable[[], Entries],
    statistics: LogStatistics,
) -> None:
    """Read a log, and add its numbers to `statistics`, also those of the part before an error.

    entries : of the source, for selections that need each transaction.
    """
    is_compiled = implementation() == "c" and not selection.is_by_transaction
    captures = None if selection.tables is None else selection.tables.captures
    tally = KernelTally(captures) if is_compiled else Tally(captures)
    sums = _Sums(statistics, with_rows_only=selection.tables is not None)
    try:
        if isinstance(tally, KernelTally):
            _scan(source, selection, tally, sums)
        else:
            chosen = (
                (entry.logged for entry in selection.of(entries()))
                if selection.is_by_transaction
                else _until(source.events(), selection.end)
            )
            for event, raw, _ in chosen:
                sums.take(tally, event.file)
                tally.add(event, len(raw))
    finally:
        sums.take(tally, "")
        sums.finish()
        statistics.types, statistics.tables = tally.types(), tally.tables()


def _until(events: Iterable[LoggedEvent], end: tuple[str, int] | None) -> Iterator[LoggedEvent]:
    for logged in events:
        if end is not None and logged.event.file == end[0] and logged.event.start >= end[1]:
            return
        yield logged


def _scan(source: Source, selection: Selection, tally: KernelTally, sums: _Sums) -> None:
    log, begins = source.scanned()
    end_file, end = selection.end or ("", NO_LIMIT)

    def limit(file: str) -> int:
        return end if file == end_file else NO_LIMIT

    listener = _Listener(tally, sums)
    # Each file separately: the next file in the log may not be the next one of the source.
    for begin in begins:
        for found in log.scan(begin, LogScanner(listener=listener), limit):
            if found.file != begin.file:
                break
            if isinstance(found, Event):
                if found.start >= limit(found.file):
                    break
                sums.take(tally, found.file)
                is_inner = found.offset is not None
                size = HEADER_LENGTH + len(found.body) if is_inner else found.end - found.start
                tally.add(found, size)


class _Listener:
    """Forwards what the compiled scan has passed to the tally, file by file."""

    def __init__(self, tally: KernelTally, sums: _Sums) -> None:
        self._tally = tally
        self._sums = sums

    def payload(self, event: Event) -> None:
        self._sums.take(self._tally, event.file)
        self._tally.payload(event)

    def passed(self, data: memoryview, packets: bool, walker: Any) -> None:
        self._sums.take(self._tally, walker.file)
        self._tally.passed(data, packets, walker)


class _Sums:
    """Sums up transactions.

    with_rows_only : only those with rows of selected tables count.
    """

    def __init__(self, statistics: LogStatistics, *, with_rows_only: bool) -> None:
        self._statistics = statistics
        self._with_rows_only = with_rows_only
        self._file = ""
        self._last_time: int | None = None
        self._seconds: dict[int, tuple[int, int, int]] = {}
        self._periods: dict[int, tuple[int, int, int]] = {}

    def take(self, tally: Tally, file: str) -> None:
        """Sum up the transactions that have ended, if they are many or of another file.

        file : of the next event.
        """
        if file == self._file and tally.ended_count < _PART:
            return
        taken = tally.take_ended()
        if taken:
            self._add(taken)
        if file != self._file:
            self._file = file
            if file and file not in self._statistics.files:
                self._statistics.files.append(file)

    def _add(self, taken: bytes) -> None:
        flat = pa.Array.from_buffers(pa.int64(), len(taken) // 8, [None, pa.py_buffer(taken)])
        each = pa.FixedSizeListArray.from_arrays(flat, len(ENDED_FIELDS))
        columns = (_pc.list_element(each, at) for at in range(len(ENDED_FIELDS)))
        part = pa.table(dict(zip(ENDED_FIELDS, columns, strict=True)))
        if self._with_rows_only:
            part = part.filter(_pc.greater(part["rows"], 0))
        if not part.num_rows:
            return
        statistics = self._statistics
        statistics.transactions += part.num_rows
        statistics.rows += _pc.sum(part["rows"]).as_py()
        statistics.bytes += _pc.sum(part["bytes"]).as_py()
        for name, histogram in (("bytes", statistics.by_bytes), ("rows", statistics.by_rows)):
            for size in _pc.value_counts(part[name]).to_pylist():
                histogram[size["values"].bit_length()] += size["counts"]
        statistics.largest = self._greatest(part, "bytes", statistics.largest)
        statistics.most_rows = self._greatest(part, "rows", statistics.most_rows)
        self._add_times(part)

    def _greatest(
        self, part: pa.Table, name: str, known: Sequence[TransactionSize]
    ) -> list[TransactionSize]:
        keys = [(name, "descending")]
        chosen = part.take(_pc.select_k_unstable(part, k=SHOWN, sort_keys=keys)).to_pylist()
        found = [
            TransactionSize(
                self._file, row["begin"], row["time"], row["bytes"], row["rows"], row["events"]
            )
            for row in chosen
        ]
        both = [*known, *found]
        both.sort(key=lambda each: (-getattr(each, name), each.time, each.file, each.pos))
        return both[:SHOWN]

    def _add_times(self, part: pa.Table) -> None:
        statistics, times = self._statistics, part["time"]
        bounds = _pc.min_max(times).as_py()
        statistics.first = (
            bounds["min"] if statistics.first is None else min(statistics.first, bounds["min"])
        )
        statistics.last = (
            bounds["max"] if statistics.last is None else max(statistics.last, bounds["max"])
        )
        first = times[0].as_py() if self._last_time is None else self._last_time
        before = pa.concat_arrays(
            [pa.array([first], pa.int64()), *times.slice(0, len(times) - 1).chunks]
        )
        lengths = _pc.subtract(times, before)
        rows = pa.table({"length": lengths, "after": before, "begin": part["begin"]})
        keys = [("length", "descending")]
        for row in rows.take(_pc.select_k_unstable(rows, k=SHOWN, sort_keys=keys)).to_pylist():
            if row["length"] >= _MIN_GAP_SECONDS:
                statistics.gaps.append(Gap(row["length"], row["after"], self._file, row["begin"]))
        statistics.gaps.sort(key=lambda gap: (-gap.seconds, gap.after))
        del statistics.gaps[SHOWN:]
        self._last_time = times[-1].as_py()
        sums = part.group_by("time").aggregate(
            [("rows", "sum"), ("rows", "count"), ("bytes", "sum")]
        )
        for row in sums.to_pylist():
            here = (row["rows_count"], row["rows_sum"], row["bytes_sum"])
            _add_to(self._seconds, row["time"], here)
            _add_to(self._periods, row["time"] - row["time"] % statistics.period, here)
        if len(self._seconds) > _MOST_SECONDS:
            # Most logs are in the order of time: older seconds get no more transactions.
            self._seconds = dict(sorted(self._seconds.items())[-_MOST_SECONDS // 2 :]) | {
                each.time: each[1:] for each in self._busiest()
            }
        while len(self._periods) > _MOST_PERIODS:
            longer = [each for each in _LENGTHS if each > statistics.period]
            statistics.period = longer[0] if longer else 2 * statistics.period
            old, self._periods = self._periods, {}
            for time, here in old.items():
                _add_to(self._periods, time - time % statistics.period, here)

    def _busiest(self) -> list[Period]:
        chosen = sorted(self._seconds.items(), key=lambda each: (-each[1][0], each[0]))
        return [Period(time, *here) for time, here in chosen[:SHOWN]]

    def finish(self) -> None:
        """Set the numbers that only the whole log shows: busiest seconds and timeline."""
        self._statistics.busiest = self._busiest()
        self._statistics.timeline = [
            Period(time, *here) for time, here in sorted(self._periods.items())
        ]


def _add_to(sums: dict[int, tuple[int, int, int]], time: int, here: Sequence[int]) -> None:
    transactions, rows, size = sums.get(time, (0, 0, 0))
    sums[time] = transactions + here[0], rows + here[1], size + here[2]


def table_totals(
    tables: Mapping[Table, Mapping[str, OperationCount]],
) -> list[tuple[Table, OperationCount]]:
    """Return the sums over all operations of each table, the one with the most bytes first."""
    totals = []
    for name, operations in tables.items():
        total = OperationCount()
        for each in operations.values():
            total.add(each.rows, each.events, each.bytes)
        totals.append((name, total))
    return sorted(totals, key=lambda each: (-each[1].bytes, each[0]))


def size_ranges(histogram: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (first, last, transactions) of each range of sizes, without empty ones at the ends."""
    held = [at for at, count in enumerate(histogram) if count]
    if not held:
        return []
    return [
        ((1 << at) >> 1, (1 << at) - 1 if at else 0, histogram[at])
        for at in range(held[0], held[-1] + 1)
    ]
