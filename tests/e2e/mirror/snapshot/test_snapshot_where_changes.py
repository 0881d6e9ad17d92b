"""`snapshotWhere` in a snapshot during which the key changes, or the option itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.tools.harmed_tables import interrupted

pytestmark = pytest.mark.both_engines

ROWS = 2_000


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirror of a table with rows for several batches; only a change added row 2."""
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        maxRowsPerTrigger="500",
        targetPartitionBytes="20000",
        snapshotWhere=json.dumps({f"{database}.t": "id >= 100"}),
    )
    rows = ", ".join(f"({100 + n}, {n}, REPEAT('x', 40))" for n in range(ROWS))
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(60))",
        f"INSERT INTO t VALUES {rows}",
        "ANALYZE TABLE t",
    )
    mirrored.run()
    mirrored.execute("INSERT INTO t VALUES (2, 2, 'brought')")
    mirrored.run()
    mirrored.assert_equal("t")
    return mirrored


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t ADD COLUMN w INT DEFAULT 7, MODIFY id BIGINT NOT NULL"],
        [
            "ALTER TABLE t ADD COLUMN w INT DEFAULT 7",
            "ALTER TABLE t DROP PRIMARY KEY",
            "ALTER TABLE t ADD PRIMARY KEY (id)",
        ],
    ],
    ids=["one statement", "no key for a while"],
)
def test_changed_key_with_snapshot_where_stops_the_table_until_a_full_reload(
    mirrored: MirroredDatabase, statements: list[str]
) -> None:
    mirrored.execute(*statements)
    with pytest.raises(StreamingQueryException, match="every table is stopped"):
        mirrored.run()
    assert "remove the table from snapshotWhere" in mirrored.stopped("t")
    assert 2 in mirrored.rows("t").column("id").to_pylist()
    del mirrored.options["snapshotWhere"]
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    mirrored.run()
    mirrored.assert_equal("t")


@pytest.mark.sample(1)
@pytest.mark.parametrize("limited", ["first", "last"])
def test_reload_with_snapshot_where_in_only_one_part_equals_select(
    mirrored: MirroredDatabase, limited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that reads the other part of the snapshot does not have the option."""
    with mirrored.server.connect(database=mirrored.database) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("UPDATE t SET n = n + 5")
        connection.commit()
    where = mirrored.options["snapshotWhere"]
    mirrored.options["reload"] = f"again: {mirrored.database}.t"
    if limited == "last":
        del mirrored.options["snapshotWhere"]
    ended = True
    with interrupted(monkeypatch, 3):
        mirrored.run()
        ended = False
    assert ended
    mirrored.options.pop("snapshotWhere", None)
    if limited == "last":
        mirrored.options["snapshotWhere"] = where
    mirrored.run()
    mirrored.assert_equal("t")
