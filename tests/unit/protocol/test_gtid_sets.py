"""GTID sets in bytes, as servers log them."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.gtid_sets import (
    Interval,
    MariadbLastGtid,
    encode_gtid_set,
    parse_gtid_set,
    parse_mariadb_gtid_list,
)

UUID = "4a4208bf-e9fd-11f1-8fee-02fc00000001"
SID = UUID.replace("-", "")
# (bytes of a PREVIOUS_GTIDS of MySQL 9.7.4, its set); the last from `flush binary logs` after
# transactions with gtid_next = AUTOMATIC:billing and AUTOMATIC:audit_1.
LOGGED: list[tuple[str, list[Interval]]] = [
    ("0000000000000000", []),
    (
        f"0100000000000000 {SID} 0100000000000000 0100000000000000 0300000000000000",
        [(UUID, "", 1, 2)],
    ),
    (
        (
            "0103000000000001"
            f" {SID} 00 0100000000000000 0100000000000000 0600000000000000"
            f" {SID} 0e 61756469745f31 0100000000000000 0100000000000000 0200000000000000"
            f" {SID} 0e 62696c6c696e67 0100000000000000 0100000000000000 0200000000000000"
        ),
        [(UUID, "", 1, 5), (UUID, "audit_1", 1, 1), (UUID, "billing", 1, 1)],
    ),
]


@pytest.mark.parametrize(("logged", "intervals"), LOGGED)
def test_logged_gtid_sets_are_read_and_written_equally(
    logged: str, intervals: list[Interval]
) -> None:
    data = bytes.fromhex(logged)
    assert parse_gtid_set(data) == intervals
    assert encode_gtid_set(intervals) == data


@pytest.mark.parametrize(("logged", "_"), LOGGED)
def test_cut_or_extended_gtid_sets_are_rejected(logged: str, _: object) -> None:
    data = bytes.fromhex(logged)
    for size in range(len(data)):
        with pytest.raises(MalformedEventError, match="PREVIOUS_GTIDS is cut short"):
            parse_gtid_set(data[:size])
    with pytest.raises(MalformedEventError, match="has 1 bytes after its"):
        parse_gtid_set(data + b"\0")


@pytest.mark.parametrize(("first", "end"), [(0, 3), (3, 3), (3, 2)])
def test_invalid_gtid_intervals_are_rejected(first: int, end: int) -> None:
    data = bytes.fromhex(f"0100000000000000 {SID} 0100000000000000")
    data += first.to_bytes(8, "little") + end.to_bytes(8, "little")
    with pytest.raises(MalformedEventError, match=f"has the interval {first} to {end - 1} of"):
        parse_gtid_set(data)


def test_mariadb_gtid_list_is_parsed_and_a_cut_one_is_rejected() -> None:
    data = bytes.fromhex("02000010 00000000 01000000 6400000000000000")
    data += bytes.fromhex("07000000 02000000 0500000000000000")
    expected = [MariadbLastGtid(0, 1, 100), MariadbLastGtid(7, 2, 5)]
    assert parse_mariadb_gtid_list(data) == expected
    with pytest.raises(MalformedEventError, match="GTID_LIST is cut short"):
        parse_mariadb_gtid_list(data[:-1])
