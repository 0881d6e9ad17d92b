"""A fetched range in the compiled scan: events and errors as in the Python implementation."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Generator, Iterable
from itertools import pairwise
from pathlib import Path

import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips the tests if the kernel is missing)
from helpers.logs.events import LogBuilder
from helpers.parity.decoding import CAPTURED
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken, prefetched
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.ranges.blocks import captured_blocks, scanned_blocks
from pyspark_mysqlbinlog.connector.ranges.reader import _captured_events
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.sub_batches import Boundary, SubBatchBoundaries
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import (
    HEADER_LENGTH,
    ROWS_EVENT_TYPES,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings

Captures = Callable[[str, str], bool]
Found = tuple[list[Event], str]


def until_error(events: Iterable[Event]) -> Found:
    found: list[Event] = []
    try:
        found.extend(iter(events))
    except MySQLBinlogError as error:
        return found, f"{type(error).__name__}: {error}"
    return found, ""


STATEMENTS = frozenset({"truncate", "ddl"})


def compare(log: FileLog, partition: RangePartition, captures: Captures) -> Found:
    expected = until_error(_captured_events(log, partition, captures, operations=STATEMENTS))
    assert (
        until_error(unpack_events(scanned_blocks(log, partition, captures, operations=STATEMENTS)))
        == expected
    )
    assert (
        until_error(unpack_events(captured_blocks(log, partition, captures, operations=STATEMENTS)))
        == expected
    )
    return expected


def part(start: Position, end: Position, **more: bool | tuple[EventBlock, ...]) -> RangePartition:
    partition = RangePartition(start, end, "", (), True, None)
    for name, value in more.items():
        setattr(partition, name, value)
    return partition


NAMES = ["rotations", "gtid_no_checksum", "transactions", "numbers", "wide", "statements"]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_scan_of_any_range_equals_the_python_implementation(name: str) -> None:
    """Ranges begin at events. They end at events, inside events or after the end of the log."""
    log = FileLog.find(str(CAPTURED / f"{name}.*.binlog"))
    chance = random.Random(name)
    events = list(log.events(log.begins()[0]))
    places = [log.position(event.file, event.start) for event in events] + [log.end()]
    errors = set()
    for n in range(150):
        start, end = chance.choice(places), chance.choice(places)
        if n % 5 == 0:
            end = end._replace(pos=end.pos + chance.choice([-3, 1, 500]))
        if n % 3 == 0:
            start = log.begins()[0]
        all_wanted = chance.random() < 0.5
        _, error = compare(log, part(start, end), lambda *_, yes=all_wanted: yes)
        errors.add(error.partition(":")[0])
    assert "" in errors
    assert "InvalidPositionError" in errors


@pytest.mark.parametrize("name", ["rotations", "gtid_no_checksum", "numbers", "wide"])
@pytest.mark.parametrize("size", [1, 300, 1_000])
def test_sub_batch_boundaries_are_transaction_boundaries(name: str, size: int) -> None:
    """The Python implementation gives the boundaries and fingerprints, event by event."""
    log = FileLog.find(str(CAPTURED / f"{name}.*.binlog"))
    start, filtering = log.begins()[0], EventFilter(lambda *_: True)
    # End of each transaction -> captured bytes up to it.
    ends: dict[Boundary, int] = {}
    head, captured = FileHead(0, 0), 0
    for event in log.events(start):
        if event.type == EventType.FORMAT_DESCRIPTION_EVENT:
            head = FileHead(event.timestamp, event.server_id)
        captured += sum(HEADER_LENGTH + len(each.body) for each in filtering.feed(event))
        known = after_event(head, event)
        if filtering.ended and known is not None:
            ends[Boundary(log.position(event.file, event.end), known)] = captured
    steps = SubBatchBoundaries(size)
    partition, everything = part(start, log.end()), lambda *_: True
    for _ in scanned_blocks(log, partition, everything, operations=frozenset(), boundaries=steps):
        pass
    found = []
    while (boundary := steps.next_boundary((99, 0))) is not None:
        found.append(boundary)
    assert found
    assert {*found} <= ends.keys()
    lengths = [
        last - first for first, last in pairwise([0, *map(ends.__getitem__, found), captured])
    ]
    assert min(lengths[:-1]) >= size
    # Instead of the last boundary of a file, the next one is reported.
    assert max(lengths) < size + 2 * max(last - first for first, last in pairwise(ends.values()))


def test_compiled_scan_of_ranges_inside_a_transaction_equals_python() -> None:
    """Ranges begin and end after any rows event, with the prelude of the filter."""
    log = FileLog.find(str(CAPTURED / "transactions.001.binlog"))
    filtering = EventFilter(lambda database, table: table != "a")
    starts: list[tuple[Position, tuple[EventBlock, ...]]] = []
    for event in log.events(log.begins()[0]):
        filtering.feed(event)
        if event.type in ROWS_EVENT_TYPES and filtering.in_transaction:
            prelude = tuple(pack_events(filtering.prelude()))
            starts.append((log.position(event.file, event.end), prelude))
    assert len(starts) > 5
    for start, prelude in starts:
        for end in [*[place for place, _ in starts if place > start][:3], log.end()]:
            inside = end != log.end()
            partition = part(start, end, prelude=prelude, ends_inside=inside)
            partition.pending_xa = filtering.pending_xa
            compare(log, partition, lambda database, table: table != "a")


def test_scan_of_a_damaged_log_gives_earlier_events_then_checksum_error(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    for n in range(1000):
        log.begin().rows(1, "t", n).xid()
    data = bytearray(log.write(tmp_path).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / log.file).write_bytes(data)
    found = FileLog.find(str(tmp_path / log.file))
    events, error = compare(found, part(found.begins()[0], found.end()), lambda *_: True)
    assert error.startswith("ChecksumError")
    assert len(events) > 1900


# --- prefetching


def test_prefetched_items_come_in_order_before_the_error() -> None:
    def make(_: CancelToken) -> Generator[int]:
        yield from range(1000)
        raise MySQLBinlogError("the end")

    found: list[int] = []
    with pytest.raises(MySQLBinlogError, match="the end"):
        found.extend(prefetched(make, lambda _: 1, 10))
    assert found == list(range(1000))


def test_prefetching_pauses_when_its_buffer_is_full() -> None:
    made: list[int] = []

    def make(_: CancelToken) -> Generator[int]:
        for n in range(100):
            made.append(n)
            yield n

    items = prefetched(make, lambda n: 50 if n == 3 else 4, 10)
    assert next(items) == 0
    # The third item leaves no room for another; the fourth is larger than the buffer.
    wait_until(lambda: len(made) == 3, "the thread makes as many as there is room for")
    assert next(items) == 1
    wait_until(lambda: len(made) == 4, "the thread makes one more")
    assert [next(items), next(items)] == [2, 3]
    assert len(made) == 4
    assert list(items) == list(range(4, 100))


class Line:
    """A connection that is read until it is aborted."""

    def __init__(self) -> None:
        self.broken = threading.Event()

    def abort(self) -> None:
        self.broken.set()


@pytest.mark.parametrize("late", [False, True])
def test_closing_aborts_the_connection_of_a_prefetch_thread(late: bool) -> None:
    """The thread waits for bytes or, with `late`, is about to connect."""
    line, closed, taken = Line(), threading.Event(), threading.Event()

    def make(interrupt: CancelToken) -> Generator[int]:
        try:
            yield 1
            if late:
                wait_until(lambda: interrupt.stopped, "somebody stops it")
            interrupt.watch(line)
            taken.set()
            assert line.broken.wait(patience(10))
        finally:
            closed.set()

    items = prefetched(make, lambda _: 1, 10)
    assert next(items) == 1
    if not late:
        assert taken.wait(patience(5))
    items.close()
    assert closed.is_set()
    assert not any(thread.name == "mysqlbinlog-fetch" for thread in threading.enumerate())


def test_stopped_scan_of_files_gives_no_blocks() -> None:
    log = FileLog.find(str(CAPTURED / "numbers.001.binlog"))
    partition, interrupt = part(log.begins()[0], log.end()), CancelToken()

    def blocks() -> list[EventBlock]:
        return list(
            scanned_blocks(
                log,
                partition,
                lambda *_: True,
                operations=STATEMENTS,
                interrupt=interrupt,
            )
        )

    assert blocks()
    interrupt.stop()
    assert not blocks()


def test_closing_ends_a_prefetch_thread_that_keeps_reconnecting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # The socket does not listen.
        settings = ServerSettings("127.0.0.1", taken.getsockname()[1], "u", "p")

        def make(interrupt: CancelToken) -> Generator[object]:
            yield "something"
            yield from ReconnectingLog(settings, interrupt=interrupt).events(
                Position.of("b.000001", 4)
            )

        items = prefetched(make, lambda _: 1, 10)
        next(items)
        items.close()
    assert not any(thread.name == "mysqlbinlog-fetch" for thread in threading.enumerate())
