"""The end of a read, resolved without a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.logs.events import TIMESTAMP, LogBuilder
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.values import FilePosition, Latest, Place, Timestamp
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.source.start_offset import ResolvedStart, resolve_end
from pyspark_mysqlbinlog.errors import BinlogPurgedError, InvalidPositionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.events import Event

DAY = 86_400
COUNT = 30


class DumpedLog:
    """A log that numbers positions as a server's log does: by the number in the file name."""

    def __init__(self, log: FileLog) -> None:
        self.log = log
        self.read = 0

    def events(self, start: Position) -> Iterator[Event]:
        for event in self.log.events(start):
            self.read += 1
            yield event

    def position(self, file: str, pos: int) -> Position:
        return Position.of(file, pos)


@pytest.fixture
def log(tmp_path: Path) -> DumpedLog:
    """Return a log with one file per day and one transaction per hour."""
    for n in range(1, COUNT + 1):
        day = TIMESTAMP + n * DAY
        log = LogBuilder(f"mysql-bin.{n:06d}", timestamp=day).format_description()
        for hour in range(24):
            log.timestamp = day + hour * 3600
            log.begin().rows(1, "t", hour).xid()
        log.rotate(f"mysql-bin.{n + 1:06d}").write(tmp_path)
    return DumpedLog(FileLog.find(str(tmp_path)))


def end_of(log: DumpedLog, place: Place, start: Position | None = None) -> Position:
    files = {Path(path).name: Path(path).stat().st_size for path in log.log.paths}
    start = start or log.log.begins()[0]
    facts = ServerFacts(True, "5.7.41")
    found = ResolvedStart(log, start, log.log.end(), SchemaHistory(), "", facts, files)
    return resolve_end(found, place)


def test_end_given_as_position_or_latest_is_resolved(log: DumpedLog) -> None:
    assert end_of(log, FilePosition("mysql-bin.000002", 4)) == Position.of("mysql-bin.000002", 4)
    assert end_of(log, Latest()) == log.log.end()
    last = log.log.end()
    assert end_of(log, FilePosition(last.file, last.pos)) == last


# A wrong name with the number of another file would end the read after other rows.
NOT_THERE: list[tuple[str, int, type[MySQLBinlogError], str]] = [
    ("mysqlbin.000001", 4, BinlogPurgedError, "the server has no binlog 'mysqlbin.000001'"),
    ("mysql-bin.1", 4, BinlogPurgedError, "from mysql-bin.000001 to mysql-bin.000030"),
    ("mysql-bin.000031", 4, BinlogPurgedError, "the server has no binlog"),
    ("mysql-bin.000002", 1 << 20, InvalidPositionError, "past the end of its file, which has"),
]


@pytest.mark.parametrize(("file", "pos", "kind", "words"), NOT_THERE)
def test_end_position_that_does_not_exist_is_rejected(
    log: DumpedLog, file: str, pos: int, kind: type[MySQLBinlogError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        end_of(log, FilePosition(file, pos))
    assert (caught.value.file, caught.value.position) == (file, pos)


def test_end_time_lookup_reads_only_a_part_of_the_log(log: DumpedLog) -> None:
    begins = log.log.begins()
    for day in (2, 15, COUNT):
        log.read = 0
        assert end_of(log, Timestamp(TIMESTAMP + day * DAY)) == begins[day - 1]
        assert log.read < 250, "two files have some 200 events"
    assert end_of(log, Timestamp(TIMESTAMP + (COUNT + 1) * DAY)) == log.log.end()


def test_end_time_before_the_start_resolves_to_the_start(log: DumpedLog) -> None:
    start = log.log.begins()[20]
    assert end_of(log, Timestamp(TIMESTAMP), start) == start
