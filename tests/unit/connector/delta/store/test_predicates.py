"""The bounds of a batch's keys never exclude a file that contains one of them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.connector.delta.store.predicates import integer_bounds, pruning_conditions

_UNSIGNED = pa.decimal128(20, 0)
# Large integers that Hypothesis draws in one piece are mostly exact as floats.
_LONG = st.builds(int.__add__, st.integers(2**53, 2**63), st.integers(1, 999))
_KEYS = st.integers(0, 2**16) | st.integers(10**15 - 10, 10**15 + 10) | _LONG


def _rows(kind: pa.DataType, *values: object) -> pa.Table:
    return pa.table({"id": pa.array(values, kind)})


def _decimals(*values: int | None) -> pa.Table:
    return _rows(_UNSIGNED, *(None if value is None else Decimal(value) for value in values))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (_rows(pa.int64(), 3, -(2**63)), (-(2**63), 3)),
        (_decimals(7, 3), (3, 7)),
        (_decimals(10**15 - 1), (10**15 - 1, 10**15 - 1)),
        (_decimals(1, 10**15), None),
        (_decimals(1, None), None),
        (_decimals(), None),
        (_rows(pa.decimal128(20, 2), Decimal("1.50")), None),
        (_rows(pa.float64(), 1.5), None),
        (_rows(pa.string(), "1"), None),
    ],
)
def test_only_non_null_integer_columns_within_limit_have_bounds(
    rows: pa.Table, expected: tuple[int, int] | None
) -> None:
    assert integer_bounds(rows, ["id"]).get("id") == expected


@given(st.lists(_KEYS, min_size=1, max_size=4), st.lists(_KEYS, max_size=2))
def test_pruning_bounds_leave_out_no_file_with_a_key(held: list[int], more_keys: list[int]) -> None:
    """delta-rs may round the statistics of a file to floats."""
    low, high = float(min(held)), float(max(held))
    keys = [*more_keys, held[0]]
    bounds = integer_bounds(_decimals(*keys), ["id"])
    assert bounds or max(map(abs, keys)) >= 10**15
    for least, greatest in bounds.values():
        assert low <= greatest
        assert high >= least


def test_pruning_conditions_are_sql_bounds_of_the_key() -> None:
    rows = _decimals(3, 7)
    assert [*pruning_conditions(rows, ["id"], lambda name: f"`{name}`")] == [
        "t.`id` >= 3",
        "t.`id` <= 7",
    ]
