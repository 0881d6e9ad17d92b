"""TRANSACTION_PAYLOAD events in the compiled scan: sizes, and incomplete transactions."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.events import LogBuilder, gtid_body, query_body, rows_body, table_map
from helpers.parity.payloads import inner, payload_body
from helpers.parity.require_kernel import scan as kernel
from helpers.parity.scan_parity import compare
from pyspark_mysqlbinlog.connector.tail.buffer import MAX_INLINE_BYTES_PER_TASK
from pyspark_mysqlbinlog.protocol.events import EventType as T

BEGIN = RawEvent(T.QUERY_EVENT, query_body("BEGIN"))
XID = RawEvent(T.XID_EVENT, bytes(8))
MAP = RawEvent(T.TABLE_MAP_EVENT, table_map(1, "t"))


def rows(*values: int) -> RawEvent:
    return RawEvent(T.WRITE_ROWS_EVENT, rows_body(1, *values))


WHOLE = inner([BEGIN, MAP, rows(*range(5000)), XID])


def in_payload(log: LogBuilder, number: int, *bodies: bytes) -> None:
    """Add a transaction that consists of a GTID and payloads."""
    log.add(T.GTID_LOG_EVENT, gtid_body(number))
    for body in bodies:
        log.add(T.TRANSACTION_PAYLOAD_EVENT, body)


def scanned(log: LogBuilder) -> kernel.Scanner:
    """Return a scanner that knows the table and has scanned all but the FORMAT_DESCRIPTION."""
    scanner = kernel.Scanner(whole_maps=False)
    scanner.learn(MAP.body, True)
    scanner.open(
        b"".join(log.raws[1:]),
        4 + len(log.raws[0]),
        1 << 62,
        packets=False,
        checksum=True,
        may_lack_positions=False,
        verified=0,
    )
    scanner.scan_transactions()
    return scanner


@pytest.mark.skipif(not kernel.has_zstd(), reason="libzstd.so.1 is not installed")
def test_small_payloads_of_known_tables_are_scanned_without_events() -> None:
    log = LogBuilder().format_description()
    for number in range(1, 4):
        in_payload(log, number, payload_body(WHOLE))
    found = scanned(log)
    assert found.stop == "more"
    assert len(found.endings()[0]) == 3


@pytest.mark.parametrize(
    "size", [(1 << 64) - 1, (1 << 64) - 200, (1 << 64) - 300, 1 << 63, 10**12, len(WHOLE) - 1]
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_wrong_decompressed_size_stops_the_scan_before_its_transaction(
    before: int, size: int
) -> None:
    log = LogBuilder().format_description()
    for number in range(before):
        in_payload(log, number + 1, payload_body(WHOLE))
    payload_end = log.pos
    in_payload(log, 9, payload_body(WHOLE, size=size))
    found = scanned(log)
    assert found.stop in ("odd", "full")
    assert found.pos <= payload_end


def test_scan_run_with_a_payload_stays_within_the_inline_bytes_of_a_task() -> None:
    log = LogBuilder().format_description()
    log.begin(1).rows(1, "t", 1).xid()
    in_payload(log, 2, payload_body(inner([BEGIN, MAP, *[rows(*[7] * 1600)] * 90, XID])))
    number = 3
    while log.pos < (1 << 19) - 9000:
        log.begin(number).rows(1, "t", *range(1600)).xid()
        number += 1
    assert scanned(log).kept <= MAX_INLINE_BYTES_PER_TASK


@pytest.mark.parametrize(
    "bodies",
    [
        [[BEGIN, MAP, rows(1)], [MAP, rows(2), XID]],
        [[BEGIN, MAP, rows(1)], [rows(2), XID]],
        [[BEGIN, MAP, rows(1)]],
    ],
    ids=["two payloads", "two payloads with one map", "no end"],
)
def test_payload_without_a_whole_transaction_is_rejected_by_both_implementations(
    bodies: Iterable[Iterable[RawEvent]],
) -> None:
    log = LogBuilder().format_description()
    log.begin(1).rows(1, "t", 1).xid()
    in_payload(log, 2, *(payload_body(inner(each)) for each in bodies))
    log.begin(3).rows(1, "t", 2).xid()
    found = compare(b"".join(log.raws), packets=False, captured=lambda *_: True, capacity=1 << 20)
    assert "TRANSACTION_PAYLOAD" in str(found.error)
