"""DeltaMirror after ALTER, DROP, RENAME and CREATE: equal to SELECT, or only that table stops.

Cases in which the mirror may reload the table are in snapshot/test_reloads.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase, MirroredDatabases
from helpers.mirrors.killed_commits import KilledCommits, KilledTables
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT)"
_FILL = "INSERT INTO t VALUES (1, 'ñ漢', 1), (2, 'two', 2), (3, 'three', 3)"


# Statements on the table, and a row that is inserted after them.
FOLLOWED: list[tuple[list[str], str]] = [
    (["ALTER TABLE t ADD note VARCHAR(10) AFTER id"], "(7, 'ñ', '7', 7)"),
    (["ALTER TABLE t ADD d DATETIME"], "(7, '7', 7, '2026-11-20 10:00:00')"),
    (["ALTER TABLE t DROP n, ADD d DATETIME"], "(7, '7', '2026-11-20 10:00:00')"),
    (["ALTER TABLE t CHANGE n m INT"], "(7, '7', 7)"),
    (["ALTER TABLE t CHANGE n m BIGINT"], "(7, '7', 5000000000)"),
    (["ALTER TABLE t MODIFY n BIGINT"], "(7, '7', 5000000000)"),
    (["ALTER TABLE t CHANGE id k BIGINT"], "(7, '7', 7)"),
    (["ALTER TABLE t DROP COLUMN n"], "(7, '7')"),
    (["ALTER TABLE t DROP COLUMN n, ADD n2 INT, CHANGE v w VARCHAR(30)"], "(7, '7', 7)"),
    (["ALTER TABLE t DROP COLUMN n", "ALTER TABLE t ADD n VARCHAR(9)"], "(7, '7', 'x')"),
    (["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)"], "(7, '7', 7)"),
    (
        [
            "ALTER TABLE t CHANGE n m INT",
            "UPDATE t SET m = 9 WHERE id = 2",
            "ALTER TABLE t ADD n INT",
            "UPDATE t SET n = 8 WHERE id = 3",
            "ALTER TABLE t DROP COLUMN v",
        ],
        "(7, 7, 7)",
    ),
    (["TRUNCATE TABLE t", "ALTER TABLE t ADD w INT NOT NULL DEFAULT 5"], "(7, '7', 7, 7)"),
    (["TRUNCATE /* no partition */ TABLE t"], "(7, '7', 7)"),
    (["DROP TABLE t", "CREATE TABLE t (k INT PRIMARY KEY)"], "(7)"),
    (["DROP TABLE t", _CREATE, "INSERT INTO t VALUES (1, 'again', 1)"], "(7, '7', 7)"),
    (["RENAME TABLE t TO u", _CREATE], "(7, '7', 7)"),
]
# Statements that need several commits to the Delta table when they are in one batch.
SEVERAL: list[list[str]] = [
    # Column names that are used again: the Delta table's columns would look unchanged.
    ["ALTER TABLE t DROP COLUMN n", "ALTER TABLE t ADD n INT", "UPDATE t SET n = 5 WHERE id = 1"],
    [
        "ALTER TABLE t CHANGE n x INT",
        "UPDATE t SET x = 4 WHERE id = 1",
        "ALTER TABLE t CHANGE m n INT",
        "ALTER TABLE t CHANGE x m INT",
    ],
    ["ALTER TABLE t CHANGE n x INT", "ALTER TABLE t CHANGE x n INT", "UPDATE t SET n = 8"],
    ["ALTER TABLE t CHANGE n x INT", "ALTER TABLE t ADD n INT", "UPDATE t SET n = 5 WHERE id = 1"],
    ["ALTER TABLE t CHANGE v w VARCHAR(30) NOT NULL", "ALTER TABLE t DROP m, ADD v INT"],
    [
        "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t ADD n BIGINT",
        "ALTER TABLE t DROP COLUMN n",
        "UPDATE t SET v = 'z' WHERE id = 1",
        "ALTER TABLE t ADD n INT",
        "ALTER TABLE t CHANGE n o INT",
        "ALTER TABLE t ADD n INT",
    ],
    [
        "ALTER TABLE t MODIFY n BIGINT",
        "UPDATE t SET n = 5000000000 WHERE id = 2",
        "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t ADD n INT",
    ],
    ["ALTER TABLE t DROP COLUMN n", "TRUNCATE TABLE t", "ALTER TABLE t ADD n INT"],
    # The key changes.
    ["ALTER TABLE t CHANGE n x INT, DROP PRIMARY KEY, ADD PRIMARY KEY (v)"],
    ["ALTER TABLE t CHANGE v w VARCHAR(20) NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (w)"],
    [
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        "ALTER TABLE t CHANGE n x INT",
        "UPDATE t SET x = 5 WHERE id = 2",
    ],
    [
        "ALTER TABLE t CHANGE n x INT",
        "UPDATE t SET x = 44 WHERE id = 2",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        "ALTER TABLE t CHANGE x y BIGINT",
        "UPDATE t SET y = 45 WHERE id = 1",
    ],
    [
        "ALTER TABLE t CHANGE n x INT, DROP PRIMARY KEY",
        "INSERT INTO t VALUES (2, 'two', 2, 20)",
        "UPDATE t SET v = 'x' WHERE id = 2 LIMIT 1",
    ],
    [
        "ALTER TABLE t DROP COLUMN n, DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        "ALTER TABLE t ADD n INT",
        "UPDATE t SET id = id + 5",
    ],
    ["ALTER TABLE t ADD UNIQUE (v), DROP PRIMARY KEY, CHANGE n x INT"],
    # The key's type changes.
    ["ALTER TABLE t CHANGE id k BIGINT", "UPDATE t SET k = 5000000000 WHERE k = 1"],
    ["ALTER TABLE t MODIFY id BIGINT", "UPDATE t SET id = 5000000000 WHERE id = 1"],
]
# As in FOLLOWED, and a part of the reason why the table stops.
NOT_TOLD: list[tuple[list[str], str, str]] = [
    (
        ["ALTER TABLE t ADD w INT NOT NULL DEFAULT 5"],
        "(7, '7', 7, 7)",
        "without row events",
    ),
    (["ALTER TABLE t MODIFY n VARCHAR(9)"], "(7, '7', 7)", "without row events"),
    (
        # Since 5.7, the server rejects texts that are not numbers unless sql_mode allows them.
        ["SET sql_mode = ''", "ALTER TABLE t CHANGE v n INT, CHANGE n v INT"],
        "(7, 7, 7)",
        "without row events",
    ),
    (["ALTER TABLE t CHANGE v a VARCHAR(20), CHANGE n b INT"], "(7, '7', 7)", "renamed"),
    (
        ["ALTER TABLE t ADD m INT", "ALTER TABLE t CHANGE n m INT, CHANGE m n INT"],
        "(7, '7', 7, 70)",
        "without row events",
    ),
    (
        ["ALTER TABLE t CHANGE n m INT, ADD n INT"],
        "(7, '7', 7, 70)",
        "without row events",
    ),
    (
        ["ALTER TABLE t DROP COLUMN n, ADD n INT AFTER id"],
        "(7, 7, '7')",
        "without row events",
    ),
    (["RENAME TABLE t TO old, other TO t"], "(7)", "without row events"),
    (["DROP TABLE t", "RENAME TABLE other TO t"], "(7)", "was renamed to its name"),
]


def _cases(
    spark: SparkSession, server: Server, folder: Path, name: str, count: int
) -> MirroredDatabases:
    """Create databases, each with three rows in the table ``t`` and with the table ``other``."""
    cases = MirroredDatabases(spark, server, folder, name, count)
    for mirrored in cases:
        mirrored.execute(_CREATE, _FILL, "CREATE TABLE other (id INT PRIMARY KEY)")
    return cases


@pytest.fixture(scope="module", params=["one batch", "several batches"])
def followed(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    live_server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirroredDatabases]:
    """Yield databases after `FOLLOWED`, read in one batch or in a batch per statement."""
    several = request.param == "several batches"
    cases = _cases(spark, live_server, tmp_path_factory.mktemp("ddl"), "followed", len(FOLLOWED))
    if several:
        cases.run()
    for mirrored in cases:
        mirrored.execute("UPDATE t SET v = '9' WHERE id = 1", "DELETE FROM t WHERE id = 3")
    cases.step_by_step([statements for statements, _ in FOLLOWED], several=several)
    for mirrored, (_, insert) in zip(cases, FOLLOWED, strict=True):
        mirrored.execute(f"INSERT INTO t VALUES {insert}", "INSERT INTO other VALUES (1)")
    cases.run()
    yield cases
    cases.drop()


@pytest.mark.sample(1, by="followed")
@pytest.mark.parametrize(
    "case", range(len(FOLLOWED)), ids=["; ".join(statements) for statements, _ in FOLLOWED]
)
def test_ddl_with_known_rows_is_equal_to_select(followed: MirroredDatabases, case: int) -> None:
    followed[case].assert_equal("t", "other")


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of the table ``t`` with three rows, which has run once."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(_CREATE, _FILL)
    mirrored.run()
    return mirrored


def test_rows_of_each_schema_version_in_one_batch_are_kept(mirrored: MirroredDatabase) -> None:
    """All changes are in one batch and no row changes twice; no case of `FOLLOWED` has both."""
    mirrored.execute(
        "UPDATE t SET v = 'changed' WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        "ALTER TABLE t CHANGE n m INT",
        "UPDATE t SET m = 8 WHERE id = 2",
        # Under another name: a new column `v` would cause a reload of the table.
        "ALTER TABLE t DROP COLUMN v, ADD w VARCHAR(20)",
        "INSERT INTO t VALUES (4, 4, 'four'), (5, 5, NULL)",
    )
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t CHANGE n m INT",
        "ALTER TABLE t DROP COLUMN n, CHANGE v w VARCHAR(30)",
        "ALTER TABLE t ADD m INT",
    ],
)
def test_kill_between_columns_and_rows_of_a_batch_loses_nothing(
    mirrored: MirroredDatabase, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """The Delta table already has its new columns when the batch is replayed."""
    kills = KilledCommits(monkeypatch, mirrored.target("t"), "after")
    mirrored.execute("DELETE FROM t WHERE id = 1", statement, "UPDATE t SET id = 20 WHERE id = 2")
    columns = mirrored.delta("t").schema()
    kills.left = 1
    with pytest.raises(StreamingQueryException):
        mirrored.run()
    # The columns have changed, and none of the batch's row changes is applied.
    assert mirrored.delta("t").schema() != columns
    assert mirrored.rows("t").num_rows == 3
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((2,), id="short"),
        # A MERGE of Spark takes one to two seconds.
        pytest.param(range(1, 6), id="all", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_kill_after_each_commit_of_several_ddl_statements_loses_nothing(
    spark: SparkSession,
    live_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    numbers: Iterable[int],
) -> None:
    killed = 0
    for number in numbers:
        cases = _cases(spark, live_server, tmp_path / str(number), f"killed_{number}", len(SEVERAL))
        with contextlib.ExitStack() as stack:
            stack.callback(cases.drop)
            killed += _killed(cases, monkeypatch, number)
            cases.execute("INSERT INTO other VALUES (1)")
            cases.run()
            for mirrored in cases:
                mirrored.assert_equal("t", "other")
    assert killed > 1


def test_several_ddl_statements_in_separate_batches_equal_select(
    spark: SparkSession, live_server: Server, tmp_path: Path
) -> None:
    cases = _cases(spark, live_server, tmp_path, "apart", len(SEVERAL))
    with contextlib.ExitStack() as stack:
        stack.callback(cases.drop)
        cases.execute("ALTER TABLE t ADD m INT NULL", "UPDATE t SET m = 10 * id")
        cases.run()
        cases.step_by_step(SEVERAL, several=True)
        for mirrored in cases:
            mirrored.assert_equal("t")


def _killed(cases: MirroredDatabases, monkeypatch: pytest.MonkeyPatch, number: int) -> int:
    """Execute `SEVERAL` and kill the mirror at this commit; return the number of tables killed."""
    cases.execute("ALTER TABLE t ADD m INT NULL", "UPDATE t SET m = 10 * id")
    cases.run()
    cases.execute("UPDATE t SET v = '9' WHERE id = 1", "DELETE FROM t WHERE id = 3")
    for mirrored, statements in zip(cases, SEVERAL, strict=True):
        mirrored.execute(*statements)
    with monkeypatch.context() as during, contextlib.suppress(StreamingQueryException):
        kills = KilledTables(during, cases[0].target("t"), number)
        cases.run()
    return kills.killed


def test_foreign_columns_stop_the_table_until_it_is_reloaded(mirrored: MirroredDatabase) -> None:
    """A user added them, or a batch that a restored checkpoint does not contain."""
    mirrored.target("t").add_columns([pa.field("extra", pa.int64())])
    mirrored.execute("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    mirrored.execute("INSERT INTO t VALUES (4, 'four', 4)")
    mirrored.run()
    assert "columns that the mirror did not add" in mirrored.stopped("t")
    mirrored.assert_equal("other")
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.fixture(scope="module")
def not_told(
    spark: SparkSession, live_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MirroredDatabases, list[list[str]]]]:
    """Yield databases after `NOT_TOLD`, and the rows of each ``t`` before it, as their repr."""
    cases = _cases(spark, live_server, tmp_path_factory.mktemp("ddl"), "not_told", len(NOT_TOLD))
    cases[0].options["reloadAfterDdl"] = "false"
    for mirrored in cases:
        mirrored.execute("INSERT INTO other VALUES (1)", "CREATE TABLE third (id INT PRIMARY KEY)")
    cases.run()
    before = []
    for mirrored, (statements, insert, _) in zip(cases, NOT_TOLD, strict=True):
        mirrored.execute("UPDATE t SET v = '9' WHERE id = 1")
        rows = live_server.execute("SELECT * FROM t", database=mirrored.database)
        before.append(sorted(map(repr, rows)))
        mirrored.execute(
            *statements, f"INSERT INTO t VALUES {insert}", "INSERT INTO third VALUES (1)"
        )
    cases.run()
    yield cases, before
    cases.drop()


@pytest.mark.parametrize(
    "case", range(len(NOT_TOLD)), ids=["; ".join(statements) for statements, *_ in NOT_TOLD]
)
def test_ddl_that_changes_rows_without_events_stops_only_its_table(
    not_told: tuple[MirroredDatabases, list[list[str]]], case: int
) -> None:
    cases, before = not_told
    mirrored, (_, _, said) = cases[case], NOT_TOLD[case]
    assert said in mirrored.stopped("t")
    # The rows from before the statements are kept, and no later change is applied.
    rows = mirrored.rows("t").select(["id", "v", "n"]).to_pylist()
    assert sorted(repr(tuple(row.values())) for row in rows) == before[case]
    mirrored.assert_equal("third")


def test_other_tables_continue_when_a_table_is_stopped(
    not_told: tuple[MirroredDatabases, list[list[str]]],
) -> None:
    cases, before = not_told
    for mirrored in cases:
        mirrored.execute("UPDATE t SET id = 70 WHERE id = 7", "INSERT INTO third VALUES (2)")
    cases.run()
    for mirrored, rows in zip(cases, before, strict=True):
        mirrored.assert_equal("third")
        assert mirrored.rows("t").num_rows == len(rows)
