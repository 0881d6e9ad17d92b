"""Options that name tables in another case: the server's setting decides whether they match.

`lower_case_table_names` is 1 on servers that were moved from Windows, and on many others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.logs.live_log import new_database
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.servers.available import mariadb_kind, own_kind
from helpers.streams.spark_session import Reads
from pyspark_mysqlbinlog.errors import OptionError, cause_of

_INSENSITIVE = "--lower-case-table-names=1"


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def insensitive(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield a server that stores names in lower case: the live server if it does so."""
    if request.param == "mysql":
        live: Server = request.getfixturevalue("live_server")
        if live.execute("SELECT @@lower_case_table_names") == [(1,)]:
            yield live
            return
    kind = own_kind() if request.param == "mysql" else mariadb_kind()
    request.getfixturevalue(kind.name)  # skips with the reason
    with kind([_INSENSITIVE]) as server:
        yield server


@pytest.fixture
def shop(insensitive: Server) -> Iterator[str]:
    """Yield the name of a database with three tables."""
    with new_database(insensitive, "letter_case") as name:
        insensitive.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(9), secret INT, v INT)",
            "INSERT INTO t VALUES (1, 'n', 9, 10), (2, 's', 9, 20), (3, 's', 9, 30)",
            "CREATE TABLE u (id INT PRIMARY KEY)",
            "INSERT INTO u VALUES (1)",
            "CREATE TABLE skipped (id INT PRIMARY KEY)",
            "INSERT INTO skipped VALUES (1)",
            database=name,
        )
        yield name


def _options(database: str) -> dict[str, Any]:
    """Return options with names in upper case, which the server has in lower case."""
    upper = database.upper()
    return {
        "tables": f"{upper}.*",
        "excludeTables": f"{upper}.SKIPPED",
        "excludeColumns": f"{upper}.T.SECRET",
    }


def test_mirror_options_ignore_case_on_a_case_insensitive_server(
    spark: SparkSession, insensitive: Server, shop: str, tmp_path: Path
) -> None:
    upper = shop.upper()
    options = _options(shop) | {
        "startingOffset": "snapshot",
        "snapshotWhere": json.dumps({f"{upper}.T": "id >= 2"}),
    }
    mirrored = MirroredDatabase(spark, insensitive, shop, tmp_path, **options)
    mirrored.settings |= {"partition_by": {f"{upper}.T": ["REGION"]}}
    mirrored.run()
    rows = mirrored.rows("t")
    assert sorted(rows.column_names) == ["id", "region", "v"]
    assert {row["id"] for row in rows.to_pylist()} == {2, 3}
    assert rows.num_rows == 2
    assert mirrored.delta("t").metadata().partition_columns == ["region"]
    mirrored.assert_equal("u")
    assert not (tmp_path / "lake" / shop / "skipped").exists()
    mirrored.execute(
        f"INSERT INTO {upper}.T VALUES (4, 'n', 9, 40)",
        f"ALTER TABLE {upper}.T CHANGE v W INT",
        f"UPDATE {upper}.t SET W = 41 WHERE id = 4",
        "INSERT INTO skipped VALUES (2)",
        f"CREATE TABLE {upper}.LATER (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (5)",
    )
    mirrored.run()
    found = {row["id"]: (row["region"], row["W"]) for row in mirrored.rows("t").to_pylist()}
    assert found == {2: ("s", 20), 3: ("s", 30), 4: ("n", 41)}
    assert sorted(mirrored.rows("t").column_names) == ["W", "id", "region"]
    mirrored.assert_equal("u", "later")
    assert not (tmp_path / "lake" / shop / "skipped").exists()


def test_reload_ignores_case_on_a_case_insensitive_server(
    spark: SparkSession, insensitive: Server, shop: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, insensitive, shop, tmp_path, **_options(shop))
    mirrored.execute("INSERT INTO u VALUES (2)")
    mirrored.run()
    assert mirrored.rows("u").num_rows == 1
    mirrored.options["reload"] = f"again: {shop.upper()}.U"
    mirrored.run()
    mirrored.assert_equal("u")
    assert mirrored.rows("t").num_rows == 0


def test_change_log_options_ignore_case_on_a_case_insensitive_server(
    spark: SparkSession, insensitive: Server, shop: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, insensitive, shop, tmp_path, **_options(shop))
    mirrored.settings |= {"target": None, "change_log": f"{tmp_path}/lake/{{database}}/{{table}}"}
    mirrored.execute("UPDATE t SET v = 0 WHERE id = 1", "INSERT INTO skipped VALUES (2)")
    mirrored.run()
    (change,) = mirrored.delta("t").to_pyarrow_table().to_pylist()
    assert json.loads(change["after"]) == {"id": 1, "region": "n", "v": 0}
    assert not (tmp_path / "lake" / shop / "skipped").exists()


@pytest.mark.sample(2)
@pytest.mark.parametrize("payload", ["json", "struct"])
def test_stream_and_batch_options_ignore_case_on_a_case_insensitive_server(
    spark: SparkSession, insensitive: Server, shop: str, tmp_path: Path, payload: str
) -> None:
    upper = shop.upper()
    start = "{}:{}".format(*insensitive.position())
    insensitive.execute(
        "UPDATE t SET v = 11 WHERE id = 1", "INSERT INTO skipped VALUES (2)", database=shop
    )
    options = _options(shop) | {"payload": payload}
    if payload == "struct":
        options["tables"] = f"{upper}.T"
    reads = Reads(spark, insensitive)

    def images(rows: Any) -> list[tuple[str, Any]]:
        found = []
        for row in rows:
            after = row.after
            shown = json.loads(after) if isinstance(after, str) else after.asDict()
            found.append((f"{row.database}.{row.table}", shown))
        return sorted(found, key=repr)

    changed = (f"{shop}.t", {"id": 1, "region": "n", "v": 11})
    assert images(reads.batch(**options, startingOffset=start).collect()) == [changed]
    batches = reads.available_now(tmp_path / "log", **options, startingOffset=start)
    assert images(row for batch in batches for row in batch) == [changed]

    options |= {"startingOffset": "snapshot", "snapshotWhere": json.dumps({f"{upper}.T": "id > 2"})}
    loaded = [(f"{shop}.t", {"id": 3, "region": "s", "v": 30})]
    if payload == "json":
        loaded.append((f"{shop}.u", {"id": 1}))
    assert images(reads.batch(**options).collect()) == loaded
    batches = reads.available_now(tmp_path / "load", **options)
    assert images(row for batch in batches for row in batch) == loaded


def test_options_respect_case_on_a_case_sensitive_server(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    if live_server.execute("SELECT @@lower_case_table_names") != [(0,)]:
        pytest.skip("the live server does not tell names by case")
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        excludeTables=f"{database}.U",
        excludeColumns=f"{database}.T.v",
    )
    mirrored.settings |= {"partition_by": {f"{database}.T": ["id"]}}
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE T (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO T VALUES (2, 2)",
        "INSERT INTO u VALUES (3, 3)",
    )
    mirrored.run()
    mirrored.assert_equal("t", "u")
    assert mirrored.rows("T").to_pylist() == [{"id": 2}]
    assert mirrored.delta("t").metadata().partition_columns == []
    assert mirrored.delta("T").metadata().partition_columns == ["id"]


@pytest.mark.parametrize("way", ["stream", "batch", "mirror"])
def test_snapshot_where_in_another_case_is_rejected_on_a_case_sensitive_server(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, way: str
) -> None:
    """Only the server can decide whether the names match; the query fails before the first row."""
    if live_server.execute("SELECT @@lower_case_table_names") != [(0,)]:
        pytest.skip("the live server does not tell names by case")
    live_server.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    options = {
        "tables": f"{database}.*",
        "startingOffset": "snapshot",
        "snapshotWhere": json.dumps({f"{database.upper()}.t": "id > 2"}),
    }
    reads = Reads(spark, live_server)

    def run() -> None:
        if way == "stream":
            reads.available_now(tmp_path / "checkpoint", **options)
        elif way == "batch":
            reads.batch(**options).collect()
        else:
            MirroredDatabase(spark, live_server, database, tmp_path, **options).run()

    with pytest.raises(Exception, match="not among the captured tables") as raised:
        run()
    assert isinstance(cause_of(raised.value), OptionError)


def test_option_that_names_a_table_in_two_cases_is_rejected(
    spark: SparkSession, insensitive: Server, shop: str, tmp_path: Path
) -> None:
    options = _options(shop) | {"startingOffset": "snapshot"}
    mirrored = MirroredDatabase(spark, insensitive, shop, tmp_path, **options)
    mirrored.settings |= {"partition_by": {f"{shop}.T": ["id"], f"{shop}.t": ["v"]}}
    with pytest.raises(Exception, match="partition_by: expected each table once") as raised:
        mirrored.run()
    assert isinstance(cause_of(raised.value), OptionError)
    mirrored.settings["partition_by"] = {}
    conditions = {f"{shop}.T": "id > 1", f"{shop}.t": "id > 2"}
    mirrored.options["snapshotWhere"] = json.dumps(conditions)
    with pytest.raises(Exception, match="snapshotWhere: expected one condition for") as raised:
        mirrored.run("checkpoint 2")
    assert isinstance(cause_of(raised.value), OptionError)
