"""Databases that patterns match, and those of them that binlog filters exclude."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.options.pattern_databases import (
    excludes_all_of,
    is_covered,
    may_match_database,
    single_database,
)
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.server.binlog_filters import DatabaseFilter, left_out_by


@pytest.mark.parametrize(
    ("pattern", "database"),
    [
        ("shop.orders", "shop"),
        ("shop.*", "shop"),
        ("`sh*p`.*", "sh*p"),
        ("shop_*.orders", None),
        (r"/shop\..*/", "shop"),
        (r"/^shop\.orders_[0-9]+/", "shop"),
        (r"/sh\-op\.(a|b)/", None),
        (r"/shop\.a|crm\.b/", None),
        (r"/shop_\d\..*/", None),
        (r"/shop?\..*/", None),
        (r"/shop.orders/", None),
        (r"/(?i)shop\..*/", None),
        (r"/shop\.*/", None),
        (r"/shop/", None),
        (r"/sh\/op\.t/", "sh/op"),
    ],
)
def test_single_database_of_a_table_pattern_is_recognized(
    pattern: str, database: str | None
) -> None:
    (found,) = TableFilter.parse(pattern).included
    assert found.text == pattern
    assert single_database(found) == database


@pytest.mark.parametrize(
    ("tables", "exclude", "reached"),
    [
        (None, None, True),
        (None, "tmp.*", False),
        (None, "t?p.**", False),
        (None, r"/tmp\..*/", False),
        (None, "tmp.a*", True),
        (None, r"/tmp\.a/", True),
        ("shop.*", None, False),
        ("shop.*,t*.x", None, True),
        (r"/(shop|tmp)\..*/", None, None),
        (r"/(shop|tmp)\..*/", "tmp.*", False),
        (r"/(shop|tmp)\..*/,tmp.t", None, True),
        ("TMP.t", None, False),
    ],
)
def test_table_filter_shows_whether_it_may_match_a_database(
    tables: str | None, exclude: str | None, reached: bool | None
) -> None:
    assert may_match_database(TableFilter.parse(tables, exclude), "tmp") is reached


def test_system_databases_never_match_table_patterns() -> None:
    assert may_match_database(TableFilter.parse(), "mysql") is False
    assert excludes_all_of(TableFilter.parse(exclude="/(?i)tmp\\..*/"), "tmp") is False


def test_case_insensitive_patterns_match_databases_of_another_case() -> None:
    for tables in ("TMP.t", "T*.t", r"/TMP\.t/"):
        assert may_match_database(TableFilter.parse(tables, case_sensitive=False), "tmp") is True


@pytest.mark.parametrize(
    ("glob", "like", "covered"),
    [
        ("shop", "shop", True),
        ("shop", "sho_", True),
        ("shop", r"sho\_", False),
        ("sho_", r"sho\_", True),
        ("shop_*", "shop%", True),
        ("shop_*", r"shop\_%", True),
        ("shop*", r"shop\_%", False),
        ("sh?p", "sh_p", True),
        ("sh?p", "ship", False),
        ("*", "%", True),
        ("*_a", r"%\_a", True),
        ("*a", r"%\_a", False),
        ("*", "shop", False),
        ("a*b", "a%b%", True),
        ("", "%", True),
    ],
)
def test_glob_is_covered_only_by_a_grant_pattern_that_matches_all_its_names(
    glob: str, like: str, covered: bool
) -> None:
    assert is_covered(glob, like) == covered


@pytest.mark.parametrize(
    ("only", "but", "tables", "left_out", "perhaps"),
    [
        ("", "tmp", None, ["tmp"], []),
        ("", "tmp,mysql", "shop.*", [], []),
        ("", "tmp", r"/(a|b)\..*/", [], ["tmp"]),
        ("shop", "", "shop.*", [], []),
        ("shop", "", None, ["crm"], []),
        # The database does not exist yet, but the pattern names it.
        ("shop", "", "later.*", ["later"], []),
        # With both lists, the list of ignored databases has no effect.
        ("shop", "shop", "shop.*", [], []),
        ("Shop", "", "shop.*", ["shop"], []),
    ],
)
def test_captured_databases_excluded_by_binlog_filters_are_reported(
    only: str, but: str, tables: str | None, left_out: list[str], perhaps: list[str]
) -> None:
    found = left_out_by(DatabaseFilter.of(only, but), TableFilter.parse(tables), ["shop", "crm"])
    assert found == (left_out, perhaps)
