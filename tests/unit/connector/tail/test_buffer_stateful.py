"""The buffer under random calls: no captured transaction is lost or delivered twice."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.logs.buffer_log import Log, at, new_log, numbers
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("captured"), st.integers(25, 600)),
        st.tuples(st.just("uncaptured"), st.integers(25, 600)),
        st.tuples(st.just("rotate"), st.just(0)),
        st.tuples(st.just("lost"), st.integers(25, 600)),
        st.tuples(st.just("batch"), st.one_of(st.none(), st.integers(0, 1500))),
        st.tuples(st.just("tip"), st.just(0)),
        st.tuples(st.just("again"), st.just(0)),
        st.tuples(st.just("release"), st.just(0)),
    ),
    max_size=60,
)


@given(
    STEPS,
    st.sampled_from([0, 200, 1000, 100_000]),
    st.sampled_from([1 << 20, 1500, 400, 0]),
    st.booleans(),
)
@settings(max_examples=400)
def test_random_buffer_calls_deliver_each_transaction_once(
    steps: list[tuple[str, int | None]], granularity: int, capacity: int, unlimited: bool
) -> None:
    log = new_log(granularity=granularity, capacity=capacity, most_spans=4 if unlimited else 1000)
    if unlimited:
        log.buffer.take_all()
    reader = Reader(log)
    for step, value in steps:
        if step in {"captured", "uncaptured"}:
            assert value is not None
            log.transaction(value, captured=step == "captured")
            if unlimited:
                log.buffer.wait_for_room()
        elif step == "lost":
            assert value is not None
            log.buffer.append([log.event(0, value)])
            log.buffer.forget_transaction()
        elif step == "rotate":
            log.rotate()
        elif step == "batch":
            reader.batch(value)
        elif step == "tip":
            reader.tip()
        elif step == "again":
            reader.read_again()
        else:
            log.buffer.release(reader.start)
    reader.batch(None)
    assert reader.delivered == len(log.captured)


class Reader:
    """The Spark side, which reads consecutive batches (start, end]."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.start = log.here
        self.delivered = 0
        self.last: tuple[Position, Position, int] | None = None

    def batch(self, most_bytes: int | None) -> None:
        first = len(self.log.captured) - self.delivered
        end = self.log.buffer.last_boundary_within(self.start, most_bytes)
        assert (end is None) == (first == 0)
        if end is not None:
            assert end.position > self.start
            self._take(end.position)

    def tip(self) -> None:
        tip = self.log.buffer.advance_to_tip()
        waiting = len(self.log.captured) - self.delivered
        assert (tip is None) == (waiting > 0)
        if tip is not None and tip.position > self.start:
            assert tip == self.log.buffer.tip
            self._take(tip.position)

    def _take(self, end: Position) -> None:
        before = self.delivered
        self._read(self.start, end, before, new=True)
        self.last = (self.start, end, before)
        self.start = end

    def read_again(self) -> None:
        """Read the last batch again: Spark may request its partitions twice."""
        if self.last is None:
            return
        start, end, before = self.last
        if self.log.buffer.spans(start, end) is not None:
            self._read(start, end, before, new=False)

    def _read(self, start: Position, end: Position, before: int, *, new: bool) -> None:
        """Check that a batch has exactly the next captured transactions, up to `end`."""
        spans = self.log.buffer.spans(start, end)
        assert spans is not None, "the buffer has what it just handed out"
        # A boundary's first spelling is not after its later one, so the first is compared.
        until = sum(position <= end for _, position in self.log.captured)
        expected = self.log.captured[before:until]
        last = start
        found = 0
        for span in spans:
            assert last <= span.end.position
            begin = span.start.position
            assert begin <= span.end.position
            assert begin == last or self._only_unwanted(last, begin)
            inside = [n for n, position in expected if last < position <= span.end.position]
            if span.blocks is not None:
                assert numbers([span]) == inside
            assert inside
            found += len(inside)
            last = span.end.position
        assert found == len(expected)
        if new:
            self.delivered = until

    def _only_unwanted(self, start: Position, end: Position) -> bool:
        return not any(start < position <= end for _, position in self.log.captured)


PARTS = st.lists(st.sampled_from(["captured", "uncaptured", "rotate"]), max_size=12)


@given(PARTS, PARTS, st.sampled_from([0, 250, 100_000]), st.booleans(), st.integers(0, 500))
def test_run_with_a_target_delivers_exactly_the_transactions_up_to_it(
    before: list[str], after: list[str], granularity: int, early: bool, limit: int
) -> None:
    """The target is the log's end as the server reports it when the run begins."""
    log = new_log(granularity=granularity)
    target = log.here

    def walk(parts: list[str]) -> None:
        for part in parts:
            if part == "rotate":
                log.rotate()
            else:
                log.transaction(captured=part == "captured")

    if early:
        # The tail starts after the target is set, as in a run.
        ends = new_log()
        for part in before:
            if part == "rotate":
                ends.rotate()
            else:
                ends.transaction()
        target = ends.here
        log.buffer.force_boundary_at(target)
    walk(before)
    if not early:
        target = log.here
        log.buffer.force_boundary_at(target)
    walk(after)
    start, delivered = at(4), []
    while (end := log.buffer.last_boundary_within(start, limit, target)) is not None:
        assert start < end.position <= target
        spans = log.buffer.spans(start, end.position)
        assert spans is not None
        delivered += numbers(spans)
        start = end.position
    assert delivered == [number for number, position in log.captured if position <= target]


def test_concurrent_writer_and_reader_deliver_each_transaction_once() -> None:
    """The tail writes without pauses, with rotations, while batches are read."""
    log = new_log(granularity=500, capacity=20_000, most_spans=20)
    total = 5000

    def walk() -> None:
        for n in range(total):
            log.transaction(30 + n % 90, captured=n % 3 != 0)
            if n % 97 == 0:
                log.rotate()
            log.buffer.wait_for_room()

    tail = threading.Thread(target=walk, daemon=True)
    tail.start()
    start, seen, spans_seen = at(4), [], 0
    starts: list[Position] = []

    def step() -> bool:
        nonlocal start, spans_seen
        ended = not tail.is_alive()
        end = log.buffer.last_boundary_within(start, 3000)
        if end is None:
            return ended
        spans = log.buffer.spans(start, end.position)
        assert spans is not None
        spans_seen += len(spans)
        starts.append(start)
        for span in spans:
            if span.blocks is not None:
                seen.extend(numbers([span]))
        start = end.position
        log.buffer.release(start)
        return False

    wait_until(step, "the log comes to its end", timeout=60)
    captured = [number for number, _ in log.captured]
    assert seen == sorted(set(seen))
    assert set(seen) <= set(captured)
    assert seen == captured, "the reader keeps up, so there is room for every event"
    assert starts == sorted(set(starts))
