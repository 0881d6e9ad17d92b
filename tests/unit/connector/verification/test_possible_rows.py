"""Rows that are not read again to confirm differences are left out early, by the key's values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.connector.verification.confirmation import _possible
from pyspark_mysqlbinlog.connector.verification.digests import KEY


@pytest.mark.parametrize(
    ("kind", "wanted", "other"),
    [
        (pa.string(), "a", "A"),
        (pa.binary(), b"a", b"a "),
        # BIGINT UNSIGNED
        (pa.decimal128(20, 0), Decimal(2**64 - 1), Decimal(0)),
        (pa.decimal128(10, 2), Decimal("1.50"), Decimal("-1.50")),
        (pa.date32(), date(2026, 11, 29), date(1, 1, 1)),
        (
            pa.timestamp("us", "UTC"),
            datetime(2026, 11, 29, 1, tzinfo=UTC),
            datetime(2026, 11, 29, tzinfo=UTC),
        ),
    ],
)
def test_only_rows_with_a_candidates_value_are_possible(
    kind: pa.DataType, wanted: Any, other: Any
) -> None:
    candidates = pa.table({"id": pa.array([wanted], kind), KEY: pa.array([b"k" * 16])})
    part = pa.table({"id": pa.array([other, wanted, None, wanted], kind), "v": [1, 2, 3, 4]})
    assert _possible(part, candidates).column("v").to_pylist() == [2, 4]


def test_every_row_is_possible_without_a_column_to_compare() -> None:
    candidates = pa.table({"id": [1.5], KEY: pa.array([b"k" * 16])})
    part = pa.table({"id": [0.5, 1.5]})
    assert _possible(part, candidates) == part
