"""Transactions that end in a file beyond the last position from which it can be read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers.logs.events import LogBuilder, gtid_body, xa_prepare_body
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.events import EventType

XID = "X'61',X'',1"


def xa_prepare(log: LogBuilder) -> None:
    log.query(f"XA START {XID}").rows(1, "t", 3).query(f"XA END {XID}")
    log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a"))


def rollback(log: LogBuilder) -> None:
    log.query("BEGIN").rows(1, "t", 3).query("ROLLBACK")


def commit(log: LogBuilder) -> None:
    log.query("BEGIN").rows(1, "t", 3).xid()


@pytest.mark.parametrize("last", [xa_prepare, rollback, commit])
def test_transaction_beyond_the_last_start_stays_in_the_span_of_the_next_one(
    last: Callable[[LogBuilder], None],
) -> None:
    log = LogBuilder("mysql-bin.000001").format_description()
    log.begin(gtid=1).rows(1, "t", 1).xid()
    before = log.pos
    log.begin(gtid=2).rows(1, "t", 2).xid()
    late = log.pos
    last(log.add(EventType.GTID_LOG_EVENT, gtid_body(3)))
    log.rotate("mysql-bin.000002")
    following = LogBuilder("mysql-bin.000002").format_description().begin(gtid=4)
    following.rows(1, "t", 4).xid()
    start = BoundaryState(Position.of(log.file, 4), SchemaHistory())
    buffer = LogBuffer(start, capacity=1 << 20, granularity=10)
    scanner = TransactionScanner(
        start, EventFilter(lambda _, __: True), buffer, last_start=late - 1
    )
    for event in [*log.events(), *following.events()]:
        scanner.take(event)
    (span,) = [
        span
        for span in buffer.finished()
        if span.start.position.order <= (1, before) and span.end.position.order >= (1, late)
    ]
    # It begins at the late transaction, and ends in the next file, where a dump can start. Its
    # events are either those of both, or to be fetched.
    assert span.start.position == Position.of(log.file, before)
    assert span.end.position.file == following.file
    assert (span.blocks is None) == (last is not commit)
