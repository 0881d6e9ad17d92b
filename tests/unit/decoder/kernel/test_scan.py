"""The compiled scan compared with Python: equal kept events, boundaries and errors."""

from __future__ import annotations

import random
import socket
import threading
import zlib
from pathlib import Path

import pytest

from helpers.logs.events import (
    LogBuilder,
    dummy_rows_body,
    gtid_body,
    rows_body,
    rows_query_body,
    table_map,
)
from helpers.parity.decoding import CAPTURED, raws_in
from helpers.parity.payloads import repacked
from helpers.parity.require_kernel import scan as kernel
from helpers.parity.scan_parity import (
    FILE,
    Captures,
    always,
    by_both,
    by_scan,
    captures,
    compare,
    framed,
    in_format,
)
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import IGNORABLE_FLAG, EventType
from pyspark_mysqlbinlog.protocol.server.dump_stream import DumpStream

T = EventType
LOGS = sorted(CAPTURED.glob("*.binlog"))


@pytest.mark.parametrize("path", LOGS, ids=[path.name for path in LOGS])
@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_kernel_scan_of_captured_logs_matches_python(path: Path, packets: bool) -> None:
    """Read in small and large pieces and buffers, with all tables captured, or some."""
    raws = raws_in(path)
    data = framed(raws) if packets else b"".join(raws)
    filters: list[Captures] = [lambda *_: True, lambda *_: False]
    filters += [
        lambda *name, salt=salt: bool(zlib.crc32(f"{salt}{name}".encode()) & 1) for salt in "ab"
    ]
    for captured in filters:
        for size, capacity in ((1 << 20, 1 << 20), (1 << 20, 700), (333, 1 << 16), (64, 64)):
            compare(data, packets=packets, captured=captured, sizes=always(size), capacity=capacity)
    if len(data) < 20_000:
        compare(data, packets=packets, captured=filters[2], sizes=always(1), capacity=4096)


@pytest.mark.parametrize("path", LOGS, ids=[path.name for path in LOGS])
@pytest.mark.parametrize("packets", [True, False], ids=["dump", "file"])
def test_kernel_scan_of_compressed_logs_matches_python(
    path: Path, packets: bool, tmp_path: Path
) -> None:
    """Whole transactions are in payloads: the kernel scans small ones, Python the others."""
    raws = raws_in(repacked(path, tmp_path))
    data = framed(raws) if packets else b"".join(raws)
    filters: list[Captures] = [
        lambda *_: True,
        lambda *name: bool(zlib.crc32(f"a{name}".encode()) & 1),
    ]
    for captured in filters:
        for size, capacity in ((1 << 20, 1 << 20), (333, 1 << 16), (64, 64)):
            found = compare(
                data, packets=packets, captured=captured, sizes=always(size), capacity=capacity
            )
            if capacity == 1 << 20 and captured is filters[0] and not found.error:
                payloads = [raw for raw in raws if raw[4] == T.TRANSACTION_PAYLOAD_EVENT]
                assert len(payloads) <= sum(len(run.ends) for run in found.runs) + found.left


@pytest.mark.parametrize("name", ["wide", "numbers", "strings", "temporals"])
def test_kernel_scan_creates_fewer_events_than_the_log_has(name: str) -> None:
    raws = raws_in(CAPTURED / f"{name}.001.binlog")
    found = compare(b"".join(raws), packets=False, captured=lambda *_: True, capacity=1 << 20)
    assert found.runs
    assert found.left < len(raws)


def test_kernel_scan_creates_events_only_until_each_table_is_known() -> None:
    log = LogBuilder().format_description()
    for n in range(1000):
        log.begin(gtid=n).rows(n % 3, "tux"[n % 3], n).xid()
    found = compare(framed(log.raws), packets=True)
    # The FORMAT_DESCRIPTION, and the first transaction of each of the three tables.
    assert found.left <= 1 + 3 * 5
    assert len(found.places) == 1000
    assert 300 < len(found.kept) / 5 < 1000


def test_kernel_scan_of_a_long_transaction_creates_few_events() -> None:
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
def test_kernel_scan_creates_more_events_with_whole_maps(whole_maps: bool) -> None:
    """Whole maps of captured tables become events until the scanner knows an equal map."""
    log = LogBuilder().format_description()
    for table_id in (1, 1, 2, 1, 2, 3):
        log.begin().rows(table_id, "t", 1).rows(9, "x", 1).xid()
    found = compare(b"".join(log.raws), packets=False, whole_maps=whole_maps)
    assert (found.left > 8) == whole_maps


def test_kernel_scan_of_a_socket_stream_matches_python() -> None:
    """The events come over a real socket, written in pieces of uneven sizes."""
    log = LogBuilder().format_description()
    for n in range(3000):
        log.begin().rows(1, "t", n).rows(2, "x", n).xid()
    log.begin().rows(1, "t", *range(100_000)).xid()
    raws = log.raws
    data = framed(raws) + b"\x01\x00\x00\x00\xfe"
    expected = by_both(data, EventReader(FILE, 4), EventFilter(captures), packets=True)
    reader, writer = socket.socketpair()

    def send() -> None:
        sizes = random.Random(3)
        with writer:
            at = 0
            while at < len(data):
                size = sizes.choice([1, 7, 100, 5000, 70_000])
                writer.sendall(data[at : at + size])
                at += size

    peer = threading.Thread(target=send)
    peer.start()
    with reader:
        reader.settimeout(20)
        stream = DumpStream(reader, "h:1", FILE, 4, ChecksumAlgorithm.OFF, at_end=lambda: None)
        found = by_scan(stream, EventReader(FILE, 4), EventFilter(captures))
    peer.join()
    assert found.reported == expected.reported
    assert found.left < 20


def test_kernel_scan_of_gtids_of_any_length_and_system_tables_matches_python() -> None:
    log = LogBuilder()
    for n in range(3):
        log.add(T.GTID_LOG_EVENT, gtid_body(n)[: 25 + n]).query("BEGIN")
        log.add(T.TABLE_MAP_EVENT, table_map(1, "t", "mysql"))
        log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1)).rows(2, "t", 1).query("COMMIT")
    found = compare(b"".join(in_format(log)), packets=False)
    assert len(found.places) == 3
    assert found.left < 10


def test_scanner_without_an_open_chunk_raises_value_error() -> None:
    scanner = kernel.Scanner(whole_maps=False)
    reads = [scanner.scan_transactions, scanner.skip_rows, scanner.statement]
    for read in reads:
        with pytest.raises(ValueError, match="no chunk is open"):
            read()
    with pytest.raises(IndexError):
        scanner.pack(0, 1)
    scanner.open(b"", 4, 100, packets=False, checksum=True, may_lack_positions=False, verified=0)
    scanner.scan_transactions()
    assert (scanner.stop, scanner.statement()) == ("more", [])


def test_kernel_scan_across_the_4_gib_position_matches_python() -> None:
    """log_pos has 32 bits; an event that ends where it is 0 is left to Python."""
    log = LogBuilder(pos=(1 << 32) - 700)
    for n in range(20):
        log.begin().rows(1, "t", n).xid()
    assert log.pos > 1 << 32
    found = compare(
        b"".join(in_format(log)),
        packets=False,
        walker=lambda: EventReader(FILE, (1 << 32) - 700),
    )
    assert len(found.places) == 20
    assert found.left < 15


def test_scan_runs_end_at_the_last_boundary_within_the_limit() -> None:
    log = LogBuilder().format_description()
    for n in range(50):
        log.begin().rows(1, "t", n).xid()
    data = b"".join(log.raws)
    places = [end for _, end in compare(data, packets=False).places]
    for limit in (places[9], places[9] + 1, places[10] - 1):
        runs = compare(data, packets=False, limit=limit).runs
        assert [end for run in runs for end in run.ends][-1] == places[9]
        assert places[9] <= runs[-1].end <= limit


def test_scan_run_ends_after_the_first_rows_event_at_the_requested_position() -> None:
    log = LogBuilder().format_description().begin().rows(1, "t", 1)
    for n in range(100):
        log.rows(1, "t", n)
    found = compare(b"".join(log.raws), packets=False, capacity=1 << 9, pause_every=1000)
    asked = [run.end for run in found.runs if run.rows_end]
    rows_ends = [
        event.end for event in log.events() if event.type == T.WRITE_ROWS_EVENT and event.end > 900
    ]
    due = range(1000, 1000 * (1 + len(asked)), 1000)
    assert asked == [next(end for end in rows_ends if end >= n) for n in due]
    assert len(asked) > 5
