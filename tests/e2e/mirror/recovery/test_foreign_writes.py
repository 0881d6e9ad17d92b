"""Writes of others to a mirror's Delta tables: the table stops if its rows could be wrong."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.before_commits import before_commit
from helpers.mirrors.change_logs import change_log_of, rows_of_log
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.killed_commits import KilledTables
from helpers.servers import Server
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync import change_log
from pyspark_mysqlbinlog.connector.delta.sync import table as table_module

pytestmark = pytest.mark.both_engines


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    made = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="latest")
    made.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    made.execute("CREATE TABLE copies (v VARCHAR(9))", "CREATE TABLE other (id INT PRIMARY KEY)")
    made.run()
    made.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')", "INSERT INTO other VALUES (1)")
    made.run()
    return made


@contextlib.contextmanager
def _interrupted(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, come_between: Callable[[], None]
) -> Iterator[None]:
    """Call `come_between` once, after the applied position of a Delta table is read."""
    drop_applied: Callable[[pa.Table, int], pa.Table] = vars(module)["drop_applied"]
    comes = iter([come_between])

    def interrupted(changes: pa.Table, applied: int) -> pa.Table:
        if changes.num_rows:
            next(comes, lambda: None)()
        return drop_applied(changes, applied)

    with monkeypatch.context() as during:
        during.setattr(module, "drop_applied", interrupted)
        yield
    assert next(comes, None) is None


@pytest.mark.parametrize(
    ("table", "statement"),
    [("t", "DELETE FROM t WHERE id = 1"), ("copies", "INSERT INTO copies VALUES ('x'), ('x')")],
)
def test_second_mirror_of_the_same_table_stops_the_table(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, table: str, statement: str
) -> None:
    other = "another checkpoint"
    mirrored.run(other)
    mirrored.execute(statement)
    with _interrupted(monkeypatch, table_module, lambda: mirrored.run(other)):
        mirrored.run()
    assert "let only one mirror write it" in mirrored.stopped(table)


def test_second_mirror_of_the_same_change_log_writes_each_change_once(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.settings |= {"target": None, "change_log": change_log_of(mirrored)}
    one, other = "one checkpoint", "another checkpoint"
    mirrored.run(one)
    mirrored.run(other)
    mirrored.execute("INSERT INTO t VALUES (3, 'three'), (4, 'four')")
    with _interrupted(monkeypatch, change_log, lambda: mirrored.run(other)):
        mirrored.run(one)
    mirrored.execute("INSERT INTO t VALUES (5, 'five')")
    mirrored.run(one)
    assert [row["op"] for row in rows_of_log(mirrored, "t")] == ["c", "c", "c"]


def test_rows_removed_by_a_user_while_the_query_runs_stop_the_table(
    mirrored: MirroredDatabase,
) -> None:
    query = mirrored.mirror().start(mirrored.spark, processingTime="100 milliseconds")
    try:
        mirrored.execute("INSERT INTO t VALUES (3, 'three')", "INSERT INTO other VALUES (3)")
        wait_until(lambda: mirrored.rows("t").num_rows == 3, "the row is there")
        DeltaTable(mirrored.folder / "lake" / mirrored.database / "t").delete("id = 1")
        mirrored.execute("INSERT INTO t VALUES (4, 'four')", "INSERT INTO other VALUES (4)")
        # Tables are written in parallel, and a query that is stopped may store nothing more.
        wait_until(lambda: _is_stopped(mirrored, "t"), "the table is stopped")
        wait_until(lambda: mirrored.rows("other").num_rows == 3, "the other table continues")
    finally:
        query.stop()
    assert "(DELETE)" in mirrored.stopped("t")
    mirrored.assert_equal("other")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


def _is_stopped(mirrored: MirroredDatabase, table: str) -> bool:
    return "mysqlbinlog.stopped" in mirrored.delta(table).metadata().configuration


def test_maintenance_between_a_check_and_a_commit_stops_no_table(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta for Spark moves its commit after them; delta-rs repeats its commit."""
    mirror = mirrored.mirror()

    def all_at_once(target: DeltaTarget) -> None:
        target.vacuum()
        target.set_properties({"p": "r"})
        target.compact()

    maintenance: list[Callable[[DeltaTarget], object]] = [
        lambda target: target.vacuum(),
        lambda target: target.set_properties({"p": "q"}),
        lambda target: target.compact(),
        all_at_once,
    ]
    for number, maintain in enumerate(maintenance, 3):
        mirrored.execute(
            f"INSERT INTO t VALUES ({number}, 'new')",
            f"INSERT INTO copies VALUES ('x'), ('{number}')",
            "DELETE FROM copies WHERE v = 'x' LIMIT 1",
        )
        with contextlib.ExitStack() as between:
            for table in ("t", "copies"):
                other = mirrored.target(table)
                between.enter_context(before_commit(monkeypatch, other, maintain))
            mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    mirrored.execute("UPDATE t SET v = 'changed'", "INSERT INTO copies VALUES ('nine')")
    mirror.start(mirrored.spark, availableNow=True).awaitTermination()
    assert not mirror.stopped
    mirrored.assert_equal("t", "copies")
    kept = {"SET TBLPROPERTIES", "OPTIMIZE"}
    assert kept <= {commit["operation"] for commit in mirrored.delta("t").history()}


def _append(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table().slice(0, 1), mode="append")


def _merge(table: DeltaTable) -> None:
    source = pa.table({"id": pa.array([1], pa.int32())})
    merger = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_delete().execute()


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("DELETE", lambda table: table.delete("id = 1")),
        ("UPDATE", lambda table: table.update(updates={"v": "'x'"}, predicate="id = 1")),
        ("WRITE", _append),
        ("MERGE", _merge),
        ("RESTORE", lambda table: table.restore(table.version() - 1)),
    ],
    ids=["delete", "update", "append", "merge", "restore"],
)
def test_foreign_changes_between_a_check_and_a_commit_stop_the_table(
    mirrored: MirroredDatabase,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    write: Callable[[DeltaTable], None],
) -> None:
    mirrored.execute("INSERT INTO t VALUES (3, 'three')", "INSERT INTO other VALUES (3)")
    target = mirrored.target("t")
    with before_commit(monkeypatch, target, lambda _: write(mirrored.delta("t"))):
        mirrored.run()
    assert f"({operation})" in mirrored.stopped("t")
    mirrored.assert_equal("other")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


def test_delta_table_restored_to_an_older_version_stops_until_a_reload(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.execute("UPDATE t SET v = 'new'")
    mirrored.run()
    table = mirrored.delta("t")
    table.restore(table.version() - 1)
    mirrored.execute("INSERT INTO t VALUES (3, 'three')")
    mirrored.run()
    assert "an older version" in mirrored.stopped("t")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")
    mirrored.execute("INSERT INTO t VALUES (4, 'four')")
    mirrored.run()
    mirrored.assert_equal("t")


def test_column_no_longer_excluded_stops_the_table_until_a_reload(
    mirrored: MirroredDatabase,
) -> None:
    mirrored.options |= {"excludeColumns": f"{mirrored.database}.t.v", "startingOffset": "snapshot"}
    mirrored.folder = mirrored.folder / "another lake"
    mirrored.run()
    assert mirrored.rows("t").column_names == ["id"]
    del mirrored.options["excludeColumns"]
    mirrored.execute("INSERT INTO t VALUES (3, 'three')")
    mirrored.run()
    assert "lacks some that it added: v" in mirrored.stopped("t")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


def test_recreated_delta_table_stops_until_a_reload(mirrored: MirroredDatabase) -> None:
    path = mirrored.folder / "lake" / mirrored.database / "t"
    schema = mirrored.delta("t").schema()
    shutil.rmtree(path)
    DeltaTable.create(path, schema)
    mirrored.execute("INSERT INTO t VALUES (3, 'three')")
    mirrored.run()
    assert "was replaced by another one" in mirrored.stopped("t")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_new_tables_equal_select_after_a_kill_at_each_of_their_commits(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    mirrored.execute(
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later VALUES (1)",
        "CREATE TABLE keyless (v INT)",
        "INSERT INTO keyless VALUES (1), (1)",
    )
    with monkeypatch.context() as during, contextlib.suppress(StreamingQueryException):
        kills = KilledTables(during, mirrored.target("t"), number)
        mirrored.run()
    assert kills.killed
    mirrored.run()
    mirrored.execute("INSERT INTO later VALUES (2)", "INSERT INTO keyless VALUES (1)")
    mirrored.run()
    mirrored.assert_equal("later", "keyless", "t")
