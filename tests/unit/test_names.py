"""Case folding of names."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.names import fold, folding, table_folding


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Orders_2", "orders_2"),
        ("ÄÖÅ Ñ", "äöå ñ"),
        ("ΑΣ", "ασ"),
        ("ΟΔΟΣ ΣΑΣ", "οδοσ σασ"),
        ("İzmir", "izmir"),
        ("ẞ", "ẞ"),
        ("ЖЯ漢字", "жя漢字"),
    ],
)
def test_names_are_folded_to_lower_case_letter_by_letter(name: str, folded: str) -> None:
    assert fold(name) == folded
    assert fold(folded) == folded


def test_names_are_folded_only_if_case_insensitive() -> None:
    assert folding(case_sensitive=True)("A") == "A"
    assert table_folding(case_sensitive=True)(("A", "B")) == ("A", "B")
    assert table_folding(case_sensitive=False)(("A", "Σ")) == ("a", "σ")
