"""Packed binlog positions, and the contents of a commit marker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, unpack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import (
    CommitMarker,
    LogIdentity,
    fingerprint_of,
)
from pyspark_mysqlbinlog.errors import InvalidPositionError

NUMBERS = st.tuples(st.integers(0, (1 << 23) - 1), st.integers(0, (1 << 40) - 1))


@given(NUMBERS, NUMBERS)
def test_packed_positions_keep_order_and_survive_unpacking(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (pack(*one) < pack(*other)) == (one < other)
    assert unpack_position(pack(*one)) == one
    assert pack(*one) < 1 << 63


@pytest.mark.parametrize(("number", "pos"), [(1 << 23, 4), (1, 1 << 40), (-1, 4)])
def test_position_out_of_packed_range_is_rejected(number: int, pos: int) -> None:
    with pytest.raises(InvalidPositionError, match="transaction identifier can hold"):
        pack(number, pos)


def test_commit_marker_stores_position_batch_and_log_fingerprint() -> None:
    known = PositionFingerprint(1_795_217_343, 5, 31, 0xFFFFFFFF)
    log = LogIdentity("uuid", 0, "mysql-bin")
    kept = dict(CommitMarker(log, pack(3, 4), known, ("q", 7)).app_transactions)
    assert all(0 <= number < 1 << 63 for number in kept.values())
    assert kept[str(log)] == pack(3, 4)
    assert kept["q"] == 7
    found = fingerprint_of(kept[log.event], kept[log.file])
    assert found == PositionFingerprint(known.created, 0, known.length, known.checksum)
    head = dict(CommitMarker(log, 1, PositionFingerprint(known.created, 5)).app_transactions)
    assert fingerprint_of(head[log.event], head[log.file]) == PositionFingerprint(known.created, 0)
    unknown = dict(CommitMarker(log, 1).app_transactions)
    assert fingerprint_of(unknown[log.event], unknown[log.file]) is None
