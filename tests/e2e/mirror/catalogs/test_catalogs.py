"""Mirror targets that are names in a Spark catalog, in a session with Delta's jars."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.named_tables import NamedTables
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.store.places.names import NameTemplate
from pyspark_mysqlbinlog.connector.delta.store.spark.engine import SparkEngine
from pyspark_mysqlbinlog.connector.delta.store.spark.places import check_catalog
from pyspark_mysqlbinlog.errors import OptionError, cause_of


def test_partitions_and_deleted_rows_stay_when_columns_are_rewritten(named: NamedTables) -> None:
    named.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, v INT)",
        "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (3, 1, 30)",
        "DELETE FROM t WHERE id = 3",
    )
    named.settings |= {"soft_delete": True, "partition_by": {f"{named.database}.t": ["k"]}}
    named.run()
    named.execute("ALTER TABLE t CHANGE v w BIGINT", "INSERT INTO t VALUES (4, 2, 5000000000)")
    named.run()
    (row,) = named.spark.sql(f"DESCRIBE DETAIL {named.name('t')}").collect()
    assert row["partitionColumns"] == ["k"]
    found = named.spark.table(named.name("t")).select("id", "k", "w", "_deleted").collect()
    assert sorted(map(tuple, found)) == [
        (1, 1, 10, False),
        (2, 2, 20, False),
        (3, 1, 30, True),
        (4, 2, 5_000_000_000, False),
    ]


def test_later_table_whose_name_differs_only_in_case_stops_the_query(named: NamedTables) -> None:
    named.execute("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    named.run()
    named.execute("CREATE TABLE `A` (id INT PRIMARY KEY)", "INSERT INTO `A` VALUES (2)")
    with pytest.raises(StreamingQueryException) as caught:
        named.run()
    cause = cause_of(caught.value)
    assert isinstance(cause, OptionError)
    assert f"`{named.database}`.`A`" in cause.message
    assert f"`{named.database}`.`a`" in cause.message
    assert "would be one Delta table" in cause.message
    named.assert_equal("a")
    # The error names this option.
    named.options["excludeTables"] = f"{named.database}.A"
    named.execute("INSERT INTO a VALUES (3)")
    named.run()
    named.assert_equal("a")


def test_tables_in_the_session_catalog_equal_the_servers(named: NamedTables) -> None:
    named.options["startingOffset"] = "snapshot"
    named.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), at DATETIME)",
        "CREATE TABLE k (a INT, b VARCHAR(9))",
        "INSERT INTO t VALUES (1, 'a', '2020-01-01'), (2, 'b', NULL)",
        "INSERT INTO k VALUES (1, 'x'), (1, 'x'), (2, NULL)",
    )
    named.run()
    named.assert_equal("t", "k")
    named.execute(
        "INSERT INTO t VALUES (3, 'c', NULL)",
        "UPDATE t SET v = 'B' WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM k WHERE a = 1 LIMIT 1",
        "ALTER TABLE t ADD COLUMN n BIGINT",
        "UPDATE t SET n = 7 WHERE id = 3",
    )
    named.run()
    named.assert_equal("t", "k")
    named.execute(
        "ALTER TABLE t CHANGE v w VARCHAR(30)",
        "ALTER TABLE t DROP COLUMN n",
        "INSERT INTO t VALUES (4, 'd', NULL)",
    )
    named.run()
    named.assert_equal("t", "k")
    assert named.properties("t")["mysqlbinlog.sourceTable"] == f"{named.database}.t"


@pytest.mark.parametrize("is_snapshot", [True, False])
def test_table_whose_name_changes_case_keeps_its_delta_table(
    named: NamedTables, *, is_snapshot: bool
) -> None:
    """The batch contains a RENAME, and a DROP and CREATE, with changes before and after them."""
    if is_snapshot:
        named.options["startingOffset"] = "snapshot"
    for name in ("renamed", "dropped"):
        named.execute(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {name} VALUES (1, 10), (2, 20)",
        )
    named.run()
    named.execute(
        "INSERT INTO renamed VALUES (3, 30)",
        "RENAME TABLE renamed TO `Renamed`",
        "UPDATE `Renamed` SET v = 31 WHERE id = 3",
        "INSERT INTO dropped VALUES (3, 30)",
        "DROP TABLE dropped",
        "CREATE TABLE `Dropped` (id INT PRIMARY KEY, w VARCHAR(9))",
        "INSERT INTO `Dropped` VALUES (7, 'x')",
    )
    named.run()
    named.assert_equal("Renamed", "Dropped")
    assert named.properties("Renamed")["mysqlbinlog.sourceTable"] == f"{named.database}.Renamed"
    named.execute("INSERT INTO `Renamed` VALUES (4, 40)", "DELETE FROM `Dropped`")
    named.run()
    named.assert_equal("Renamed", "Dropped")
    named.execute(
        "RENAME TABLE `Renamed` TO renamed",
        "DELETE FROM renamed WHERE id = 1",
    )
    named.run()
    named.assert_equal("renamed", "Dropped")


def test_tables_that_the_catalog_lost_continue_when_they_are_registered(
    named: NamedTables, caplog: pytest.LogCaptureFixture
) -> None:
    """A catalog in memory loses its tables before the next start."""
    named.options["startingOffset"] = "snapshot"
    named.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    named.run()
    said = [each.getMessage() for each in caplog.records if "is in memory" in each.getMessage()]
    assert "The next start fails until each table is registered again" in said[0]
    named.lose("t")
    named.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(StreamingQueryException) as caught:
        named.run()
    cause = cause_of(caught.value)
    assert isinstance(cause, OptionError)
    statement = re.search(r"CREATE TABLE .* LOCATION '[^']*'", cause.message)
    assert statement is not None, cause
    named.spark.sql(statement[0])
    named.run()
    named.assert_equal("t")


def test_a_mirror_that_was_killed_while_it_created_a_table_continues(named: NamedTables) -> None:
    """Delta has written the first version, but the catalog has no entry yet."""
    engine = SparkEngine(catalog="spark_catalog")
    engine.begin(named.spark)
    name = NameTemplate.parse(named.settings["target"]).render((named.database, "t"))
    engine.target(name).create(pa.schema([pa.field(SEQ, SEQ_TYPE)]), {})
    location = named.lose("t")
    named.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    named.run()
    named.assert_equal("t")
    assert named.detail("t")["location"] == f"file:{location}"


def test_session_catalog_of_another_class_logs_no_in_memory_warning(
    delta: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    name = "spark.sql.catalog.spark_catalog"
    kind = str(delta.conf.get(name))
    check_catalog(delta, "spark_catalog")
    assert "is in memory" in caplog.text
    caplog.clear()
    # For example, Unity Catalog's class. Only its name counts, because Spark has already loaded its
    # catalog.
    delta.conf.set(name, "io.unitycatalog.spark.UCSingleCatalog")
    try:
        check_catalog(delta, "spark_catalog")
    finally:
        delta.conf.set(name, kind)
    assert "is in memory" not in caplog.text


def test_storage_options_with_named_tables_are_rejected_without_a_change_log(
    named: NamedTables,
) -> None:
    """`auto` selects the engine `spark` in this session."""
    named.settings |= {
        "engine": "auto",
        "change_log": f"{named.folder}/changes/{{table}}",
        "storage_options": {"timeout": "60s"},
    }
    named.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    named.run()
    named.assert_equal("t")
    assert DeltaTable(named.folder / "changes" / "t").to_pyarrow_table().num_rows == 2
    del named.settings["change_log"]
    with pytest.raises(StreamingQueryException, match="only delta-rs uses them"):
        named.run("other")
