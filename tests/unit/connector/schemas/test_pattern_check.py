"""Findings on patterns that match no tables, or tables that the account cannot see."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.schemas.pattern_check import findings
from pyspark_mysqlbinlog.connector.server.grants import Grants

USAGE = "REPLICATION SLAVE, REPLICATION CLIENT ON *.*"
ALL, SHOP = "SELECT ON *.*", "SELECT ON `shop`.*"
KNOWN = [("shop", "orders"), ("crm", "people")]


def found(
    tables: str | None,
    *granted: str,
    exclude: str | None = None,
    case_sensitive: bool = True,
) -> str:
    """Return the finding, as `stops: …` or `warns: …`; empty without a finding."""
    lines = [f"GRANT {grant} TO 'u'@'%'" for grant in (USAGE, *granted)]
    grants = Grants.parse(lines, case_sensitive=case_sensitive)
    wanted = TableFilter.parse(tables, exclude, case_sensitive)
    seen = [
        name
        for name in KNOWN
        if wanted.captures(*name)
        and (
            grants.sees_all_of(name[0])
            or grants.selects_from(TableFilter.parse(".".join(name)).captures)
        )
    ]
    texts = [
        f"{'stops' if each.stops else 'warns'}: {each.text}"
        for each in findings(wanted, grants, seen)
    ]
    assert len(texts) < 2
    return texts[0] if texts else ""


MEETS_NONE, MAY_NOT = "matches no table now", "matches no table that"
MORE = "may capture tables that"


@pytest.mark.parametrize(
    ("tables", "granted", "expected"),
    [
        ("shop.*", [SHOP], ""),
        ("shop.orders", [], ""),  # must exist, which another check tests
        ("shpo.*", [ALL], f"warns: option tables: shpo.* {MEETS_NONE}"),
        ("shpo.*", [SHOP], f"stops: option tables: shpo.* {MAY_NOT}"),
        ("shop.x*", [SHOP], f"warns: option tables: shop.x* {MEETS_NONE}"),
        ("shop.*", [], f"stops: option tables: shop.* {MAY_NOT}"),
        (r"/shop\..*/", [], rf"stops: option tables: /shop\..*/ {MAY_NOT}"),
        (r"/shop\..*/", [SHOP], ""),
        ("shop.*", ["SELECT ON `shop`.`orders`"], f"warns: option tables: shop.* {MORE}"),
        ("shop.l*", ["SELECT ON `shop`.`later`"], f"warns: option tables: shop.l* {MAY_NOT}"),
        ("sh*.*", [], f"stops: option tables: sh*.* {MAY_NOT}"),
        ("sh*.*", [SHOP], f"warns: option tables: sh*.* {MORE}"),
        ("sh*.*", ["SELECT ON `sh%`.*"], ""),
        ("cr*.*", [SHOP], f"warns: option tables: cr*.* {MAY_NOT}"),
        ("*.orders", [SHOP], f"warns: option tables: *.orders {MORE}"),
        ("*.orders", ["SELECT ON `%`.*"], ""),
        (r"/(shop|crm)\..*/", [SHOP], rf"warns: option tables: /(shop|crm)\..*/ {MORE}"),
        (r"/(shop|crm)\..*/", [ALL], ""),
        (None, [ALL], ""),
        (None, [SHOP], "stops: option tables is not set"),
        # An unknown line, or a role of MySQL 8.0, may grant SELECT.
        (None, [SHOP, "`role`@`%`"], "warns: option tables is not set"),
        ("crm.*", [SHOP, "`role`@`%`"], f"warns: option tables: crm.* {MAY_NOT}"),
    ],
)
def test_table_patterns_are_checked_against_known_tables_and_grants(
    tables: str | None, granted: list[str], expected: str
) -> None:
    text = found(tables, *granted)
    assert text.startswith(expected) if expected else text == ""


def test_excluded_tables_do_not_require_grants() -> None:
    assert found("shop.*,crm.*", SHOP, exclude="crm.*") == ""
    assert found(None, SHOP, exclude="crm.*").startswith("warns: ")


def test_case_insensitive_patterns_match_tables_and_grants_of_another_case() -> None:
    assert found("SHOP.*", SHOP, case_sensitive=False) == ""
    assert found("S*.*", "SELECT ON `s%`.*", case_sensitive=False) == ""


def test_pattern_finding_names_the_missing_select_grant() -> None:
    assert "GRANT SELECT ON `shop`.* to this account" in found("shop.*")
    assert "GRANT SELECT ON *.* to this account" in found(None)
    assert "GRANT SELECT ON *.* to this account" in found("s*.*")
