"""A mirror, its change logs and its maintenance in an object store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.object_stores import ObjectStore, s3_store
from helpers.servers import Server
from helpers.streams.query_position import wait_for_position
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeTarget
from pyspark_mysqlbinlog.errors import StoreError, cause_of


class StoredDatabase(MirroredDatabase):
    """A database whose Delta tables are in an object store; its checkpoint is on local disk."""

    def __init__(
        self, spark: SparkSession, server: Server, database: str, folder: Path, store: ObjectStore
    ) -> None:
        super().__init__(spark, server, database, folder, startingOffset="snapshot")
        self.store = store
        self.settings = {
            "engine": "deltalake",
            "target": f"{store.uri}/lake/{{database}}/{{table}}",
            "storage_options": store.options,
        }

    def delta(self, table: str) -> DeltaTable:
        return self._opened("lake", table)

    def change_log(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a change log in the order of `seq`."""
        rows = self._opened("changes", table).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: tuple(row["seq"].values()))

    def _opened(self, kind: str, table: str) -> DeltaTable:
        uri = f"{self.store.uri}/{kind}/{self.database}/{table}"
        return DeltaTable(uri, storage_options=dict(self.store.options))


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with s3_store() as made:
        yield made


@pytest.fixture
def stored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path, store: ObjectStore
) -> StoredDatabase:
    live_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) CHARSET utf8mb4",
        "INSERT INTO t VALUES (1, 'é'), (2, 'b'), (3, NULL)",
        database=database,
    )
    return StoredDatabase(spark, live_server, database, tmp_path, store)


def test_snapshot_changes_and_ddl_reach_the_object_store(stored: StoredDatabase) -> None:
    stored.settings["change_log"] = f"{stored.store.uri}/changes/{{database}}/{{table}}"
    stored.run()
    stored.assert_equal("t")
    stored.execute(
        "UPDATE t SET v = 'x' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "ALTER TABLE t ADD w INT NOT NULL DEFAULT 7",
        "INSERT INTO t VALUES (4, 'd', 8)",
    )
    stored.run()
    stored.assert_equal("t")
    ops = [row["op"] for row in stored.change_log("t")]
    assert ops[:4] == ["reset", "r", "r", "r"]
    assert {"u", "d", "c"} <= set(ops)


def test_no_commit_is_read_again_in_every_batch(stored: StoredDatabase) -> None:
    """To look up a commit marker, delta-rs would read all commits since the last checkpoint."""
    query = stored.mirror().start(stored.spark, processingTime="0 seconds")
    try:
        for number in range(10, 25):
            stored.execute(f"INSERT INTO t VALUES ({number}, 'more')")
            wait_for_position(query, stored.server.position())
    finally:
        query.stop()
    table = f"/lake/lake/{stored.database}/t/_delta_log/"
    reads = Counter(each for each in stored.store.requests() if f"GET {table}" in each)
    commits = {name: count for name, count in reads.items() if ".json" in name}
    assert len(commits) > 15
    assert max(commits.values()) < 15, commits
    stored.assert_equal("t")


def test_maintenance_compacts_files_in_the_object_store(stored: StoredDatabase) -> None:
    stored.settings["maintenance_interval"] = "1s"
    numbers = count(10)

    def is_compacted() -> bool:
        # A round of maintenance starts after a batch.
        stored.execute(f"INSERT INTO t VALUES ({next(numbers)}, 'more')")
        return any(commit["operation"] == "OPTIMIZE" for commit in stored.delta("t").history())

    stored.run()
    query = stored.mirror().start(stored.spark, processingTime="100 milliseconds")
    try:
        wait_until(is_compacted, "the files are compacted", 100, every=0.2)
    finally:
        query.stop()
    stored.run()
    stored.assert_equal("t")


def test_commits_of_another_writer_are_not_overwritten(
    stored: StoredDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put of a version that exists fails, and the mirror commits after it."""
    stored.run()
    version = stored.delta("t").version()
    _before_next_commit(
        monkeypatch,
        lambda: stored.delta("t").alter.set_table_properties({"delta.checkpointInterval": "20"}),
    )
    stored.execute("INSERT INTO t VALUES (9, 'nine')")
    stored.run()
    stored.assert_equal("t")
    delta = stored.delta("t")
    assert delta.metadata().configuration["delta.checkpointInterval"] == "20"
    assert delta.version() >= version + 2


def test_appends_of_two_writers_at_one_version_are_both_committed(store: ObjectStore) -> None:
    """The store's put is conditional."""
    uri, options = f"{store.uri}/raw/t", dict(store.options)
    rows = pa.table({"a": [1]})
    write_deltalake(uri, rows, storage_options=options)
    writers = [DeltaTable(uri, storage_options=options) for _ in range(2)]
    for writer in writers:
        write_deltalake(writer, rows, mode="append")
    assert DeltaTable(uri, storage_options=options).version() == 2
    assert DeltaTable(uri, storage_options=options).to_pyarrow_table().num_rows == 3


@pytest.fixture(params=["bucket", "key"])
def wrong_store(request: pytest.FixtureRequest) -> Iterator[tuple[ObjectStore, str]]:
    """Yield a store that lacks the bucket or rejects the key, and the error code of its answer."""
    is_key = request.param == "key"
    with s3_store(checks_keys=is_key) as made:
        yield (made, "InvalidAccess") if is_key else (replace(made, uri="s3://no"), "NoSuchBucket")


def test_a_wrong_bucket_or_key_is_an_error_of_one_line(
    stored: StoredDatabase, wrong_store: tuple[ObjectStore, str]
) -> None:
    store, code = wrong_store
    stored.settings |= {
        "target": f"{store.uri}/{{database}}/{{table}}",
        "storage_options": store.options,
    }
    with pytest.raises(StreamingQueryException) as raised:
        stored.run()
    cause = cause_of(raised.value)
    assert isinstance(cause, StoreError)
    assert code in str(cause)
    assert "storage_options" in str(cause)
    assert "\n" not in str(cause)


def _before_next_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` between the mirror's last read of a table and its commit."""
    commit = DeltalakeTarget._commit
    left = [act]

    def interrupted(
        self: DeltalakeTarget, write: Callable[[DeltaTable], object], *more: Any, **named: Any
    ) -> None:
        def late(table: DeltaTable) -> object:
            while left:
                left.pop()()
            return write(table)

        commit(self, late, *more, **named)

    monkeypatch.setattr(DeltalakeTarget, "_commit", interrupted)
