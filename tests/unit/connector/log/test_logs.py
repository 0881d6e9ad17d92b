"""Files on disk as a log: their selection, their order, and reads from any position."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from helpers.logs.events import LogBuilder, format_description_body, raw_event
from helpers.parity.decoding import CAPTURED, read_log
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import statement_events
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation
from pyspark_mysqlbinlog.errors import (
    FormatError,
    InvalidPositionError,
    MalformedEventError,
    OptionError,
)
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.events import HEADER, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

BINLOG = b"\xfebin"


def touch(folder: Path, *names: str, data: bytes = BINLOG) -> None:
    for name in names:
        (folder / name).write_bytes(data)


def names(log: FileLog) -> list[str]:
    return [Path(path).name for path in log.paths]


# (files, their order, their numbers)
ORDERS: list[tuple[list[str], list[str], list[int]]] = [
    (
        ["b.1000000", "b.000010", "b.999999", "b.000009"],
        ["b.000009", "b.000010", "b.999999", "b.1000000"],
        [9, 10, 999_999, 1_000_000],
    ),
    (["x.000002", "a.000003"], ["x.000002", "a.000003"], [2, 3]),
    # repeated or missing numbers: numbered in natural order, never by a number in a name
    (["a.1", "b.1", "a.2"], ["a.1", "a.2", "b.1"], [2, 3, 4]),
    (
        ["r.10.binlog", "r.9.binlog", "r.1.binlog"],
        ["r.1.binlog", "r.9.binlog", "r.10.binlog"],
        [1, 2, 3],
    ),
    (["b.000001", "copy"], ["b.000001", "copy"], [2, 3]),
    (["log10", "log2", "log"], ["log", "log2", "log10"], [1, 2, 3]),
    (["2b", "10a", "b"], ["2b", "10a", "b"], [1, 2, 3]),
]


@pytest.mark.parametrize(("files", "order", "numbers"), ORDERS)
def test_files_of_a_folder_are_ordered_by_number_or_natural_order(
    files: list[str], order: list[str], numbers: list[int], tmp_path: Path
) -> None:
    touch(tmp_path, *files)
    log = FileLog.find(str(tmp_path))
    assert names(log) == order
    assert list(log.numbers) == numbers
    assert log.begins() == [Position(n, 4, name) for n, name in zip(numbers, order, strict=True)]


def test_folder_lists_only_its_binlog_files(tmp_path: Path) -> None:
    touch(tmp_path, "b.000001", "b.000002")
    touch(tmp_path, "b.index", "README", data=b"./b.000001\n")
    touch(tmp_path, "empty", data=b"")
    (tmp_path / "b.000003").mkdir()
    assert names(FileLog.find(str(tmp_path))) == ["b.000001", "b.000002"]


def test_path_of_a_file_or_glob_finds_the_matching_files(tmp_path: Path) -> None:
    touch(tmp_path, "b.000001", "b.000002", "c.000003", "odd[1].000004")
    assert FileLog.find(str(tmp_path / "b.000002")) == FileLog((str(tmp_path / "b.000002"),), (2,))
    assert names(FileLog.find(str(tmp_path / "b.*"))) == ["b.000001", "b.000002"]
    assert names(FileLog.find(str(tmp_path / "?.00000[23]"))) == ["b.000002", "c.000003"]
    assert names(FileLog.find(str(tmp_path / "odd[1].000004"))) == ["odd[1].000004"]


def test_glob_skips_folders(tmp_path: Path) -> None:
    touch(tmp_path, "b.000001")
    (tmp_path / "b.000002").mkdir()
    assert names(FileLog.find(str(tmp_path / "b.*"))) == ["b.000001"]


@pytest.mark.parametrize("pattern", ["b.*", "b.0*", "*", ""])
def test_other_files_next_to_binlogs_are_skipped(pattern: str, tmp_path: Path) -> None:
    touch(tmp_path, "b.000001", "b.000002")
    touch(tmp_path, "b.index", "b.~rec~", "b.000001.idx", "aria_log.00000001", data=b"no binlog")
    # Its copy has just begun.
    touch(tmp_path, "b.000003", data=b"")
    assert names(FileLog.find(str(tmp_path / pattern))) == ["b.000001", "b.000002"]


@pytest.mark.parametrize("pattern", ["b.*", "*", ""])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_damaged_binlog_among_others_is_not_skipped(
    number: int, pattern: str, tmp_path: Path
) -> None:
    touch(tmp_path, *(f"b.{n:06}" for n in (1, 2, 3) if n != number))
    touch(tmp_path, f"b.{number:06}", data=b"damaged")
    log = FileLog.find(str(tmp_path / pattern))
    assert names(log) == ["b.000001", "b.000002", "b.000003"]
    with pytest.raises(FormatError, match="not a binlog"):
        list(log.events(log.begins()[0]))


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse such names")
@pytest.mark.parametrize("pattern", ["", "*", "b\udce9.000002"])
def test_file_name_that_is_not_utf_8_is_rejected(pattern: str, tmp_path: Path) -> None:
    touch(tmp_path, "b.000001", "b\udce9.000002")
    with pytest.raises(OptionError, match=r"file name 'b\\udce9\.000002' is not UTF-8; rename"):
        FileLog.find(str(tmp_path / pattern))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("none.000001", "path with no file at it"),
        ("none*", "path with no file at it"),
        ("folder", "folder without binlog files"),
        ("*/b.000001", "files of one name in several folders"),
    ],
)
def test_path_without_a_usable_log_is_rejected(pattern: str, words: str, tmp_path: Path) -> None:
    for folder in ("folder", "one", "two"):
        (tmp_path / folder).mkdir()
    touch(tmp_path / "one", "b.000001")
    touch(tmp_path / "two", "b.000001")
    with pytest.raises(OptionError, match=words):
        FileLog.find(str(tmp_path / pattern))


def test_events_of_several_files_are_read_in_order() -> None:
    log = FileLog.find(str(CAPTURED / "rotations.*.binlog"))
    expected = [
        event for n in range(1, 6) for event in read_log(CAPTURED / f"rotations.00{n}.binlog")
    ]
    assert list(log.events(log.begins()[0])) == expected
    assert log.end() == Position(5, expected[-1].end, "rotations.005.binlog")


def test_reading_from_any_event_gives_the_rest_of_the_log() -> None:
    """A read that starts inside a file does not repeat the file's first event."""
    log = FileLog.find(str(CAPTURED / "rotations.*.binlog"))
    everything = list(log.events(log.begins()[0]))
    for at, event in enumerate(everything):
        start = log.position(event.file, event.start)
        assert list(log.events(start)) == everything[at:]
        after = log.position(event.file, event.end)
        assert list(log.events(after)) == everything[at + 1 :]


def test_reading_from_inside_an_event_raises_an_error(tmp_path: Path) -> None:
    log = FileLog.find(str(CAPTURED / "transactions.001.binlog"))
    start = log.position("transactions.001.binlog", 1070)
    with pytest.raises((InvalidPositionError, MalformedEventError)) as caught:
        list(log.events(start))
    assert caught.value.file == "transactions.001.binlog"


def test_position_in_an_unknown_file_raises_invalid_position_error() -> None:
    log = FileLog.find(str(CAPTURED / "rotations.*.binlog"))
    with pytest.raises(InvalidPositionError, match=r"no file 'rotations\.006\.binlog'"):
        log.position("rotations.006.binlog", 4)


def test_file_that_is_not_a_binlog_raises_format_error_when_read(tmp_path: Path) -> None:
    touch(tmp_path, "b.index", data=b"./b.000001\n")
    log = FileLog.find(str(tmp_path / "b.index"))
    with pytest.raises(FormatError, match="this is not a binlog") as caught:
        list(log.events(log.begins()[0]))
    assert caught.value.file == "b.index"


def test_truncated_file_gives_its_whole_events_before_the_error(tmp_path: Path) -> None:
    whole = LogBuilder().format_description().begin().rows(1, "t", 1).xid()
    path = whole.write(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    log = FileLog.find(str(path))
    events = log.events(log.begins()[0])
    found = list(islice(events, 4))
    with pytest.raises(MalformedEventError, match="cut short") as caught:
        next(events)
    assert len(found) == 4
    assert (caught.value.file, caught.value.position) == (whole.file, found[-1].end)


def test_damaged_byte_raises_format_error_with_the_event_position(tmp_path: Path) -> None:
    path = tmp_path / "b.000001"
    shutil.copyfile(CAPTURED / "transactions.001.binlog", path)
    data = bytearray(path.read_bytes())
    data[1300] ^= 1
    path.write_bytes(data)
    log = FileLog.find(str(path))
    with pytest.raises(FormatError, match="CRC32") as caught:
        list(log.events(log.begins()[0]))
    assert (caught.value.file, caught.value.position) == ("b.000001", 1254)


class BigFile:
    """A stand-in for a server with one file of events of 1 GiB; it sends only their headers.

    With a real server, the test would write and read more than 4 GiB.
    """

    def __init__(self, file: str, count: int) -> None:
        self.asked: list[int] = []
        self._file = file
        self._count = count

    def dump(self, file: str, pos: int, *, blocking: bool) -> SimpleNamespace:
        assert file == self._file
        assert 0 <= pos < 1 << 32
        self.asked.append(pos)
        events = self._events(pos)
        return SimpleNamespace(
            checksum=ChecksumAlgorithm.OFF,
            next_event=lambda: next(events, None),
        )

    def _events(self, pos: int) -> Iterator[bytes]:
        body = format_description_body(algorithm=0)
        yield raw_event(EventType.FORMAT_DESCRIPTION_EVENT, body, log_pos=0)
        end = 4
        for _ in range(self._count):
            start, end = end, end + (1 << 30)
            if start >= pos:
                yield Huge(HEADER.pack(0, EventType.XID_EVENT, 1, 1 << 30, end & 0xFFFFFFFF, 0))


class Huge(bytes):
    """An event header whose length is that of the whole event."""

    def __len__(self) -> int:
        return 1 << 30


@pytest.mark.parametrize("n", range(8))
def test_dump_start_beyond_4_gib_skips_earlier_events(n: int) -> None:
    """A dump request cannot contain such a position: it starts at 4, and events are skipped."""
    start = Position.of("b.000001", 4 + (n << 30))
    server = BigFile("b.000001", 8)
    events = Dump(cast(ReplicaClient, server), start, None, blocking=False)
    assert [event.start for event in events] == [4 + (k << 30) for k in range(n, 8)]
    assert server.asked == [start.pos if n < 4 else 4]


def says_something(event: Event) -> bool:
    """Return whether a scan for statements must return this event."""
    if event.type == EventType.QUERY_EVENT:
        return Query.parse(event.body).sql not in {"BEGIN", "COMMIT"}
    return event.type in {EventType.FORMAT_DESCRIPTION_EVENT, EventType.ROTATE_EVENT}


@pytest.mark.parametrize("name", ["ddl_history", "transactions", "rotations", "gtid_no_checksum"])
def test_statement_scan_keeps_every_statement_rotate_and_format_event(
    name: str, implementation: Implementation
) -> None:
    log = FileLog.find(str(CAPTURED / f"{name}.*.binlog"))
    begin = log.begins()[0]
    everything = list(log.events(begin))
    expected = [event for event in everything if says_something(event)]
    found = list(statement_events(log, begin))
    assert [event for event in found if says_something(event)] == expected
    assert (len(found) < len(everything)) == (implementation == "c")
    # The scan must not skip the first event at or after the requested end.
    for event in everything[:: len(everything) // 9]:
        end = log.position(event.file, event.start)
        following = [each for each in everything if log.position(each.file, each.start) >= end]
        for each in statement_events(log, begin, end):
            if log.position(each.file, each.start) >= end:
                assert each == following[0]
                break
