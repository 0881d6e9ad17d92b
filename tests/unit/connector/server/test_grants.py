"""Lines of SHOW GRANTS, as MySQL 5.6, 5.7 and 9.7 and MariaDB 10.11 gave them."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.server.grants import Grants

HASH = "IDENTIFIED BY PASSWORD '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'"
ROLES = (
    "GRANT `r1` TO `v`@`%`",
    f"GRANT USAGE ON *.* TO `v`@`%` {HASH}",
    "GRANT USAGE ON *.* TO `r1`",
    "GRANT SELECT ON `other`.* TO `r1`",
    "SET DEFAULT ROLE `r1` FOR `v`@`%`",
)


def grants(
    *lines: str,
    case_sensitive: bool = True,
    lists_roles: bool = False,
    literal_names: bool = False,
) -> Grants:
    return Grants.parse(
        lines,
        case_sensitive=case_sensitive,
        lists_roles=lists_roles,
        literal_names=literal_names,
    )


@pytest.mark.parametrize(
    ("line", "sees"),
    [
        (f"GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `x`@`%` {HASH}", True),
        ("GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION", True),
        ("GRANT EXECUTE ON *.* TO 'u'@'%' IDENTIFIED BY PASSWORD", False),
        ("GRANT ALL PRIVILEGES ON `shop`.* TO 'u'@'%' WITH GRANT OPTION", True),
        ("GRANT SELECT, INSERT ON `sh%`.* TO 'u'@'%'", True),
        ("GRANT SELECT ON `sho_`.* TO 'u'@'%'", True),
        (r"GRANT SELECT ON `sho\_`.* TO 'u'@'%'", False),
        ("GRANT SELECT ON `Shop`.* TO 'u'@'%'", False),
        ("GRANT INSERT ON `shop`.* TO 'u'@'%'", False),
        ("GRANT SELECT ON `shop`.`t` TO 'u'@'%'", False),
        ("GRANT SELECT ON `shop`.* TO PUBLIC", True),
    ],
)
def test_grant_decides_whether_a_whole_database_is_visible(line: str, sees: bool) -> None:
    found = grants("GRANT USAGE ON *.* TO 'u'@'%'", line)
    assert found.is_complete
    assert found.sees_all_of("shop") == sees


def test_most_specific_matching_database_grant_applies() -> None:
    found = grants("GRANT SELECT ON `%`.* TO 'u'@'%'", "GRANT INSERT ON `shop`.* TO 'u'@'%'")
    assert not found.sees_all_of("shop")
    assert found.sees_all_of("other")


def test_grants_with_roles_are_complete_only_if_role_grants_are_listed() -> None:
    assert grants(*ROLES, lists_roles=True).sees_all_of("other")
    assert grants(*ROLES, lists_roles=True).is_complete
    assert not grants(*ROLES).is_complete


def test_grants_of_other_privileges_give_no_select() -> None:
    found = grants(
        "GRANT PROXY ON ``@`%` TO `root`@`127.0.0.1` WITH GRANT OPTION",
        "GRANT EXECUTE ON PROCEDURE `shop`.`pp` TO 'u'@'%'",
        "GRANT EXECUTE, ALTER ROUTINE ON FUNCTION `shop`.`f` TO 'u'@'%'",
        "GRANT DELETE HISTORY ON `shop`.`t` TO `u`@`%`",
    )
    assert found.is_complete
    assert found.selects_nothing


def test_unknown_grant_line_makes_the_grants_incomplete() -> None:
    found = grants("REVOKE SELECT ON `a`.`t` FROM `u`@`%`", "GRANT SELECT ON *.* TO `u`@`%`")
    assert not found.is_complete


def test_partial_revoke_hides_a_database_from_a_grant_on_all() -> None:
    found = grants(
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `u`@`%`",
        "REVOKE SELECT ON `hidden`.* FROM `u`@`%`",
    )
    assert found.is_complete
    assert found.sees_all_of("shop")
    assert not found.sees_all_of("hidden")
    assert found.sees_all_of("Hidden")
    assert not found.selects_everything
    assert found.allows("REPLICATION CLIENT")


def test_partial_revoke_of_a_system_database_hides_no_captured_table() -> None:
    found = grants(
        "GRANT SELECT ON *.* TO `u`@`%`", "REVOKE SELECT, INSERT ON `mysql`.* FROM `u`@`%`"
    )
    assert found.selects_everything


def test_database_names_in_grants_are_literal_with_partial_revokes() -> None:
    lines = ("GRANT SELECT ON `a_b`.* TO `u`@`%`", "GRANT SELECT ON `50%`.* TO `u`@`%`")
    assert grants(*lines).sees_all_of("axb")
    found = grants(*lines, literal_names=True)
    assert [found.sees_all_of(name) for name in ("a_b", "axb", "50%", "50x")] == [
        True,
        False,
        True,
        False,
    ]
    assert list(found.selects_like()) == [r"a\_b", r"50\%"]


def test_grant_on_a_database_applies_despite_its_partial_revoke() -> None:
    found = grants(
        "GRANT SELECT ON *.* TO `u`@`%`",
        "GRANT SELECT ON `hidden`.* TO `u`@`%`",
        "REVOKE SELECT ON `hidden`.* FROM `u`@`%`",
    )
    assert found.sees_all_of("hidden")


@pytest.mark.parametrize(
    ("lines", "shows"),
    [
        (["GRANT SELECT (a), INSERT (a, b), UPDATE (a) ON `shop`.`t` TO 'u'@'%'"], False),
        (["GRANT SELECT (`a`), INSERT (`a`, `b`) ON `shop`.`t` TO `u`@`%`"], False),
        # A column is named SELECT.
        (["GRANT INSERT (a, SELECT, b), DELETE ON `shop`.`t` TO 'u'@'%'"], False),
        (["GRANT SELECT (a), INSERT ON `shop`.`t` TO 'u'@'%'"], True),
        (["GRANT SELECT (a), DELETE ON `shop`.`t` TO 'u'@'%'"], False),
        (["GRANT SELECT (a) ON `shop`.`t` TO 'u'@'%'", "GRANT UPDATE ON `s%`.* TO 'u'@'%'"], True),
        (["GRANT SELECT (a) ON `shop`.`t` TO 'u'@'%'", "GRANT SELECT ON *.* TO 'u'@'%'"], True),
        (["GRANT SELECT (a) ON `shop`.`other` TO 'u'@'%'"], True),
        ([], True),
    ],
)
def test_column_grants_hide_the_other_columns_unless_a_wider_grant_exists(
    lines: list[str], shows: bool
) -> None:
    found = grants(*lines)
    assert found.is_complete
    assert found.shows_columns_of("shop", "t") == shows


def test_quoted_grant_names_are_parsed_and_compared_by_case() -> None:
    line = "GRANT SELECT (c`(,x) ON `Sh``op`.`we``ird,(x` TO 'u'@'%'"
    assert not grants(line).shows_columns_of("Sh`op", "we`ird,(x")
    assert grants(line).shows_columns_of("sh`op", "we`ird,(x")
    assert not grants(line, case_sensitive=False).shows_columns_of("sh`op", "we`ird,(x")
