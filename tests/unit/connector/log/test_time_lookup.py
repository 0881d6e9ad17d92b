"""Lookup of a time in a log: the first transaction whose first event is not older."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.logs.events import TIMESTAMP, LogBuilder, gtid_body, incident_body, xa_prepare_body
from helpers.parity.decoding import CAPTURED
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.time_lookup import first_since
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.events import Event, EventType

T = EventType


def boundaries(log: FileLog) -> list[tuple[Position, int]]:
    """Return (boundary, time) of every transaction, found by the independent EventFilter."""
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


# EventFilter rejects changes in `statements`.
SCENARIOS = sorted({path.name.split(".")[0] for path in CAPTURED.glob("*.binlog")} - {"statements"})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_time_lookup_in_recorded_logs_equals_a_linear_search(scenario: str) -> None:
    log = FileLog.find(str(CAPTURED / f"{scenario}.*.binlog"))
    expected = boundaries(log)
    # Statements may set their own time, so the times may be in any order.
    for second in {time + step for _, time in expected for step in (-1, 0, 1)}:
        for fraction in (0.0, 0.5):
            wanted = next((at for at, time in expected if time >= second + fraction), None)
            assert first_since(log, log.begins(), second + fraction) == wanted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three files; each transaction is one second after the one before."""
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


def test_time_lookup_finds_transactions_of_every_kind(folder: Path) -> None:
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


def test_time_lookup_from_a_boundary_inside_a_file_finds_only_later_transactions(
    folder: Path,
) -> None:
    log = FileLog.find(str(folder))
    expected = boundaries(log)
    for at, (start, _) in enumerate(expected):
        assert first_since(log, [start], 0) == start
        for later, time in expected[at:]:
            assert first_since(log, [start], time) == later


class Counted:
    """A log that counts its reads and records the files that were read."""

    def __init__(self, log: FileLog) -> None:
        self.log = log
        self.reads = 0
        self.files: set[str] = set()

    def events(self, start: Position) -> Iterator[Event]:
        self.reads += 1
        for event in self.log.events(start):
            self.files.add(event.file)
            yield event

    def position(self, file: str, pos: int) -> Position:
        return self.log.position(file, pos)


def write_files(folder: Path, times: list[tuple[int, list[int]]]) -> FileLog:
    """Write files, each given as (time of its first event, times of its transactions)."""
    for n, (head, transactions) in enumerate(times, 1):
        log = LogBuilder(f"b.{n:06d}", timestamp=head).format_description()
        for time in transactions:
            log.timestamp = time
            log.begin(gtid=n).rows(1, "t", n).xid()
        log.rotate(f"b.{n + 1:06d}").write(folder)
    return FileLog.find(str(folder))


HOUR = 3600
HOURLY = [(TIMESTAMP + n * HOUR, [TIMESTAMP + n * HOUR + 9]) for n in range(64)]


def test_time_lookup_reads_few_files(tmp_path: Path) -> None:
    """On a server, each read takes a connection and a dump."""
    log = write_files(tmp_path, HOURLY)
    for begin, (head, _) in zip(log.begins(), HOURLY, strict=True):
        counted = Counted(log)
        assert first_since(counted, log.begins(), head) == begin
        assert counted.reads <= 7
        assert len(counted.files) <= 9


def test_time_lookup_never_returns_a_position_before_its_start(tmp_path: Path) -> None:
    log = write_files(tmp_path, HOURLY)
    begins = log.begins()
    assert first_since(log, begins[10:], TIMESTAMP) == begins[10]


# Logs in which the time of a file's head does not show its order: (head, transactions).
DISORDER: dict[str, list[tuple[int, list[int]]]] = {
    "the clock was set back when a file began": [
        (1000, [1010, 1990]), (2000, [2010, 2060]), (2001, [2030, 2990]), (3000, [3010]),
    ],
    "heads without a time": [(0, [1000]), (0, [2000]), (0, [3000]), (0, [4000]), (0, [5000])],
    "a session with a time of its own rotated the log": [
        (1000, [1010]), (2000, [2010]), (30, [3010]), (40, [4010]), (5000, [5010]),
    ],
    "a head of the future": [(1000, [1010]), (9000, [2010]), (3000, [3010]), (4000, [4010])],
    "a long statement rotated the log": [
        (1000, [1010]), (2000, [2000, 2065, 2074, 2000]), (2000, []),
    ],
    "long statements rotated the log, one after the other": [
        (1000, [1010]), (2000, [2000, 2065, 2074, 2000]), (2000, [2001]), (2001, []),
    ],
    "the clock was set back by hours": [(1000, [10_000, 19_000]), (2000, [2010, 12_000])],
    "files without transactions": [(1000, []), (2000, []), (3000, [3010]), (4000, []), (5000, [])],
}  # fmt: skip


@pytest.mark.parametrize("times", DISORDER.values(), ids=DISORDER.keys())
def test_time_lookup_in_files_with_unordered_times_equals_a_linear_search(
    tmp_path: Path, times: list[tuple[int, list[int]]]
) -> None:
    log = write_files(tmp_path, times)
    expected = boundaries(log)
    assert [time for _, time in expected] == [time for _, each in times for time in each]
    for second in {time + step for _, each in times for time in each for step in (-1, 0, 1)}:
        wanted = next((at for at, time in expected if time >= second), None)
        assert first_since(log, log.begins(), second) == wanted


@pytest.mark.parametrize("is_cut", [False, True])
def test_time_lookup_finds_the_first_transaction_after_a_crash(
    tmp_path: Path, is_cut: bool
) -> None:
    first = LogBuilder("b.000001").format_description().begin().rows(1, "t", 1).xid()
    if is_cut:
        first.begin().rows(1, "t", 2)  # the server crashes before the end
    first.write(tmp_path)
    second = LogBuilder("b.000002", timestamp=TIMESTAMP + 1000).format_description()
    begin = second.pos
    second.begin().rows(1, "t", 3).xid()
    later = second.pos
    second.timestamp += 1
    second.begin().rows(1, "t", 4).xid()
    second.write(tmp_path)
    log = FileLog.find(str(tmp_path))
    found = first_since(log, log.begins(), TIMESTAMP + 1000)
    assert found is not None
    assert found.file == second.file
    assert found.pos <= begin
    assert first_since(log, log.begins(), TIMESTAMP + 1001) == log.position(second.file, later)


def test_time_lookup_finds_the_transaction_after_an_incident_with_a_gtid(tmp_path: Path) -> None:
    log = LogBuilder(timestamp=TIMESTAMP).format_description()
    log.add(T.GTID_LOG_EVENT, gtid_body(2)).add(T.INCIDENT_EVENT, incident_body())
    begin = log.pos
    log.timestamp += 10
    log.begin(gtid=3).rows(1, "t", 3).xid()
    log.timestamp += 10
    log.begin(gtid=4).rows(1, "t", 4).xid()
    log.write(tmp_path)
    files = FileLog.find(str(tmp_path))
    assert first_since(files, files.begins(), TIMESTAMP + 5) == files.position(log.file, begin)
