"""Refreshes of a delta-rs table after commits of other writers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars import table as table_module
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.errors import MirrorError

LOG = LogIdentity("uuid", 0, "mysql-bin")
COLUMNS = pa.schema([pa.field("n", pa.int64()), pa.field(SEQ, SEQ_TYPE)])


def rows(*numbers: int) -> pa.Table:
    seq = {"epoch": 0, "file": 1, "pos": 1, "row": 0}
    return pa.Table.from_pylist([{"n": number, SEQ: seq} for number in numbers], COLUMNS)


@pytest.fixture
def target(tmp_path: Path) -> DeltalakeTarget:
    target = DeltalakeEngine().target(str(tmp_path / "t"))
    target.create(COLUMNS, {})
    for number in range(3):
        target.append(rows(number), CommitMarker(LOG, 100 + number))
    return target


def test_commit_whose_response_is_lost_is_recognized_as_own(
    target: DeltalakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: DeltaTable, given: pa.Table, **more: Any) -> None:
        write_deltalake(DeltaTable(target.uri), given, **more)
        raise OSError("timeout")

    with monkeypatch.context() as during:
        during.setattr(table_module, "write_deltalake", lost)
        with pytest.raises(OSError, match="timeout"):
            target.append(rows(9), CommitMarker(LOG, 200))
    assert target.txn_version(str(LOG)) == 200
    target.append(rows(10), CommitMarker(LOG, 300))
    assert target.count() == 5


def test_rows_are_read_after_others_compacted_and_vacuumed(target: DeltalakeTarget) -> None:
    other = DeltaTable(target.uri)
    other.optimize.compact()
    other.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert target.count_equal_rows(rows(1).drop_columns([SEQ])) == [1]
    assert not target.has_since({"epoch": 0, "file": 2, "pos": 0, "row": 0})


def _once_before(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, write: Callable[[], object]
) -> None:
    """Call `write` once, immediately before the next call of a method."""
    call = getattr(owner, name)
    writes = iter([write])

    def interrupted(*given: Any, **more: Any) -> Any:
        next(writes, lambda: None)()
        return call(*given, **more)

    monkeypatch.setattr(owner, name, interrupted)


def test_append_succeeds_if_another_writer_commits_during_history_check(
    target: DeltalakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs also lists the commits after the version that it has loaded."""
    other = DeltalakeEngine().target(target.uri)
    assert other.compact()
    _once_before(monkeypatch, DeltaTable, "history", lambda: other.set_properties({"p": "q"}))
    target.append(rows(9), CommitMarker(LOG, 200))
    assert target.count() == 4


def test_foreign_delete_before_commit_during_history_check_is_rejected(
    target: DeltalakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = DeltalakeEngine().target(target.uri)
    DeltaTable(target.uri).delete("n = 1")
    _once_before(monkeypatch, DeltaTable, "history", lambda: other.set_properties({"p": "q"}))
    with pytest.raises(MirrorError, match=r"\(DELETE\)"):
        target.append(rows(9), CommitMarker(LOG, 200))


def test_properties_set_by_others_before_own_property_commit_are_preserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = pa.schema([pa.field("n", pa.decimal128(20)), pa.field(SEQ, SEQ_TYPE)])
    target = DeltalakeEngine().target(str(tmp_path / "t"))
    target.create(columns, {})
    other = DeltalakeEngine().target(target.uri)
    _once_before(
        monkeypatch,
        table_module,
        "stats_properties_excluding",
        lambda: other.set_properties({"p": "q"}),
    )
    target.append(rows(10**18).cast(columns), CommitMarker(LOG, 200))
    assert target.count() == 1
    assert target.properties()["p"] == "q"
    assert "n" not in target.properties()["delta.dataSkippingStatsColumns"].split(",")
