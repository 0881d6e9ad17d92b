"""The size of a batch: up to its limit, or one larger transaction."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.logs.buffer_log import at, new_log

_GRANULARITY = 250
# As in the stream reader: the granularity of spans is an eighth of the limit.
_LIMIT = 8 * _GRANULARITY


@given(st.lists(st.one_of(st.integers(26, 300), st.integers(26, 3000)), max_size=40))
@settings(max_examples=300)
def test_batch_exceeds_its_limit_only_if_it_is_one_transaction(sizes: list[int]) -> None:
    log = new_log(granularity=_GRANULARITY)
    ends = [log.here] + [log.transaction(size) for size in sizes]
    transactions = set(pairwise(ends))
    start, batches = at(4), 0
    while (end := log.buffer.last_boundary_within(start, _LIMIT)) is not None:
        is_one = (start, end.position) in transactions
        assert end.position.pos - start.pos <= _LIMIT or is_one
        start, batches = end.position, batches + 1
    assert start == log.here
    # Batches are not too small: their number is bounded.
    assert batches <= 1 + 2 * sum(sizes) // (_LIMIT - 2 * _GRANULARITY) + sum(
        size >= _GRANULARITY for size in sizes
    )
