"""Splitting a batch into tasks: each part of it is in exactly one task, in order."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.parity.decoding import make_event
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.ranges.split import (
    RangePartition,
    RangePlan,
    fetched_range,
    split_into_ranges,
)
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Piece, Span
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, EventType

MAX_INLINE_BYTES_PER_TASK = 900_000
EMPTY = SchemaHistory()


def at(pos: int) -> Position:
    return Position(1, pos, "b.000001")


def blocks_of(start: int, size: int) -> tuple[EventBlock, ...]:
    """Return the blocks of one event of `size` bytes."""
    body = bytes(size - HEADER_LENGTH)
    return tuple(pack_events([make_event(EventType.XID_EVENT, body, start, "b.000001")]))


def spans_of(
    sizes: list[tuple[int, int | None]], pieces: dict[int, tuple[Piece, ...]] | None = None
) -> list[Span]:
    """Return spans of (log bytes, kept bytes or None), each with its own pending XA."""
    spans = []
    pos = 4
    start = BoundaryState(at(pos), EMPTY, ("first",))
    for n, (log_bytes, kept) in enumerate(sizes):
        blocks = None if kept is None else blocks_of(pos, kept)
        end = BoundaryState(at(pos + log_bytes), EMPTY, (f"xid{n}",))
        spans.append(Span(start, end, log_bytes, blocks, kept or 0, 0, (pieces or {}).get(n, ())))
        pos += log_bytes
        start = end
    return spans


def cut_up(
    spans: list[Span], *, target_bytes: int = 32 << 20, max_fetches: int = 4, start: int = 4
) -> list[RangePlan]:
    return split_into_ranges(
        at(start), spans, pending_xa=("first",), target_bytes=target_bytes, max_fetches=max_fetches
    )


def test_no_spans_give_no_ranges() -> None:
    assert cut_up([]) == []


def test_small_spans_are_joined_in_one_inline_range() -> None:
    spans = spans_of([(100, 50), (200, 60), (300, 70)])
    (only,) = cut_up(spans)
    assert (only.start, only.end, only.log_bytes) == (at(4), at(604), 600)
    assert only.pending_xa == ("first",)
    assert only.blocks == tuple(block for span in spans for block in span.blocks or ())


def test_range_takes_pending_xa_from_the_start_of_its_span() -> None:
    """A span may begin after the batch start; XA may be prepared in between."""
    start = BoundaryState(at(50), EMPTY, ("second",))
    (only,) = cut_up([Span(start, BoundaryState(at(90), EMPTY), 40, None, 0)])
    assert (only.start, only.pending_xa) == (at(50), ("second",))


def test_inline_ranges_are_split_at_the_inline_limit() -> None:
    spans = spans_of([(400_000, 400_000)] * 5)
    cuts = cut_up(spans)
    assert [(part.start, part.end) for part in cuts] == [
        (at(4), at(800_004)),
        (at(800_004), at(1_600_004)),
        (at(1_600_004), at(2_000_004)),
    ]
    assert [part.pending_xa for part in cuts] == [("first",), ("xid1",), ("xid3",)]


@pytest.mark.parametrize(("kept", "carried"), [(900_000, True), (900_001, False)])
def test_span_over_the_inline_limit_is_fetched(kept: int, carried: bool) -> None:
    (only,) = cut_up(spans_of([(2_000_000, kept)]))
    assert (only.blocks is not None) is carried


def test_inline_and_fetched_spans_are_not_joined() -> None:
    cuts = cut_up(spans_of([(100, 50), (100, None), (100, None), (100, 50)]))
    assert [part.blocks is not None for part in cuts] == [True, False, True]
    assert [part.log_bytes for part in cuts] == [100, 200, 100]


@pytest.mark.parametrize(
    ("target", "sizes"),
    [
        (100, [100] * 6),
        (150, [200, 100, 200, 100]),
        (200, [200] * 3),
        (250, [300] * 2),
        (9999, [600]),
    ],
)
def test_fetched_ranges_have_about_the_target_size(target: int, sizes: list[int]) -> None:
    """Similar sizes let all tasks end at about the same time."""
    cuts = cut_up(spans_of([(100, None)] * 6), target_bytes=target, max_fetches=10)
    assert [part.log_bytes for part in cuts] == sizes


@given(st.lists(st.integers(1, 1000), min_size=1), st.integers(1, 5000), st.integers(1, 20))
def test_fetched_ranges_have_about_equal_sizes(sizes: list[int], target: int, most: int) -> None:
    """No range exceeds its equal share by more than the longest span."""
    cuts = cut_up(spans_of([(size, None) for size in sizes]), target_bytes=target, max_fetches=most)
    assert sum(part.log_bytes for part in cuts) == sum(sizes)
    assert len(cuts) <= most
    share = sum(sizes) / min(most, max(1, round(sum(sizes) / target)))
    assert all(part.log_bytes <= share + max(sizes) for part in cuts)


def test_fetched_ranges_grow_to_stay_within_the_fetch_limit() -> None:
    cuts = cut_up(spans_of([(100, None)] * 100), target_bytes=100, max_fetches=4)
    assert [part.log_bytes for part in cuts] == [2500] * 4


def test_inline_spans_between_too_many_fetched_ones_are_fetched_too() -> None:
    sizes: list[tuple[int, int | None]] = [(1000, None), (100, 50)] * 50
    cuts = cut_up(spans_of(sizes), max_fetches=2)
    assert len(cuts) <= 2
    assert all(part.blocks is None for part in cuts)
    assert sum(part.log_bytes for part in cuts) == 55_000


def test_too_many_inline_ranges_become_one_fetched_range() -> None:
    assert len(cut_up(spans_of([(900_000, 900_000)] * 4), max_fetches=3)) == 4
    cuts = cut_up(spans_of([(900_000, 900_000)] * 5), max_fetches=3)
    assert len(cuts) == 1
    assert all(part.blocks is None for part in cuts)


def test_first_range_begins_at_a_batch_start_after_its_span_start() -> None:
    """The offset advanced over events that are not captured."""
    spans = spans_of([(1000, 50), (100, 50)])
    assert cut_up(spans, start=500)[0].start == at(500)


def test_long_transaction_is_split_at_its_pieces() -> None:
    prelude = blocks_of(4, 100)
    pieces = tuple(Piece(at(4 + n * 1000), n * 1000, prelude) for n in (1, 2, 3))
    cuts = cut_up(spans_of([(4000, None)], {0: pieces}), target_bytes=1000)
    assert [(part.start, part.end) for part in cuts] == [
        (at(4), at(1004)),
        (at(1004), at(2004)),
        (at(2004), at(3004)),
        (at(3004), at(4004)),
    ]
    assert [part.prelude for part in cuts] == [(), prelude, prelude, prelude]
    assert [part.ends_inside for part in cuts] == [True, True, True, False]
    halves = cut_up(spans_of([(4000, None)], {0: pieces}), target_bytes=1000, max_fetches=2)
    assert [(part.start, part.end) for part in halves] == [(at(4), at(2004)), (at(2004), at(4004))]
    assert [part.ends_inside for part in halves] == [True, False]


def test_replayed_batch_is_one_fetched_range() -> None:
    assert fetched_range(at(4), at(99), ("x",)) == [RangePlan(at(4), at(99), 0, None, ("x",))]


def test_pickled_inline_range_keeps_its_blocks() -> None:
    (part,) = cut_up(spans_of([(100, 50)]))
    task = RangePartition(part.start, part.end, "", part.pending_xa, True, part.blocks)
    copy = pickle.loads(pickle.dumps(task))
    assert (copy.start, copy.end, copy.blocks) == (task.start, task.end, task.blocks)


SPAN = st.tuples(
    st.integers(0, 4).map(lambda n: 10**n * 100),
    st.sampled_from([None, 19, 5_000, 300_000, 899_999, 900_000, 900_001, 2_000_000]),
    st.booleans(),
)


@given(
    st.lists(SPAN, max_size=80),
    st.sampled_from([1, 1000, 100_000, 10_000_000]),
    st.integers(1, 6),
)
@settings(max_examples=60)
def test_random_spans_are_split_without_gaps_or_overlaps(
    described: list[tuple[int, int | None, bool]], target_bytes: int, max_fetches: int
) -> None:
    sizes: list[tuple[int, int | None]] = [
        (max(log_bytes, kept or 0), kept) for log_bytes, kept, _ in described
    ]
    pieces: dict[int, tuple[Piece, ...]] = {}
    pos = 4
    for n, ((log_bytes, _), (_, _, long)) in enumerate(zip(sizes, described, strict=True)):
        if long and log_bytes >= 400:
            quarter = log_bytes // 4
            pieces[n] = tuple(
                Piece(at(pos + k * quarter), k * quarter, blocks_of(pos, 30)) for k in (1, 2, 3)
            )
        pos += log_bytes
    spans = spans_of(sizes, pieces)
    cuts = cut_up(spans, target_bytes=target_bytes, max_fetches=max_fetches)

    # Neither gaps nor overlaps.
    assert bool(cuts) == bool(spans)
    for first, second in pairwise(cuts):
        assert first.end == second.start
    if spans:
        assert (cuts[0].start, cuts[-1].end) == (spans[0].start.position, spans[-1].end.position)
    assert sum(part.log_bytes for part in cuts) == sum(log_bytes for log_bytes, _ in sizes)
    # Limits.
    pulls = [part for part in cuts if part.blocks is None]
    assert len(pulls) <= max_fetches
    assert len(cuts) - len(pulls) <= 64
    # Inline ranges contain the events of their spans, in order.
    kept = {event.start: event for span in spans for event in unpack_events(span.blocks or ())}
    for part in cuts:
        if part.blocks is not None:
            events = list(unpack_events(part.blocks))
            assert sum(len(block.data) for block in part.blocks) <= MAX_INLINE_BYTES_PER_TASK
            inside = [kept[pos] for pos in sorted(kept) if part.start.pos <= pos < part.end.pos]
            assert events == inside
    # After a range that ends inside a transaction, the next range has a prelude.
    boundaries = {span.end.position for span in spans}
    for part in cuts:
        assert part.ends_inside == (part.end not in boundaries)
    for first, second in pairwise(cuts):
        assert bool(second.prelude) == first.ends_inside
    if cuts:
        assert cuts[0].prelude == ()
