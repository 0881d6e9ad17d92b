"""ALTER TABLE with unknown resulting columns and no later row change: the table is reloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase, MirroredDatabases
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_CREATE = (
    "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(20), n INT, e ENUM('é', 'b')) CHARACTER SET utf8"
)
_FILL = "INSERT INTO t VALUES (1, 'one', 1, 'b'), (2, 'two', 2, 'b'), (3, 'three', NULL, NULL)"
# The server keeps the bytes of the labels, which may be other characters in the new charset.
_NOT_FOLLOWED = "ALTER TABLE t CONVERT TO CHARACTER SET latin1"

# Statements on the table, without a row change after the last one.
ALTERED: list[list[str]] = [
    ["ALTER TABLE t MODIFY t.c VARCHAR(500)"],
    ["ALTER TABLE t ADD COLUMN t.z INT"],
    ["ALTER TABLE t ADD COLUMN t.z INT NOT NULL DEFAULT 7"],
    ["ALTER TABLE t CHANGE t.n n2 INT"],
    ["ALTER TABLE t CHANGE n t.n2 BIGINT"],
    ["ALTER TABLE t DROP COLUMN t.n"],
    ["ALTER TABLE t CONVERT TO CHARACTER SET utf8, CHARACTER SET DEFAULT"],
    [_NOT_FOLLOWED],
    [_NOT_FOLLOWED, "ALTER TABLE t ADD z INT DEFAULT 7"],
    ["ALTER TABLE t ADD y INT DEFAULT 7", _NOT_FOLLOWED],
    ["DELETE FROM t", _NOT_FOLLOWED],
    [_NOT_FOLLOWED, "TRUNCATE t"],
    [_NOT_FOLLOWED, "ALTER TABLE t RENAME TO u"],
    ["ALTER TABLE t DROP PRIMARY KEY", _NOT_FOLLOWED],
    ["UPDATE t SET n = 5", _NOT_FOLLOWED, "DROP TABLE t", _CREATE],
]
# Syntax that 8.0 and later reject.
_QUALIFIED, _DEFAULT_CHARSET = " t.", "CHARACTER SET DEFAULT"


def _is_refused(server: Server, statements: list[str]) -> bool:
    words = (_QUALIFIED, _DEFAULT_CHARSET)
    return server.is_mysql9() and any(word in text for text in statements for word in words)


@pytest.fixture(scope="module", params=["one batch", "several batches"])
def altered(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    live_server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirroredDatabases]:
    """Yield databases after `ALTERED`, read in one batch or in a batch per statement."""
    folder = tmp_path_factory.mktemp("unknown_columns")
    cases = MirroredDatabases(spark, live_server, folder, "unknown_columns", len(ALTERED))
    cases.execute(_CREATE, _FILL)
    cases.run()
    done = [[] if _is_refused(live_server, statements) else statements for statements in ALTERED]
    cases.step_by_step(done, several=request.param == "several batches")
    cases.run()
    yield cases
    cases.drop()


def _name(case: int) -> str:
    return "u" if "RENAME" in ALTERED[case][-1] else "t"


@pytest.mark.sample(1, by="altered")
@pytest.mark.parametrize(
    "case", range(len(ALTERED)), ids=["; ".join(statements) for statements in ALTERED]
)
def test_alter_without_later_changes_reloads_the_table(
    altered: MirroredDatabases, live_server: Server, case: int
) -> None:
    if _is_refused(live_server, ALTERED[case]):
        pytest.skip("8.0 and later have no qualified names of columns, and no such default")
    altered[case].assert_equal(_name(case))


@pytest.mark.sample(1, by="altered")
def test_row_changes_after_a_reload_by_alter_equal_select(altered: MirroredDatabases) -> None:
    for case, mirrored in enumerate(altered):
        mirrored.execute(
            f"INSERT INTO {_name(case)} (id, c) VALUES (4, 'four')",
            f"UPDATE {_name(case)} SET c = 'new' WHERE id = 2",
            f"DELETE FROM {_name(case)} WHERE id = 1",
        )
    altered.run()
    for case, mirrored in enumerate(altered):
        mirrored.assert_equal(_name(case))


def test_the_error_of_rows_between_two_alters_names_no_grant(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """The columns between the two statements are unknown; the server shows the current ones."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(_CREATE, _FILL)
    mirrored.run()
    mirrored.execute(
        _NOT_FOLLOWED, "INSERT INTO t VALUES (4, 'four', 4, 'b')", "ALTER TABLE t ADD z INT"
    )
    with pytest.raises(StreamingQueryException) as raised:
        mirrored.run()
    message = str(raised.value)
    assert "labels of column 'e' change in latin1" in message
    assert "start from a position" in message
    assert "GRANT" not in message


def test_table_stopped_at_an_unsupported_alter_equals_select_after_a_reload(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    """The checkpoint marks its columns as unknown, and the binlog has no change of the table."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, reloadAfterDdl="false")
    mirrored.execute(_CREATE, _FILL, "CREATE TABLE other (id INT PRIMARY KEY)")
    mirrored.run()
    mirrored.execute(_NOT_FOLLOWED, "INSERT INTO other VALUES (1)")
    mirrored.run()
    assert "does not contain the rows that a statement changed" in mirrored.stopped("t")
    mirrored.options["reload"] = f"again: {database}.t"
    mirrored.run()
    mirrored.assert_equal("t", "other")
