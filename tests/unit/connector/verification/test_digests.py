"""Digests of rows and keys, their partitions on disk, and the comparison of partitions."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.connector.verification.comparison import candidates_of, differing_keys
from pyspark_mysqlbinlog.connector.verification.digests import KEY, ROW, digests_of
from pyspark_mysqlbinlog.connector.verification.partitions import HashPartitions, partition_count

_TYPES: dict[str, pa.DataType] = {"id": pa.int64(), "s": pa.string(), "f": pa.float64()}
_SCHEMA = pa.schema(_TYPES)


def ids_of(table: pa.Table) -> list[Any]:
    return table.column("id").to_pylist()


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(_SCHEMA.names, each, strict=True)) for each in values], _SCHEMA
    )


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.string(), "a", "a "),
        (pa.string(), "", None),
        (pa.string(), "A", "a"),
        (pa.string(), "-", None),
        (pa.binary(), b"\0", b""),
        (pa.float64(), 0.0, -0.0),
        (pa.float64(), 0.1, 0.1 + 2**-56),
        (pa.float32(), 1.0, -1.0),
        (pa.decimal128(9, 2), Decimal("1.20"), Decimal("1.21")),
        (pa.int64(), 0, None),
        (pa.uint64(), 2**64 - 1, 2**64 - 2),
        (pa.timestamp("us"), 1, 2),
        (pa.bool_(), False, None),
    ],
)
def test_rows_with_different_values_have_different_digests(
    kind: pa.DataType, one: Any, other: Any
) -> None:
    table = pa.table([pa.array([1, 1, 1]), pa.array([one, other, one], kind)], ["id", "v"])
    digests = digests_of(table, ["id"])
    first, second, again = digests.column(ROW).to_pylist()
    assert first == again != second
    assert len({*digests.column(KEY).to_pylist()}) == 1


def test_values_split_differently_between_columns_have_different_digests() -> None:
    table = pa.table({"a": ["1:x", "1:"], "b": ["y", "xy"]})
    assert len({*digests_of(table, ["a", "b"]).column(ROW).to_pylist()}) == 2


def test_key_digest_ignores_sign_of_zero_and_equals_row_digest_without_key() -> None:
    table = pa.table({"f": [0.0, -0.0]})
    keyed = digests_of(table, ["f"])
    assert len({*keyed.column(KEY).to_pylist()}) == 1
    assert len({*keyed.column(ROW).to_pylist()}) == 2
    keyless = digests_of(table, [])
    assert keyless.column_names == [KEY, ROW]
    assert keyless.column(KEY).to_pylist() == keyless.column(ROW).to_pylist()


def test_hash_partition_count_is_a_power_of_two() -> None:
    assert partition_count(0, 8) == 1
    assert partition_count(100_000_000, 8) == 256
    for count in (partition_count(10**power, 8) for power in range(12)):
        assert count & (count - 1) == 0


def test_hash_partitions_hold_each_row_once_until_cleared(tmp_path: Path) -> None:
    parts = [
        rows(*((n, f"row {n}", n / 7) for n in range(at, at + 500))) for at in range(0, 4000, 500)
    ]
    with HashPartitions(tmp_path, 8) as spilled, ThreadPoolExecutor(4) as threads:
        for _ in threads.map(lambda part: spilled.add(digests_of(part.slice(1), ["id"])), parts):
            pass
    assert spilled.rows == 8 * 499
    found = [spilled.read(number) for number in range(8)]
    held = [value for part in found if part is not None for value in ids_of(part)]
    assert sorted(held) == [n for n in range(4000) if n % 500]
    spilled.clear()
    assert spilled.rows == 0
    assert all(spilled.read(number) is None for number in range(8))


def test_keys_with_unequal_rows_on_both_sides_are_reported_as_differing() -> None:
    server = digests_of(rows((1, "a", 0.5), (2, "b", 0.5), (3, "c", None), (5, "e", 1.0)), ["id"])
    delta = digests_of(
        rows((1, "a", 0.5), (2, "b", -0.5), (4, "d", 0.0), (5, "e", 1.0), (5, "e", 1.0)), ["id"]
    )
    found = differing_keys(server, delta)
    assert found is not None
    assert sorted(ids_of(found)) == [2, 3, 4, 5]
    assert found.column_names == ["id", KEY]
    for one, other in ((server, None), (None, server)):
        alone = differing_keys(one, other)
        assert alone is not None
        assert sorted(ids_of(alone)) == [1, 2, 3, 5]
    equal = differing_keys(server, server)
    assert equal is not None
    assert equal.num_rows == 0
    assert differing_keys(None, None) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("key", [["id"], []])
def test_candidates_of_random_sides_equal_their_symmetric_difference(
    key: list[str], seed: int, tmp_path: Path
) -> None:
    random = Random(seed)

    def side() -> list[tuple[Any, ...]]:
        return [
            (random.randrange(50), random.choice(["", "a", None]), random.choice([0.0, -0.0, None]))
            for _ in range(random.randrange(80))
        ]

    shared = side()
    sides = [shared + side() if random.random() < 0.8 else list(shared) for _ in range(2)]
    count = random.choice([1, 2, 16])
    spilled = []
    for number, values in enumerate(sides):
        random.shuffle(values)
        folder = tmp_path / str(number)
        folder.mkdir()
        with HashPartitions(folder, count) as partitions:
            for at in range(0, len(values), 7):
                partitions.add(digests_of(rows(*values[at : at + 7]), key))
        spilled.append(partitions)
    found = list(candidates_of(spilled[0], spilled[1], count))
    one, other = (Counter(map(repr, values)) for values in sides)
    wrong = {*(one - other), *(other - one)}
    if key:
        ids = sorted(value for part in found for value in ids_of(part))
        assert ids == sorted({values[0] for values in sides[0] + sides[1] if repr(values) in wrong})
    else:
        assert sum(part.num_rows for part in found) == len(wrong)
