"""Events packed into blocks and back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.decoding import CAPTURED, read_log
from pyspark_mysqlbinlog.protocol.blocks import pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, Event

GIB4 = 1 << 32


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Draw events in log order, with gaps (events not captured), wraps and file changes."""
    events: list[Event] = []
    file, pos, trailer = 1, draw(st.sampled_from([4, GIB4 - 60, 3 * GIB4 - 23, GIB4 - 23])), 4
    for _ in range(draw(st.integers(0, 20))):
        step = draw(st.integers(0, 9))
        if step == 0:
            file, pos = file + 1, 4
            trailer = draw(st.sampled_from([0, 4]))
        elif step == 1:
            pos += draw(st.sampled_from([100, (1 << 31) - 40, 1 << 31, GIB4 - 1, GIB4, 5 * GIB4]))
        body = draw(st.binary(max_size=30))
        end = pos + HEADER_LENGTH + len(body) + trailer
        timestamp = draw(st.integers(0, 2**32 - 1))
        # A TRANSACTION_PAYLOAD (40) is never packed, only the events in it.
        kind = draw(st.integers(0, 255).filter(lambda kind: kind != 40))
        flags = draw(st.integers(0, 2**16 - 1))
        events.append(Event(f"b.{file:06d}", pos, end, timestamp, kind, 2**32 - 1, flags, body))
        pos = end
    return events


@given(logs())
def test_any_events_survive_packing_into_blocks(events: list[Event]) -> None:
    assert list(unpack_events(pack_events(events))) == events


@given(logs(), st.randoms(use_true_random=False))
def test_events_in_any_order_keep_their_positions(events: list[Event], random: Random) -> None:
    random.shuffle(events)
    assert list(unpack_events(pack_events(events))) == events


@given(logs(), st.integers(0, 20))
def test_events_packed_in_parts_unpack_to_the_whole(events: list[Event], at: int) -> None:
    """Spans of events are packed separately and sent together."""
    parts = [*pack_events(events[:at]), *pack_events(events[at:])]
    assert list(unpack_events(parts)) == events


@pytest.mark.parametrize("file", ["transactions.001.binlog", "gtid_no_checksum.001.binlog"])
def test_recorded_events_survive_packing_in_one_block_per_checksum_length(file: str) -> None:
    """The first event always has a checksum; if the others have none, it gets its own block."""
    events = list(read_log(CAPTURED / file))
    blocks = pack_events(events)
    assert list(unpack_events(blocks)) == events
    assert [block.trailer for block in blocks] == ([4] if "trans" in file else [4, 0])
    length = sum(HEADER_LENGTH + len(event.body) for event in events)
    assert sum(len(block.data) for block in blocks) == length


def test_no_events_give_no_blocks() -> None:
    assert pack_events([]) == []
    assert list(unpack_events([])) == []
