"""The number and the size of a batch's chunks, on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event, Timer

import pytest

from helpers.logs.live_log import new_database
from helpers.mirrors.delayed_commits import HeldBySemiSync
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.waiting import patience
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.snapshot.planning import planner as planner_module
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits, ChunkPlanner

pytestmark = pytest.mark.one_server

Prove = Callable[..., None]
DATABASE = "load_planner"
T = (DATABASE, "t")
ROWS = 400


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server in turn, with a table whose size is known."""
    found: Server = request.getfixturevalue(request.param)
    values = ", ".join(f"({n}, {n * 10})" for n in range(ROWS))
    with new_database(found, DATABASE):
        found.execute(
            f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {DATABASE}.t VALUES {values}",
            f"ANALYZE TABLE {DATABASE}.t",
        )
        yield found


@pytest.fixture(autouse=True)
def _no_chunk_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the number of chunks of a batch depend on its limits, and not on their time."""
    monkeypatch.setattr(planner_module, "_MORE_CHUNKS_SECONDS", 3600.0)


def batch(planner: ChunkPlanner, state: SnapshotState, limits: BatchLimits) -> SnapshotState:
    found = planner.next_batch(state, limits, patience=60)
    assert found is not None
    return found


def planner_of(server: Server, begin_checks: Callable[[], Prove]) -> ChunkPlanner:
    return ChunkPlanner(
        server.settings(),
        begin_checks=begin_checks,
        case_sensitive=True,
        chunk_bytes=1 << 20,
        retry_timeout=1,
    )


@pytest.fixture
def planner(server: Server) -> Iterator[ChunkPlanner]:
    with closing(planner_of(server, lambda: lambda *_: None)) as planner:
        yield planner


def of_rows(planner: ChunkPlanner, rows: int, steps: int) -> BatchLimits:
    """Return limits for sub-batches of `rows` rows of T; half of each batch is for the binlog."""
    first = batch(
        planner, SnapshotState(pending=(TableSnapshotState(T),), rows=1), BatchLimits(bytes=1)
    )
    assert len(first.chunks) == 1
    size = (planner.sizes[T].row_bytes * rows + 1) * 2 // 4 + 1
    return BatchLimits.of(None, size, 4, weight=0.25, sub_batches=steps)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_batch_with_several_sub_batches_has_one_chunk_for_each(
    planner: ChunkPlanner, steps: int
) -> None:
    limits = of_rows(planner, 20, steps)
    state = SnapshotState(pending=(TableSnapshotState(T),), rows=1)
    bounds, counts = list[tuple[str, ...] | None](), list[int]()
    while state.pending:
        before = state.rows
        state = batch(planner, state, limits)
        bounds += [chunk.upto for chunk in state.chunks]
        counts.append(len(state.chunks))
        assert state.rows - before <= 20 * steps
    # Bytes that remain after a sub-batch's last row give no chunk.
    assert {*counts[:-1]} == {steps}
    assert [int(bound[0]) for bound in bounds if bound] == [*range(19, ROWS, 20)]


def test_keyless_table_gets_a_snapshot_batch_of_its_own(
    server: Server, planner: ChunkPlanner
) -> None:
    server.execute(
        f"CREATE TABLE {DATABASE}.plain (v INT)", f"INSERT INTO {DATABASE}.plain VALUES (1), (2)"
    )
    plain = (DATABASE, "plain")
    limits = of_rows(planner, 150, 4)
    state = SnapshotState(
        pending=(TableSnapshotState(T), TableSnapshotState(plain), TableSnapshotState(T)), rows=1
    )
    batches = []
    while state.pending:
        state = batch(planner, state, limits)
        batches.append([chunk.table for chunk in state.chunks])
    # The table of 400 rows has three chunks; the server estimates two rows as a page.
    assert batches == [[T] * 3, [plain], [T] * 3]


def test_table_whose_rename_is_logged_and_not_committed_is_planned_after_it(mysql9: Server) -> None:
    with new_database(mysql9, DATABASE), HeldBySemiSync.on(mysql9) as held:
        mysql9.execute(
            f"CREATE TABLE {DATABASE}.x (id INT PRIMARY KEY)",
            f"INSERT INTO {DATABASE}.x VALUES (1)",
        )
        state = SnapshotState(pending=(TableSnapshotState(T),), rows=1)
        with closing(planner_of(mysql9, lambda: lambda *_: None)) as planner:
            # Reading the sizes, which happens once, would wait for the RENAME.
            assert not batch(planner, state, BatchLimits()).chunks
            with held.committing(f"RENAME TABLE {DATABASE}.x TO {DATABASE}.t"):
                Timer(1, held.release).start()
                planned = batch(planner, state, BatchLimits())
                assert [chunk.table for chunk in planned.chunks] == [T]


def test_repeated_limit_changes_start_at_most_three_snapshot_plans(server: Server) -> None:
    """A plan that waits for the server does not delay the calls."""
    released, begun = Event(), list[int]()

    def begin_checks() -> Prove:
        begun.append(1)

        def prove(*_: object) -> None:
            released.wait(patience(60))

        return prove

    state = SnapshotState(pending=(TableSnapshotState(T),), rows=1)
    with closing(planner_of(server, begin_checks)) as planner:
        for number in range(20):
            limits = BatchLimits.of(None, 1000, 4, sub_batches=1 + number % 2)
            assert planner.next_batch(state, limits, patience=0.01) is None
        released.set()
        batch(planner, state, limits)
    assert len(begun) <= 3
