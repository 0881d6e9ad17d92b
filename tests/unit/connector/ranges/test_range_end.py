"""The end of a range in renamed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.connector.ranges.range_end import RangeBounds
from pyspark_mysqlbinlog.connector.ranges.reader import events_between
from pyspark_mysqlbinlog.errors import InvalidPositionError


@pytest.fixture
def copies(tmp_path: Path) -> FileLog:
    """Return two files whose names sort before those in their ROTATE events."""
    for n, name in enumerate(("a.binlog", "b.binlog"), 1):
        log = LogBuilder(name).format_description().begin().rows(1, "t", n).xid()
        log.rotate(f"mysql-bin.{n + 1:06}").write(tmp_path)
    return FileLog.find(str(tmp_path))


def test_range_end_named_as_in_a_rotate_is_the_start_of_the_next_file(copies: FileLog) -> None:
    first, second = copies.begins()
    end = Position(2, 4, "mysql-bin.000002")
    assert [event.file for event in events_between(copies, first, end)] == ["a.binlog"] * 6
    bounds = RangeBounds(copies, second._replace(pos=4), end)
    event = next(copies.events(second))
    assert not bounds.admits(event)
    assert bounds.reached


def test_range_limit_applies_to_the_file_with_the_number_of_the_end(copies: FileLog) -> None:
    first, second = copies.begins()
    bounds = RangeBounds(copies, first, Position(2, 200, "mysql-bin.000002"))
    assert bounds.limit("a.binlog") == NO_LIMIT
    for event in copies.events(first):
        if event.file == "b.binlog":
            break
        assert bounds.admits(event)
    # The limit applies under both names of the file.
    assert [bounds.limit(name) for name in ("b.binlog", "mysql-bin.000002")] == [200, 200]
    assert RangeBounds(copies, second, copies.end()).limit("b.binlog") == copies.end().pos


def test_range_end_past_the_end_of_its_file_is_rejected(copies: FileLog) -> None:
    first, second = copies.begins()
    past_end = Position(2, copies.end().pos + 1, "mysql-bin.000002")
    with pytest.raises(InvalidPositionError, match=r"the binlog ends at b\.binlog"):
        list(events_between(copies, second, past_end))
    assert list(events_between(copies, first, first)) == []
