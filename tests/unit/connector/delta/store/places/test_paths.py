"""URI templates: names in URIs, and rejected templates."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.delta.store.places.paths import (
    PathTemplate,
    check_paths_disjoint,
)
from pyspark_mysqlbinlog.errors import OptionError


@pytest.mark.parametrize(
    ("template", "table", "uri"),
    [
        ("/lake/{database}/{table}", ("shop", "orders"), "/lake/shop/orders"),
        ("s3://b/{table}", ("shop", "größe"), "s3://b/größe"),
        ("/lake/{database}.{table}/delta", ("a.b", "c d"), "/lake/a.b.c~20d/delta"),
        ("/lake/{database}/{table}", ("..", "a/b"), "/lake/~2E~2E/a~2Fb"),
        ("/lake/{database}/{table}", ("{table}", "100%"), "/lake/~7Btable~7D/100~25"),
        ("/lake/{table}", ("d", "a~20b"), "/lake/a~7E20b"),
        ("/lake/{table}", ("d", "a^[b]|c"), "/lake/a~5E~5Bb~5D~7Cc"),
        ("lake/{database}/{table}", ("d", "t"), "lake/d/t"),
        ("./lake.{database}.{table}", ("d", "t"), "./lake.d.t"),
        ("lake.d/{database}.{table}", ("d", "t"), "lake.d/d.t"),
        ("{database}_{table}", ("d", "a.b"), "d_a.b"),
    ],
)
def test_path_template_gives_escaped_path_of_a_table(
    template: str, table: tuple[str, str], uri: str
) -> None:
    assert PathTemplate.parse(template).render(table) == uri


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("/lake/{database}", "no {table}"),
        ("/lake/{db}/{table}", "{db}"),
        ("/lake/{table}/{", "single brace"),
        ("/lake/{}/{table}", "{}"),
        ("lake.{database}.{table}", "looks like a name in a catalog"),
        ("main.shop.{table}", "looks like a name in a catalog"),
        ("{database}.{table}", "looks like a name in a catalog"),
        *((f"/lake/a{refused}b/{{table}}", f"found {refused!r}") for refused in "^[]|"),
    ],
)
def test_invalid_path_template_is_rejected(template: str, said: str) -> None:
    for option in ("target", "change_log"):
        with pytest.raises(OptionError, match=f"{option}: expected") as caught:
            PathTemplate.parse(template, option)
        assert said in caught.value.message


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        (["/lake/{table}"], "would be two Delta tables"),
        (["/lake/{database}/{table}", "/lake/{database}//{table}/"], "would be two Delta tables"),
        (["lake/{database}/{table}", "./lake/{database}/./{table}"], "would be two Delta tables"),
        (["/lake/{database}/{table}", "/lake/{database}/{table}/changes"], "in the folder of"),
        (["s3://b/{database}/{table}/_log", "s3://b/{database}/{table}"], "in the folder of"),
        (["/lake/{database}/{table}", "/lake/{database}/{table}_changes"], ""),
        (["/lake/{database}/{table}", "/lake/changes/{database}/{table}"], ""),
    ],
)
def test_equal_or_nested_table_paths_are_rejected(templates: list[str], said: str) -> None:
    tables = [("a", "t"), ("b", "t"), ("b", "u")]
    parsed = [PathTemplate.parse(template) for template in templates]
    if said:
        with pytest.raises(OptionError, match=said):
            check_paths_disjoint(tables, parsed)
    else:
        check_paths_disjoint(tables, parsed)
