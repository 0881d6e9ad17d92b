"""DDL that changes rows without row events: DeltaMirror reloads the table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase, MirroredDatabases
from helpers.mirrors.killed_commits import KilledCommits, Moment
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT)"
_FILL = "INSERT INTO t VALUES (1, '1', 1), (2, '2', 2), (3, '3', 3), (4, '4', 4)"


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of the table ``t`` with four rows, and of two other tables."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    _fill(mirrored)
    return mirrored


def _fill(mirrored: MirroredDatabase) -> None:
    mirrored.execute(_CREATE, _FILL, "CREATE TABLE other (id INT PRIMARY KEY)")
    mirrored.execute("INSERT INTO other VALUES (1)", "CREATE TABLE third (id INT PRIMARY KEY)")


# Statements on the table, and a change of its rows after them.
CHANGED: list[tuple[list[str], str]] = [
    (["ALTER TABLE t ADD w INT NOT NULL DEFAULT 5"], "UPDATE t SET w = 6 WHERE id = 2"),
    (["ALTER TABLE t MODIFY n VARCHAR(9)"], "UPDATE t SET n = 'x' WHERE id = 2"),
    (["ALTER TABLE t MODIFY v INT NOT NULL"], "UPDATE t SET v = 9 WHERE id = 2"),
    (
        ["ALTER TABLE t CHANGE v n INT NOT NULL, CHANGE n v INT"],
        "UPDATE t SET n = 9 WHERE id = 2",
    ),
    (
        ["ALTER TABLE t CHANGE v a VARCHAR(20), CHANGE n b INT"],
        "UPDATE t SET a = 9 WHERE id = 2",
    ),
    (["ALTER TABLE t CHANGE n m INT, ADD k INT"], "UPDATE t SET k = 9 WHERE id = 2"),
    (["ALTER TABLE t CHANGE n m INT, ADD n INT"], "UPDATE t SET n = 9 WHERE id = 2"),
    (["ALTER TABLE t DROP n, ADD n INT"], "UPDATE t SET n = 9 WHERE id = 2"),
    (
        ["ALTER TABLE t ADD m INT", "ALTER TABLE t CHANGE n m INT, CHANGE m n INT"],
        "UPDATE t SET n = 9 WHERE id = 2",
    ),
    (["ALTER TABLE t MODIFY id VARCHAR(9)"], "UPDATE t SET n = 9 WHERE id = '2'"),
    (
        ["ALTER TABLE t ADD w INT DEFAULT 5", "ALTER TABLE t MODIFY n VARCHAR(9)"],
        "DELETE FROM t WHERE w = 5 AND id = 2",
    ),
    (["RENAME TABLE t TO old, third TO t"], "INSERT INTO t VALUES (7)"),
    (["DROP TABLE t", "RENAME TABLE other TO t"], "INSERT INTO t VALUES (7)"),
]


@pytest.fixture(scope="module", params=["one batch", "several batches"])
def changed(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    live_server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirroredDatabases]:
    """Yield databases after `CHANGED`, read in one batch or in a batch per statement."""
    several = request.param == "several batches"
    folder = tmp_path_factory.mktemp("reloads")
    cases = MirroredDatabases(spark, live_server, folder, "changed", len(CHANGED))
    for mirrored in cases:
        _fill(mirrored)
    if several:
        cases.run()
    for mirrored in cases:
        mirrored.execute(
            "UPDATE t SET v = '9' WHERE id = 1",
            "INSERT INTO third VALUES (1), (2)",
            "DELETE FROM t WHERE id = 3",
        )
    cases.step_by_step([statements for statements, _ in CHANGED], several=several)
    for mirrored, (_, change) in zip(cases, CHANGED, strict=True):
        mirrored.execute(change)
    cases.run()
    yield cases
    cases.drop()


@pytest.mark.sample(1, by="changed")
@pytest.mark.parametrize(
    "case", range(len(CHANGED)), ids=["; ".join(statements) for statements, _ in CHANGED]
)
def test_statement_that_changes_rows_reloads_the_table(
    changed: MirroredDatabases, case: int
) -> None:
    changed[case].assert_equal("t")


@pytest.mark.sample(1, by="changed")
def test_changes_after_reloads_are_equal_to_select(changed: MirroredDatabases) -> None:
    for mirrored, (_, change) in zip(changed, CHANGED, strict=True):
        another = change.replace("7", "8").replace("9", "8")
        mirrored.execute(another, "DELETE FROM t LIMIT 1")
    changed.run()
    for mirrored in changed:
        mirrored.assert_equal("t")


@pytest.mark.parametrize("clause", ["DROP PARTITION p0", "TRUNCATE PARTITION p0"])
def test_removed_partition_reloads_the_table(mirrored: MirroredDatabase, clause: str) -> None:
    """The binlog contains no deletes of its rows, some of which came in the same batch."""
    mirrored.execute(
        "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3),"
        " PARTITION p1 VALUES LESS THAN (100))"
    )
    mirrored.run()
    mirrored.assert_equal("t")
    mirrored.execute(
        "UPDATE t SET v = 'new' WHERE id = 2",
        "INSERT INTO t VALUES (0, 'goes, too', 0)",
        f"ALTER TABLE t {clause}",
        "INSERT INTO t VALUES (5, 'stays', 5), (50, 'stays', 5)",
    )
    mirrored.run()
    mirrored.assert_equal("t")


def test_statement_after_a_temporary_table_in_a_procedure_reloads_the_table(
    mirrored: MirroredDatabase,
) -> None:
    """Its event has the flag of statements on temporary tables."""
    mirrored.execute(
        "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3),"
        " PARTITION p1 VALUES LESS THAN (100))",
        "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE u (x INT);"
        " INSERT INTO u VALUES (1); ALTER TABLE t DROP PARTITION p0; END",
    )
    mirrored.run()
    mirrored.execute("CALL p()", "INSERT INTO t VALUES (50, 'stays', 5)")
    mirrored.run()
    mirrored.assert_equal("t")


def test_replayed_batch_of_a_reload_is_equal_to_select(mirrored: MirroredDatabase) -> None:
    """Spark's commit of the last batch is lost."""
    mirrored.run()
    mirrored.execute(
        "UPDATE t SET v = '9' WHERE id = 1",
        "ALTER TABLE t ADD w INT NOT NULL DEFAULT 5",
        "DELETE FROM t WHERE id = 2",
    )
    commits = mirrored.folder / "checkpoint" / "commits"
    before = {path.name for path in commits.iterdir()}
    mirrored.run()
    mirrored.assert_equal("t")
    new = sorted((path for path in commits.glob("[0-9]*") if path.name not in before), key=_number)
    assert new
    new[-1].unlink()
    mirrored.run()
    mirrored.assert_equal("t")


def _number(path: Path) -> int:
    return int(path.name)


@pytest.mark.parametrize(
    ("moment", "commits"),
    [
        pytest.param("before", (3, 7), id="short"),
        pytest.param("before", range(1, 9), id="before", marks=pytest.mark.slow),
        pytest.param("after", range(1, 9), id="after", marks=pytest.mark.slow),
    ],
)
def test_kill_at_each_commit_of_a_reload_loses_nothing(
    mirrored: MirroredDatabase,
    monkeypatch: pytest.MonkeyPatch,
    moment: Moment,
    commits: Iterable[int],
) -> None:
    """The process ends at one Delta commit between the statement and the end of the reload."""
    kills = KilledCommits(monkeypatch, mirrored.target("t"), moment)
    mirrored.run()
    killed = 0
    for number in commits:
        mirrored.execute(
            "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3),"
            " PARTITION p1 VALUES LESS THAN (100))",
            f"REPLACE INTO t VALUES (0, 'zero', {number}), (9, 'nine', {number})",
            "UPDATE t SET v = 'x' WHERE id = 2",
            "ALTER TABLE t DROP PARTITION p0",
            f"INSERT INTO t VALUES ({10 + number}, 'after', 6)",
            "ALTER TABLE t REMOVE PARTITIONING",
            f"INSERT INTO t VALUES (1, 'one', {number}), (2, 'two', {number})",
        )
        kills.left = number
        with contextlib.suppress(StreamingQueryException):
            mirrored.run()
        killed += kills.left <= 0
        kills.left = 0
        mirrored.run()
        mirrored.assert_equal("t")
    assert killed > 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_keyless_rows_of_a_reload_are_applied_once_after_a_kill(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    kills = KilledCommits(monkeypatch, mirrored.target("t"), "after")
    mirrored.run()
    mirrored.execute(
        "ALTER TABLE t ADD c INT NOT NULL DEFAULT 5",
        "ALTER TABLE t DROP PRIMARY KEY",
        "INSERT INTO t VALUES (50, 'x', 5, 5), (51, 'y', 5, 5)",
        "ALTER TABLE t ADD PRIMARY KEY (id)",
        "INSERT INTO t VALUES (60, 'z', 6, 6)",
    )
    kills.left = number
    with contextlib.suppress(StreamingQueryException):
        mirrored.run()
    assert kills.left <= 0
    kills.left = 0
    mirrored.run()
    mirrored.assert_equal("t")


def test_ddl_during_a_snapshot_is_equal_to_select(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """Chunks are read with columns that the binlog has not reached yet."""
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        maxRowsPerTrigger="40",
    )
    values = ", ".join(f"({n}, 'v{n}', {n})" for n in range(400))
    mirrored.execute(_CREATE, f"INSERT INTO t VALUES {values}")
    mirror = mirrored.mirror()
    query = mirror.start(spark, processingTime="10 milliseconds")
    try:
        for number in range(4):
            mirrored.execute(
                f"UPDATE t SET v = 'u{number}' WHERE id % 40 = {number}",
                f"ALTER TABLE t ADD a{number} INT" + (" NOT NULL DEFAULT 7" if number % 2 else ""),
                f"UPDATE t SET a{number} = 8 WHERE id % 40 = {number + 1}",
                f"DELETE FROM t WHERE id % 40 = {number + 2}",
                f"UPDATE t SET id = id + 1000 WHERE id % 40 = {number + 6}",
            )
    finally:
        query.stop()
    assert query.exception() is None, query.exception()
    mirrored.run()
    mirrored.assert_equal("t")
    assert not mirrored.delta("t").metadata().configuration.get("mysqlbinlog.stopped")


def test_stopped_table_is_reloaded_with_another_key(mirrored: MirroredDatabase) -> None:
    """Two of its rows have the same new key: a merge would keep both."""
    mirrored.options["reloadAfterDdl"] = "false"
    values = ", ".join(f"({n}, {n % 9}, 'x')" for n in range(1, 40))
    mirrored.execute(
        "CREATE TABLE u (id INT PRIMARY KEY, v INT NOT NULL, c VARCHAR(9))",
        f"INSERT INTO u VALUES {values}",
    )
    mirrored.run()
    mirrored.execute("ALTER TABLE u ADD w INT DEFAULT 7")
    mirrored.run()
    assert mirrored.stopped("u")
    mirrored.execute(
        "DELETE FROM u WHERE id > 9",
        "ALTER TABLE u DROP PRIMARY KEY, ADD PRIMARY KEY (v, c)",
    )
    mirrored.run()
    mirrored.options["reload"] = f"again: {mirrored.database}.u"
    mirrored.run()
    mirrored.assert_equal("u")
    mirrored.execute("UPDATE u SET w = 8", "DELETE FROM u WHERE id = 3")
    mirrored.run()
    mirrored.assert_equal("u")
