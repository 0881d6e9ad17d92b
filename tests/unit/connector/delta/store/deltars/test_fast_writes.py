"""Writes without a merge, which leave the same table as a merge."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars import fast_writes
from pyspark_mysqlbinlog.connector.delta.store.deltars import table as table_module
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.errors import MirrorError

LOG = LogIdentity("uuid", 0, "mysql-bin")
UNSIGNED = pa.decimal128(20, 0)
# (key, value, file and position of the change, whether it is a tombstone)
State = tuple[int, str, tuple[int, int], bool]


def states(kind: pa.DataType, *rows: State) -> pa.Table:
    keys = [Decimal(key) if pa.types.is_decimal(kind) else key for key, *_ in rows]
    seq = [{"epoch": 0, "file": file, "pos": pos, "row": 0} for *_, (file, pos), _ in rows]
    return pa.table(
        {
            'Key "1"': pa.array(keys, kind),
            "v": pa.array(
                [None if is_tombstone else value for _, value, _, is_tombstone in rows], pa.string()
            ),
            SEQ: pa.array(seq, SEQ_TYPE),
            TOMBSTONE: pa.array([is_tombstone for *_, is_tombstone in rows], pa.bool_()),
        }
    )


def target(
    folder: Path,
    kind: pa.DataType,
    *,
    soft_delete: bool = False,
    properties: Mapping[str, str] | None = None,
) -> DeltalakeTarget:
    engine = DeltalakeEngine(properties=properties, soft_delete=soft_delete)
    found = engine.target(str(folder))
    found.create(states(kind).drop_columns([TOMBSTONE]).schema, {})
    return found


def merge(table: DeltalakeTarget, rows: pa.Table, place: int) -> None:
    table.merge(rows, rows.column_names[:1], CommitMarker(LOG, place))


def rows_of(table: DeltalakeTarget) -> list[tuple[Any, ...]]:
    held = DeltaTable(table.uri).to_pyarrow_table().to_pylist()
    return sorted(tuple(map(str, row.values())) for row in held)


def operation(table: DeltalakeTarget) -> str:
    """Return the operation of the last commit; for a write, its mode."""
    commit = DeltaTable(table.uri).history(1)[0]
    return str(commit["operationParameters"].get("mode", commit["operation"]))


def batches(keys: st.SearchStrategy[int]) -> st.SearchStrategy[list[list[State]]]:
    places = st.tuples(st.integers(1, 2), st.integers(4, 9))
    state = st.tuples(keys, st.text("ab'\"\\", max_size=2), places, st.booleans())
    batch = st.lists(state, min_size=1, max_size=6, unique_by=lambda each: each[0])
    return st.lists(batch, min_size=1, max_size=4)


ENDS = (-(2**63), 2**63 - 1, 0, -1)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.int64(), st.sampled_from(ENDS) | st.integers(-3, 3)),
        (pa.int8(), st.sampled_from([-128, 127]) | st.integers(-3, 3)),
        (UNSIGNED, st.sampled_from([10**15 - 1, 10**15, 2**64 - 1]) | st.integers(0, 5)),
    ],
)
@pytest.mark.sample(6, of=5)
@pytest.mark.parametrize("soft_delete", [False, True])
def test_rows_written_without_merge_equal_rows_of_a_merge(
    kind: pa.DataType, keys: st.SearchStrategy[int], *, soft_delete: bool
) -> None:
    """Batches may contain changes that are older than existing rows."""

    @settings(max_examples=5, deadline=None)
    @given(batches(keys))
    def check(given_batches: list[list[State]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            written = target(Path(folder, "written"), kind, soft_delete=soft_delete)
            merged = target(Path(folder, "merged"), kind, soft_delete=soft_delete)
            for number, batch in enumerate(given_batches):
                rows = states(kind, *batch)
                merge(written, rows, number)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(table_module, "append_or_replace", lambda *_, **__: False)
                    merge(merged, rows, number)
                assert rows_of(written) == rows_of(merged)

    check()


def test_fast_write_is_one_commit_with_its_marker(tmp_path: Path) -> None:
    table = target(tmp_path, pa.int64())
    for place, expected, is_tombstone in (
        (1, "Append", False),
        (2, "Overwrite", False),
        (3, "Overwrite", True),
    ):
        version = table._now().version()
        merge(table, states(pa.int64(), (7, "x", (1, place), is_tombstone)), place)
        assert table._now().version() == version + 1
        assert (operation(table), table.txn_version(str(LOG))) == (expected, place)
    assert table.is_empty()


@pytest.mark.parametrize("soft_delete", [False, True])
def test_tombstone_of_unknown_key_is_written_only_with_soft_delete(
    tmp_path: Path, *, soft_delete: bool
) -> None:
    """Without soft deletes there is no commit, as with a merge."""
    table = target(tmp_path, pa.int64(), soft_delete=soft_delete)
    merge(table, states(pa.int64(), (1, "x", (1, 1), False)), 1)
    version = table._now().version()
    merge(table, states(pa.int64(), (7, "x", (1, 2), True)), 2)
    assert table._now().version() == version + soft_delete
    assert table.count() == 1 + soft_delete


FEED = {"delta.enableChangeDataFeed": "true"}
APPEND_ONLY = {"delta.appendOnly": "true"}
NO_STATS = {"delta.dataSkippingNumIndexedCols": "0"}
OTHER_STATS = {"delta.dataSkippingStatsColumns": "v"}
ROWS: list[State] = [(1, "a", (1, 5), False), (3, "b", (1, 6), False)]
BETWEEN: State = (2, "there", (1, 4), False)


@pytest.mark.parametrize(
    ("properties", "held", "most", "expected"),
    [
        ({}, BETWEEN, 2, "Overwrite"),
        ({}, (3, "older", (1, 4), False), 2, "Overwrite"),
        ({}, (3, "newer", (9, 9), False), 2, "MERGE"),
        ({}, BETWEEN, 1, "MERGE"),
        (FEED, BETWEEN, 2, "MERGE"),
        (APPEND_ONLY, BETWEEN, 2, "MERGE"),
        ({}, (4, "after all", (1, 4), False), 1, "Append"),
        ({}, (0, "before all", (9, 9), False), 1, "Append"),
        (FEED, (4, "after all", (1, 4), False), 1, "Append"),
        (APPEND_ONLY, (4, "after all", (1, 4), False), 1, "Append"),
        (NO_STATS, (4, "after all", (1, 4), False), 1, "MERGE"),
        (OTHER_STATS, (4, "after all", (1, 4), False), 1, "MERGE"),
    ],
)
def test_held_rows_and_properties_decide_between_append_overwrite_and_merge(  # noqa: PLR0917 (a case's values)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    held: State,
    most: int,
    expected: str,
) -> None:
    table = target(tmp_path, pa.int64(), properties=properties)
    merge(table, states(pa.int64(), held), 1)
    monkeypatch.setattr(fast_writes, "MAX_REPLACED_KEYS", most)
    merge(table, states(pa.int64(), *ROWS), 2)
    assert operation(table) == expected


def test_row_in_file_without_statistics_is_replaced(tmp_path: Path) -> None:
    """A file without statistics may contain any key."""
    table = target(tmp_path, pa.int64())
    merge(table, states(pa.int64(), (1, "one", (1, 1), False)), 1)
    table.set_properties(NO_STATS)
    merge(table, states(pa.int64(), (7, "old", (1, 2), False)), 2)
    table.set_properties(dict.fromkeys(NO_STATS, "32"))
    merge(table, states(pa.int64(), (7, "new", (1, 3), False)), 3)
    assert {int(key): value for key, value, _ in rows_of(table)} == {1: "one", 7: "new"}
    assert table.count() == 2


KEYED = {"k": "a", "n": 1, "m": 2}


@pytest.mark.parametrize(
    ("key", "partition_by", "moved", "expected"),
    [
        (["k"], [], {}, "MERGE"),
        (["n", "m"], [], {}, "MERGE"),
        (["n"], ["m"], {}, "MERGE"),
        (["k"], [], {"k": "b"}, "MERGE"),
        (["n", "m"], [], {"m": 3}, "Append"),
        (["n", "m"], [], {"n": 0}, "Append"),
        (["k", "n"], [], {"n": 2}, "Append"),
        (["m", "n"], ["m"], {"n": 2}, "Append"),
        (["m", "n"], ["m"], {"m": 3}, "MERGE"),
    ],
)
def test_key_types_and_partitions_decide_between_append_and_merge(
    tmp_path: Path,
    key: Sequence[str],
    partition_by: Sequence[str],
    moved: dict[str, Any],
    expected: str,
) -> None:
    """The second batch has the same row, or a row that differs in one column of the key."""
    table = DeltalakeEngine().target(str(tmp_path), partition_by)
    for number, values in (1, KEYED), (2, KEYED | moved):
        rows = states(pa.int64(), (1, "", (1, number), False)).select([SEQ, TOMBSTONE])
        for name, value in values.items():
            rows = rows.append_column(name, pa.array([value]))
        if number == 1:
            table.create(rows.drop_columns([TOMBSTONE]).schema, {})
        table.merge(rows, key, CommitMarker(LOG, number))
    assert (operation(table), table.count()) == (expected, 2 if moved else 1)


def test_key_twice_in_a_batch_is_rejected_by_the_merge(tmp_path: Path) -> None:
    """An append would write both rows."""
    table = target(tmp_path, pa.int64())
    merge(table, states(pa.int64(), (1, "old", (1, 4), False)), 1)
    twice: list[State] = [(1, "a", (1, 5), False), (1, "b", (1, 6), False)]
    with pytest.raises(DeltaError, match="multiple source rows"):
        merge(table, states(pa.int64(), *twice), 2)


@pytest.mark.parametrize("name", ["a b", "ü", "a+b", "a=b", "a~20b", "a'b", 'a"b', "a{b}", "a<b>"])
def test_row_is_replaced_in_folder_with_special_characters(tmp_path: Path, name: str) -> None:
    table = target(tmp_path / name, pa.int64())
    for value in ("old", "new"):
        version = table._now().version()
        merge(table, states(pa.int64(), (1, value, (1, version + 1), False)), version)
    assert [(key, value) for key, value, _ in rows_of(table)] == [("1", "new")]


@pytest.mark.parametrize("key", [2, 9])
def test_compaction_during_fast_write_loses_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: int
) -> None:
    """Key 2 replaces a row that the compaction moved to another file; key 9 is appended."""
    table = target(tmp_path, pa.int64())
    for number in (1, 2):
        merge(table, states(pa.int64(), (number, "old", (1, number), False)), number)
    compacted = _before_a_write(monkeypatch, DeltaTable(table.uri).optimize.compact)
    merge(table, states(pa.int64(), (key, "new", (1, 3), False)), 3)
    assert compacted
    found = {int(number): value for number, value, _ in rows_of(table)}
    assert found == {1: "old", 2: "old", key: "new"}


def test_foreign_row_with_same_key_during_fast_write_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = target(tmp_path, pa.int64())
    rows = states(pa.int64(), (1, "mine", (1, 1), False))
    came = _before_a_write(
        monkeypatch,
        lambda: write_deltalake(table.uri, rows.drop_columns([TOMBSTONE]), mode="append"),
    )
    with pytest.raises(MirrorError, match="let only one mirror write it"):
        merge(table, rows, 1)
    assert came
    assert table.count() == 1


def _before_a_write(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> list[object]:
    """Call `do` once, right before the next write; return a list that gets its result."""
    done: list[object] = []

    def late(held: DeltaTable, rows: pa.Table, **more: Any) -> None:
        if not done:
            done.append(do())
        write_deltalake(held, rows, **more)

    monkeypatch.setattr(fast_writes, "write_deltalake", late)
    return done
