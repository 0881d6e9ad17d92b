"""The buffer with runs of transactions, as the compiled scan returns them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.logs.buffer_log import EMPTY, at, new_log
from helpers.parity.decoding import make_event
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents, pack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import TableSchema


@dataclass
class Stretch:
    """A run of whole transactions that holds its own events.

    Attributes
    ----------
    parts : (bytes in the log, whether captured) of each transaction.
    """

    here: Position
    parts: list[tuple[int, bool]]

    def __post_init__(self) -> None:
        self.file, self.start = self.here.file, self.here.pos
        self.ends = array("q", accumulate((size for size, _ in self.parts), initial=self.start))[1:]
        self.end = self.ends[-1]
        sizes = (size if captured else 0 for size, captured in self.parts)
        self.kept_until = array("q", accumulate(sizes, initial=0))
        self.kept_bytes = self.kept_until[-1]

    def pack_transactions(self, first: int, end: int) -> PackedEvents | None:
        kept = [event for n in range(first, end) for event in self.events(n)]
        if not kept:
            return None
        return PackedEvents(pack_events(kept)[0], kept[-1].end)

    def events(self, n: int) -> list[Event]:
        size, captured = self.parts[n]
        start = self.ends[n] - size
        body = start.to_bytes(6, "little") + bytes(size - 25)
        return [make_event(EventType.WRITE_ROWS_EVENT, body, start, self.file)] if captured else []


RUNS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(25, 300), st.booleans()), min_size=1, max_size=12),
        st.sampled_from(["rotate", "batch", "ddl", "before"]),
    ),
    max_size=12,
)


@given(
    RUNS,
    st.sampled_from([0, 200, 1000, 100_000]),
    st.sampled_from([1 << 20, 1500, 400, 0]),
    st.one_of(st.none(), st.tuples(st.integers(1, 3), st.integers(4, 3000))),
)
@settings(max_examples=500)
def test_buffered_run_equals_its_transactions_one_by_one(
    steps: list[Any], granularity: int, capacity: int, cut: tuple[int, int] | None
) -> None:
    """Both buffers have the same spans, the same events and the same tip."""
    buffers = [
        new_log(granularity=granularity, capacity=capacity, most_spans=1000).buffer
        for _ in range(2)
    ]
    here, history, before = at(4), EMPTY, 0
    if cut is not None:
        for buffer in buffers:
            buffer.force_boundary_at(at(cut[1], cut[0]))
    handed = here
    for step in steps:
        if step == "rotate":
            here = at(4, here.number + 1)
            for buffer in buffers:
                buffer.advance(BoundaryState(here, history))
        elif step == "batch":
            ends = [buffer.last_boundary_within(handed, 1000) for buffer in buffers]
            assert ends[0] == ends[1]
            handed = ends[0].position if ends[0] is not None else handed
        elif step == "ddl":
            end = here._replace(pos=here.pos + 10)
            history = history.with_table(end, TableSchema("d", f"t{here.pos}", ()))
            for buffer in buffers:
                buffer.boundary(BoundaryState(end, history), 10, captured=False)
            here = end
        elif step == "before":
            before, here = 50, here._replace(pos=here.pos + 50)
        else:
            run = Stretch(here, step)
            first, second = buffers

            def mark_at(
                pos: int, here: Position = here, known: SchemaHistory = history
            ) -> BoundaryState:
                return BoundaryState(here._replace(pos=pos), known)

            first.transactions(cast(Any, run), before, mark_at)
            for n, (size, captured) in enumerate(step):
                if captured:
                    second.append(run.events(n))
                log_bytes = size + (before if n == 0 else 0)
                second.boundary(mark_at(run.ends[n]), log_bytes, captured=captured)
            here, before = here._replace(pos=run.end), 0
        assert buffers[0].tip == buffers[1].tip
    assert buffers[0].last_boundary_within(handed, None) == buffers[1].last_boundary_within(
        handed, None
    )
    assert buffers[0].finished() == buffers[1].finished()
    assert vars(buffers[0])["_before_cut"] == vars(buffers[1])["_before_cut"]
