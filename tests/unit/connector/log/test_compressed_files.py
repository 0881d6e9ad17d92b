"""Binlog files that are compressed as a whole give the rows of the plain files."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from helpers.logs.events import LogBuilder
from helpers.logs.later_logs import read
from helpers.parity.decoding import CAPTURED
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    FormatError,
    InvalidPositionError,
    MalformedEventError,
    MySQLBinlogError,
    OptionError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC, FileStream, file_ends

pytestmark = pytest.mark.usefixtures("implementation")


def zstd(data: bytes) -> bytes:
    compressed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return compressed


def in_members(data: bytes) -> bytes:
    """Return the data as two concatenated gzip members."""
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


def in_frames(data: bytes) -> bytes:
    half = len(data) // 2
    return zstd(data[:half]) + zstd(data[half:])


KINDS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstd,
    ".GZ": in_members,
    ".zstd": in_frames,
    "": gzip.compress,
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a folder of three binlog files."""
    folder = tmp_path / "plain"
    folder.mkdir()
    for n in range(1, 4):
        built = LogBuilder(f"mysql-bin.{n:06}").format_description()
        if n == 1:
            built.query("CREATE TABLE t (a INT)")
        for m in range(20):
            built.begin().rows(1, "t", 100 * n + m).xid()
        if n < 3:
            built.rotate(f"mysql-bin.{n + 1:06}")
        built.write(folder)
    return folder


def compressed(plain: Path, suffix: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for path in plain.iterdir():
        (folder / f"{path.name}{suffix}").write_bytes(KINDS[suffix](path.read_bytes()))
    return folder


def rows_of(path: Path | str, **options: str) -> list[dict[str, Any]]:
    return read(str(path), "json", **({"tables": "d.t"} | options))


@pytest.mark.parametrize("suffix", KINDS)
def test_rows_of_compressed_files_equal_those_of_plain_files(
    suffix: str, log: Path, tmp_path: Path
) -> None:
    expected = rows_of(log)
    assert len(expected) == 60
    folder = compressed(log, suffix, tmp_path / "compressed")
    assert rows_of(folder) == expected
    assert rows_of(folder, targetPartitionBytes="1") == expected
    first = expected[25]["source"]
    start = f"{first['file']}:{first['tx_pos']}"
    assert rows_of(folder, startingOffset=start) == expected[25:]
    assert rows_of(folder, endingOffset=start) == expected[:25]


def test_compressed_recorded_log_gives_the_same_rows(tmp_path: Path) -> None:
    for path in CAPTURED.glob("rotations.*.binlog"):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    options = {"tables": "fx_rotations.*"}
    assert rows_of(tmp_path, **options) == rows_of(CAPTURED / "rotations.*.binlog", **options)


def test_plain_and_compressed_files_form_one_log_unless_a_file_has_both_forms(log: Path) -> None:
    expected = rows_of(log)
    second = log / "mysql-bin.000002"
    (log / "mysql-bin.000002.zst").write_bytes(zstd(second.read_bytes()))
    with pytest.raises(OptionError, match="or compressed and not"):
        rows_of(log)
    second.unlink()
    assert rows_of(log) == expected


def test_missing_compressed_file_raises_binlog_gap_error(log: Path, tmp_path: Path) -> None:
    folder = compressed(log, ".gz", tmp_path / "compressed")
    (folder / "mysql-bin.000002.gz").unlink()
    with pytest.raises(BinlogGapError, match=r"ROTATE to mysql-bin\.000002"):
        rows_of(folder)


def test_a_compressed_copy_under_another_name_is_rejected(log: Path) -> None:
    copy = log / "mysql-bin.000004.gz"
    copy.write_bytes(gzip.compress((log / "mysql-bin.000003").read_bytes()))
    with pytest.raises(BinlogGapError, match="have the same bytes"):
        rows_of(log)


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".GZ", ".zstd"])
def test_truncated_compressed_file_raises_malformed_event_error(
    suffix: str, log: Path, tmp_path: Path
) -> None:
    folder = compressed(log, suffix, tmp_path / "compressed")
    path = folder / f"mysql-bin.000003{suffix}"
    data = path.read_bytes()
    for length in (*range(4, len(data), 37), len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(MalformedEventError, match=r"decompressed|cut short") as caught:
            rows_of(folder)
        assert caught.value.file == "mysql-bin.000003"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damaged_byte_of_a_compressed_file_never_gives_wrong_rows(
    suffix: str, log: Path, tmp_path: Path
) -> None:
    expected = rows_of(log)
    folder = compressed(log, suffix, tmp_path / "compressed")
    path = folder / f"mysql-bin.000002{suffix}"
    data = path.read_bytes()
    for at in range(0, len(data), 13):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            found = rows_of(folder)
        except MySQLBinlogError:
            continue
        assert found == expected, at


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"text", FormatError, "this is not a binlog"),
        (b"", FormatError, "this is not a binlog"),
        (b"\xfdbin" + bytes(600), UnsupportedEventError, "encrypted"),
    ],
)
def test_compressed_file_that_is_encrypted_or_no_binlog_is_rejected(
    compress: Callable[[bytes], bytes],
    content: bytes,
    error: type[MySQLBinlogError],
    words: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "mysql-bin.000001.gz"
    path.write_bytes(compress(content))
    with pytest.raises(error, match=words):
        rows_of(path)


def test_position_after_the_end_of_a_compressed_file_is_rejected(log: Path, tmp_path: Path) -> None:
    folder = compressed(log, ".gz", tmp_path / "compressed")
    with pytest.raises((InvalidPositionError, OptionError)):
        rows_of(folder, startingOffset="mysql-bin.000003:99999")


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_highly_compressed_file_is_read_in_bounded_memory(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Even a small compressed part may have very large contents."""
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(compress(MAGIC + bytes(64 << 20)))
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        assert file_ends(path, 10, 10).size == len(MAGIC) + (64 << 20)
        with FileStream(path) as stream:
            stream.seek(60 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert pa.total_allocated_bytes() - before < 8 << 20
