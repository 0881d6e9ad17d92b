"""Times in a log: the first transaction whose first event is not older."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log import FileLog
from pyspark_mysqlbinlog.connector.times import first_since
from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.events import Event, EventType

from decoding import CAPTURED
from events import TIMESTAMP, LogBuilder, gtid_body, xa_prepare_body

T = EventType


def boundaries(log: FileLog) -> list[tuple[Position, int]]:
    """(boundary, time) of every transaction, by the filter, which is another implementation."""
    found: list[tuple[Position, int]] = []
    filtering = EventFilter(lambda database, table: False)
    boundary: Position | None = log.begins()[0]
    for event in log.events(log.begins()[0]):
        if event.start == 4:
            boundary = log.position(event.file, 4)
        was_between = not filtering.in_transaction
        filtering.feed(event)
        if was_between and (filtering.ended or filtering.in_transaction):
            assert boundary is not None
            found.append((boundary, event.timestamp))
        if filtering.ended:
            boundary = log.position(event.file, event.end)
    return found


# `statements` has changes that the filter stops at.
SCENARIOS = sorted({path.name.split(".")[0] for path in CAPTURED.glob("*.binlog")} - {"statements"})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_second_of_a_captured_log(scenario: str) -> None:
    log = FileLog.find(str(CAPTURED / f"{scenario}.*.binlog"))
    expected = boundaries(log)
    # Statements may set their own time, so the seconds need be neither near nor ascending.
    for second in {time + step for _, time in expected for step in (-1, 0, 1)}:
        for fraction in (0.0, 0.5):
            wanted = next((at for at, time in expected if time >= second + fraction), None)
            assert first_since(log, log.begins(), second + fraction) == wanted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files; each transaction one second after the one before."""
    time = TIMESTAMP
    for n in (1, 2, 3):
        log = LogBuilder(f"b.{n:06d}", timestamp=time).format_description()
        for gtid in (None, 7):
            log.timestamp = time
            log.begin(gtid=gtid)
            log.timestamp = time + 1  # its rows come later
            log.rows(1, "t", 1).xid()
            time += 1
        log.timestamp = time
        log.add(T.GTID_LOG_EVENT, gtid_body()).query("CREATE TABLE t (id INT)")
        time += 1
        log.timestamp = time
        xid = "X'61',X'',1"
        log.query(f"XA START {xid}").rows(1, "t", 1).query(f"XA END {xid}")
        log.add(T.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a", one_phase=True))
        time += 1
        log.timestamp = time
        log.begin().rows(1, "t", 2).query("SAVEPOINT s").rows(1, "t", 3).query("COMMIT")
        time += 1
        if n < 3:
            log.timestamp = time
            log.rotate(f"b.{n + 1:06d}")
        log.write(tmp_path)
    return tmp_path


def test_transactions_of_every_kind(folder: Path) -> None:
    log = FileLog.find(str(folder))
    expected = boundaries(log)
    assert [time - TIMESTAMP for _, time in expected] == list(range(15))
    for at, (position, time) in enumerate(expected):
        assert first_since(log, log.begins(), time) == position
        assert first_since(log, log.begins(), time - 0.5) == position
        if at + 1 < len(expected):
            assert first_since(log, log.begins(), time + 0.001) == expected[at + 1][0]
    assert first_since(log, log.begins(), expected[-1][1] + 1) is None
    assert first_since(log, log.begins(), 0) == log.begins()[0]


def test_it_looks_from_a_boundary_in_mid_file(folder: Path) -> None:
    log = FileLog.find(str(folder))
    expected = boundaries(log)
    for at, (start, _) in enumerate(expected):
        assert first_since(log, [start], 0) == start
        for later, time in expected[at:]:
            assert first_since(log, [start], time) == later


class Counted:
    """A log that tells which files were read."""

    def __init__(self, log: FileLog) -> None:
        self.log = log
        self.read: list[str] = []

    def events(self, start: Position) -> Iterator[Event]:
        for event in self.log.events(start):
            if event.file not in self.read:
                self.read.append(event.file)
            yield event

    def position(self, file: str, pos: int) -> Position:
        return self.log.position(file, pos)


def test_older_files_are_not_read_through(folder: Path) -> None:
    log = Counted(FileLog.find(str(folder)))
    begins: Sequence[Position] = log.log.begins()
    expected = boundaries(log.log)
    assert first_since(log, begins, expected[-1][1]) == expected[-1][0]
    assert log.read == ["b.000002", "b.000003"], "the first events of both, the last's rest"
    log.read.clear()
    assert first_since(log, begins, expected[1][1]) == expected[1][0]
    assert log.read == ["b.000002", "b.000001"]
