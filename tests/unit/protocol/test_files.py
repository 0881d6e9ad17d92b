"""Binlog files, read as raw events."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder
from helpers.parity.decoding import raws_in
from helpers.snapshots.bounded_memory import bounded_memory
from pyspark_mysqlbinlog.errors import FormatError, MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC, FileStream
from pyspark_mysqlbinlog.protocol.events import EventType


def _write_gzip(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data))


@pytest.fixture
def log() -> LogBuilder:
    return LogBuilder().format_description().begin().rows(1, "t", 1, 2).xid()


def test_binlog_file_is_read_completely(log: LogBuilder, tmp_path: Path) -> None:
    assert raws_in(log.write(tmp_path)) == log.raws


def test_binlog_file_cut_inside_an_event_is_rejected_with_its_position(
    log: LogBuilder, tmp_path: Path
) -> None:
    """A file cut at the end of an event is a valid, shorter log."""
    path = log.write(tmp_path)
    data = path.read_bytes()
    starts = [4]
    for raw in log.raws:
        starts.append(starts[-1] + len(raw))
    for length in range(4, len(data)):
        path.write_bytes(data[:length])
        if length in starts:
            assert raws_in(path) == log.raws[: starts.index(length)]
            continue
        with pytest.raises(MalformedEventError, match="cut short") as caught:
            raws_in(path)
        assert caught.value.file == path.name
        assert caught.value.position == max(start for start in starts if start < length)


def test_zeros_after_last_event_are_rejected_with_their_position(
    log: LogBuilder, tmp_path: Path
) -> None:
    path = log.write(tmp_path)
    path.write_bytes(path.read_bytes() + bytes(19))
    with pytest.raises(MalformedEventError, match="event length of 0") as caught:
        raws_in(path)
    assert caught.value.position == log.pos


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"", FormatError, "begins with 0x, expected 0xfe62696e"),
        (b"\xfebi", FormatError, "not a binlog"),
        (b"PK\x03\x04" + bytes(50), FormatError, "begins with 0x504b0304"),
        (b"\xfdbin" + bytes(512), UnsupportedEventError, "encrypted"),
    ],
)
def test_file_that_is_not_a_plain_binlog_is_rejected(
    data: bytes, error: type[FormatError], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.000001"
    path.write_bytes(data)
    with pytest.raises(error, match=words) as caught:
        raws_in(path)
    assert caught.value.file == "x.000001"


@pytest.mark.parametrize("open_as", [Path.write_bytes, _write_gzip])
def test_event_longer_than_its_file_is_rejected_in_bounded_memory(
    open_as: Callable[[Path, bytes], object], tmp_path: Path
) -> None:
    """The event's length is 4 GiB - 1; the file is plain or gzip-compressed."""
    header = bytearray(LogBuilder().format_description().raws[0][:19])
    header[9:13] = b"\xff\xff\xff\xff"
    path = tmp_path / "mysql-bin.000001"
    open_as(path, MAGIC + bytes(header) + bytes(1 << 20))
    with bounded_memory(512 << 20), pytest.raises(MalformedEventError, match="4294967295 bytes"):
        raws_in(path)


def test_file_with_only_the_magic_has_no_events(tmp_path: Path) -> None:
    path = tmp_path / "x.000001"
    path.write_bytes(MAGIC)
    assert raws_in(path) == []


def test_file_stream_reads_from_any_event_to_the_end(log: LogBuilder, tmp_path: Path) -> None:
    with FileStream(log.write(tmp_path)) as stream:
        pos = 4
        for at, raw in enumerate(log.raws):
            stream.seek(pos)
            assert list(iter(stream.next_event, None)) == log.raws[at:]
            pos += len(raw)
        stream.seek(pos)
        assert stream.next_event() is None


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        (EventType.MARIADB_START_ENCRYPTION_EVENT, "10.11.14-MariaDB-log"),
        (159, "5.7.44-48-log"),  # Percona Server's START_5_7_ENCRYPTION_EVENT
    ],
)
def test_start_of_encryption_event_raises_unsupported_event_error(
    kind: int, version: str, tmp_path: Path
) -> None:
    # Scheme, key version and nonce; the encrypted events after it are random bytes here.
    log = LogBuilder().format_description(version)
    start = log.pos
    path = log.add(kind, bytes([1, 1, 0, 0, 0]) + bytes(range(12))).write(tmp_path)
    path.write_bytes(path.read_bytes() + random.Random(1).randbytes(500))
    with pytest.raises(UnsupportedEventError, match="read it from the server") as caught:
        raws_in(path)
    assert (caught.value.file, caught.value.position) == (path.name, start)
