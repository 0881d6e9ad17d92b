"""Detection of compactions of files that another writer had already replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from helpers.mirrors.repeated_compactions import repeat_compaction
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit, repeated_compaction
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.errors import MirrorError

LOG = LogIdentity("uuid", 0, "mysql-bin")
FILES = {3: {"a", "b"}, 4: {"c"}, 5: {"a", "b"}, 6: {"d"}}


@pytest.mark.parametrize(
    ("commits", "found"),
    [
        ([Commit(5, "OPTIMIZE", 2)], 5),
        ([Commit(6, "OPTIMIZE", 5), Commit(5, "OPTIMIZE", 2)], 5),
        ([Commit(5, "OPTIMIZE", 3)], None),
        ([Commit(6, "OPTIMIZE", 2)], None),
        ([Commit(5, "OPTIMIZE")], None),
        ([Commit(5, "MERGE", 2)], None),
    ],
)
def test_commit_that_compacts_replaced_files_is_found(
    commits: list[Commit], found: int | None
) -> None:
    commit = repeated_compaction(commits, lambda version: FILES[version])
    assert (None if commit is None else commit.version) == found


def test_commit_contents_are_not_read_without_a_concurrent_commit() -> None:
    def removed(version: int) -> set[str]:
        raise AssertionError(version)

    assert repeated_compaction([Commit(5, "OPTIMIZE", 4), Commit(6, "WRITE", 2)], removed) is None


@pytest.fixture
def target(tmp_path: Path) -> DeltalakeTarget:
    target = DeltalakeEngine().target(str(tmp_path / "t"))
    target.create(pa.schema([pa.field("n", pa.int64())]), {})
    for number in range(3):
        target.append(pa.table({"n": [number]}), CommitMarker(LOG, 100 + number))
    return target


def test_rows_that_a_second_compaction_doubled_stop_the_next_commit(
    target: DeltalakeTarget,
) -> None:
    version = target.version()
    repeated = repeat_compaction(Path(target.uri))
    assert DeltaTable(target.uri).count() == 6
    with pytest.raises(MirrorError, match=f"twice: version {repeated} compacted"):
        target.append(pa.table({"n": [9]}), CommitMarker(LOG, 200))
    assert f"twice: version {repeated} compacted" in (target.damage_since(version) or "")
    assert target.damage_since(repeated) is None


def test_concurrent_compactions_in_one_process_double_no_rows(target: DeltalakeTarget) -> None:
    others = [DeltalakeEngine().target(target.uri) for _ in range(2)]
    start = Barrier(2)

    def compact(other: DeltalakeTarget) -> bool:
        start.wait()
        return other.compact()

    for number in range(10):
        target.append(pa.table({"n": [number]}), CommitMarker(LOG, 200 + number))
        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(compact, others))
        assert DeltaTable(target.uri).count() == 4 + number


def test_compaction_committed_after_an_append_doubles_no_rows(target: DeltalakeTarget) -> None:
    version, early = target.version(), DeltaTable(target.uri)
    target.append(pa.table({"n": [9]}), CommitMarker(LOG, 200))
    early.optimize.compact()
    assert DeltaTable(target.uri).history(1)[0]["readVersion"] == version
    target.append(pa.table({"n": [10]}), CommitMarker(LOG, 300))
    assert target.count() == 5
    assert target.damage_since(version) is None
