"""How many chunks a batch has, and how large: asked of real servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from helpers.live_log import new_database
from helpers.servers import Server
from helpers.servers.available import every_server
from pyspark_mysqlbinlog.checkpoints.load_state import LoadState, TableLoad
from pyspark_mysqlbinlog.connector.load.planner import BatchLimits, LoadPlanner

DATABASE = "load_planner"
T = (DATABASE, "t")
ROWS = 400


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """All servers, one after the other, with a table whose size is known."""
    found: Server = request.getfixturevalue(request.param)
    values = ", ".join(f"({n}, {n * 10})" for n in range(ROWS))
    with new_database(found, DATABASE):
        found.execute(
            f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {DATABASE}.t VALUES {values}",
            f"ANALYZE TABLE {DATABASE}.t",
        )
        yield found


def batch(planner: LoadPlanner, state: LoadState, limits: BatchLimits) -> LoadState:
    found = planner.next_batch(state, limits, patience=60)
    assert found is not None
    return found


def test_a_batch_of_several_steps_has_a_chunk_for_each(server: Server) -> None:
    planner = LoadPlanner(
        server.settings(),
        begin_proofs=lambda: lambda *_: None,
        case_sensitive=True,
        chunk_bytes=1 << 20,
        retry_timeout=1,
    )
    with closing(planner):
        begun = LoadState(waiting=(TableLoad(T),), rows=1)
        empty = batch(planner, begun, BatchLimits(bytes=1, chunks=4))
        assert len(empty.chunks) == 1
        # Of 20 rows, in a batch whose other half is the log's.
        size = planner.sizes[T].row_bytes * 20 * 2 // 4
        for steps in (1, 2, 4):
            limits = BatchLimits.of(None, size, 4, weight=0.25, steps=steps)
            state, bounds = begun, list[tuple[str, ...] | None]()
            counts = list[int]()
            while state.waiting:
                before = state.rows
                state = batch(planner, state, limits)
                bounds += [chunk.upto for chunk in state.chunks]
                counts.append(len(state.chunks))
                assert state.rows - before <= 20 * steps
            assert {*counts[:-1]} == {steps}
            assert [int(bound[0]) for bound in bounds if bound] == [*range(19, ROWS, 20)]
