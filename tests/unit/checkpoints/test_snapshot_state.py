"""The snapshot state as text in an offset: it survives the round trip, and its size is limited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import (
    Bound,
    Chunk,
    SnapshotState,
    TableSnapshotState,
)
from pyspark_mysqlbinlog.errors import OffsetError

NAMES = st.text(min_size=1, max_size=8)
TABLES = st.tuples(NAMES, NAMES)
BOUNDS: st.SearchStrategy[Bound | None] = st.none() | st.lists(
    st.text(max_size=20), min_size=1, max_size=3
).map(tuple)
LOADS = st.builds(TableSnapshotState, TABLES, NAMES, BOUNDS, BOUNDS) | st.builds(
    TableSnapshotState, TABLES
)
PLACES = st.tuples(st.integers(1, 9), st.integers(4, 99))
STATES = st.builds(
    SnapshotState,
    st.frozensets(TABLES, max_size=5),
    st.lists(LOADS, max_size=5, unique_by=lambda load: load.table).map(tuple),
    st.lists(st.builds(Chunk, TABLES, st.text(max_size=8), BOUNDS, BOUNDS), max_size=4).map(tuple),
    st.integers(0, 1 << 40),
    st.text(max_size=8),
    st.dictionaries(TABLES, PLACES, max_size=5),
    st.dictionaries(TABLES, PLACES, max_size=5),
    st.frozensets(TABLES, max_size=5),
)


@given(STATES)
def test_snapshot_state_survives_round_trip_through_offset(state: SnapshotState) -> None:
    offset = Offset(Position.of("bin.000001", 4), snapshot=state.pack())
    assert Offset.from_dict(offset.to_dict()).snapshot_state == state


@given(STATES)
def test_unpacked_snapshot_state_packs_to_the_same_text(state: SnapshotState) -> None:
    assert SnapshotState.unpack(state.pack()).pack() == state.pack()


def test_offset_without_snapshot_has_no_snapshot_state() -> None:
    assert Offset(Position.of("bin.000001", 4)).snapshot_state is None


def test_snapshot_state_of_1000_tables_is_under_6_kb() -> None:
    tables = [(f"customer_{n % 40:03}", f"orders_{n:05}") for n in range(1000)]
    pending = tuple(TableSnapshotState(table) for table in sorted(tables))
    begun = TableSnapshotState(pending[0].table, "k1", ("17",), ("99",))
    chunks = tuple(Chunk(begun.table, "k1", (str(n),), (str(n + 1),)) for n in range(8))
    state = SnapshotState(pending=(begun, *pending[1:]), chunks=chunks)
    assert len(state.pack()) < 6_000
    assert len(SnapshotState(completed=frozenset(tables)).pack()) < 6_000


@pytest.mark.parametrize("snapshot", ["load", "{}", "[]", "bz2,abc", '{"completed":[]}', "bz2,"])
def test_damaged_snapshot_state_raises_offset_error(snapshot: str) -> None:
    with pytest.raises(OffsetError, match="the checkpoint is damaged"):
        SnapshotState.unpack(snapshot)
