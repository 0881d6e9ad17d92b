"""The compiled and the Python scan on real servers: dumps, tails and fetched ranges, also cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips without the kernel)
from helpers.logs.cutting_proxy import cutting_proxy
from helpers.servers import Server
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.ranges.blocks import captured_blocks, scanned_blocks
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Span
from pyspark_mysqlbinlog.connector.tail.tail import Tail
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.protocol.blocks import unpack_events
from pyspark_mysqlbinlog.protocol.events import ROWS_EVENT_TYPES, Event
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings

pytestmark = pytest.mark.one_server

TRUNCATE = frozenset({"truncate"})
Captures = Callable[[str, str], bool]


def settings_of(server: Server, port: int | None = None) -> ServerSettings:
    return ServerSettings(server.host, port or server.port, server.user, server.password)


Log = tuple[Position, Position, Captures]


@pytest.fixture(scope="module")
def logs() -> dict[str, Log]:
    """Return the parts of the binlog by server name; each is written once."""
    return {}


@pytest.fixture
def log(any_server: Server, logs: dict[str, Log]) -> Log:
    """Return (start, end, captures) of the server's part of the binlog."""
    if any_server.name not in logs:
        logs[any_server.name] = write_log(any_server, "t_scan_live")
    return logs[any_server.name]


def write_log(server: Server, database: str) -> Log:
    """Write many kinds of events, over 10 MB in two files; return their part of the binlog."""
    server.execute(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
    start = Position.of(*server.position())
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(500))",
        "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT) ENGINE=MyISAM",
        "CREATE TABLE x (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(500))",
        database=database,
    )
    for table in ("t", "u", "x"):
        for _ in range(20):
            server.execute(f"INSERT INTO {table} (v) VALUES (REPEAT('é', 60))", database=database)
    rows = ",".join(["(REPEAT('x', 450))"] * 3000)
    texts = "annotate_row_events" if server.is_mariadb else "rows_query_log_events"
    with server.connect(database=database, autocommit=False) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION binlog_{texts} = ON")
        for table in ("t", "x", "t", "t", "x"):
            cursor.execute(f"INSERT INTO {table} (v) VALUES {rows}")
        cursor.execute("UPDATE t SET v = CONCAT('y', v)")
        cursor.execute("SAVEPOINT a")
        cursor.execute(f"INSERT INTO x (v) VALUES {rows}")
        connection.commit()
    server.rotate()
    server.execute(
        "INSERT INTO u (v) VALUES (REPEAT('z', 1000000))",
        "ALTER TABLE t ADD w INT",
        "TRUNCATE TABLE x",
        database=database,
    )
    for n in range(30):
        server.execute(f"UPDATE t SET w = {n} WHERE id = {n}", database=database)
        server.execute(f"INSERT INTO x (id) VALUES ({n + 1})", database=database)
    end = Position.of(*server.position())
    return start, end, lambda name, table: name == database and table in {"t", "u"}


def spans_of(
    settings: ServerSettings, log: Log, buffer_bytes: int, granularity: int, which: Implementation
) -> list[Span]:
    """Return the spans that a tail makes of a part of the binlog."""
    start, end, captures = log
    mark = BoundaryState(start, SchemaHistory())
    buffer = LogBuffer(mark, capacity=buffer_bytes, granularity=granularity)
    with using(which):
        tail = Tail(
            settings, server_uuid="", start=mark, captures=captures, buffer=buffer, retry_timeout=60
        )
        tail.start()
        try:
            wait_until(
                lambda: tail.scanned >= end or buffer.error is not None,
                "the tail comes to the end",
                timeout=60,
            )
            assert buffer.error is None
            last = buffer.last_boundary_within(start, None)
            assert last is not None
            spans = buffer.spans(start, last.position)
        finally:
            tail.stop()
    assert spans is not None
    return spans


def test_tail_spans_are_equal_in_both_implementations(any_server: Server, log: Log) -> None:
    """The spans' ends, bytes, pieces and contents are compared."""
    spans = [
        # Schemas from the servers' DDL are not part of the scan.
        [
            replace(span, end=replace(span.end, history=SchemaHistory()))
            for span in spans_of(settings_of(any_server), log, 4 << 20, 20_000, which)
        ]
        for which in ("c", "python")
    ]
    assert spans[0] == spans[1]
    assert any(span.blocks is None for span in spans[0])
    assert sum(len(span.pieces) for span in spans[0]) > 1
    assert len(spans[0]) > 3


def partition_of(log: Log) -> RangePartition:
    return RangePartition(log[0], log[1], "", (), True, None)


def expected_events(server: Server, log: Log) -> list[Event]:
    start, end, captures = log
    filtering = EventFilter(captures)
    events = ReconnectingLog(settings_of(server)).events(start)
    kept = [each for event in events for each in filtering.feed(event)]
    return [event for event in kept if Position.of(event.file, event.end) <= end]


def test_fetched_range_contains_the_captured_events(any_server: Server, log: Log) -> None:
    expected = expected_events(any_server, log)
    assert sum(event.type in ROWS_EVENT_TYPES for event in expected) > 100
    pulled = ReconnectingLog(settings_of(any_server))
    partition = partition_of(log)
    found = list(unpack_events(captured_blocks(pulled, partition, log[2], operations=TRUNCATE)))
    assert found == expected


def cut_points() -> Iterator[int]:
    """Return the bytes that each connection may transfer, each enough for a part of the dump."""
    return (3000 + 450_011 * n for n in count(1))


@pytest.mark.parametrize("prefetch", [True, False])
def test_fetched_range_is_complete_after_repeated_disconnects(
    any_server: Server, log: Log, prefetch: bool
) -> None:
    """Connections are cut inside events, transactions and packets; no event is lost or repeated."""
    expected = expected_events(any_server, log)
    partition = partition_of(log)
    pull = captured_blocks if prefetch else scanned_blocks
    with cutting_proxy(any_server.host, any_server.port, cut_points()) as proxy:
        pulled = ReconnectingLog(settings_of(any_server, proxy.port))
        found = list(unpack_events(pull(pulled, partition, log[2], operations=TRUNCATE)))
        assert proxy.cuts > 3
    assert found == expected


def test_tail_events_are_complete_after_repeated_disconnects(any_server: Server, log: Log) -> None:
    expected = expected_events(any_server, log)

    def allowed() -> Iterator[int]:
        # The last limits let everything through: after a cut, a transaction is read again from its
        # start.
        for size in (8_000, 40_000, 40_000, 1_500_000, 1_500_000, 6_000_000, 6_000_000):
            cuts = proxy.cuts
            # Short connections that ask for the server's end are not cut.
            while proxy.cuts == cuts:
                yield size

    with cutting_proxy(any_server.host, any_server.port, allowed()) as proxy:
        spans = spans_of(settings_of(any_server, proxy.port), log, 64 << 20, 0, "c")
        assert proxy.cuts > 3
    kept = [event for span in spans for event in unpack_events(span.blocks or ())]
    # A span that is too large to be inline has its positions, but no bytes.
    missing = [(span.start.position, span.end.position) for span in spans if span.blocks is None]
    assert kept == [
        event
        for event in expected
        if not any(a <= Position.of(event.file, event.start) < b for a, b in missing)
    ]
    assert len(missing) == 2


def test_closing_a_fetched_range_ends_its_dump_thread(any_server: Server, log: Log) -> None:
    before = set(any_server.dump_threads())
    blocks = captured_blocks(
        ReconnectingLog(settings_of(any_server)),
        partition_of(log),
        log[2],
        operations=TRUNCATE,
    )
    assert next(iter(blocks)).data
    blocks.close()
    wait_until(lambda: set(any_server.dump_threads()) <= before, "the server loses its replica")
