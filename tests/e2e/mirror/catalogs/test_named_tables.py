"""Delta tables named in Spark's catalog: which ones are opened, created and rejected."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from helpers.streams.spark_session import DELTA_JARS, with_delta
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance
from pyspark_mysqlbinlog.connector.delta.store.places.names import SOURCE_TABLE, CatalogName
from pyspark_mysqlbinlog.connector.delta.store.spark.engine import SparkEngine
from pyspark_mysqlbinlog.connector.delta.store.spark.table import SparkTarget
from pyspark_mysqlbinlog.errors import MirrorError, OptionError

_SCHEMA = "named_tables"
_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int32()),
    pa.field("v", pa.string()),
    pa.field(SEQ, SEQ_TYPE),
]
_COLUMNS = pa.schema(_FIELDS)
_STATES = _COLUMNS.append(pa.field(TOMBSTONE, pa.bool_()))


@pytest.fixture(scope="module")
def delta(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a session with Delta's jars and an empty schema."""
    if not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    made = with_delta(spark)
    folder = tmp_path_factory.mktemp("schema")
    made.sql(f"CREATE SCHEMA spark_catalog.{_SCHEMA} LOCATION '{folder}'")
    yield made
    made.sql(f"DROP SCHEMA spark_catalog.{_SCHEMA} CASCADE")


@pytest.fixture(scope="module")
def engine(delta: SparkSession) -> SparkEngine:
    engine = SparkEngine(catalog="spark_catalog")
    engine.begin(delta)
    return engine


def _name(table: str, schema: str = _SCHEMA, *, may_create_schema: bool = False) -> CatalogName:
    return CatalogName(
        "spark_catalog", schema, table, ("d", table), may_create_schema=may_create_schema
    )


def _marker(place: int) -> CommitMarker:
    return CommitMarker(LogIdentity("server", 0, "mysql-bin"), place)


def _merge(target: SparkTarget, place: int, *ids: int) -> None:
    seq = {"epoch": 0, "file": 1, "pos": place, "row": 0}
    rows = [{"id": n, "v": str(place), SEQ: seq, TOMBSTONE: False} for n in ids]
    target.merge(pa.Table.from_pylist(rows, _STATES), ["id"], _marker(place))


def _rows(delta: SparkSession, table: str) -> dict[int, str]:
    found = delta.table(f"spark_catalog.{_SCHEMA}.{table}").collect()
    return {row["id"]: row["v"] for row in found}


def _location(delta: SparkSession, table: str) -> Path:
    (row,) = delta.sql(f"DESCRIBE DETAIL spark_catalog.{_SCHEMA}.{table}").collect()
    return Path(str(row["location"]).removeprefix("file:"))


def test_a_named_table_is_created_written_and_maintained(
    delta: SparkSession, engine: SparkEngine
) -> None:
    target = engine.target(_name("t"), ["v"])
    assert target.columns() is None
    target.create(_COLUMNS, {"p": "q"})
    _merge(target, 1, 1, 2)
    _merge(target, 2, 2, 3)
    assert _rows(delta, "t") == {1: "1", 2: "2", 3: "2"}
    wider = pa.schema([pa.field("k", pa.int64()), *_FIELDS[1:]])
    target.rewrite_columns(wider, {"k": "id", "v": "v", SEQ: SEQ}, _marker(3))
    assert target.partitioned_by() == ["v"]
    assert target.properties()["p"] == "q"
    assert target.properties()[SOURCE_TABLE] == "d.t"
    again = engine.target(_name("t"))
    assert again.txn_version(str(_marker(3).log)) == 3
    assert again.count() == 3
    maintenance = Maintenance(engine, 0)
    maintenance.after_batch([_name("t"), str(_location(delta, "t").parent / "no table")])
    maintenance.wait()
    operations = [row["operation"] for row in engine.target(_name("t"))._table.history(3)]
    assert "VACUUM END" in operations


def test_an_external_table_that_is_empty_keeps_its_location(
    delta: SparkSession, engine: SparkEngine, tmp_path: Path
) -> None:
    delta.sql(
        f"CREATE TABLE spark_catalog.{_SCHEMA}.external (x INT) USING delta"
        f" LOCATION '{tmp_path}/external'"
    )
    target = engine.target(_name("external"))
    target.create(_COLUMNS, {})
    _merge(target, 1, 1)
    assert _rows(delta, "external") == {1: "1"}
    assert _location(delta, "external") == tmp_path / "external"
    assert target.properties()[SOURCE_TABLE] == "d.external"


def test_a_table_that_was_created_again_is_not_written(
    delta: SparkSession, engine: SparkEngine
) -> None:
    """The new table has as many versions as the removed one."""
    target = engine.target(_name("again"))
    target.create(_COLUMNS, {})
    _merge(target, 1, 1)
    version = target.version()
    delta.sql(f"DROP TABLE spark_catalog.{_SCHEMA}.again")
    other = engine.target(_name("again"))
    other.create(_COLUMNS, {})
    _merge(other, 1, 7)
    assert other.version() == version
    with pytest.raises(MirrorError, match="removed the Delta table and created another one"):
        _merge(target, 2, 2)
    assert _rows(delta, "again") == {7: "1"}


def test_delta_table_of_another_mysql_table_is_rejected(engine: SparkEngine) -> None:
    engine.target(_name("owned")).create(_COLUMNS, {})
    other = CatalogName("spark_catalog", _SCHEMA, "owned", ("d", "Owned"), may_create_schema=False)
    with pytest.raises(OptionError, match=r"expected 'd\.Owned', found 'd\.owned'"):
        engine.target(other).columns()


def test_delta_table_written_by_path_accepts_only_the_first_mysql_table(
    delta: SparkSession, engine: SparkEngine, tmp_path: Path
) -> None:
    by_path = SparkEngine()
    by_path.begin(delta)
    at_path = by_path.target(str(tmp_path / "moved"))
    at_path.create(_COLUMNS, {})
    _merge(at_path, 1, 1)
    delta.sql(f"CREATE TABLE spark_catalog.{_SCHEMA}.moved USING delta LOCATION '{tmp_path}/moved'")
    targets = [
        engine.target(CatalogName("spark_catalog", _SCHEMA, "moved", source, False))
        for source in (("a", "moved"), ("b", "moved"))
    ]
    # Both were opened before the first commit.
    assert [target.count() for target in targets] == [1, 1]
    _merge(targets[0], 2, 2)
    with pytest.raises(OptionError, match=r"expected 'b\.moved', found 'a\.moved'"):
        _merge(targets[1], 2, 3)
    assert _rows(delta, "moved") == {1: "1", 2: "2"}


def _view(delta: SparkSession, table: str) -> None:
    delta.sql(f"CREATE VIEW spark_catalog.{_SCHEMA}.{table} AS SELECT 1 AS id")


def _parquet(delta: SparkSession, table: str) -> None:
    delta.sql(f"CREATE TABLE spark_catalog.{_SCHEMA}.{table} (id INT) USING parquet")


def _without_files(delta: SparkSession, table: str) -> None:
    delta.sql(f"CREATE TABLE spark_catalog.{_SCHEMA}.{table} (id INT) USING delta")
    shutil.rmtree(_location(delta, table))


@pytest.mark.parametrize(
    ("table", "make", "said"),
    [
        ("a_view", _view, "is not a Delta table, but a view"),
        ("a_parquet", _parquet, "is not a Delta table"),
        ("no_files", _without_files, "there is no Delta table at its location"),
    ],
)
def test_name_of_anything_but_a_delta_table_is_rejected(
    delta: SparkSession,
    engine: SparkEngine,
    table: str,
    make: Callable[[SparkSession, str], None],
    said: str,
) -> None:
    make(delta, table)
    with pytest.raises(OptionError, match=f"spark_catalog.{_SCHEMA}.{table}.*{said}"):
        engine.target(_name(table)).columns()


def _forget(delta: SparkSession, table: str) -> Path:
    """Remove a managed table from the catalog without its files; return their folder."""
    folder = _location(delta, table)
    kept = folder.with_name(f"{folder.name}_kept")
    shutil.copytree(folder, kept)
    delta.sql(f"DROP TABLE spark_catalog.{_SCHEMA}.{table}")
    shutil.move(kept, folder)
    return folder


def _remove_commits(folder: Path) -> None:
    for file in (folder / "_delta_log").glob("*0.*"):
        file.unlink()


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_table_whose_creation_was_interrupted_is_created(
    delta: SparkSession, engine: SparkEngine, *, has_commit: bool
) -> None:
    """Without a commit, the process ended before Delta wrote the first version."""
    table = f"interrupted_{has_commit}".lower()
    engine.target(_name(table)).create(_COLUMNS, {})
    folder = _forget(delta, table)
    if not has_commit:
        _remove_commits(folder)
    target = engine.target(_name(table))
    target.create(_COLUMNS, {"p": "q"})
    _merge(target, 1, 1)
    assert _rows(delta, table) == {1: "1"}
    assert target.properties()["p"] == "q"
    delta.sql(f"DROP TABLE spark_catalog.{_SCHEMA}.{table}")
    assert not folder.exists(), "it was not a managed table"


def _with_rows(engine: SparkEngine) -> None:
    target = engine.target(_name("left"))
    target.create(_COLUMNS, {})
    _merge(target, 1, 1)


def _of_another_table(engine: SparkEngine) -> None:
    other = CatalogName("spark_catalog", _SCHEMA, "left", ("d", "L"), may_create_schema=False)
    engine.target(other).create(_COLUMNS, {})


@pytest.mark.parametrize("make", [_with_rows, _of_another_table])
def test_a_table_whose_location_is_used_is_not_created(
    delta: SparkSession, engine: SparkEngine, make: Callable[[SparkEngine], None]
) -> None:
    make(engine)
    folder = _forget(delta, "left")
    before = sorted(folder.rglob("*"))
    said = "location has files already .* CREATE TABLE `spark_catalog`.*LOCATION 'file:"
    with pytest.raises(OptionError, match=said):
        engine.target(_name("left")).create(_COLUMNS, {})
    assert sorted(folder.rglob("*")) == before
    shutil.rmtree(folder)


def test_missing_schema_named_by_the_target_is_rejected(engine: SparkEngine) -> None:
    said = r"CREATE SCHEMA `spark_catalog`\.`named_no_schema`"
    with pytest.raises(OptionError, match=said):
        engine.target(_name("t", "named_no_schema")).create(_COLUMNS, {})


def test_missing_schema_of_a_database_is_created(delta: SparkSession, engine: SparkEngine) -> None:
    # The schema is in the session's warehouse, where an interrupted run leaves its tables.
    schema = f"named_{uuid4().hex}"
    name = _name("t", schema, may_create_schema=True)
    try:
        engine.target(name).create(_COLUMNS, {})
        assert engine.target(name).columns() == _COLUMNS
    finally:
        delta.sql(f"DROP SCHEMA spark_catalog.{schema} CASCADE")


def test_catalog_that_is_not_configured_is_rejected(delta: SparkSession) -> None:
    with pytest.raises(OptionError, match=r"set spark\.sql\.catalog\.nowhere to its class"):
        SparkEngine(catalog="nowhere").begin(delta)
