"""The compiled scan beside its twins: the same events kept, the same boundaries, the same errors.

A log goes through `LogWalker` and `EventFilter` event by event, and through `LogScanner` in chunks
of any size. Whatever is in it, both must have kept the same, have the same in mind at the end, and
have stopped at the same place with the same words.
"""

from __future__ import annotations

import io
import random
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol import client, files
from pyspark_mysqlbinlog.protocol.blocks import pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.chunks import ChunkBuffer
from pyspark_mysqlbinlog.protocol.client import DumpStream
from pyspark_mysqlbinlog.protocol.events import (
    HEADER,
    HEADER_LENGTH,
    IGNORABLE_FLAG,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.walker import LogWalker

from decoding import CAPTURED, raws_in
from events import (
    LogBuilder,
    dummy_rows_body,
    format_description_body,
    gtid_body,
    query_body,
    raw_event,
    rotate_body,
    rows_body,
    rows_query_body,
    table_map,
)

kernel = pytest.importorskip("pyspark_mysqlbinlog.decoder.kernel._scan")

T = EventType
FILE = "mysql-bin.000001"
Wants = Callable[[str, str], bool]


def wants(database: str, table: str) -> bool:
    return table in {"t", "u"}


def wants_half(database: str, table: str) -> bool:
    return bool(zlib.crc32(f"{database}.{table}".encode()) & 1)


def until(pos: int) -> Callable[[str], int]:
    return lambda _: pos


# --- the checksum


@pytest.mark.parametrize("function", ["crc32", "crc32_by_tables"])
def test_checksums_are_those_of_zlib(function: str) -> None:
    crc32 = getattr(kernel, function)
    data = random.Random(1).randbytes(1200)
    for at in range(64):
        for length in range(1101):
            part = memoryview(data)[at : at + length]
            assert crc32(part) == zlib.crc32(part), (at, length)


@pytest.mark.parametrize("size", [1 << 16, 1_000_003, (8 << 20) + 5])
def test_checksums_of_much(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert kernel.crc32(data) == kernel.crc32_by_tables(data) == zlib.crc32(data)
    cut = size // 3
    before = kernel.crc32(data[:cut])
    assert kernel.crc32(data[cut:], before) == zlib.crc32(data)


# --- twins


@dataclass
class Outcome:
    """What came of a log.

    Attributes
    ----------
    places : where it was at each boundary.
    state : what walker and filter have in mind at the end.
    runs : how many runs the scan gave, and how many events it left to the twins.
    """

    kept: list[Event] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    error: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    left: int = 0

    def end(self, walker: LogWalker, filtering: EventFilter, error: Exception | None) -> Outcome:
        self.error = "" if error is None else f"{type(error).__name__}: {error}"
        # What is said of the last event only, and what its text was read with.
        passing = {"ended", "statement", "context", "_contexts", "_wants"}
        self.state = {k: v for k, v in vars(filtering).items() if k not in passing}
        self.state |= vars(walker)
        return self

    @property
    def told(self) -> tuple[list[Event], list[tuple[str, int]], str, dict[str, Any]]:
        return self.kept, self.places, self.error, self.state


class Stream(ChunkBuffer):
    """A log that comes in pieces of some sizes, parsed as a dump's or as a file's."""

    def __init__(self, data: bytes, sizes: Iterator[int], *, packets: bool, capacity: int) -> None:
        rest = io.BytesIO(data)

        def receive(memory: memoryview) -> int:
            return rest.readinto(memory[: min(next(sizes), len(memory))])

        super().__init__(receive, capacity)
        self.packets = packets

    def next_event(self) -> bytes | None:
        return next_event(self.take, packets=self.packets)


def next_event(read: Callable[[int], bytes], *, packets: bool) -> bytes | None:
    if packets:
        return client._next_event(read, "h:1", FILE, 4)
    return files._next_event(read, FILE, 4)


def by_twins(data: bytes, walker: LogWalker, filtering: EventFilter, *, packets: bool) -> Outcome:
    found = Outcome()
    read = io.BytesIO(data).read
    try:
        while (raw := next_event(read, packets=packets)) is not None:
            event = walker.feed(raw)
            if event is not None:
                found.kept += filtering.feed(event)
                if filtering.ended:
                    found.places.append((event.file, event.end))
    except MySQLBinlogError as error:
        return found.end(walker, filtering, error.at(walker.file, walker.pos))
    return found.end(walker, filtering, None)


def by_scan(
    stream: Any, walker: LogWalker, filtering: EventFilter, *, whole_maps: bool = False
) -> Outcome:
    found = Outcome()
    scanner = LogScanner(filtering, whole_maps=whole_maps)
    scanner.open(stream, walker)
    try:
        while (item := scanner.next(lambda _: 1 << 62)) is not None:
            if isinstance(item, Run):
                found.runs += 1
                packed = item.pack()
                kept = list(unpack_events([packed.block])) if packed is not None else []
                assert item.kept_bytes == sum(HEADER_LENGTH + len(event.body) for event in kept)
                if packed is not None:
                    assert packed.last_end == kept[-1].end
                    assert packed.block == pack_events(kept)[0]
                found.kept += kept
                found.places += [(item.file, end) for end in item.ends]
            else:
                found.left += 1
                found.kept += filtering.feed(item)
                scanner.learn(item)
                if filtering.ended:
                    found.places.append((item.file, item.end))
    except MySQLBinlogError as error:
        return found.end(walker, filtering, error.at(walker.file, walker.pos))
    return found.end(walker, filtering, None)


def framed(raws: Iterable[bytes]) -> bytes:
    """As a dump sends events; none here fills a packet."""
    return b"".join(
        (len(raw) + 1).to_bytes(3, "little") + bytes([n & 0xFF, 0]) + raw
        for n, raw in enumerate(raws)
    )


def compare(
    data: bytes,
    *,
    packets: bool,
    wanted: Wants = wants,
    sizes: Callable[[], Iterator[int]] = lambda: iter(lambda: 1 << 20, 0),
    capacity: int = 1 << 16,
    walker: Callable[[], LogWalker] = lambda: LogWalker(FILE, 4),
    whole_maps: bool = False,
) -> Outcome:
    """Both ways; what the scan gave."""
    expected = by_twins(data, walker(), EventFilter(wanted), packets=packets)
    stream = Stream(data, sizes(), packets=packets, capacity=capacity)
    found = by_scan(stream, walker(), EventFilter(wanted), whole_maps=whole_maps)
    assert found.told == expected.told
    return found


def in_format(log: LogBuilder) -> list[bytes]:
    """A log with a FORMAT_DESCRIPTION in front, as a dump repeats it."""
    body = format_description_body(algorithm=int(log.checksum))
    return [raw_event(T.FORMAT_DESCRIPTION_EVENT, body, log_pos=0), *log.raws]


def always(size: int) -> Callable[[], Iterator[int]]:
    return lambda: iter(lambda: size, 0)


# --- captured logs

LOGS = sorted(CAPTURED.glob("*.binlog"))


@pytest.mark.parametrize("path", LOGS, ids=[path.name for path in LOGS])
@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_captured_logs(path: Path, packets: bool) -> None:
    """Whole, in pieces down to one byte, through buffers large and small; all wanted, or some."""
    raws = raws_in(path)
    data = framed(raws) if packets else b"".join(raws)
    filters: list[Wants] = [lambda *_: True, lambda *_: False]
    filters += [
        lambda *name, salt=salt: bool(zlib.crc32(f"{salt}{name}".encode()) & 1) for salt in "ab"
    ]
    for wanted in filters:
        for size, capacity in ((1 << 20, 1 << 20), (1 << 20, 700), (333, 1 << 16), (64, 64)):
            compare(data, packets=packets, wanted=wanted, sizes=always(size), capacity=capacity)
    if len(data) < 20_000:
        compare(data, packets=packets, wanted=filters[2], sizes=always(1), capacity=4096)


@pytest.mark.parametrize("name", ["wide", "numbers", "strings", "temporals"])
def test_most_of_a_log_makes_no_event(name: str) -> None:
    """Behind the first meeting of its tables; else the scan would be no use."""
    raws = raws_in(CAPTURED / f"{name}.001.binlog")
    found = compare(b"".join(raws), packets=False, wanted=lambda *_: True, capacity=1 << 20)
    assert found.runs
    assert found.left < len(raws)


def test_many_transactions_make_no_events() -> None:
    log = LogBuilder().format_description()
    for n in range(1000):
        log.begin(gtid=n).rows(n % 3, "tux"[n % 3], n).xid()
    found = compare(framed(log.raws), packets=True)
    # The format, and the first transaction that names a table.
    assert found.left <= 1 + 3 * 5
    assert len(found.places) == 1000
    assert 300 < len(found.kept) / 5 < 1000


def test_a_long_transaction_makes_no_events() -> None:
    log = LogBuilder().format_description().begin(gtid=1)
    for n in range(2000):
        if n % 7 == 0:
            log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body(f"{n}"), IGNORABLE_FLAG)
        log.rows(n % 3, "tux"[n % 3], n)
        if n % 11 == 0:
            log.add(T.WRITE_ROWS_EVENT, dummy_rows_body())
    found = compare(b"".join(log.xid().raws), packets=False, capacity=3000)
    assert found.left < 40
    assert len(found.places) == 1


@pytest.mark.parametrize("whole_maps", [True, False])
def test_table_maps_that_somebody_looks_at(whole_maps: bool) -> None:
    """Those of wanted tables come as events until an equal one was learnt."""
    log = LogBuilder().format_description()
    for table_id in (1, 1, 2, 1, 2, 3):
        log.begin().rows(table_id, "t", 1).rows(9, "x", 1).xid()
    found = compare(b"".join(log.raws), packets=False, whole_maps=whole_maps)
    assert (found.left > 8) == whole_maps


def test_from_a_socket() -> None:
    """The stream of a real connection, written in pieces of odd sizes."""
    log = LogBuilder().format_description()
    for n in range(3000):
        log.begin().rows(1, "t", n).rows(2, "x", n).xid()
    log.begin().rows(1, "t", *range(100_000)).xid()
    raws = log.raws
    data = framed(raws) + b"\x01\x00\x00\x00\xfe"
    expected = by_twins(data, LogWalker(FILE, 4), EventFilter(wants), packets=True)
    ours, theirs = socket.socketpair()

    def send() -> None:
        sizes = random.Random(3)
        with theirs:
            at = 0
            while at < len(data):
                size = sizes.choice([1, 7, 100, 5000, 70_000])
                theirs.sendall(data[at : at + size])
                at += size

    peer = threading.Thread(target=send)
    peer.start()
    with ours:
        ours.settimeout(20)
        stream = DumpStream(ours, "h:1", FILE, 4, ChecksumAlgorithm.OFF)
        found = by_scan(stream, LogWalker(FILE, 4), EventFilter(wants))
    peer.join()
    assert found.told == expected.told
    assert found.left < 20


# --- damage


def flipped(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def with_checksums(raws: Iterable[bytes]) -> list[bytes]:
    """Damaged events whose checksums are right again, so that the damage goes further."""
    return [raw[:-4] + zlib.crc32(raw[:-4]).to_bytes(4, "little") for raw in raws]


SMALL = ["transactions.001", "numbers.001", "rotations.001", "gtid_no_checksum.001"]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_flipped_bits(name: str, packets: bool) -> None:
    raws = raws_in(CAPTURED / f"{name}.binlog")
    chance = random.Random(f"{name}{packets}")
    data = framed(raws) if packets else b"".join(raws)
    errors = set()
    for _ in range(150):
        damaged = flipped(data, chance)
        size = chance.choice([100, 1000, 1 << 20])
        found = compare(
            damaged, packets=packets, wanted=lambda *_: True, sizes=always(size), capacity=3000
        )
        errors.add(found.error.partition(":")[0])
    assert len(errors - {""}) > 1


@pytest.mark.parametrize("name", SMALL[:3])
def test_flipped_bits_under_right_checksums(name: str) -> None:
    raws = raws_in(CAPTURED / f"{name}.binlog")
    chance = random.Random(name)
    errors = set()
    for _ in range(300):
        damaged = list(raws)
        at = chance.randrange(len(raws))
        damaged[at] = with_checksums([flipped(raws[at], chance)])[0]
        packets = chance.random() < 0.5
        data = framed(damaged) if packets else b"".join(damaged)
        errors.add(compare(data, packets=packets, wanted=wants_half).error.partition(":")[0])
    assert len(errors - {""}) > 2


@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_cut_at_every_byte(packets: bool) -> None:
    log = LogBuilder().format_description()
    log.begin(gtid=1).rows(1, "t", 1).xid().begin(gtid=2).rows(1, "t", 1).rows(2, "x", 2).xid()
    data = framed(log.raws) if packets else b"".join(log.raws)
    for length in range(len(data) + 1):
        compare(data[:length], packets=packets)


@pytest.mark.parametrize("seed", range(200))
def test_events_dropped_doubled_and_reordered(seed: int) -> None:
    """With right positions and checksums: what the filter has to refuse."""
    chance = random.Random(seed)
    name = chance.choice(["transactions.001", "numbers.001", "statements.001", "rotations.002"])
    events = [
        (HEADER.unpack_from(raw), raw[HEADER_LENGTH:-4])
        for raw in raws_in(CAPTURED / f"{name}.binlog")
    ]
    for _ in range(chance.choice([1, 2, 4])):
        at, to = chance.randrange(1, len(events)), chance.randrange(1, len(events))
        match chance.choice(["drop", "double", "move", "swap"]):
            case "drop" if len(events) > 5:
                del events[at]
            case "double":
                events.insert(to, events[at])
            case "move":
                events.insert(to, events.pop(at))
            case _:
                events[at], events[to] = events[to], events[at]
    log = LogBuilder()
    for (_, kind, _, _, _, flags), body in events:
        log.add(kind, body, flags)
    packets = chance.random() < 0.5
    data = framed(log.raws) if packets else b"".join(log.raws)
    size = chance.choice([50, 1000, 1 << 20])
    salt = chance.choice(["", "a", "b"])
    compare(
        data,
        packets=packets,
        wanted=lambda *name: not salt or bool(zlib.crc32(f"{salt}{name}".encode()) & 1),
        sizes=always(size),
        capacity=chance.choice([500, 5000, 1 << 16]),
    )


# --- any log

EVENTS = st.one_of(
    st.tuples(st.just("begin"), st.none()),
    st.tuples(st.just("begin"), st.integers(1, 9)),
    st.tuples(st.just("rows"), st.tuples(st.integers(1, 3), st.sampled_from("tuxy"))),
    st.tuples(st.just("more rows"), st.integers(1, 4)),
    st.tuples(st.just("map"), st.tuples(st.integers(1, 3), st.sampled_from("tuxy"))),
    st.tuples(st.just("text"), st.none()),
    st.tuples(st.just("dummy"), st.none()),
    st.tuples(st.just("xid"), st.none()),
    st.tuples(
        st.just("query"),
        st.sampled_from(
            [
                "COMMIT",
                "ROLLBACK",
                "SAVEPOINT a",
                "ROLLBACK TO a",
                "CREATE TABLE z (a INT)",
                "TRUNCATE t",
                "commit",
                "BEGIN ",
                "INSERT INTO x VALUES (1)",
                "XA START 'a'",
                "FROB",
            ]
        ),
    ),
    st.tuples(st.just("mariadb gtid"), st.integers(0, 3)),
    st.tuples(st.just("annotate"), st.none()),
    st.tuples(st.just("heartbeat"), st.none()),
    st.tuples(st.just("rotate"), st.none()),
    st.tuples(st.just("format"), st.none()),
    st.tuples(st.just("short"), st.sampled_from([2, 16, 19, 30, 162])),
    st.tuples(st.just("unknown"), st.sampled_from([0, IGNORABLE_FLAG])),
    st.tuples(st.just("variables"), st.binary(max_size=12)),
)
TRANSACTION = st.lists(EVENTS, max_size=8).map(
    lambda inside: [("begin", 1), ("rows", (1, "t")), *inside, ("xid", None)]
)
QUIET = st.lists(
    st.sampled_from([("rows", (1, "t")), ("rows", (2, "x")), ("rows", (3, "u")), ("text", None)]),
    max_size=6,
).map(lambda inside: [("begin", 1), *inside, ("xid", None)])
LOG = st.lists(st.one_of(TRANSACTION, QUIET, QUIET, QUIET), max_size=8).map(
    lambda parts: [event for part in parts for event in part]
)


def add(log: LogBuilder, what: str, value: Any) -> None:
    match what:
        case "begin":
            log.begin(gtid=value)
        case "rows":
            log.rows(*value, 1, 2)
        case "more rows":
            log.add(T.WRITE_ROWS_EVENT, rows_body(value, 1))
        case "map":
            log.add(T.TABLE_MAP_EVENT, table_map(*value))
        case "text":
            log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body(f"{log.pos}"), IGNORABLE_FLAG)
        case "annotate":
            log.add(T.MARIADB_ANNOTATE_ROWS_EVENT, f"{log.pos}".encode())
        case "dummy":
            log.add(T.WRITE_ROWS_EVENT, dummy_rows_body())
        case "xid":
            log.xid()
        case "query":
            log.query(value)
        case "mariadb gtid":
            log.add(T.MARIADB_GTID_EVENT, bytes(12) + bytes([value]) + bytes(6))
        case "heartbeat":
            log.raws.append(
                raw_event(27, FILE.encode(), log_pos=log.pos, flags=0, checksum=log.checksum)
            )
        case "rotate":
            log.raws.append(
                raw_event(4, rotate_body("mysql-bin.000002"), log_pos=0, checksum=log.checksum)
            )
            log.pos = 4
        case "format":
            log.format_description()
        case "short":
            log.add(value, bytes(5))
        case "unknown":
            log.add(99, b"?", value)
        case "variables":
            log.add(T.QUERY_EVENT, query_body("BEGIN", variables=value))


@given(
    LOG,
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.lists(st.integers(1, 400), min_size=1, max_size=5),
    st.sampled_from([64, 300, 1000, 1 << 16]),
)
@settings(max_examples=600, deadline=None)
def test_any_log(
    events: list[tuple[str, Any]],
    choices: tuple[bool, bool, bool],
    sizes: list[int],
    capacity: int,
) -> None:
    packets, checksum, whole_maps = choices
    log = LogBuilder(checksum=checksum)
    for what, value in events:
        add(log, what, value)
    raws = in_format(log)

    def repeated() -> Iterator[int]:
        while True:
            yield from sizes

    compare(
        framed(raws) if packets else b"".join(raws),
        packets=packets,
        sizes=repeated,
        capacity=capacity,
        whole_maps=whole_maps,
    )


def test_gtids_of_any_length_and_systems_own_tables() -> None:
    log = LogBuilder()
    for n in range(3):
        log.add(T.GTID_LOG_EVENT, gtid_body(n)[: 25 + n]).query("BEGIN")
        log.add(T.TABLE_MAP_EVENT, table_map(1, "t", "mysql"))
        log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1)).rows(2, "t", 1).query("COMMIT")
    found = compare(b"".join(in_format(log)), packets=False)
    assert len(found.places) == 3
    assert found.left < 10


def test_nothing_is_read_where_nothing_is_open() -> None:
    scanner = kernel.Scanner(whole_maps=False)
    reads = [scanner.scan_transactions, scanner.skip_rows, scanner.statement]
    for read in reads:
        with pytest.raises(ValueError, match="nothing is open"):
            read()
    with pytest.raises(IndexError):
        scanner.pack(0, 1)
    scanner.open(b"", 4, 100, packets=False, checksum=True, verified=0)
    scanner.scan_transactions()
    assert (scanner.stop, scanner.statement()) == ("more", [])


def test_a_position_that_wraps_at_4_gib() -> None:
    """log_pos has 32 bits; the event that ends at 0 of them is the twin's."""
    log = LogBuilder(pos=(1 << 32) - 700)
    for n in range(20):
        log.begin().rows(1, "t", n).xid()
    assert log.pos > 1 << 32
    found = compare(
        b"".join(in_format(log)),
        packets=False,
        walker=lambda: LogWalker(FILE, (1 << 32) - 700),
    )
    assert len(found.places) == 20
    assert found.left < 15


def test_a_limit_and_a_place_to_be_asked_at() -> None:
    log = LogBuilder().format_description()
    for n in range(50):
        log.begin().rows(1, "t", n).xid()
    ends = by_twins(
        b"".join(log.raws), LogWalker(FILE, 4), EventFilter(wants), packets=False
    ).places
    for limit in (ends[9][1], ends[9][1] + 1, ends[10][1] - 1):
        filtering = EventFilter(wants)
        scanner = LogScanner(filtering)
        stream = Stream(b"".join(log.raws), always(1 << 20)(), packets=False, capacity=1 << 16)
        scanner.open(stream, LogWalker(FILE, 4))
        boundary = furthest = 0
        while (item := scanner.next(until(limit))) is not None:
            if isinstance(item, Run):
                furthest = item.end
                boundary = item.ends[-1] if item.ends else boundary
            else:
                filtering.feed(item)
                scanner.learn(item)
        assert boundary == ends[9][1]
        assert boundary <= furthest <= limit
    log = LogBuilder().format_description().begin().rows(1, "t", 1)
    for n in range(100):
        log.rows(1, "t", n)
    filtering = EventFilter(wants)
    asked: list[int] = []
    due = 1000
    scanner = LogScanner(filtering, ask_at=lambda: due)
    stream = Stream(b"".join(log.raws), always(1 << 20)(), packets=False, capacity=1 << 9)
    scanner.open(stream, LogWalker(FILE, 4))
    while (item := scanner.next(lambda _: 1 << 62)) is not None:
        if isinstance(item, Run):
            if item.rows_end:
                asked.append(item.end)
                due += 1000
        else:
            filtering.feed(item)
            scanner.learn(item)
    rows_ends = [
        event.end for event in log.events() if event.type == T.WRITE_ROWS_EVENT and event.end > 900
    ]
    assert asked == [next(end for end in rows_ends if end >= n) for n in range(1000, due, 1000)]
