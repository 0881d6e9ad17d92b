"""Files split into ranges: any split gives the same rows in the same order."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.events import LogBuilder, xa_prepare_body
from helpers.parity.decoding import CAPTURED
from helpers.snapshots.filter_harness import xa
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.tail import transaction_scanner
from pyspark_mysqlbinlog.errors import (
    ChecksumError,
    InvalidPositionError,
    MalformedEventError,
    OptionError,
)
from pyspark_mysqlbinlog.protocol.events import EventType

# Run each test with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

CREATE = "CREATE TABLE t (a INT)"


def cut(
    path: Path | str, target: int | str, **options: str
) -> tuple[list[RangePartition], list[dict[str, Any]]]:
    """Return the ranges, and the rows of all of them in order."""
    given = {"path": str(path), "targetPartitionBytes": str(target), "payload": "json"} | options
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    ranges = [part for part in reader.partitions() if isinstance(part, RangePartition)]
    batches = [batch for part in ranges for batch in reader.read(part)]
    return ranges, pa.Table.from_batches(batches).to_pylist() if batches else []


def values(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [row["after"] for row in rows]


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a split of a transaction after every 300 bytes."""
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", 300)


@pytest.mark.parametrize(
    "name", ["rotations", "gtid_no_checksum", "numbers", "temporals", "wide", "ddl_history"]
)
def test_files_split_into_ranges_give_the_rows_of_the_whole(name: str, short_pieces: None) -> None:
    path = CAPTURED / f"{name}.*.binlog"
    _, whole = cut(path, "4g", tables="*.*", operations="insert,update,delete,truncate,ddl")
    assert whole
    counts = []
    for target in (1, 700, 10_000):
        ranges, rows = cut(
            path, target, tables="*.*", operations="insert,update,delete,truncate,ddl"
        )
        assert rows == whole
        assert all(one.end <= other.start for one, other in pairwise(ranges))
        counts.append(len(ranges))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 3


def test_long_transaction_is_split_into_ranges_with_the_same_rows(
    tmp_path: Path, short_pieces: None
) -> None:
    """Later parts need the table maps, the statement and the transaction of the earlier parts."""
    log = LogBuilder().format_description().query(CREATE).begin(gtid=5)
    log.add(EventType.ROWS_QUERY_LOG_EVENT, b"\x06INSERT")
    for n in range(100):
        log.rows(1, "t", n)
    ranges, rows = cut(log.xid().write(tmp_path), 1000, tables="d.t")
    assert values(rows) == [f'{{"a":{n}}}' for n in range(100)]
    assert len(ranges) > 5
    assert [part.ends_inside for part in ranges] == [True] * (len(ranges) - 1) + [False]
    assert rows == cut(tmp_path / log.file, "1g", tables="d.t")[1]


def test_ranges_carry_the_pending_xa_of_tables_that_are_not_captured(tmp_path: Path) -> None:
    """A bare xid in `pending_xa` is a prepared transaction without captured rows."""
    log = LogBuilder().format_description().query(CREATE)
    log.query("XA START X'61',X'',1").rows(2, "other", 1).query("XA END X'61',X'',1")
    log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a"))
    log.begin().rows(1, "t", 1).xid().rotate("mysql-bin.000002").write(tmp_path)
    log = LogBuilder("mysql-bin.000002").format_description()
    log.begin().rows(1, "t", 2).xid().query("XA COMMIT X'61',X'',1")
    log.begin().rows(1, "t", 3).xid().write(tmp_path)
    for target in (1, "1g"):
        ranges, rows = cut(tmp_path, target, tables="d.t")
        assert values(rows) == ['{"a":1}', '{"a":2}', '{"a":3}']
        xid = ("X'61',X'',1",)
        assert [part.pending_xa for part in ranges] == ([(), xid, xid] if target == 1 else [()])


def test_xa_prepared_before_the_start_gives_its_captured_rows_at_its_commit(tmp_path: Path) -> None:
    """The planner searches the binlog before the start and passes the result to the ranges."""
    log = LogBuilder().format_description().query(CREATE)
    xa(log.query("CREATE TABLE other (a INT)"), b"a", "other")
    log.rotate("mysql-bin.000002").write(tmp_path)
    log = LogBuilder("mysql-bin.000002").format_description()
    start = f"mysql-bin.000002:{log.pos}"
    log.begin().rows(1, "t", 2).xid().query("XA COMMIT X'61',X'',1")
    log.begin().rows(1, "t", 3).xid().write(tmp_path)
    for target in (1, "1g"):
        _, rows = cut(tmp_path, target, tables="d.t", startingOffset=start)
        assert values(rows) == ['{"a":2}', '{"a":3}']
    for target in (1, "1g"):
        _, rows = cut(tmp_path, target, tables="d.*", startingOffset=start)
        assert values(rows) == ['{"a":2}', '{"a":1}', '{"a":3}']


def test_no_range_is_planned_for_a_log_end_without_captured_changes(tmp_path: Path) -> None:
    log = LogBuilder().format_description().query(CREATE).begin().rows(1, "t", 1).xid()
    last = log.pos
    for n in range(100):
        log.begin().rows(2, "other", n).xid()
    ranges, rows = cut(log.write(tmp_path), 100, tables="d.t")
    assert values(rows) == ['{"a":1}']
    assert [part.end.pos for part in ranges] == [last]
    assert cut(tmp_path, 100, tables="d.nothing*") == ([], [])


def test_files_of_which_one_name_ends_in_its_place_are_all_read(tmp_path: Path) -> None:
    for n, name in enumerate(("log.1", "log.last")):
        log = LogBuilder(name).format_description()
        if n == 0:
            log.query(CREATE)
        log.begin().rows(1, "t", n).xid().rotate(f"mysql-bin.{n + 43:06}").write(tmp_path)
    for target in (1, "1g"):
        _, rows = cut(tmp_path, target, tables="d.t")
        assert values(rows) == ['{"a":0}', '{"a":1}']


def test_renamed_files_are_read_and_numbered_in_list_order(tmp_path: Path) -> None:
    """No ROTATE names one of these renamed copies, so they are numbered by their order."""
    for n, name in enumerate(("one", "two", "two.10")):
        log = LogBuilder(name).format_description()
        if n == 0:
            log.query(CREATE)
        log.begin().rows(1, "t", n).xid().rotate(f"mysql-bin.{n + 2:06}").write(tmp_path)
    for target in (1, "1g"):
        _, rows = cut(tmp_path, target, tables="d.t")
        assert values(rows) == ['{"a":0}', '{"a":1}', '{"a":2}']
        assert [row["seq"]["file"] for row in rows] == [1, 2, 3]


def test_executable_comments_are_evaluated_for_the_server_version_of_each_file(
    tmp_path: Path,
) -> None:
    """Version 5.5.40, of the first file, does not execute a /*!50701 comment; 5.7.41 does."""
    log = LogBuilder(checksum=False).format_description("5.5.40-log").query(CREATE)
    log.query("/*!50701 TRUNCATE TABLE t */").begin().rows(1, "t", 1).xid().write(tmp_path)
    log = LogBuilder("mysql-bin.000002").format_description("5.7.41-log").begin()
    log.rows(1, "t", 2).xid().query("/*!50701 TRUNCATE TABLE t */").write(tmp_path)
    for target in (1, "1g"):
        _, rows = cut(tmp_path, target, tables="d.t", operations="insert,truncate")
        assert [row["op"] for row in rows] == ["c", "c", "t"]
        start = f"{log.file}:4"
        _, rows = cut(
            tmp_path, target, tables="d.t", operations="insert,truncate", startingOffset=start
        )
        assert [row["op"] for row in rows] == ["c", "t"]


def test_end_inside_a_transaction_raises_invalid_position_error(tmp_path: Path) -> None:
    log = LogBuilder().format_description().query(CREATE).begin().rows(1, "t", 1)
    inside = log.pos
    path = log.rows(1, "t", 2).xid().write(tmp_path)
    with pytest.raises(InvalidPositionError, match="the end is inside a transaction"):
        cut(path, "1g", tables="d.t", endingOffset=f"{log.file}:{inside}")


def test_damaged_event_of_a_table_not_captured_raises_an_error(tmp_path: Path) -> None:
    log = LogBuilder().format_description().query(CREATE).begin().rows(2, "other", 1)
    path = log.xid().write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    with pytest.raises(ChecksumError, match="CRC32"):
        cut(path, "1g", tables="d.t")
    # An event longer than the rest of the file is not its end: later events would be lost.
    at = whole.rindex(b"other") - 30
    for pos in range(at, len(whole) - 40):
        if whole[pos + 4] == EventType.WRITE_ROWS_EVENT:
            break
    path.write_bytes(whole[: pos + 11] + b"\x01" + whole[pos + 12 :])
    with pytest.raises(MalformedEventError, match="cut short or damaged"):
        cut(path, "1g", tables="d.t")


# --- files that end inside an event or a transaction


TAIL = 5
XID = LogBuilder().xid().raws[0]


def log_of_transactions(name: str = "mysql-bin.000001", first: int = 0) -> tuple[LogBuilder, int]:
    """Return a log, and the position at which its last transaction begins."""
    log = LogBuilder(name).format_description()
    if not first:
        log.query(CREATE)
    for n in range(first, first + TAIL):
        begin = log.pos
        log.begin(gtid=n + 1).rows(1, "t", n).rows(2, "other", n).xid()
    return log, begin


@pytest.mark.parametrize("target", [1, "1g"])
def test_file_cut_anywhere_gives_the_rows_up_to_its_last_boundary(
    target: int | str, short_pieces: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, begin = log_of_transactions()
    path = log.write(tmp_path)
    data = path.read_bytes()
    for length in range(begin, len(data) + 1):
        path.write_bytes(data[:length])
        is_whole = length in (begin, len(data))
        if not is_whole and length % 7 and length < len(data) - 1:
            continue
        caplog.clear()
        _, rows = cut(path, target, tables="d.t")
        count = TAIL if length == len(data) else TAIL - 1
        assert values(rows) == [f'{{"a":{n}}}' for n in range(count)]
        messages = [record.message for record in caplog.records]
        if is_whole:
            assert messages == []
        else:
            (message,) = messages
            assert f"{log.file} ends inside " in message
            assert message.endswith(f"at the last boundary before it, {log.file}:{begin}")


def test_unfinished_long_transaction_gives_no_rows(
    short_pieces: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = LogBuilder().format_description().query(CREATE).begin().rows(1, "t", 0).xid()
    boundary = log.pos
    log.begin()
    for n in range(100):
        log.rows(1, "t", n)
    ranges, rows = cut(log.write(tmp_path), 1, tables="d.t")
    assert values(rows) == ['{"a":0}']
    assert max(part.end.pos for part in ranges) == boundary
    assert f"before it, {log.file}:{boundary}" in caplog.text


def test_end_position_after_the_last_boundary_of_a_cut_file_is_rejected(tmp_path: Path) -> None:
    log, begin = log_of_transactions()
    path = log.write(tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    given = f"{log.file}:{begin}"
    assert len(cut(path, "1g", tables="d.t", endingOffset=given)[1]) == TAIL - 1
    with pytest.raises(InvalidPositionError):
        cut(path, "1g", tables="d.t", endingOffset=f"{log.file}:{path.stat().st_size}")
    # A time after the last event means the same as latest.
    assert len(cut(path, "1g", tables="d.t", endingOffset="2100-01-01")[1]) == TAIL - 1


@pytest.mark.parametrize("less", [7, len(XID)])
def test_cut_file_followed_by_another_file_is_rejected(less: int, tmp_path: Path) -> None:
    """The file ends inside an event, or between two events of a transaction."""
    log, _ = log_of_transactions()
    path = log.write(tmp_path)
    path.write_bytes(path.read_bytes()[:-less])
    second, _ = log_of_transactions("mysql-bin.000002", TAIL)
    second.write(tmp_path)
    for tables in ("d.t", "d.nothing*"):
        with pytest.raises(MalformedEventError, match=r"cut short|inside a transaction"):
            cut(tmp_path, "1g", tables=tables)
    # Also if the next file has no events.
    second.raws = []
    second.write(tmp_path)
    with pytest.raises((MalformedEventError, InvalidPositionError)):
        cut(tmp_path, "1g", tables="d.t")


# --- executors read the planned rows


def planned(folder: Path, names: Iterable[str]) -> MySQLBinlogReader:
    """Return a reader of a folder of one-row files; the first one has the CREATE TABLE."""
    for n, name in enumerate(names):
        log = LogBuilder(name).format_description()
        if n == 0:
            log.query(CREATE)
        log.begin().rows(1, "t", n).xid().write(folder)
    given = {"path": str(folder), "tables": "d.t", "payload": "json", "targetPartitionBytes": "1"}
    return MySQLBinlogReader(parse_options(given), output_schema(StringType()))


def ranges_of(reader: MySQLBinlogReader) -> list[RangePartition]:
    """Return the planned ranges, pickled and unpickled as for executors."""
    ranges: list[RangePartition] = pickle.loads(pickle.dumps(reader.partitions()))
    return ranges


def test_file_added_after_planning_does_not_change_the_planned_rows(tmp_path: Path) -> None:
    """Files without numbers are numbered by their order: an earlier file would shift all."""
    reader = planned(tmp_path, ["b.binlog", "c.binlog", "d.binlog"])
    ranges = ranges_of(reader)
    log = LogBuilder("a.binlog").format_description().begin().rows(1, "t", 99).xid()
    log.write(tmp_path)
    rows = [row for part in ranges for batch in reader.read(part) for row in batch.to_pylist()]
    assert values(rows) == ['{"a":0}', '{"a":1}', '{"a":2}']
    assert [row["source"]["file"] for row in rows] == ["b.binlog", "c.binlog", "d.binlog"]


def test_range_of_a_large_folder_carries_at_most_three_file_paths(tmp_path: Path) -> None:
    ranges = ranges_of(planned(tmp_path, [f"{n}.binlog" for n in range(30)]))
    assert len(ranges) > 20
    assert max(len(part.log.paths) for part in ranges if part.log is not None) <= 3
    assert {path for part in ranges if part.log is not None for path in part.log.paths} == {
        str(tmp_path / f"{n}.binlog") for n in range(30)
    }


def test_file_deleted_after_planning_raises_a_one_line_option_error(tmp_path: Path) -> None:
    reader = planned(tmp_path, ["b.binlog", "c.binlog"])
    last = ranges_of(reader)[-1]
    gone = tmp_path / "c.binlog"
    gone.unlink()
    with pytest.raises(OptionError) as caught:
        list(reader.read(last))
    assert str(caught.value).startswith(f"option path: {str(gone)!r} can't be read: No such file")
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None
