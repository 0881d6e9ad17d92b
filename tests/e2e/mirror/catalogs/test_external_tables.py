"""Delta tables created in the catalog before the mirror, with a location of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from helpers.mirrors.named_tables import NamedTables
from pyspark_mysqlbinlog.errors import OptionError, cause_of

# A Delta table's name -> its columns and partitions in CREATE TABLE.
_CREATED = {
    "no_columns": "",
    "same_columns": "(id INT, k INT, v STRING)",
    "other_columns": "(x DATE NOT NULL, id STRING, k BIGINT)",
    "partitioned": "(k INT, id INT) PARTITIONED BY (k)",
    "keyless": "(a INT)",
}


def _create(named: NamedTables, table: str, columns: str) -> str:
    location = f"{named.folder}/external/{table}"
    rest = columns.partition(" PARTITIONED")
    given = f"{rest[0]} USING delta{rest[1]}{rest[2]} LOCATION '{location}'"
    named.spark.sql(f"CREATE TABLE {named.name(table)} {given}")
    return location


def _cause(named: NamedTables, checkpoint: str = "checkpoint") -> OptionError:
    with pytest.raises(StreamingQueryException) as caught:
        named.run(checkpoint)
    cause = cause_of(caught.value)
    assert isinstance(cause, OptionError), cause
    return cause


@pytest.mark.parametrize(("is_snapshot", "soft_delete"), [(True, False), (False, True)])
def test_empty_external_tables_get_the_columns_and_rows_of_the_servers(
    named: NamedTables, *, is_snapshot: bool, soft_delete: bool
) -> None:
    """Their columns may differ from the server's, and they may have partitions."""
    tables = [name for name in _CREATED if name != "keyless" or not soft_delete]
    locations = {name: _create(named, name, _CREATED[name]) for name in tables}
    named.settings |= {
        "soft_delete": soft_delete,
        "partition_by": {f"{named.database}.other_columns": ["k"]},
        "table_properties": {"p": "q"},
    }
    if is_snapshot:
        named.options["startingOffset"] = "snapshot"
    for table in tables:
        key = "" if table == "keyless" else " PRIMARY KEY"
        named.execute(
            f"CREATE TABLE {table} (id INT{key}, k INT NOT NULL, v VARCHAR(20), at DATETIME)",
            f"INSERT INTO {table} VALUES (1, 1, 'a', '2020-01-01'), (2, 2, NULL, NULL)",
        )
    named.run()
    named.assert_equal(*tables)
    for table in tables:
        named.execute(
            f"INSERT INTO {table} VALUES (3, 3, 'c', NULL)",
            f"UPDATE {table} SET v = 'B' WHERE id = 2",
            f"DELETE FROM {table} WHERE id = 1",
        )
    named.run()
    named.assert_equal(*tables)
    for table, location in locations.items():
        found = named.detail(table)
        assert found["location"] == f"file:{location}"
        assert found["properties"]["mysqlbinlog.sourceTable"] == f"{named.database}.{table}"
        assert found["properties"]["p"] == "q"
        partitions = ["k"] if table in {"other_columns", "partitioned"} else []
        assert found["partitionColumns"] == partitions, table


def test_a_second_mirror_of_an_external_table_fails(named: NamedTables) -> None:
    other = NamedTables(named.spark, named.server, f"{named.database}_b", named.folder)
    named.server.execute(f"CREATE DATABASE {other.database}")
    try:
        _create(named, "orders", "(id INT, v STRING)")
        for each in (named, other):
            each.settings["target"] = f"spark_catalog.{named.database}.{{table}}"
            each.execute(
                "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(64))",
                f"INSERT INTO orders VALUES (1, '{each.database}')",
            )
        named.run("a")
        cause = _cause(other, "b")
        assert f"'{named.database}.orders'" in cause.message
        assert f"'{other.database}.orders'" in cause.message
        named.execute("INSERT INTO orders VALUES (2, 'x')")
        named.run("a")
        named.assert_equal("orders")
    finally:
        named.server.execute(f"DROP DATABASE {other.database}")


@pytest.mark.parametrize("is_snapshot", [True, False])
def test_table_with_rows_of_another_program_is_rejected(
    named: NamedTables, *, is_snapshot: bool
) -> None:
    location = _create(named, "t", "(id INT, v STRING)")
    named.spark.sql(f"INSERT INTO {named.name('t')} VALUES (7, 'theirs')")
    if is_snapshot:
        named.options["startingOffset"] = "snapshot"
    named.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'a')"
    )
    cause = _cause(named)
    assert f"spark_catalog.{named.database}.t has rows, but no column _seq" in cause.message
    assert named.spark.table(named.name("t")).collect() == [(7, "theirs")]
    named.spark.sql(f"DELETE FROM {named.name('t')}")
    named.run()
    named.assert_equal("t")
    assert Path(location).is_dir()
