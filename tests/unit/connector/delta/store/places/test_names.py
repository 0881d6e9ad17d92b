"""Catalog names: templates, rejected templates, and tables with the same name."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.places.names import (
    CatalogName,
    NameTemplate,
    check_names_distinct,
    is_catalog_name,
    same_name_error,
)
from pyspark_mysqlbinlog.connector.delta.store.places.paths import PathTemplate
from pyspark_mysqlbinlog.connector.delta.store.places.templates import MirrorPlaces
from pyspark_mysqlbinlog.connector.verification.verifier import Verifier
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table


@pytest.mark.parametrize(
    ("template", "table", "name", "sql"),
    [
        ("main.{database}.{table}", ("shop", "orders"), "main.shop.orders", ""),
        ("main.raw.{database}_{table}", ("shop", "orders"), "main.raw.shop_orders", ""),
        ("spark_catalog.shop.{table}", ("shop", "Orders"), "spark_catalog.shop.orders", ""),
        ("Main.Raw.T_{table}", ("d", "A"), "Main.Raw.T_a", ""),
        ("my-lake.{database}.{table}", ("d", "t"), "my-lake.d.t", "`my-lake`.`d`.`t`"),
        ("`my-lake`.`{database}`.`{table}`", ("d", "t"), "my-lake.d.t", "`my-lake`.`d`.`t`"),
        ("m.{database}.{table}", ("a-b", "c d"), "m.a_x002d_b.c_x0020_d", ""),
        ("m.{database}.{table}", ("a.b", "c`d/e"), "m.a_x002e_b.c_x0060_d_x002f_e", ""),
        ("m.s.{table}", ("d", "Größe"), "m.s.gr_x00f6__x00df_e", ""),
        ("m.s.{table}", ("d", "{table}"), "m.s._x007b_table_x007d_", ""),
        ("m.s.{table}", ("d", "🙂"), "m.s._x1f642_", ""),
    ],
)
def test_template_gives_the_catalog_name_of_a_table(
    template: str, table: Table, name: str, sql: str
) -> None:
    assert is_catalog_name(template)
    found = NameTemplate.parse(template).render(table)
    assert (str(found), found.source) == (name, table)
    assert found.sql == (sql or "`" + name.replace(".", "`.`") + "`")


@pytest.mark.parametrize(
    ("template", "may_create"),
    [
        ("main.{database}.{table}", True),
        ("main.raw_{database}.{table}", True),
        ("main.raw.{database}_{table}", False),
    ],
)
def test_schema_is_created_only_if_named_after_a_database(template: str, may_create: bool) -> None:
    assert NameTemplate.parse(template).render(("d", "t")).may_create_schema is may_create


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            "shop.{table}",
            (
                "found 2 names in 'shop.{table}'; put the catalog in front, as in"
                " 'spark_catalog.shop.{table}' (a path has a slash: './shop.{table}')"
            ),
        ),
        ("{database}.{table}", "as in 'spark_catalog.{database}.{table}' (a path"),
        ("a.b.c.{table}", "found 4 names"),
        ("main.shop.orders", "no {table}"),
        ("main.{database}.t", "no {table}"),
        ("main.{db}.{table}", "{db}"),
        ("main.{}.{table}", "{}"),
        ("{database}.raw.{table}", "a catalog that depends on the table"),
        ("main.raw.{table}{", "'{table}{'"),
        ("main..{table}", "found ''"),
        ("`.raw.{table}", "found '`'"),
        ("main.`raw.{table}", "found '`raw'"),
        ("s3:bucket.raw.{table}", "found 's3:bucket'"),
        ("main.raw.{table} ", "found '{table} '"),
    ],
)
def test_invalid_catalog_name_template_is_rejected(template: str, said: str) -> None:
    with pytest.raises(OptionError, match=r"target: expected catalog\.schema\.table") as caught:
        NameTemplate.parse(template)
    assert said in caught.value.message
    assert f"'./{template}'" in caught.value.message


@pytest.mark.parametrize(
    ("template", "tables", "said"),
    [
        ("m.{database}.{table}", [("d", "A"), ("d", "a")], "`d`.`A` and `d`.`a`"),
        ("m.{database}.{table}", [("D", "a"), ("d", "a")], "`D`.`a` and `d`.`a`"),
        ("m.s.{database}_{table}", [("x_y", "z"), ("x", "y_z")], "`x_y`.`z` and `x`.`y_z`"),
        ("m.s.{table}", [("a", "t"), ("b", "t")], "`a`.`t` and `b`.`t`"),
        ("m.s.{table}", [("d", "a-b"), ("d", "a_x002D_b")], "`d`.`a-b` and `d`.`a_x002D_b`"),
        ("m.{database}.{table}", [("a", "t"), ("b", "t"), ("b", "u")], ""),
        ("m.{database}.{table}", [("d", "a-b"), ("d", "a_b"), ("d", "a.b")], ""),
    ],
)
def test_tables_with_equal_catalog_names_are_rejected(
    template: str, tables: list[Table], said: str
) -> None:
    parsed = NameTemplate.parse(template)
    if not said:
        check_names_distinct(tables, parsed)
        return
    with pytest.raises(OptionError, match="would be one Delta table") as caught:
        check_names_distinct(tables, parsed)
    assert f"the tables {said} would" in caught.value.message


@pytest.mark.parametrize(
    "template", ["/lake/{table}", "./a.b.{table}", "s3://b.c/{table}", "{database}_{table}"]
)
def test_template_that_is_no_catalog_name_is_a_path(template: str) -> None:
    places = MirrorPlaces.parse(template, None)
    assert isinstance(places.tables, PathTemplate)
    assert places.catalog is None


def test_catalog_names_and_change_log_paths_are_checked_separately() -> None:
    places = MirrorPlaces.parse("m.s.{database}_{table}", "/changes/{table}")
    assert places.catalog == "m"
    places.check_paths([("a", "t"), ("b", "u")])
    places.check_paths([("a_b", "t"), ("a", "b_u")])
    with pytest.raises(OptionError, match="/changes/t would be two Delta tables"):
        places.check_paths([("a", "t"), ("b", "t")])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (("d", "T"), "exclude one of them (excludeTables), or set a path as target;"),
        (("D", "t"), "exclude one of them (excludeTables), or set a path as target;"),
        (("e", "t"), "(excludeTables), or set a target with {database} as the schema, or set"),
    ],
)
def test_equal_catalog_name_error_gives_a_remedy_for_its_tables(other: Table, said: str) -> None:
    error = same_name_error(("d", "t"), other, NameTemplate.parse("m.s.{table}"))
    assert said in error.message


def test_catalog_name_as_change_log_is_rejected() -> None:
    with pytest.raises(
        OptionError, match=r"change_log: expected a path or URI.* name in a catalog"
    ):
        MirrorPlaces.parse("m.s.{table}", "m.changes.{table}")


def test_verifier_rejects_catalog_name_and_asks_for_location() -> None:
    options = {"host": "h", "user": "u", "tables": "a.b"}
    with pytest.raises(OptionError, match=r"found the catalog name 'm\.s\.\{table\}'.* location"):
        Verifier(options, "m.s.{table}")


def test_catalog_name_as_target_requires_engine_spark() -> None:
    options = {"host": "h", "user": "u", "tables": "a.b"}
    with pytest.raises(OptionError, match="engine: a target of catalog names needs 'spark'"):
        DeltaMirror("m.s.{table}", "/checkpoint", options)
    DeltaMirror("m.s.{table}", "/checkpoint", options, engine="spark")


def test_catalog_name_with_engine_auto_requires_delta_jars_in_session(spark: SparkSession) -> None:
    engine = LazyEngine("auto", catalog="m")
    with pytest.raises(OptionError, match="found 'auto' in a session without Delta's jars"):
        engine.begin(spark)


def test_catalog_name_text_has_no_quotes() -> None:
    assert str(CatalogName("c", "s", "t", ("d", "t"), may_create_schema=False)) == "c.s.t"
