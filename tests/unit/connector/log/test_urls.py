"""Files at fsspec URLs: the same rows as on disk, reads in parts, and streams."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zstandard
from pyspark.sql.types import StringType

from helpers.logs.events import LogBuilder
from helpers.streams.file_streams import FileStream, values
from pyspark_mysqlbinlog.connector.log.files import followed_files
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import BinlogReplacedError, OptionError
from pyspark_mysqlbinlog.protocol.events import EventType

CREATE = "CREATE TABLE t (a INT)"


def log(number: int, *made: int, ends: bool = True) -> bytes:
    """Return a file with one transaction per value; file 1 also has the CREATE TABLE."""
    file = LogBuilder(f"b.{number:06}").format_description()
    if number == 1:
        file.query(CREATE)
    for value in made:
        file.begin().rows(1, "t", value)
        file.add(EventType.XID_EVENT, value.to_bytes(8, "little"))
    if ends:
        file.rotate(f"b.{number + 1:06}")
    return b"\xfebin" + b"".join(file.raws)


@pytest.fixture
def bucket() -> Iterator[Any]:
    """Yield an in-memory file system with an empty folder."""
    found = fsspec.filesystem("memory")
    found.makedirs("/logs", exist_ok=True)
    yield found
    found.rm("/logs", recursive=True)


def read(path: str, **more: str) -> list[int]:
    options = parse_options({"path": path, "tables": "d.t", "payload": "json"} | more)
    reader = MySQLBinlogReader(options, output_schema(StringType()))
    return values(
        [
            row
            for part in reader.partitions()
            for batch in reader.read(part)
            for row in batch.to_pylist()
        ]
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory://logs", [1, 2, 3, 4]),
        ("memory://logs/", [1, 2, 3, 4]),
        ("memory://logs/b.0*", [1, 2, 3, 4]),
        ("memory://logs/b.000001", [1, 2]),
    ],
)
def test_url_of_a_folder_glob_or_file_is_read(bucket: Any, path: str, expected: list[int]) -> None:
    bucket.pipe("/logs/b.000001", log(1, 1, 2))
    bucket.pipe("/logs/b.000002.gz", gzip.compress(log(2, 3)))
    bucket.pipe("/logs/b.000003.zst", zstandard.compress(log(3, 4, ends=False)))
    bucket.pipe("/logs/b.index", b"./b.000001\n")
    assert read(path) == expected


def test_file_url_reads_local_files(tmp_path: Path) -> None:
    (tmp_path / "b.000001").write_bytes(log(1, 1, 2))
    assert read(f"file://{tmp_path}") == [1, 2]


def test_url_without_binlog_files_is_rejected(bucket: Any) -> None:
    with pytest.raises(OptionError, match="path with no file at it"):
        read("memory://nowhere/b.*")
    with pytest.raises(OptionError, match="folder without binlog files"):
        read("memory://logs")


def test_url_with_unknown_protocol_is_rejected() -> None:
    with pytest.raises(OptionError, match="can't be read by fsspec"):
        read("nonsense://bucket/b.000001")


def test_url_without_fsspec_is_rejected_but_local_paths_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(OptionError, match="needs fsspec: install the extra"):
        read("s3://bucket/b.000001")
    (tmp_path / "b.000001").write_bytes(log(1, 1))
    assert read(str(tmp_path)) == [1]


def test_read_from_a_late_position_fetches_only_part_of_the_object(tmp_path: Path) -> None:
    from helpers.mirrors.parts_store import PartsStore

    fsspec.register_implementation("parts", PartsStore, clobber=True)
    system = fsspec.filesystem("parts")
    path = tmp_path / "b.000001"
    path.write_bytes(log(1, *range(100_000), ends=False))
    size = path.stat().st_size
    assert size > 12 << 20
    found = FileLog.find(f"parts://{tmp_path}")
    end = found.end()
    start = end._replace(pos=len(log(1, *range(99_990), ends=False)))
    system.fetched = 0
    assert sum(event.type == EventType.XID_EVENT for event in found.events(start)) == 10
    assert 0 < system.fetched < 4 << 20


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileStream]:
    monkeypatch.setattr(followed_files, "_REMOTE_POLL_SECONDS", 0.01)
    found = FileStream.of("memory://logs")
    yield found
    found.stop()


def test_stream_follows_new_and_grown_objects_of_a_store(bucket: Any, stream: FileStream) -> None:
    bucket.pipe("/logs/b.000001.gz", gzip.compress(log(1, 1)))
    bucket.pipe("/logs/b.000002", log(2, 2, ends=False))
    stream.begin().wait_for([1, 2])
    bucket.pipe("/logs/b.000002", log(2, 2, 3))
    bucket.pipe("/logs/b.000003", log(3, 4))
    stream.wait_for([1, 2, 3, 4])
    assert stream.restart().available() == []
    stream.replay()


def test_replaced_object_raises_binlog_replaced_error(bucket: Any, stream: FileStream) -> None:
    bucket.pipe("/logs/b.000001", log(1, 1, 2, ends=False))
    stream.begin().wait_for([1, 2])
    bucket.pipe("/logs/b.000001", log(1, 1, 5, 6, ends=False))
    with pytest.raises(BinlogReplacedError):
        stream.wait_until(lambda: False, "the stream fails")
