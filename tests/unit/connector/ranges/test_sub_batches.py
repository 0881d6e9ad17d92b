"""Boundaries at which a range is split into sub-batches."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken, ReadCancelledError
from pyspark_mysqlbinlog.connector.ranges import sub_batches
from pyspark_mysqlbinlog.connector.ranges.sub_batches import (
    Boundary,
    SubBatchBoundaries,
    max_sub_batches,
)
from pyspark_mysqlbinlog.protocol.checksum import event_checksum
from pyspark_mysqlbinlog.protocol.events import Event, EventType

FILE = "mysql-bin.000003"
BEGIN = Position(3, 1000, FILE)
START = PositionFingerprint(created=1_700_000_000, server_id=7)


@dataclass
class Reading:
    """A range that is read event by event; each event has 100 bytes."""

    steps: SubBatchBoundaries
    start: PositionFingerprint | None = START
    at: Position = BEGIN

    def __post_init__(self) -> None:
        self.steps.begin(self.start)

    def events(
        self, *wanted: int, ends: bool = True, kind: EventType = EventType.XID_EVENT
    ) -> None:
        """Read events with these numbers of captured bytes.

        ends : whether each of them ends a transaction.
        """
        for count in wanted:
            event = event_at(self.at, kind)
            self.at = self.at._replace(pos=event.end)
            self.steps.on_read(event, self.at, count, is_between=ends)

    def found(self) -> list[int]:
        """Return the positions of the boundaries that are reported now."""
        found = []
        while (boundary := self.steps.next_boundary((9, 0))) is not None:
            found.append(boundary.position.pos)
        return found


def event_at(position: Position, kind: EventType) -> Event:
    return Event(
        timestamp=1_800_000_000,
        type=kind,
        server_id=9,
        file=position.file,
        start=position.pos,
        end=position.pos + 100,
        flags=0,
        body=b"x" * 81,
    )


def test_sub_batch_ends_once_it_has_the_target_of_captured_bytes() -> None:
    reading = Reading(SubBatchBoundaries(250))
    reading.events(100, 100, 100, 100, 100, 100, 100)
    assert reading.found() == [1300, 1600]
    reading = Reading(SubBatchBoundaries(250))
    reading.events(0, 0, 300, 0, 0, 0, 10, 250)
    reading.events(0)
    assert reading.found() == [1300, 1800]


def test_sub_batch_boundary_is_never_inside_a_transaction() -> None:
    reading = Reading(SubBatchBoundaries(250))
    reading.events(*[100] * 5, ends=False)
    reading.events(0, 0)
    assert reading.found() == [1600]


def test_end_of_range_or_file_is_no_sub_batch_boundary() -> None:
    """It may be the end of the range; the end of a file is spelled as the start of the next one."""
    reading = Reading(SubBatchBoundaries(100))
    reading.events(100)
    assert reading.found() == []
    reading.events(0, kind=EventType.ROTATE_EVENT)
    reading.events(0)
    assert reading.found() == []


def test_sub_batch_boundary_in_the_next_file_has_its_creation_time() -> None:
    reading = Reading(SubBatchBoundaries(150))
    reading.events(100)
    for kind in EventType.ROTATE_EVENT, EventType.FORMAT_DESCRIPTION_EVENT:
        reading.events(0, kind=kind)
    reading.events(100, 0)
    boundary = reading.steps.next_boundary((9, 0))
    last = event_at(Position(3, 1300, FILE), EventType.XID_EVENT)
    known = PositionFingerprint(1_800_000_000, 9, 100, event_checksum(last))
    assert boundary == Boundary(Position(3, 1400, FILE), known)


def test_range_without_a_start_fingerprint_has_no_sub_batch_boundaries() -> None:
    reading = Reading(SubBatchBoundaries(100), start=None)
    reading.events(100, 100, 100)
    assert reading.found() == []


def test_sub_batch_boundary_is_returned_once_its_position_is_reached() -> None:
    reading = Reading(SubBatchBoundaries(100))
    reading.events(100, 100, 100)
    assert reading.steps.next_boundary((3, 1099)) is None
    boundary = reading.steps.next_boundary((3, 1100))
    assert boundary is not None
    assert boundary.position == Position(3, 1100, FILE)
    assert reading.steps.next_boundary((3, 1150)) is None
    assert reading.steps.next_boundary((4, 4)) is not None


def test_range_read_again_resets_its_sub_batch_boundaries() -> None:
    """The first reading had reached a file with another creation time."""
    reading = Reading(SubBatchBoundaries(100))
    reading.events(100, 100, 50)
    reading.events(0, kind=EventType.FORMAT_DESCRIPTION_EVENT)
    reading.events(50, 100)
    again = Reading(reading.steps)
    assert again.found() == []
    again.events(100, 100)
    boundary = again.steps.next_boundary((9, 0))
    assert boundary is not None
    assert boundary.position == Position(3, 1100, FILE)
    assert boundary.fingerprint.created == START.created


def test_stopped_range_read_raises_read_cancelled_error() -> None:
    interrupt = CancelToken()
    reading = Reading(SubBatchBoundaries(100, interrupt.check))
    reading.events(10)
    interrupt.stop()
    with pytest.raises(ReadCancelledError):
        reading.events(10)


@pytest.mark.parametrize(("kernel", "most"), [("c", 8), ("python", 1)])
def test_only_the_compiled_kernel_reads_several_sub_batches(
    monkeypatch: pytest.MonkeyPatch, kernel: str, most: int
) -> None:
    monkeypatch.setattr(sub_batches, "implementation", lambda: kernel)
    assert max_sub_batches() == most
