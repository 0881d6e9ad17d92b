"""The options tables, excludeTables and excludeColumns."""

from __future__ import annotations

import pickle

import pytest

from pyspark_mysqlbinlog.connector.options import table_filter
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.errors import OptionError


@pytest.mark.parametrize(
    ("tables", "exclude", "database", "table", "wanted"),
    [
        (None, None, "shop", "orders", True),
        (None, None, "mysql", "user", False),
        (None, None, "sys", "sys_config", False),
        (None, None, "information_schema", "tables", False),
        (None, None, "performance_schema", "threads", False),
        (None, "shop.*", "shop", "orders", False),
        (None, "shop.*", "shop2", "orders", True),
        ("shop.orders", None, "shop", "orders", True),
        ("shop.orders", None, "shop", "orders2", False),
        ("shop.orders", None, "shop", "Orders", False),
        ("shop.orders", None, "xshop", "orders", False),
        (" shop.orders , shop.items ", None, "shop", "items", True),
        ("shop.a\n,shop.b", None, "shop", "b", True),
        ("shop.*", None, "shop", "orders", True),
        ("shop.*", None, "shop", "a.b", True),
        ("shop.*", None, "shops", "orders", False),
        ("*.orders", None, "shop", "orders", True),
        ("*.orders", None, "mysql", "orders", False),
        ("*.*", None, "mysql", "user", False),
        ("sh?p.ord*s", None, "ship", "ords", True),
        ("sh?p.ord*s", None, "shp", "ords", False),
        ("shop.a*", None, "shop", "a\nb", True),
        ("shop.[ab]", None, "shop", "a", False),
        ("shop.[ab]", None, "shop", "[ab]", True),
        ("shop.a+", None, "shop", "aa", False),
        ("`shop`.`orders`", None, "shop", "orders", True),
        ("`a.b`.`c`", None, "a.b", "c", True),
        ("`a.b`.`c`", None, "a", "b.c", False),
        ("`a,b`.`c d`", None, "a,b", "c d", True),
        ("`a``b`.c", None, "a`b", "c", True),
        ("`sh*`.`o?`", None, "shop", "o1", False),
        ("`sh*`.`o?`", None, "sh*", "o?", True),
        ("`sh*`.o?", None, "sh*", "o1", True),
        ("`sh*`.o?", None, "shop", "o1", False),
        ("`/a/`.b", None, "/a/", "b", True),
        ("größe.straße", None, "größe", "straße", True),
        (r"/shop\.(orders|items)/", None, "shop", "items", True),
        (r"/shop\.(orders|items)/", None, "shop", "items2", False),
        (r"/shop\.(orders|items)/", None, "xshop", "items", False),
        (r"/shop\.o{1,2}/, b.c", None, "shop", "oo", True),
        (r"/shop\.o{1,2}/, b.c", None, "b", "c", True),
        (r"/a\/b\..*/", None, "a/b", "c", True),
        ("/.*/", None, "mysql", "user", False),
        ("shop.*", "shop.audit", "shop", "audit", False),
        ("shop.*", "shop.audit", "shop", "orders", True),
        ("shop.audit", "/.*audit/", "shop", "audit", False),
    ],
)
def test_table_filter_captures_only_matching_tables(
    tables: str | None, exclude: str | None, database: str, table: str, wanted: bool
) -> None:
    assert TableFilter.parse(tables, exclude).captures(database, table) is wanted


@pytest.mark.parametrize(
    ("tables", "exclude", "database", "table", "wanted"),
    [
        ("Shop.Orders", None, "shop", "orders", True),
        ("shop.orders", None, "SHOP", "ORDERS", True),
        ("shop.o*", None, "Shop", "Orders", True),
        (r"/shop\.o.*/", None, "Shop", "Orders", True),
        ("shop.*", "SHOP.ORDERS", "shop", "orders", False),
        (None, None, "MySQL", "user", False),
    ],
)
def test_case_insensitive_table_filter_ignores_case_of_names(
    tables: str | None, exclude: str | None, database: str, table: str, wanted: bool
) -> None:
    assert (
        TableFilter.parse(tables, exclude, case_sensitive=False).captures(database, table) is wanted
    )


@pytest.mark.parametrize(
    ("tables", "exclude", "literals", "is_literal"),
    [
        (None, None, (), False),
        ("a.b", None, (("a", "b"),), True),
        ("a.b,`c.d`.e,a.b", None, (("a", "b"), ("c.d", "e")), True),
        ("a.b,c.*,/d/", None, (("a", "b"),), False),
        ("a.b,a.c", "*.c", (("a", "b"),), True),
    ],
)
def test_table_filter_lists_its_literal_table_names(
    tables: str | None,
    exclude: str | None,
    literals: tuple[tuple[str, str], ...],
    is_literal: bool,
) -> None:
    found = TableFilter.parse(tables, exclude)
    assert (found.literals, found.is_literal) == (literals, is_literal)


@pytest.mark.parametrize(
    ("tables", "exclude", "case_sensitive", "nests"),
    [
        ("a.b", None, True, False),
        ("a.b,a.c", None, True, True),
        ("a.b,a.c", "*.c", True, False),
        ("a.b,A.b", None, True, True),
        ("a.b,A.b", None, False, False),
        ("a.*", None, True, False),
    ],
)
def test_struct_nests_only_for_several_named_tables(
    tables: str, exclude: str | None, case_sensitive: bool, nests: bool
) -> None:
    assert TableFilter.parse(tables, exclude, case_sensitive).nests is nests


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a name is missing"),
        ("  ", "a name is missing"),
        ("orders", "'orders' is only a part of database.table"),
        ("a.b,", "a name is missing"),
        ("a.b,,c.d", "expected a name before ',c.d'"),
        (",a.b", "expected a name before ',a.b'"),
        ("a.", "a name is missing"),
        (".b", "expected a name before '.b'"),
        ("a.b.c", "a name that contains a dot requires backquotes"),
        ("a.b c.d", "expected a comma before 'c.d'"),
        ("a.b;c.d", None),  # a name may contain a semicolon, but the second dot requires backquotes
        ("`a.b", "'`a.b' has no closing backquote"),
        ("``.b", "the name `` is empty"),
        ("`a`b.c", "'a' is only a part of database.table"),
        ("a.b/c", "expected a comma before '/c'"),
        ("/a.b", "'/a.b' has no closing /"),
        ("/a\\/", "has no closing /"),
        ("//", "the regex // is empty"),
        ("/(/", "/(/ is not a valid regex: missing ), unterminated subpattern at position 0"),
        ("/a/b", "expected a comma before 'b'"),
    ],
)
@pytest.mark.parametrize("option", ["tables", "excludeTables"])
def test_malformed_table_pattern_is_rejected_with_its_fault(
    option: str, text: str, message: str | None
) -> None:
    arguments = {"tables": text} if option == "tables" else {"exclude": text}
    with pytest.raises(OptionError) as caught:
        TableFilter.parse(**arguments)  # type: ignore[arg-type] # one of two names
    assert str(caught.value).startswith(f"option {option}: ")
    assert (message or "requires backquotes") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["mysql.user", "`sys`.`x`", "a.b,information_schema.tables"])
def test_system_table_is_rejected_in_tables_but_accepted_in_exclude_tables(text: str) -> None:
    with pytest.raises(OptionError, match="is in a system schema"):
        TableFilter.parse(text)
    assert not TableFilter.parse(None, text).captures("mysql", "user")  # excluding it is harmless


def test_pickled_table_filter_equals_the_original() -> None:
    first = TableFilter.parse("a.*,/b\\.c/", "a.x", case_sensitive=False)
    copy = pickle.loads(pickle.dumps(first))
    assert copy == first
    assert hash(copy) == hash(first)
    assert copy != TableFilter.parse("a.*,/b\\.c/", "a.x")
    assert copy.captures("A", "y") and copy.captures("B", "C") and not copy.captures("a", "X")
    assert repr(first) == (
        "TableFilter(tables='a.*,/b\\\\.c/', exclude='a.x', case_sensitive=False)"
    )


def test_table_filter_cache_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_filter, "_MAX_CACHED_ANSWERS", 10)
    found = TableFilter.parse("a.t1*")
    for number in range(100):
        assert found.captures("a", f"t{number}") is str(number).startswith("1")
        assert found.captures("a", f"t{number}") is str(number).startswith("1")
        assert len(found._answers) <= 10


# --- excludeColumns


@pytest.mark.parametrize(
    ("pattern", "case_sensitive", "name", "excluded"),
    [
        ("shop.users.email", True, ("shop", "users", "email"), True),
        ("shop.users.email", True, ("shop", "users", "EMAIL"), True),
        ("shop.users.email", True, ("shop", "Users", "email"), False),
        ("shop.users.email", False, ("Shop", "USERS", "eMail"), True),
        ("shop.users.email", True, ("shop", "users", "email2"), False),
        ("*.*.password", True, ("a", "b", "Password"), True),
        ("*.*.pass*", True, ("a", "b", "pass"), True),
        ("shop.u?.*", True, ("shop", "u1", "x"), True),
        ("shop.u?.*", True, ("shop", "u", "x"), False),
        ("a.b.c, `d.e`.`f*`.`g``,h`", True, ("d.e", "f*", "g`,h"), True),
        ("a.b.c, `d.e`.`f*`.`g``,h`", True, ("a", "b", "c"), True),
        ("a.b.c, `d.e`.`f*`.`g``,h`", True, ("d.e", "fx", "g`,h"), False),
        (r"/shop\..*\.(pw|mail),?/", True, ("shop", "x.y", "mail"), True),
        (r"/shop\..*\.(pw|mail),?/", True, ("shop", "x", "Mail"), False),
        (r"/(?i)shop\..*\.(pw|mail)/", True, ("shop", "x", "Mail"), True),
    ],
)
def test_column_filter_excludes_only_matching_columns(
    pattern: str, case_sensitive: bool, name: tuple[str, str, str], excluded: bool
) -> None:
    columns = ColumnFilter.parse(pattern, case_sensitive)
    assert columns.excludes(*name) is excluded
    assert pickle.loads(pickle.dumps(columns)) == columns


def test_column_filter_lists_its_literal_column_names() -> None:
    columns = ColumnFilter.parse("a.b.c, a.*.c, /x/, `a`.b.`c d`")
    assert columns.literals == (("a", "b", "c"), ("a", "b", "c d"))
    assert ColumnFilter.parse().literals == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a.b", "'a.b' is only a part of database.table.column"),
        ("a.b.c.d", "a name that contains a dot requires backquotes"),
        ("a.b.", "a name is missing"),
        ("a.b.c d.e.f", "expected a comma before 'd.e.f'"),
        ("a.b.c,", "a name is missing"),
        ("/(/", "/(/ is not a valid regex"),
        ("a.b.`c", "'`c' has no closing backquote"),
    ],
)
def test_malformed_column_pattern_is_rejected_with_its_fault(text: str, problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        ColumnFilter.parse(text)
    message = str(caught.value)
    assert message.startswith(f"option excludeColumns: {problem}")
    assert "expected database.table.column" in message
    assert message.endswith(f"found {text!r}")


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("d.I*", ("ix", "IX", "İx"), ("ıx",)),
        ("d.s?", ("sx", "Sx"), ("ſx",)),
        ("d.K*", ("kx", "Kx"), ()),
        ("d.ΜX?", ("μxy", "Μxy"), ("µxy",)),
    ],
)
def test_glob_matches_the_names_that_a_server_without_case_regards_as_equal(
    pattern: str, matching: tuple[str, ...], others: tuple[str, ...]
) -> None:
    captures = TableFilter.parse(pattern, case_sensitive=False).captures
    assert [captures("D", name) for name in matching] == [True] * len(matching)
    assert [captures("d", name) for name in others] == [False] * len(others)
