"""Records on disk, read in reverse order."""

from __future__ import annotations

import tracemalloc

import pytest

from pyspark_mysqlbinlog.connector.flashback.spool import Spool

MIB = 1 << 20


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [0, 0, 0],
        [1, 2, 3],
        [MIB],
        [MIB - 8],
        [MIB - 7, 1],
        [1, MIB + 1, 1],
        [3 * MIB, 0, 5 * MIB, 7],
        [997] * 3000,
        [MIB // 2 - 8] * 5,
    ],
    ids=str,
)
def test_spool_returns_records_newest_first(sizes: list[int]) -> None:
    records = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    with Spool() as spool:
        for record in records:
            spool.add(record)
        for _ in range(2):
            assert [*spool.newest_first()] == records[::-1]


def test_spool_memory_stays_bounded_for_many_records() -> None:
    record = b"x" * 1000
    with Spool() as spool:
        tracemalloc.start()
        for _ in range(50_000):
            spool.add(record)
        count = sum(1 for _ in spool.newest_first())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (count, most < 6 * MIB) == (50_000, True), most
