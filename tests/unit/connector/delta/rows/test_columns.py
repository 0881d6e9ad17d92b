"""Names of columns in Delta."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.delta.rows.columns import check_distinct, delta_name
from pyspark_mysqlbinlog.errors import MirrorError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("id", "id"),
        ("Größe", "Größe"),
        ("x.y", "x.y"),
        ("unit price", "unit_price"),
        ("a,b;{c}(d)\n\t=", "a_b__c__d____"),
        ("a`b", "a_b"),
        ("_seq", "_seq_"),
        ("_SEQ", "_SEQ_"),
        ("_seq_", "_seq__"),
        (" tombstone", "_tombstone_"),
        ("seq", "seq"),
        ("_sequence", "_sequence"),
    ],
)
def test_delta_column_name_replaces_forbidden_characters_and_reserved_names(
    name: str, expected: str
) -> None:
    assert delta_name(name) == expected


@pytest.mark.parametrize("names", [("a b", "a_b"), ("A b", "a_B"), ("_seq", "x", " seq")])
def test_columns_with_equal_delta_names_are_rejected(names: tuple[str, ...]) -> None:
    with pytest.raises(MirrorError, match=r"would both be '.*' in Delta: rename one") as caught:
        check_distinct(names, "shop.orders")
    assert caught.value.table == "shop.orders"


def test_columns_with_distinct_delta_names_are_accepted() -> None:
    check_distinct(["a b", "a__b", "_seq", "_seq_", "é", "e"], "shop.orders")
