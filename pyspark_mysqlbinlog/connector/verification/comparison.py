"""Compares the digests of both sides, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import int_range, pc
from pyspark_mysqlbinlog.connector.verification.digests import KEY, ROW
from pyspark_mysqlbinlog.connector.verification.partitions import HashPartitions

__all__ = ["candidates_of", "differing_keys"]

_COUNT, _PLACE = "=count", "=place"


def candidates_of(server: HashPartitions, delta: HashPartitions, count: int) -> Iterator[pa.Table]:
    """Yield the keys, with their digests, of the rows that differ in each of `count` partitions."""
    for number in range(count):
        sides = server.read(number), delta.read(number)
        found = differing_keys(*sides)
        if found is not None and found.num_rows:
            yield found


def differing_keys(server: pa.Table | None, delta: pa.Table | None) -> pa.Table | None:
    """Return the keys whose rows are not the same, each equally often, on both sides.

    server, delta : from `digests_of`. The result has the columns of a key, and `KEY`.
    """
    sides = [(side, sign) for side, sign in ((server, 1), (delta, -1)) if side is not None]
    if not sides:
        return None
    digests = pa.concat_tables([_signed(side, sign) for side, sign in sides])
    counts = digests.group_by([KEY, ROW], use_threads=False).aggregate([(_COUNT, "sum")])
    uneven = counts.filter(pc.not_equal(counts.column(f"{_COUNT}_sum"), 0))
    rows = pa.concat_tables([side for side, _ in sides]).drop([ROW])
    if not uneven.num_rows:
        return rows.slice(0, 0)
    wrong: Any = pc.unique(uneven.column(KEY))
    rows = rows.filter(pc.is_in(rows.column(KEY), value_set=wrong))
    placed = pa.table([rows.column(KEY), int_range(0, rows.num_rows)], [KEY, _PLACE])
    first = placed.group_by([KEY], use_threads=False).aggregate([(_PLACE, "min")])
    return rows.take(first.column(f"{_PLACE}_min"))


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    counts = pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows)
    return rows.select([KEY, ROW]).append_column(_COUNT, counts)
