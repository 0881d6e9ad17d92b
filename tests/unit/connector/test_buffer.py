"""The buffer: no wanted transaction is lost or comes twice, whatever the order of calls."""

from __future__ import annotations

import threading
from array import array
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.span_index import Mark, Span, SpanIndex
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents, pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import TableSchema

from decoding import make_event
from waiting import until

EMPTY = SchemaHistory()


def at(pos: int, file: int = 1) -> Position:
    return Position(file, pos, f"b.{file:06d}")


def mark(position: Position) -> Mark:
    return Mark(position, EMPTY)


@dataclass
class Log:
    """What the tail would do: one method per transaction.

    Attributes
    ----------
    here : the last boundary, as it is spelled now.
    wanted : (number, end) of every wanted transaction, its end as it was first spelled.
    """

    buffer: LogBuffer
    here: Position
    wanted: list[tuple[int, Position]] = field(default_factory=list)
    count: int = 0

    def transaction(
        self, size: int = 100, *, wanted: bool = True, number: int | None = None
    ) -> Position:
        """`size` bytes long; the number goes along as its event's table id."""
        if number is None:
            self.count += 1
            number = self.count
        end = self.here._replace(pos=self.here.pos + size)
        if wanted:
            self.buffer.append([self.event(number, size)])
            self.wanted.append((number, end))
        self.buffer.boundary(mark(end), size, wanted=wanted)
        self.here = end
        return end

    def event(self, number: int, size: int) -> Event:
        body = number.to_bytes(6, "little") + bytes(size - 25)
        return make_event(EventType.WRITE_ROWS_EVENT, body, self.here.pos, self.here.file)

    def rotate(self) -> Position:
        self.here = at(4, self.here.number + 1)
        self.buffer.moved(mark(self.here))
        return self.here


def new_log(
    *, capacity: int = 1 << 20, granularity: int = 0, most_spans: int = 1000, start: int = 4
) -> Log:
    start_mark = mark(at(start))
    buffer = LogBuffer(
        start_mark, capacity=capacity, granularity=granularity, most_spans=most_spans
    )
    return Log(buffer, at(start))


def numbers(spans: list[Span]) -> list[int]:
    """The transactions whose events the spans hold."""
    found = []
    for span in spans:
        assert span.blocks is not None
        found += [int.from_bytes(event.body[:6], "little") for event in unpack_events(span.blocks)]
    return found


def test_one_span_a_transaction() -> None:
    log = new_log()
    first, second = log.transaction(100), log.transaction(200)
    assert log.buffer.furthest(at(4), None) == mark(second)
    spans = log.buffer.spans(at(4), second)
    assert spans is not None
    assert [(s.start, s.end.position, s.log_bytes) for s in spans] == [
        (at(4), first, 100),
        (first, second, 200),
    ]
    assert [s.kept_bytes for s in spans] == [100, 200]
    assert numbers(spans) == [1, 2]


def test_small_transactions_share_a_span() -> None:
    log = new_log(granularity=250)
    ends = [log.transaction(100) for _ in range(5)]
    assert log.buffer.furthest(at(4), 1) == mark(ends[2])
    assert log.buffer.furthest(at(4), None) == mark(ends[4])
    spans = log.buffer.spans(at(4), ends[4])
    assert spans is not None
    assert [numbers([span]) for span in spans] == [[1, 2, 3], [4, 5]]


def test_nothing_wanted() -> None:
    log = new_log()
    end = log.transaction(wanted=False)
    assert log.buffer.furthest(at(4), None) is None
    assert log.buffer.tip == mark(end)
    assert log.buffer.take_tip() == mark(end)
    assert log.buffer.spans(at(4), end) == []


def ddl(log: Log, number: int) -> Position:
    """A boundary behind a statement that changes a table."""
    end = log.here._replace(pos=log.here.pos + 10)
    schema = TableSchema("d", f"t{number}", ())
    history = log.buffer.tip.history.with_table(end, schema)
    log.buffer.boundary(Mark(end, history), 10, wanted=False)
    log.here = end
    return end


@pytest.mark.parametrize("rows_between", [0, 1])
def test_a_batch_has_a_bounded_number_of_ddl(rows_between: int) -> None:
    """So that its offset has: with rows or without, and all rows are in some batch."""
    log = new_log(granularity=100_000)
    log.transaction()
    for number in range(50):
        ddl(log, number)
        for _ in range(rows_between):
            here = log.here
            end = here._replace(pos=here.pos + 100)
            log.count += 1
            log.buffer.append([log.event(log.count, 100)])
            log.buffer.boundary(Mark(end, log.buffer.tip.history), 100, wanted=True)
            log.here = end
    start, changes, rows = at(4), [], []
    while (end_mark := log.buffer.furthest(start, None)) is not None:
        end = end_mark.position
        tables = end_mark.history.tables()
        changes.append(sum(end_mark.history.versions(*name)[0][0] > start for name in tables))
        spans = log.buffer.spans(start, end)
        assert spans is not None
        rows += numbers(spans)
        log.buffer.release(end)
        start = end
    assert sum(changes) + (not rows_between) * 10 == 50
    assert max(changes) == 20
    assert rows == list(range(1, 50 * rows_between + 2))


def test_unwanted_traffic_counts_as_log_but_gives_no_boundary() -> None:
    log = new_log()
    log.transaction(300, wanted=False)
    wanted = log.transaction(100)
    log.transaction(500, wanted=False)
    assert log.buffer.furthest(at(4), None) == mark(wanted)
    spans = log.buffer.spans(at(4), wanted)
    assert spans is not None
    assert [span.log_bytes for span in spans] == [400]


# (limit, number of transactions of 100 bytes that a batch takes)
LIMITS = [(None, 5), (0, 1), (1, 1), (100, 1), (199, 1), (200, 2), (299, 2), (10_000, 5)]


@pytest.mark.parametrize(("limit", "count"), LIMITS)
def test_furthest_within_a_limit(limit: int | None, count: int) -> None:
    log = new_log()
    ends = [log.transaction(100) for _ in range(5)]
    assert log.buffer.furthest(at(4), limit) == mark(ends[count - 1])


def test_furthest_until() -> None:
    log = new_log()
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.furthest(at(4), None, ends[1]) == mark(ends[1])
    assert log.buffer.furthest(ends[1], None, ends[1]) is None
    between = ends[2]._replace(pos=ends[2].pos + 50)
    assert log.buffer.furthest(ends[1], None, between) == mark(ends[2])


def test_no_span_reaches_across_the_cut() -> None:
    """A run that ends at the cut must get what comes before it, however coarse the spans."""
    log = new_log(granularity=10_000)
    log.transaction()
    last = log.transaction()
    log.buffer.cut_at(last)
    log.transaction()
    assert log.buffer.furthest(at(4), None, last) == mark(last)


def test_nor_does_a_rotation_carry_a_span_across_the_cut() -> None:
    log = new_log(granularity=10_000)
    last = log.transaction()
    log.buffer.cut_at(last)
    log.rotate()
    log.transaction()
    assert log.buffer.furthest(at(4), None, last) == mark(last)


@pytest.mark.parametrize("granularity", [0, 10_000])
def test_a_boundary_is_spelled_as_the_next_files_beginning(granularity: int) -> None:
    log = new_log(granularity=granularity)
    log.transaction()
    begin = log.rotate()
    assert log.buffer.furthest(at(4), None) == mark(begin)
    end = log.transaction()
    assert log.buffer.furthest(begin, None) == mark(end)
    spans = log.buffer.spans(begin, end)
    assert spans is not None
    assert numbers(spans) == [2]
    assert [span.start for span in spans] == [begin]


@pytest.mark.parametrize("granularity", [0, 10_000])
def test_a_handed_out_boundary_keeps_its_spelling(granularity: int) -> None:
    log = new_log(granularity=granularity)
    end = log.transaction()
    assert log.buffer.furthest(at(4), None) == mark(end)
    begin = log.rotate()
    assert log.buffer.tip == mark(begin)
    assert log.buffer.furthest(at(4), None) == mark(end)
    spans = log.buffer.spans(at(4), end)
    assert spans is not None
    assert numbers(spans) == [1]
    later = log.transaction()
    assert log.buffer.furthest(end, None) == mark(later)
    spans = log.buffer.spans(end, later)
    assert spans is not None
    assert numbers(spans) == [2]


def test_the_start_is_a_handed_out_boundary() -> None:
    log = new_log(start=500)
    begin = log.rotate()
    end = log.transaction()
    assert log.buffer.furthest(at(500), None) == mark(end)
    spans = log.buffer.spans(at(500), end)
    assert spans is not None
    assert numbers(spans) == [1]
    assert log.buffer.spans(begin, end) is None, "that spelling nobody was given"


def test_the_tip_of_unwanted_traffic_keeps_its_spelling() -> None:
    log = new_log()
    log.transaction(wanted=False)
    tip = log.buffer.take_tip()
    assert tip == mark(at(104))
    log.rotate()
    end = log.transaction()
    spans = log.buffer.spans(at(104), end)
    assert spans is not None
    assert numbers(spans) == [2]
    assert [span.start for span in spans] == [at(104)]


def test_the_tip_is_not_for_taking_while_something_wanted_lies_before_it() -> None:
    log = new_log(granularity=10_000)
    log.transaction()
    log.transaction(wanted=False)
    assert log.buffer.take_tip() is None
    end = log.buffer.furthest(at(4), None)
    assert end is not None
    assert log.buffer.take_tip() == mark(log.here)


# --- bounds


def test_a_huge_transaction_keeps_its_place_but_not_its_bytes() -> None:
    log = new_log(capacity=1000)
    for _ in range(50):
        log.buffer.append([log.event(1, 100)])
    end = at(5004)
    log.buffer.boundary(mark(end), 5000, wanted=True)
    log.here = end
    small = log.transaction(100)
    assert log.buffer.furthest(at(4), None) == mark(small)
    spans = log.buffer.spans(at(4), small)
    assert spans is not None
    assert [(s.start, s.end.position, s.log_bytes) for s in spans] == [
        (at(4), end, 5000),
        (end, small, 100),
    ]
    assert (spans[0].blocks, spans[0].kept_bytes) == (None, 0)
    assert spans[1].blocks is not None, "there is room again"


@pytest.mark.parametrize("granularity", [0, 350, 10_000])
def test_bytes_kept_never_pass_the_capacity(granularity: int) -> None:
    log = new_log(capacity=1000, granularity=granularity)
    for _ in range(40):
        log.transaction(100)
    end = log.buffer.furthest(at(4), None)
    assert end is not None
    spans = log.buffer.spans(at(4), end.position)
    assert spans is not None
    kept = sum(span.kept_bytes for span in spans)
    assert kept <= 1000
    assert [span.kept_bytes for span in spans] == [
        sum(len(block.data) for block in span.blocks or ()) for span in spans
    ]
    assert sum(span.log_bytes for span in spans) == 4000
    if granularity < 1000:
        assert kept > 500


def test_a_span_has_all_of_its_events_or_none() -> None:
    log = new_log(capacity=250, granularity=10_000)
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.furthest(at(4), None) == mark(ends[-1])
    spans = log.buffer.spans(at(4), ends[-1])
    assert spans is not None
    assert [span.blocks for span in spans] == [None]


def test_release_makes_room() -> None:
    log = new_log(capacity=250)
    ends = [log.transaction(100) for _ in range(3)]
    assert log.buffer.furthest(at(4), None) == mark(ends[2])
    log.buffer.release(ends[1])
    later = log.transaction(100)
    assert log.buffer.furthest(ends[2], None) == mark(later)
    spans = log.buffer.spans(ends[2], later)
    assert spans is not None
    assert numbers(spans) == [4]


def test_what_the_buffer_cannot_tell() -> None:
    log = new_log(granularity=150)
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.furthest(at(4), None) == mark(ends[3])
    assert log.buffer.spans(at(4), at(505)) is None, "behind the tip"
    assert log.buffer.spans(at(4), ends[0]) is None, "inside a span"
    assert log.buffer.spans(ends[0], ends[3]) is None, "from inside a span"
    assert log.buffer.spans(ends[1], ends[1]) == []
    log.transaction(30)
    assert log.buffer.spans(ends[1], log.here) is None, "inside the span that still grows"
    log.buffer.release(ends[1])
    assert log.buffer.spans(at(4), ends[1]) is None, "let go"
    spans = log.buffer.spans(ends[1], ends[3])
    assert spans is not None
    assert numbers(spans) == [3, 4]


def test_a_broken_connection_brings_a_transaction_again() -> None:
    log = new_log()
    log.buffer.append([log.event(1, 100)])
    log.buffer.append([log.event(1, 50)])
    log.buffer.forget_transaction()
    end = log.transaction()
    assert log.buffer.furthest(at(4), None) == mark(end)
    spans = log.buffer.spans(at(4), end)
    assert spans is not None
    assert numbers(spans) == [1]


def test_a_forgotten_huge_transaction_is_small_again() -> None:
    log = new_log(capacity=200)
    log.buffer.append([log.event(9, 1000)])
    log.buffer.forget_transaction()
    end = log.transaction(100)
    assert log.buffer.furthest(at(4), None) == mark(end)
    spans = log.buffer.spans(at(4), end)
    assert spans is not None
    assert numbers(spans) == [1]


# --- threads


class Waiting:
    """A thread in `wait_for_room`."""

    def __init__(self, buffer: LogBuffer) -> None:
        self.through = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(buffer,), daemon=True)
        self.thread.start()

    def _run(self, buffer: LogBuffer) -> None:
        buffer.wait_for_room()
        self.through.set()


@pytest.mark.parametrize("by", ["release", "close", "take_all"])
def test_the_tail_waits_while_the_index_is_full(by: str) -> None:
    log = new_log(most_spans=3)
    ends = [log.transaction() for _ in range(2)]
    log.buffer.wait_for_room()
    ends.append(log.transaction())
    tail = Waiting(log.buffer)
    assert not tail.through.wait(0.1)
    assert log.buffer.furthest(at(4), 1) == mark(ends[0])
    assert not tail.through.wait(0.05), "handing out is not enough"
    if by == "release":
        log.buffer.release(ends[0])
    elif by == "take_all":
        log.buffer.take_all()
    else:
        log.buffer.close()
        assert log.buffer.closed
    assert tail.through.wait(5)
    tail.thread.join(5)


def test_a_batch_without_limits_loses_nothing_while_the_index_gets_coarser() -> None:
    log = new_log(most_spans=8)
    log.buffer.take_all()
    for _ in range(100):
        log.transaction(100)
        log.buffer.wait_for_room()
    end = log.buffer.furthest(at(4), None)
    assert end == mark(log.here)
    spans = log.buffer.spans(at(4), log.here)
    assert spans is not None
    assert len(spans) <= 8
    assert sum(span.log_bytes for span in spans) == 10_000
    ends = [span.end.position for span in spans]
    assert [span.start for span in spans] == [at(4), *ends[:-1]]
    assert ends[-1] == log.here


def test_wait() -> None:
    log = new_log()
    assert log.buffer.wait(lambda: True)
    assert not log.buffer.wait(lambda: False, timeout=0.05)
    threading.Timer(0.05, log.transaction).start()
    assert log.buffer.wait(lambda: log.buffer.tip.position > at(4), timeout=5)
    threading.Timer(0.05, log.buffer.fail, [ServerError("gone")]).start()
    assert log.buffer.wait(lambda: False, timeout=5), "an error ends the waiting"
    assert isinstance(log.buffer.error, ServerError)


def test_what_was_walked_before_an_error_is_there() -> None:
    log = new_log(granularity=10_000)
    end = log.transaction()
    log.buffer.append([log.event(2, 100)])
    log.buffer.fail(ServerError("gone"))
    assert log.buffer.furthest(at(4), None) == mark(end)


# --- any order of calls

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wanted"), st.integers(25, 600)),
        st.tuples(st.just("unwanted"), st.integers(25, 600)),
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
@settings(max_examples=400, deadline=None)
def test_nothing_is_lost_and_nothing_comes_twice(
    steps: list[tuple[str, int | None]], granularity: int, capacity: int, unlimited: bool
) -> None:
    log = new_log(granularity=granularity, capacity=capacity, most_spans=4 if unlimited else 1000)
    if unlimited:
        log.buffer.take_all()
    reader = Reader(log)
    for step, value in steps:
        if step in {"wanted", "unwanted"}:
            assert value is not None
            log.transaction(value, wanted=step == "wanted")
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
    assert reader.delivered == len(log.wanted)


class Reader:
    """Spark's side: consecutive batches (start, end]."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.start = log.here
        self.delivered = 0
        self.last: tuple[Position, Position, int] | None = None

    def batch(self, most_bytes: int | None) -> None:
        first = len(self.log.wanted) - self.delivered
        end = self.log.buffer.furthest(self.start, most_bytes)
        assert (end is None) == (first == 0)
        if end is not None:
            assert end.position > self.start
            self._take(end.position)

    def tip(self) -> None:
        tip = self.log.buffer.take_tip()
        waiting = len(self.log.wanted) - self.delivered
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
        """Spark may ask for the partitions of its last batch a second time."""
        if self.last is None:
            return
        start, end, before = self.last
        if self.log.buffer.spans(start, end) is not None:
            self._read(start, end, before, new=False)

    def _read(self, start: Position, end: Position, before: int, *, new: bool) -> None:
        """The wanted transactions after the delivered ones, up to `end`, and no others."""
        spans = self.log.buffer.spans(start, end)
        assert spans is not None, "the buffer has what it just handed out"
        # A boundary's older spelling is not behind its newer one: count by the older.
        until = sum(position <= end for _, position in self.log.wanted)
        expected = self.log.wanted[before:until]
        last = start
        found = 0
        for span in spans:
            assert last <= span.end.position
            assert span.start <= span.end.position
            assert span.start == last or self._only_unwanted(last, span.start)
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
        return not any(start < position <= end for _, position in self.log.wanted)


PARTS = st.lists(st.sampled_from(["wanted", "unwanted", "rotate"]), max_size=12)


@given(PARTS, PARTS, st.sampled_from([0, 250, 100_000]), st.booleans(), st.integers(0, 500))
@settings(deadline=None)
def test_a_run_with_a_target_gets_all_before_it_and_nothing_behind(
    before: list[str], after: list[str], granularity: int, early: bool, limit: int
) -> None:
    """The target is the log's end as the server spells it when the run begins."""
    log = new_log(granularity=granularity)
    target = log.here

    def walk(parts: list[str]) -> None:
        for part in parts:
            if part == "rotate":
                log.rotate()
            else:
                log.transaction(wanted=part == "wanted")

    if early:
        # The tail begins behind the target's making, as it does in a run.
        ends = new_log()
        for part in before:
            if part == "rotate":
                ends.rotate()
            else:
                ends.transaction()
        target = ends.here
        log.buffer.cut_at(target)
    walk(before)
    if not early:
        target = log.here
        log.buffer.cut_at(target)
    walk(after)
    start, delivered = at(4), []
    while (end := log.buffer.furthest(start, limit, target)) is not None:
        assert start < end.position <= target
        spans = log.buffer.spans(start, end.position)
        assert spans is not None
        delivered += numbers(spans)
        start = end.position
    assert delivered == [number for number, position in log.wanted if position <= target]


def test_two_threads() -> None:
    """The tail writes as fast as it can, with rotations, while batches are taken."""
    log = new_log(granularity=500, capacity=20_000, most_spans=20)
    total = 5000

    def walk() -> None:
        for n in range(total):
            log.transaction(30 + n % 90, wanted=n % 3 != 0)
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
        end = log.buffer.furthest(start, 3000)
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

    until(step, "the log did not come to its end", timeout=60)
    wanted = [number for number, _ in log.wanted]
    assert seen == sorted(set(seen))
    assert set(seen) <= set(wanted)
    assert seen == wanted, "the reader keeps up, so there is room for every event"
    assert starts == sorted(set(starts))


# --- runs of transactions, as the compiled scan gives them


@dataclass
class Stretch:
    """A run of whole transactions that holds its own events.

    Attributes
    ----------
    parts : (size in the log, wanted) of each transaction.
    """

    here: Position
    parts: list[tuple[int, bool]]

    def __post_init__(self) -> None:
        self.file, self.start = self.here.file, self.here.pos
        self.ends = array("q", accumulate((size for size, _ in self.parts), initial=self.start))[1:]
        self.end = self.ends[-1]
        sizes = (size if wanted else 0 for size, wanted in self.parts)
        self.kept_until = array("q", accumulate(sizes, initial=0))
        self.kept_bytes = self.kept_until[-1]

    def pack_transactions(self, first: int, behind: int) -> PackedEvents | None:
        kept = [event for n in range(first, behind) for event in self.events(n)]
        if not kept:
            return None
        return PackedEvents(pack_events(kept)[0], kept[-1].end)

    def events(self, n: int) -> list[Event]:
        size, wanted = self.parts[n]
        start = self.ends[n] - size
        body = start.to_bytes(6, "little") + bytes(size - 25)
        return [make_event(EventType.WRITE_ROWS_EVENT, body, start, self.file)] if wanted else []


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
@settings(max_examples=500, deadline=None)
def test_a_run_is_its_transactions(
    steps: list[Any], granularity: int, capacity: int, cut: tuple[int, int] | None
) -> None:
    """Handed over at once or one by one: the same spans, the same bytes, the same tip."""
    buffers = [
        new_log(granularity=granularity, capacity=capacity, most_spans=1000).buffer
        for _ in range(2)
    ]
    here, history, before = at(4), EMPTY, 0
    if cut is not None:
        for buffer in buffers:
            buffer.cut_at(at(cut[1], cut[0]))
    handed = here
    for step in steps:
        if step == "rotate":
            here = at(4, here.number + 1)
            for buffer in buffers:
                buffer.moved(Mark(here, history))
        elif step == "batch":
            ends = [buffer.furthest(handed, 1000) for buffer in buffers]
            assert ends[0] == ends[1]
            handed = ends[0].position if ends[0] is not None else handed
        elif step == "ddl":
            end = here._replace(pos=here.pos + 10)
            history = history.with_table(end, TableSchema("d", f"t{here.pos}", ()))
            for buffer in buffers:
                buffer.boundary(Mark(end, history), 10, wanted=False)
            here = end
        elif step == "before":
            before, here = 50, here._replace(pos=here.pos + 50)
        else:
            run = Stretch(here, step)
            first, second = buffers

            def mark_at(pos: int, here: Position = here, known: SchemaHistory = history) -> Mark:
                return Mark(here._replace(pos=pos), known)

            first.transactions(cast(Any, run), before, mark_at)
            for n, (size, wanted) in enumerate(step):
                if wanted:
                    second.append(run.events(n))
                log_bytes = size + (before if n == 0 else 0)
                second.boundary(mark_at(run.ends[n]), log_bytes, wanted=wanted)
            here, before = here._replace(pos=run.end), 0
        assert buffers[0].tip == buffers[1].tip
    assert buffers[0].furthest(handed, None) == buffers[1].furthest(handed, None)
    assert list(buffers[0]._spans) == list(buffers[1]._spans)
    assert vars(buffers[0])["_before_cut"] == vars(buffers[1])["_before_cut"]


# --- the index of spans


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)), min_size=1, max_size=200),
    st.lists(st.integers(0, 40), max_size=10),
    st.integers(0, 3000),
    st.integers(0, 300),
)
@settings(deadline=None)
def test_what_the_index_finds_is_what_counting_finds(
    sizes: list[tuple[int, int]], releases: list[int], most_bytes: int, most_rows: int
) -> None:
    index, spans, here = SpanIndex(), [], 4
    for log_bytes, rows in sizes:
        here += log_bytes
        span = Span(at(here - log_bytes), mark(at(here)), log_bytes, None, log_bytes, rows)
        index.append(span)
        spans.append(span)
    for count in releases:
        index.release(min(count, len(index)))
        del spans[:count]
        assert list(index) == spans
        assert len(index) == len(spans)
        assert index.kept_bytes == sum(span.kept_bytes for span in spans)
        for n, span in enumerate(spans):
            assert index[n] is span
            assert index.behind(span.end.position) == n + 1
            assert index.behind(span.end.position._replace(pos=span.end.position.pos - 1)) == n
        for begin in range(0, len(spans) + 1, 7):
            behind = begin
            for end in range(begin, len(spans) + 1):
                part = spans[begin:end]
                if sum(s.log_bytes for s in part) <= most_bytes and (
                    sum(s.rows for s in part) <= most_rows
                ):
                    behind = end
            assert index.within(begin, most_bytes, most_rows) == behind
            assert index.within(begin, None, None) == len(spans)
