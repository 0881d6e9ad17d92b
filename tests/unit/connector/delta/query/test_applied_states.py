"""Applied states in a checkpoint: checks of Delta tables against them, and their storage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_mysqlbinlog.connector.delta.query.applied_states import AppliedStates
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.errors import OffsetError

# A checkpoint on local disk needs no session.
SPARK: Any = None
LOG, QUERY, TABLE = LogIdentity("uuid", 0, "mysql-bin"), "mysqlbinlog:query:q", ("d", "t")
STATE = AppliedState(3, str(LOG), 500, 7)


@pytest.fixture
def target(tmp_path: Path) -> DeltalakeTarget:
    """Return a Delta table that matches STATE."""
    target = DeltalakeEngine().target(str(tmp_path / "table"))
    target.create(pa.schema([pa.field("id", pa.int64())]), {})
    for number in (5, 6, 7):
        target.append(
            pa.table({"id": [number]}), CommitMarker(LOG, number * 100 - 200, None, (QUERY, number))
        )
    return target


def test_table_with_recorded_state_lacks_nothing(target: DeltalakeTarget) -> None:
    assert STATE.missing_in(target, QUERY) is None


def test_table_ahead_of_recorded_state_lacks_nothing(target: DeltalakeTarget) -> None:
    assert replace(STATE, version=1, place=100, batch=5).missing_in(target, QUERY) is None


def test_later_commits_are_read_from_the_history_once(
    target: DeltalakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    history = DeltaTable.history

    def counted(table: DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        read.append(limit or 0)
        return history(table, limit)

    monkeypatch.setattr(DeltaTable, "history", counted)
    assert replace(STATE, version=1, place=100, batch=5).missing_in(target, QUERY) is None
    assert STATE.missing_in(target, QUERY) is None
    assert read == [2]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (replace(STATE, version=4), "version 4"),
        (replace(STATE, place=501), "position 501"),
        (replace(STATE, batch=8), "batch 8"),
        (replace(STATE, log="mysqlbinlog:uuid:1:mysql-bin"), "it has version 3, no position"),
    ],
)
def test_table_older_than_recorded_state_is_reported_with_what_it_lacks(
    target: DeltalakeTarget, state: AppliedState, expected: str
) -> None:
    what = state.missing_in(target, QUERY)
    assert what is not None
    assert "lacks what this query wrote to it" in what
    assert expected in what


def test_missing_table_is_reported_only_if_a_batch_changed_it(tmp_path: Path) -> None:
    target = DeltalakeEngine().target(str(tmp_path / "nothing"))
    assert "no longer exists" in (STATE.missing_in(target, QUERY) or "")
    # A table that no batch has changed may be missing: it is created again.
    assert replace(STATE, place=None, batch=None).missing_in(target, QUERY) is None


def test_restored_older_version_of_table_is_reported(target: DeltalakeTarget) -> None:
    target._there().restore(1)
    target.forget_state()
    assert "an older version of its rows" in (STATE.missing_in(target, QUERY) or "")
    assert replace(STATE, version=4).missing_in(target, QUERY) is None


def test_stop_holds_until_a_later_batch_is_in_the_table(target: DeltalakeTarget) -> None:
    assert replace(STATE, stopped="why", stopped_in=7).is_stopped(target, QUERY)
    assert not replace(STATE, stopped="why", stopped_in=6).is_stopped(target, QUERY)
    assert not STATE.is_stopped(target, QUERY)


def _read(checkpoint: Path, query: str = QUERY) -> AppliedStates:
    states = AppliedStates(str(checkpoint))
    states.read(SPARK, query)
    return states


def _noted(checkpoint: Path, *places: int) -> None:
    states = _read(checkpoint)
    for place in places:
        states.note(TABLE, replace(STATE, place=place))
        states.note(TABLE, replace(STATE, place=-place), is_log=True)
        states.write(SPARK)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_last_written_applied_state_is_read(tmp_path: Path, count: int) -> None:
    _noted(tmp_path, *range(1, count + 1))
    states = _read(tmp_path)
    assert states.of(TABLE) == replace(STATE, place=count)
    assert states.of(TABLE, is_log=True) == replace(STATE, place=-count)
    assert states.of(("d", "other")) is None
    assert _read(tmp_path, "another query").of(TABLE) is None


def test_unchanged_applied_state_is_not_written_again(tmp_path: Path) -> None:
    _noted(tmp_path, 1, 1, 1)
    assert len([*tmp_path.iterdir()]) == 1


def test_partially_written_state_file_falls_back_to_previous_state(tmp_path: Path) -> None:
    _noted(tmp_path, 1, 2)
    # The states alternate between two files; the second state is in file 0.
    (tmp_path / "mysqlbinlog-applied-0").write_text('{"query"')
    assert _read(tmp_path).of(TABLE) == replace(STATE, place=1)
    _noted(tmp_path, 3)
    assert _read(tmp_path).of(TABLE) == replace(STATE, place=3)


def test_damaged_applied_state_files_raise_offset_error(tmp_path: Path) -> None:
    _noted(tmp_path, 1, 2)
    for path in tmp_path.iterdir():
        path.write_text("")
    with pytest.raises(OffsetError, match="remove the files"):
        _read(tmp_path)
