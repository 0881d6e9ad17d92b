"""Findings with several errors or statements."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.doctor.finding import stop


def test_finding_shows_first_three_distinct_errors_and_counts_the_rest() -> None:
    assert stop(["a", "b", "a", "c"]).found == "a; b; c"
    assert stop([str(number) for number in range(1_005)]).found == "0; 1; 2; and 1,002 more"


def test_finding_lists_equal_statements_once() -> None:
    assert stop("a", statements=["x", "y", "x"]).statements == ("x", "y")
