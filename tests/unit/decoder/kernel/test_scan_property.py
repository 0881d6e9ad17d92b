"""The compiled scan of random logs from Hypothesis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import helpers.parity.require_kernel  # noqa: F401 (skips this module if there is no kernel)
from helpers.logs.events import (
    LogBuilder,
    dummy_rows_body,
    query_body,
    raw_event,
    rotate_body,
    rows_body,
    rows_query_body,
    table_map,
)
from helpers.parity.scan_parity import FILE, compare, framed, in_format
from pyspark_mysqlbinlog.protocol.events import IGNORABLE_FLAG, EventType

T = EventType

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
    st.tuples(st.just("variables"), st.binary(max_size=12).map(b"\x83".__add__)),
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
@settings(max_examples=100)
@pytest.mark.sample(2, of=6)
def test_kernel_scan_of_random_logs_matches_python(
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
