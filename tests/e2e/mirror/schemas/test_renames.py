"""Tables of a mirror that take or give up a name by RENAME: rows appear without row events.

Tables whose names do not begin with `t` are not captured.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.change_logs import assert_replay, change_log_of
from helpers.mirrors.delta_mirrors import MirroredDatabase, MirroredDatabases
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
_CREATE = f"CREATE TABLE t {_COLUMNS}"
_INSERT = "INSERT INTO t VALUES (5, 'new')"
# Statements, and the tables that have rows without row events after them; None if that depends on
# whether the statements are in one batch.
RENAMES: list[tuple[list[str], set[str] | None]] = [
    (["INSERT INTO t VALUES (2, 'b')", "RENAME TABLE t TO x", "RENAME TABLE u TO t"], {"t"}),
    (["RENAME TABLE t TO x", "RENAME TABLE u TO t", f"CREATE TABLE u {_COLUMNS}"], {"t"}),
    (["RENAME TABLE t TO x, u TO t"], {"t"}),
    (["DELETE FROM t", "RENAME TABLE t TO x, u TO t", _INSERT], {"t"}),
    (["DROP TABLE t", "RENAME TABLE u TO t", _INSERT], {"t"}),
    (["DROP TABLE t", "ALTER TABLE u RENAME t"], {"t"}),
    (["RENAME TABLE u TO t9", "INSERT INTO t9 VALUES (5, 'new')"], {"t9"}),
    (["DROP TABLE t", "RENAME TABLE u TO t", "RENAME TABLE t TO x", _CREATE, _INSERT], None),
    (["RENAME TABLE t TO x", _CREATE, _INSERT], set()),
    (["RENAME TABLE t TO t9", _CREATE, _INSERT], {"t9"}),
    (["RENAME TABLE t TO x", "CREATE TABLE t LIKE x", _INSERT], set()),
    (["CREATE TABLE tn LIKE t", "RENAME TABLE t TO x, tn TO t", _INSERT], {"t"}),
]


def _tables(case: int) -> list[str]:
    """Return the captured tables that exist at the end of a case."""
    text = " ".join(RENAMES[case][0])
    return ["t", "t9"] if " TO t9" in text else ["t"]


@pytest.fixture(params=["one batch", pytest.param("several batches", marks=pytest.mark.slow)])
def several(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "several batches")


@pytest.fixture
def cases(
    spark: SparkSession, live_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MirroredDatabases]:
    """Yield databases with a captured and a not captured table, before any run of the mirror."""
    folder = tmp_path_factory.mktemp("renames")
    made = MirroredDatabases(spark, live_server, folder, "renames", len(RENAMES))
    made[0].options["tables"] = "renames_*.t*"
    made.execute(_CREATE, "INSERT INTO t VALUES (1, 'a')", f"CREATE TABLE u {_COLUMNS}")
    made.execute("INSERT INTO u VALUES (7, 'u'), (8, 'u')")
    yield made
    made.drop()


def test_renamed_tables_equal_select_and_their_change_logs_replay(
    cases: MirroredDatabases, several: bool
) -> None:
    cases[0].settings["change_log"] = change_log_of(cases[0])
    cases.run()
    cases.step_by_step([statements for statements, _ in RENAMES], several=several)
    cases.run()
    for number, mirrored in enumerate(cases):
        for table in _tables(number):
            mirrored.assert_equal(table)
            assert_replay(mirrored, table, "id")


def test_renamed_table_stops_if_reload_after_ddl_is_false(
    cases: MirroredDatabases, several: bool
) -> None:
    cases[0].options["reloadAfterDdl"] = "false"
    cases.run()
    cases.step_by_step([statements for statements, _ in RENAMES], several=several)
    cases.run()
    for number, (mirrored, (_, stopped)) in enumerate(zip(cases, RENAMES, strict=True)):
        found = {table for table in _tables(number) if _is_stopped(mirrored, table)}
        assert stopped in (found, None), number


def _is_stopped(mirrored: MirroredDatabase, table: str) -> bool:
    """Return whether the table is stopped; otherwise, assert that it equals SELECT."""
    if mirrored.delta(table).metadata().configuration.get("mysqlbinlog.stopped"):
        return True
    mirrored.assert_equal(table)
    return False
