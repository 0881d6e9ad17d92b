"""The buffer: boundaries and their spelling, limits, and threads that wait for each other."""

from __future__ import annotations

import threading

import pytest

from helpers.logs.buffer_log import EMPTY, Log, at, mark, new_log, numbers
from helpers.waiting import patience
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.tables import TableSchema


def test_buffer_has_one_span_per_transaction() -> None:
    log = new_log()
    first, second = log.transaction(100), log.transaction(200)
    assert log.buffer.last_boundary_within(at(4), None) == mark(second)
    spans = log.buffer.spans(at(4), second)
    assert spans is not None
    assert [(s.start.position, s.end.position, s.log_bytes) for s in spans] == [
        (at(4), first, 100),
        (first, second, 200),
    ]
    assert [s.kept_bytes for s in spans] == [100, 200]
    assert numbers(spans) == [1, 2]


def test_small_transactions_share_a_buffer_span() -> None:
    log = new_log(granularity=250)
    ends = [log.transaction(100) for _ in range(5)]
    assert log.buffer.last_boundary_within(at(4), 1) == mark(ends[2])
    assert log.buffer.last_boundary_within(at(4), None) == mark(ends[4])
    spans = log.buffer.spans(at(4), ends[4])
    assert spans is not None
    assert [numbers([span]) for span in spans] == [[1, 2, 3], [4, 5]]


def test_transaction_without_captured_changes_advances_only_the_tip() -> None:
    log = new_log()
    end = log.transaction(captured=False)
    assert log.buffer.last_boundary_within(at(4), None) is None
    assert log.buffer.tip == mark(end)
    assert log.buffer.advance_to_tip() == mark(end)
    assert log.buffer.spans(at(4), end) == []


def ddl(log: Log, number: int) -> Position:
    """Add the boundary after a statement that changes a table; return its position."""
    end = log.here._replace(pos=log.here.pos + 10)
    schema = TableSchema("d", f"t{number}", ())
    history = log.buffer.tip.history.with_table(end, schema)
    log.buffer.boundary(BoundaryState(end, history), 10, captured=False)
    log.here = end
    return end


@pytest.mark.parametrize("rows_between", [0, 1])
def test_batch_ends_after_a_bounded_number_of_schema_changes(rows_between: int) -> None:
    """This bounds the size of its offset, with or without rows between the changes."""
    log = new_log(granularity=100_000)
    log.transaction()
    for number in range(50):
        ddl(log, number)
        for _ in range(rows_between):
            here = log.here
            end = here._replace(pos=here.pos + 100)
            log.count += 1
            log.buffer.append([log.event(log.count, 100)])
            log.buffer.boundary(BoundaryState(end, log.buffer.tip.history), 100, captured=True)
            log.here = end
    start, changes, rows = at(4), [], []
    while (end_mark := log.buffer.last_boundary_within(start, None)) is not None:
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


def test_span_after_ddl_starts_with_its_schemas_and_pending_xa() -> None:
    """A task that fetches the span starts there and needs the XA that is prepared there."""
    log = new_log(granularity=100_000)
    log.buffer.boundary(BoundaryState(at(104), EMPTY, ("xa",)), 100, captured=False)
    boundary_state = BoundaryState(
        at(114), EMPTY.with_table(at(114), TableSchema("d", "t", ())), ("xa",)
    )
    log.buffer.boundary(boundary_state, 10, captured=False)
    log.here = at(114)
    log.transaction(100)
    (span,) = log.buffer.finished()
    assert span.start == boundary_state
    assert (span.end.position, span.log_bytes) == (at(214), 100)


def test_boundary_after_ddl_becomes_the_start_of_the_next_file_at_a_rotation() -> None:
    log = new_log()
    ddl(log, 1)
    here = log.rotate()
    end = log.transaction()
    spans = log.buffer.spans(here, end)
    assert spans is not None
    assert numbers(spans) == [1]


def test_traffic_not_captured_counts_as_log_bytes_but_gives_no_boundary() -> None:
    log = new_log()
    log.transaction(300, captured=False)
    captured = log.transaction(100)
    log.transaction(500, captured=False)
    assert log.buffer.last_boundary_within(at(4), None) == mark(captured)
    spans = log.buffer.spans(at(4), captured)
    assert spans is not None
    assert [span.log_bytes for span in spans] == [400]


# (limit, number of transactions of 100 bytes that a batch takes)
LIMITS = [(None, 5), (0, 1), (1, 1), (100, 1), (199, 1), (200, 2), (299, 2), (10_000, 5)]


@pytest.mark.parametrize(("limit", "count"), LIMITS)
def test_last_boundary_within_a_byte_limit_takes_at_least_one_transaction(
    limit: int | None, count: int
) -> None:
    log = new_log()
    ends = [log.transaction(100) for _ in range(5)]
    assert log.buffer.last_boundary_within(at(4), limit) == mark(ends[count - 1])


def test_last_boundary_is_never_after_the_given_end() -> None:
    log = new_log()
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.last_boundary_within(at(4), None, ends[1]) == mark(ends[1])
    assert log.buffer.last_boundary_within(ends[1], None, ends[1]) is None
    between = ends[2]._replace(pos=ends[2].pos + 50)
    assert log.buffer.last_boundary_within(ends[1], None, between) == mark(ends[2])


def test_no_span_crosses_a_forced_boundary() -> None:
    """A run that ends at this boundary must get everything before it, however large the spans."""
    log = new_log(granularity=10_000)
    log.transaction()
    last = log.transaction()
    log.buffer.force_boundary_at(last)
    log.transaction()
    assert log.buffer.last_boundary_within(at(4), None, last) == mark(last)


def test_rotation_moves_no_span_across_a_forced_boundary() -> None:
    log = new_log(granularity=10_000)
    last = log.transaction()
    log.buffer.force_boundary_at(last)
    log.rotate()
    log.transaction()
    assert log.buffer.last_boundary_within(at(4), None, last) == mark(last)


@pytest.mark.parametrize("granularity", [0, 10_000])
def test_boundary_before_a_rotation_becomes_the_start_of_the_next_file(granularity: int) -> None:
    log = new_log(granularity=granularity)
    log.transaction()
    begin = log.rotate()
    assert log.buffer.last_boundary_within(at(4), None) == mark(begin)
    end = log.transaction()
    assert log.buffer.last_boundary_within(begin, None) == mark(end)
    spans = log.buffer.spans(begin, end)
    assert spans is not None
    assert numbers(spans) == [2]
    assert [span.start for span in spans] == [mark(begin)]


@pytest.mark.parametrize("granularity", [0, 10_000])
def test_returned_boundary_keeps_its_file_name_after_a_rotation(granularity: int) -> None:
    log = new_log(granularity=granularity)
    end = log.transaction()
    assert log.buffer.last_boundary_within(at(4), None) == mark(end)
    begin = log.rotate()
    assert log.buffer.tip == mark(begin)
    assert log.buffer.last_boundary_within(at(4), None) == mark(end)
    spans = log.buffer.spans(at(4), end)
    assert spans is not None
    assert numbers(spans) == [1]
    later = log.transaction()
    assert log.buffer.last_boundary_within(end, None) == mark(later)
    spans = log.buffer.spans(end, later)
    assert spans is not None
    assert numbers(spans) == [2]


def test_start_position_keeps_its_file_name_after_a_rotation() -> None:
    log = new_log(start=500)
    begin = log.rotate()
    end = log.transaction()
    assert log.buffer.last_boundary_within(at(500), None) == mark(end)
    spans = log.buffer.spans(at(500), end)
    assert spans is not None
    assert numbers(spans) == [1]
    assert log.buffer.spans(begin, end) is None, "that spelling nobody was given"


def test_returned_tip_keeps_its_file_name_after_a_rotation() -> None:
    log = new_log()
    log.transaction(captured=False)
    tip = log.buffer.advance_to_tip()
    assert tip == mark(at(104))
    log.rotate()
    end = log.transaction()
    spans = log.buffer.spans(at(104), end)
    assert spans is not None
    assert numbers(spans) == [2]
    assert [span.start for span in spans] == [tip]


def test_tip_is_not_returned_while_captured_changes_are_undelivered() -> None:
    log = new_log(granularity=10_000)
    log.transaction()
    log.transaction(captured=False)
    assert log.buffer.advance_to_tip() is None
    end = log.buffer.last_boundary_within(at(4), None)
    assert end is not None
    assert log.buffer.advance_to_tip() == mark(log.here)


# --- limits


def test_transaction_over_the_capacity_keeps_its_span_without_events() -> None:
    log = new_log(capacity=1000)
    for _ in range(50):
        log.buffer.append([log.event(1, 100)])
    end = at(5004)
    log.buffer.boundary(mark(end), 5000, captured=True)
    log.here = end
    small = log.transaction(100)
    assert log.buffer.last_boundary_within(at(4), None) == mark(small)
    spans = log.buffer.spans(at(4), small)
    assert spans is not None
    assert [(s.start.position, s.end.position, s.log_bytes) for s in spans] == [
        (at(4), end, 5000),
        (end, small, 100),
    ]
    assert (spans[0].blocks, spans[0].kept_bytes) == (None, 0)
    assert spans[1].blocks is not None, "there is room again"


@pytest.mark.parametrize("granularity", [0, 350, 10_000])
def test_buffered_bytes_never_exceed_the_capacity(granularity: int) -> None:
    log = new_log(capacity=1000, granularity=granularity)
    for _ in range(40):
        log.transaction(100)
    end = log.buffer.last_boundary_within(at(4), None)
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


def test_span_over_the_capacity_keeps_none_of_its_events() -> None:
    log = new_log(capacity=250, granularity=10_000)
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.last_boundary_within(at(4), None) == mark(ends[-1])
    spans = log.buffer.spans(at(4), ends[-1])
    assert spans is not None
    assert [span.blocks for span in spans] == [None]


def test_release_frees_room_for_later_transactions() -> None:
    log = new_log(capacity=250)
    ends = [log.transaction(100) for _ in range(3)]
    assert log.buffer.last_boundary_within(at(4), None) == mark(ends[2])
    log.buffer.release(ends[1])
    later = log.transaction(100)
    assert log.buffer.last_boundary_within(ends[2], None) == mark(later)
    spans = log.buffer.spans(ends[2], later)
    assert spans is not None
    assert numbers(spans) == [4]


def test_buffer_has_no_spans_between_unknown_boundaries() -> None:
    log = new_log(granularity=150)
    ends = [log.transaction(100) for _ in range(4)]
    assert log.buffer.last_boundary_within(at(4), None) == mark(ends[3])
    assert log.buffer.spans(at(4), at(505)) is None, "after the tip"
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


def test_transaction_resent_after_a_lost_connection_is_kept_once() -> None:
    log = new_log()
    log.buffer.append([log.event(1, 100)])
    log.buffer.append([log.event(1, 50)])
    log.buffer.forget_transaction()
    end = log.transaction()
    assert log.buffer.last_boundary_within(at(4), None) == mark(end)
    spans = log.buffer.spans(at(4), end)
    assert spans is not None
    assert numbers(spans) == [1]


def test_forgotten_large_transaction_leaves_room_for_the_next_one() -> None:
    log = new_log(capacity=200)
    log.buffer.append([log.event(9, 1000)])
    log.buffer.forget_transaction()
    end = log.transaction(100)
    assert log.buffer.last_boundary_within(at(4), None) == mark(end)
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
def test_tail_waits_while_the_span_index_is_full(by: str) -> None:
    log = new_log(most_spans=3)
    ends = [log.transaction() for _ in range(2)]
    log.buffer.wait_for_room()
    ends.append(log.transaction())
    tail = Waiting(log.buffer)
    assert not tail.through.wait(0.1)
    assert log.buffer.last_boundary_within(at(4), 1) == mark(ends[0])
    assert not tail.through.wait(0.05), "handing out is not enough"
    if by == "release":
        log.buffer.release(ends[0])
    elif by == "take_all":
        log.buffer.take_all()
    else:
        log.buffer.close()
        assert log.buffer.closed
    assert tail.through.wait(patience(5))
    tail.thread.join(patience(5))


def test_unlimited_batch_keeps_all_transactions_in_a_bounded_index() -> None:
    log = new_log(most_spans=8)
    log.buffer.take_all()
    for _ in range(100):
        log.transaction(100)
        log.buffer.wait_for_room()
    end = log.buffer.last_boundary_within(at(4), None)
    assert end == mark(log.here)
    spans = log.buffer.spans(at(4), log.here)
    assert spans is not None
    assert len(spans) <= 8
    assert sum(span.log_bytes for span in spans) == 10_000
    ends = [span.end.position for span in spans]
    assert [span.start.position for span in spans] == [at(4), *ends[:-1]]
    assert ends[-1] == log.here


def test_buffer_wait_ends_on_condition_timeout_or_error() -> None:
    log = new_log()
    assert log.buffer.wait(lambda: True)
    assert not log.buffer.wait(lambda: False, timeout=0.05)
    threading.Timer(0.05, log.transaction).start()
    assert log.buffer.wait(lambda: log.buffer.tip.position > at(4), timeout=patience(5))
    threading.Timer(0.05, log.buffer.set_error, [ServerError("gone")]).start()
    assert log.buffer.wait(lambda: False, timeout=patience(5)), "an error ends the waiting"
    assert isinstance(log.buffer.error, ServerError)


def test_transactions_read_before_an_error_are_still_returned() -> None:
    log = new_log(granularity=10_000)
    end = log.transaction()
    log.buffer.append([log.event(2, 100)])
    log.buffer.set_error(ServerError("gone"))
    assert log.buffer.last_boundary_within(at(4), None) == mark(end)
