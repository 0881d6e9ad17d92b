"""What ALTER, DROP, RENAME and CREATE do to DeltaMirror: it is SELECT, or that table stops.

What becomes of a table where loading it again is allowed is in test_delta_reloads.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.delta_mirrors import MirroredDatabase
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT)"
_FILL = "INSERT INTO t VALUES (1, 'ñ漢', 1), (2, 'two', 2), (3, 'three', 3)"


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """The table ``t`` with three rows, and one that stays as it is."""
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.execute(_CREATE, _FILL, "CREATE TABLE other (id INT PRIMARY KEY)")
    return mirrored


@pytest.mark.parametrize(
    ("statements", "insert"),
    [
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
        (["DROP TABLE t", "CREATE TABLE t (k INT PRIMARY KEY)"], "(7)"),
        (["DROP TABLE t", _CREATE, "INSERT INTO t VALUES (1, 'again', 1)"], "(7, '7', 7)"),
        (["RENAME TABLE t TO u", _CREATE], "(7, '7', 7)"),
    ],
)
@pytest.mark.parametrize("batches", ["one batch", "several batches"])
def test_what_is_followed(
    mirrored: MirroredDatabase, statements: list[str], insert: str, batches: str
) -> None:
    several = batches == "several batches"
    if several:
        mirrored.run()
    mirrored.execute("UPDATE t SET v = '9' WHERE id = 1", "DELETE FROM t WHERE id = 3")
    for statement in statements:
        mirrored.execute(statement)
        if several:
            mirrored.run()
    mirrored.execute(f"INSERT INTO t VALUES {insert}", "INSERT INTO other VALUES (1)")
    mirrored.run()
    mirrored.expect_equal("t", "other")


@pytest.mark.parametrize(
    ("statements", "insert", "said"),
    [
        (["ALTER TABLE t ADD w INT NOT NULL DEFAULT 5"], "(7, '7', 7, 7)", "without telling"),
        (["ALTER TABLE t MODIFY n VARCHAR(9)"], "(7, '7', 7)", "without telling"),
        (
            # From 5.7 on the server refuses texts that are no numbers, unless it is told otherwise.
            ["SET sql_mode = ''", "ALTER TABLE t CHANGE v n INT, CHANGE n v INT"],
            "(7, 7, 7)",
            "without telling",
        ),
        (["ALTER TABLE t CHANGE v a VARCHAR(20), CHANGE n b INT"], "(7, '7', 7)", "renamed"),
        (["RENAME TABLE t TO old, other TO t"], "(7)", "without telling"),
        (["DROP TABLE t", "RENAME TABLE other TO t"], "(7)", "took its name"),
    ],
)
def test_what_nobody_tells_stops_that_table_only(
    mirrored: MirroredDatabase, statements: list[str], insert: str, said: str
) -> None:
    mirrored.options["reloadAfterDdl"] = "false"
    mirrored.execute("INSERT INTO other VALUES (1)", "CREATE TABLE third (id INT PRIMARY KEY)")
    mirrored.run()
    mirrored.execute("UPDATE t SET v = '9' WHERE id = 1")
    before = sorted(
        map(repr, mirrored.server.execute("SELECT * FROM t", database=mirrored.database))
    )
    mirrored.execute(*statements, f"INSERT INTO t VALUES {insert}", "INSERT INTO third VALUES (1)")
    mirrored.run()
    assert said in mirrored.stopped("t")
    # What came before is there, and nothing of what came behind.
    rows = mirrored.rows("t").select(["id", "v", "n"]).to_pylist()
    assert sorted(repr(tuple(row.values())) for row in rows) == before
    mirrored.expect_equal("third")
    mirrored.execute("UPDATE t SET id = 70 WHERE id = 7", "INSERT INTO third VALUES (2)")
    mirrored.run()
    mirrored.expect_equal("third")
    assert mirrored.rows("t").num_rows == len(before)
