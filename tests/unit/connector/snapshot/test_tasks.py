"""The assignment of a batch's chunks to tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.snapshot.tasks import chunk_tasks

OPTIONS = parse_options({"host": "db.example", "user": "u", "password": "", "tables": "shop.*"})


def tasks(count: int, most: int, *, in_turn: bool) -> list[list[str]]:
    """Return the bounds of each task's chunks, for a batch with `count` chunks."""
    chunks = [Chunk(("shop", "orders"), "PRIMARY", upto=(str(n),)) for n in range(count)]
    last = Offset(
        Position.of("mysql-bin.000003", 1000), snapshot=SnapshotState(chunks=tuple(chunks)).pack()
    )
    found = chunk_tasks(OPTIONS, last, most, case_sensitive=True, in_turn=in_turn)
    return [[chunk.upto[0] for chunk in task.chunks if chunk.upto] for task in found]


@given(st.integers(0, 40), st.integers(0, 12), st.booleans())
def test_each_chunk_is_assigned_to_exactly_one_task(count: int, most: int, in_turn: bool) -> None:
    found = tasks(count, most, in_turn=in_turn)
    assert len(found) == min(count, max(most, 1))
    listed = [bound for task in found for bound in task]
    assert sorted(listed, key=int) == [str(n) for n in range(count)]
    assert max(map(len, found), default=0) - min(map(len, found), default=0) <= 1
    if in_turn:
        assert listed == sorted(listed, key=int)


@pytest.mark.parametrize(
    ("in_turn", "expected"),
    [(True, [["0", "1"], ["2", "3"]]), (False, [["0", "2"], ["1", "3"]])],
)
def test_task_chunks_are_contiguous_if_in_turn_and_interleaved_otherwise(
    in_turn: bool, expected: list[list[str]]
) -> None:
    assert tasks(4, 2, in_turn=in_turn) == expected
