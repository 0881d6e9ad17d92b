"""The check that files at a path follow one another, which every read makes."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql.types import StringType

from helpers.logs.events import TIMESTAMP, LogBuilder, raw_event
from helpers.parity.decoding import CAPTURED
from pyspark_mysqlbinlog.connector.log.files.file_chain import FileChain
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import BinlogGapError
from pyspark_mysqlbinlog.protocol.binlog_files.locations import located
from pyspark_mysqlbinlog.protocol.events import EventType

CREATE = "CREATE TABLE t (a INT)"


@dataclass(frozen=True)
class File:
    """A file to write.

    Attributes
    ----------
    rotate : the name in the ROTATE at its end; None without a ROTATE.
    begun, ended : times of its beginning and end, in seconds after TIMESTAMP.
    """

    name: str
    rotate: str | None = None
    server_id: int = 5
    begun: int = 0
    ended: int = 0
    stops: bool = False
    checksum: bool = True

    def write(self, folder: Path, n: int) -> None:
        log = LogBuilder(self.name, checksum=self.checksum, timestamp=TIMESTAMP + self.begun)
        log.format_description()
        if n == 0:
            log.query(CREATE)
        log.begin().rows(1, "t", n).xid()
        log.timestamp = TIMESTAMP + self.ended
        if self.stops:
            log.add(EventType.STOP_EVENT, b"")
        if self.rotate is not None:
            log.rotate(self.rotate)
        log.raws = [with_server_id(raw, self.server_id, checksum=self.checksum) for raw in log.raws]
        log.write(folder)


def with_server_id(raw: bytes, server_id: int, *, checksum: bool) -> bytes:
    has_checksum = checksum or raw[4] == EventType.FORMAT_DESCRIPTION_EVENT
    return raw_event(
        raw[4],
        raw[19 : len(raw) - 4 * has_checksum],
        log_pos=int.from_bytes(raw[13:17], "little"),
        checksum=has_checksum,
        timestamp=int.from_bytes(raw[:4], "little"),
        server_id=server_id,
    )


def numbered(n: int, target: int | None, base: str = "b", to: str = "b") -> File:
    return File(f"{base}.{n:06}", None if target is None else f"{to}.{target:06}")


def values(folder: Path | str, **options: str) -> list[str]:
    parsed = parse_options({"path": str(folder), "tables": "d.t", "payload": "json"} | options)
    reader = MySQLBinlogReader(parsed, output_schema(StringType()))
    return [
        row["after"]
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def check_one_by_one(folder: Path) -> None:
    chain = FileChain()
    for before, after in pairwise(FileLog.find(str(folder)).paths):
        chain.check(located(before), located(after))


# Files of one log, in its order.
CHAINS: list[tuple[str, list[File]]] = [
    ("rotated", [numbered(2, 3), numbered(3, 4), numbered(4, None)]),
    ("all rotated", [numbered(2, 3), numbered(3, 4)]),
    ("no checksums", [File("b.000002", "b.000003", checksum=False), numbered(3, None)]),
    ("over a million", [numbered(999_999, 1_000_000), numbered(1_000_000, 1_000_001)]),
    ("a number that the server left out", [numbered(2, 5), numbered(5, None)]),
    ("stopped", [File("b.000002", stops=True), numbered(3, 4)]),
    ("crashed", [numbered(2, None), numbered(3, 4)]),
    ("another base for all", [numbered(2, 3, "copy"), numbered(3, 4, "copy")]),
    ("another base, and not rotated", [numbered(2, 3, "copy"), numbered(3, None, "copy")]),
    ("other names", [File("x.1.log", "b.000003"), File("x.2.log", "b.000004"), File("x.10.log")]),
    ("other names, one of them crashed", [File("1st", "b.3"), File("2nd"), File("3rd", "b.5")]),
    ("other names that tell nothing", [File("1st"), File("2nd"), File("3rd")]),
    ("a new name for the next only", [numbered(2, 3), File("c.log", "b.000004")]),
    (
        "the id was changed while the server ran",
        [numbered(2, None), File("b.000003", "b.000004"), numbered(4, None)],
    ),
    ("the clock was set back", [File("b.1", "b.2", ended=-9999), File("b.2", begun=-9999)]),
]


@pytest.mark.parametrize("files", [case[1] for case in CHAINS], ids=[case[0] for case in CHAINS])
def test_consecutive_files_are_read_as_one_log(files: Sequence[File], tmp_path: Path) -> None:
    for n, file in enumerate(files):
        file.write(tmp_path, n)
    FileLog.find(str(tmp_path)).check_chain()
    check_one_by_one(tmp_path)
    assert values(tmp_path) == [f'{{"a":{n}}}' for n in range(len(files))]


# Files that are not one log, and the part of the error about missing and found files.
GAPS: list[tuple[str, list[File], str]] = [
    (
        "one is missing",
        [numbered(2, 3), numbered(5, 6)],
        "b.000002 ends with a ROTATE to b.000003, which is missing at the path; found b.000005 as",
    ),
    (
        "renamed",
        [numbered(1, 3), numbered(2, 6)],
        "b.000001 ends with a ROTATE to b.000003, which is missing at the path; found b.000002 as",
    ),
    (
        "renamed alike",
        [numbered(1, 3), numbered(2, 4)],
        "b.000001 ends with a ROTATE to b.000003, which is missing at the path; found b.000002 as",
    ),
    (
        "renamed, and the last still written",
        [numbered(1, 3), numbered(2, None)],
        "b.000001 ends with a ROTATE to b.000003, which is missing",
    ),
    (
        "the last one renamed into the gap",
        [numbered(2, 3), numbered(3, 6)],
        "expected b.000003 to end with a ROTATE to number 4, found b.000006",
    ),
    (
        "no checksums",
        [File("b.000002", "b.000003", checksum=False), numbered(5, None)],
        "a ROTATE to b.000003, which is missing",
    ),
    (
        "after a crash",
        [numbered(2, None), numbered(4, None)],
        "so only b.000003 can follow; found b.000004",
    ),
    (
        "after a stop",
        [File("b.2", stops=True), File("b.4")],
        (
            "b.2 ends without a ROTATE (its server stopped or crashed there, or the file was copied"
            " while it was written), so only b.3 can follow; found b.4"
        ),
    ),
    ("another base", [numbered(2, 3), numbered(3, 4, "c")], "ROTATE to b.000003, which is missing"),
    (
        "another base, not rotated",
        [numbered(2, None), numbered(3, None, "c")],
        "only b.000003 can follow; found c.000003",
    ),
    (
        "two logs with the same numbers",
        [numbered(2, 3), numbered(2, 3, "c", "c"), numbered(3, 4)],
        "b.000003 ends with a ROTATE to b.000004, which is missing at the path; found c.000002",
    ),
    (
        "two logs under one base",
        [numbered(2, 3, "x"), numbered(3, 4, "x", "c")],
        "x.000002 ends with a ROTATE to b.000003",
    ),
    (
        "other names",
        [File("x.log", "b.000003"), File("y.log", "b.000005")],
        (
            "x.log ends with a ROTATE to b.000003; found y.log as the next file, which was"
            " b.000004 by its own ROTATE"
        ),
    ),
    (
        "other names, one of them crashed",
        [File("x.log", "b.000003"), File("y.log"), File("z.log", "b.000006")],
        "y.log ends without a ROTATE, so only b.000004 can follow; found z.log",
    ),
    (
        "other names that do not sort",
        [File("new", "b.000004"), File("old", "b.000003")],
        "their names do not sort as the server's did",
    ),
    (
        "two servers",
        [numbered(2, 3), File("b.000003", "b.000004", server_id=6)],
        "b.000002 was written by the server with server_id 5, and b.000003 by 6",
    ),
    (
        "two servers, not rotated",
        [numbered(2, None), File("b.000003", server_id=6)],
        "server_id 5, and b.000003 by 6",
    ),
    (
        "two servers with one id",
        [numbered(2, 3), File("b.000003", "b.000004", begun=3600, ended=3600)],
        "expected b.000003 to begin when b.000002 ends",
    ),
]


@pytest.mark.parametrize(
    ("files", "words"), [case[1:] for case in GAPS], ids=[case[0] for case in GAPS]
)
def test_files_that_do_not_follow_each_other_raise_binlog_gap_error(
    files: Sequence[File], words: str, tmp_path: Path
) -> None:
    for n, file in enumerate(files):
        file.write(tmp_path, n)
    with pytest.raises(BinlogGapError) as caught:
        FileLog.find(str(tmp_path)).check_chain()
    assert words in str(caught.value)
    with pytest.raises(BinlogGapError):
        check_one_by_one(tmp_path)
    with pytest.raises(BinlogGapError):
        values(tmp_path)


def symlink(folder: Path, source: str, name: str) -> None:
    (folder / name).symlink_to(folder / source)


def copy(folder: Path, source: str, name: str) -> None:
    shutil.copyfile(folder / source, folder / name)


def hard_link(folder: Path, source: str, name: str) -> None:
    os.link(folder / source, folder / name)


@pytest.mark.parametrize("again", [symlink, copy, hard_link])
@pytest.mark.parametrize("names", [("b.000001", "b.000002"), ("x.log", "y.log")])
@pytest.mark.parametrize("is_rotated", [True, False])
def test_file_present_twice_raises_binlog_gap_error(
    again: Callable[[Path, str, str], None],
    names: tuple[str, str],
    is_rotated: bool,
    tmp_path: Path,
) -> None:
    File(names[0], "b.000002" if is_rotated else None).write(tmp_path, 0)
    again(tmp_path, *names)
    with pytest.raises(BinlogGapError, match=f"{names[0]} and {names[1]} have the same bytes"):
        values(tmp_path)


def test_files_without_events_still_reveal_a_missing_number(tmp_path: Path) -> None:
    """A server that crashes before it writes the first event leaves such a file."""
    for name in ("b.000001", "b.000002"):
        (tmp_path / name).write_bytes(b"\xfebin")
    FileLog.find(str(tmp_path)).check_chain()
    (tmp_path / "b.000004").write_bytes(b"\xfebin")
    with pytest.raises(BinlogGapError, match=r"only b\.000003 can follow; found b\.000004"):
        FileLog.find(str(tmp_path)).check_chain()


@pytest.mark.parametrize("scenario", ["rotations", "gtid_no_checksum"])
def test_recorded_files_pass_the_chain_check(scenario: str) -> None:
    FileLog.find(str(CAPTURED / f"{scenario}.*.binlog")).check_chain()


def captured(folder: Path, names: dict[int, str]) -> Path:
    """Copy some of the five files, once mysql-bin.000002 to .000006, under other names."""
    for n, name in names.items():
        shutil.copyfile(CAPTURED / f"rotations.{n:03}.binlog", folder / name)
    return folder


ACCIDENTS: list[tuple[str, dict[int, str]]] = [
    ("missing", {1: "mysql-bin.000002", 4: "mysql-bin.000005"}),
    ("renamed", {2: "mysql-bin.000001", 4: "mysql-bin.000002"}),
    ("renamed, in their order", {1: "mysql-bin.000001", 2: "mysql-bin.000002"}),
    ("missing under other names", {1: "a.binlog", 3: "b.binlog"}),
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"payload": "variant"},
        {"payload": "struct"},
        {"tables": "*.*"},
        {"onUnknownSchema": "positional"},
        {"startingOffset": "earliest"},
        {"startingOffset": "latest"},
        {"startingOffset": "FILE:4"},
        {"startingOffset": "2020-01-01"},
        {"startingOffset": "2100-01-01"},
        {"endingOffset": "FILE:4"},
        {"endingOffset": "2100-01-01"},
        {"operations": "ddl"},
    ],
    ids=str,
)
@pytest.mark.parametrize("accident", ACCIDENTS, ids=[case[0] for case in ACCIDENTS])
def test_every_kind_of_read_rejects_files_with_a_gap(
    accident: tuple[str, dict[int, str]], options: dict[str, str], tmp_path: Path
) -> None:
    _, names = accident
    folder = captured(tmp_path, names)
    last = [*names.values()][-1]
    given = {"path": str(folder), "tables": "fx_rotations.t", "payload": "json"} | {
        name: value.replace("FILE", last) for name, value in options.items()
    }
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    with pytest.raises(BinlogGapError):
        reader.partitions()
    if options.get("payload") == "struct":
        with pytest.raises(BinlogGapError):
            MySQLBinlogDataSource(given).schema()


def test_schema_with_schema_ddl_rejects_files_with_a_gap(tmp_path: Path) -> None:
    folder = captured(tmp_path, {2: "mysql-bin.000003", 4: "mysql-bin.000005"})
    ddl = tmp_path / "schema.sql"
    ddl.write_text("CREATE TABLE fx_rotations.t (a INT)", encoding="utf-8")
    given = {"path": str(folder), "tables": "fx_rotations.t", "schemaDdl": str(ddl)}
    with pytest.raises(BinlogGapError):
        MySQLBinlogDataSource(given).schema()


@pytest.mark.usefixtures("implementation")
def test_executor_with_files_other_than_planned_raises_binlog_gap_error(tmp_path: Path) -> None:
    """The range was planned before a file was replaced."""
    for n in (1, 2, 3):
        numbered(n, n + 1).write(tmp_path, n - 1)
    given = {"path": str(tmp_path), "tables": "d.t", "payload": "json"}
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    (part,) = pickle.loads(pickle.dumps(reader.partitions()))
    File("b.000002", "b.000007").write(tmp_path, 1)
    with pytest.raises(BinlogGapError, match=r"b\.000002 ends with a ROTATE to b\.000007"):
        list(reader.read(part))


def test_file_copied_while_written_logs_a_warning_if_another_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    numbered(1, None).write(tmp_path, 0)
    numbered(2, None).write(tmp_path, 1)
    path = tmp_path / "b.000001"
    assert values(tmp_path) == ['{"a":0}', '{"a":1}']
    assert not caplog.records
    # LOG_EVENT_BINLOG_IN_USE_F, which the checksum does not cover.
    path.write_bytes(path.read_bytes()[:21] + b"\x01\x00" + path.read_bytes()[23:])
    with caplog.at_level(logging.WARNING):
        assert values(tmp_path) == ['{"a":0}', '{"a":1}']
    assert "b.000001 was copied while its server wrote it" in caplog.text
    assert "before it began b.000002" in caplog.text
    with pytest.raises(BinlogGapError, match=r"b\.000001 was copied while its server wrote it"):
        check_one_by_one(tmp_path)


def test_rotate_bytes_inside_another_event_are_not_taken_for_a_rotate(tmp_path: Path) -> None:
    log = LogBuilder("b.000001").format_description().query(CREATE).begin().rows(1, "t", 0).xid()
    inner = LogBuilder().rotate("b.000009").raws[0]
    log.add(EventType.ROWS_QUERY_LOG_EVENT, b"\x00" + inner).write(tmp_path)
    numbered(2, None).write(tmp_path, 1)
    FileLog.find(str(tmp_path)).check_chain()
