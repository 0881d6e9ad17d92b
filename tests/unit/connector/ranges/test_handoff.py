"""The handoff of exactly one batch from a stream reader to a mirror."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.protocol.blocks import EventBlock
from pyspark_mysqlbinlog.protocol.events import CommitPlace

FIRST = Offset(Position.of("mysql-bin.000003", 1000), fingerprint=PositionFingerprint(1, 2, 30, 4))
LAST = replace(FIRST, position=Position.of("mysql-bin.000003", 2000))
LATER = replace(FIRST, position=Position.of("mysql-bin.000003", 3000))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    made = BatchHandoff.new(str(tmp_path))
    assert made is not None
    yield made.folder
    assert Path(made.folder).is_dir()


def carried(first: Offset, last: Offset) -> RangePartition:
    return RangePartition(first.position, last.position, "", (), True, blocks=())


def test_batch_handoff_returns_the_written_ranges_and_leaves_no_file(folder: str) -> None:
    ranges = carried(FIRST, LAST), carried(LAST, LATER)
    BatchHandoff(folder).write(FIRST, LATER, ranges)
    mirror = BatchHandoff(folder)
    assert mirror.read(FIRST, LATER) == ranges
    assert mirror.read(FIRST, LATER) == ranges
    assert not any(Path(folder).iterdir())


@pytest.mark.parametrize(
    "other",
    [
        (FIRST, LATER),
        (LAST, LATER),
        (replace(FIRST, epoch=1), replace(LAST, epoch=1)),
        # The binlog was reset and has other events at the same positions.
        (FIRST, replace(LAST, fingerprint=PositionFingerprint(1, 2, 30, 5))),
        (FIRST, replace(LAST, schemas="others")),
        (FIRST, replace(LAST, snapshot=SnapshotState(rows=1).pack())),
    ],
)
def test_batch_handoff_returns_nothing_for_another_batch(
    folder: str, other: tuple[Offset, Offset]
) -> None:
    reader, mirror = BatchHandoff(folder), BatchHandoff(folder)
    reader.write(FIRST, LAST, [carried(FIRST, LAST)])
    assert mirror.read(*other) is None
    reader.write(*other, [carried(*other)])
    assert mirror.read(*other) == (carried(*other),)
    assert mirror.read(FIRST, LAST) is None


def test_batch_with_a_fetched_range_is_not_handed_over(folder: str) -> None:
    reader, mirror = BatchHandoff(folder), BatchHandoff(folder)
    pulled = replace(carried(LAST, LATER), blocks=None)
    reader.write(FIRST, LATER, [carried(FIRST, LAST), pulled])
    assert mirror.read(FIRST, LATER) is None


def test_every_field_of_a_range_is_handed_over(folder: str) -> None:
    blocks = (
        EventBlock("mysql-bin.000003", 1500, 4, bytes(range(256))),
        EventBlock("mysql-bin.000003", 1 << 40, -7, b""),
        EventBlock("mysql-bin.000002", 99, 4, b"xa", CommitPlace("mysql-bin.000003", 7, 4)),
    )
    ranges = (
        RangePartition(
            FIRST.position,
            LAST.position,
            "packed \u00e9",
            ("X'01',X'',1", "X'02',X'',1"),
            False,
            blocks,
            prelude=(EventBlock("mysql-bin.000003", 99, 0, b"\0table map"),),
            ends_inside=True,
            server_uuid="11111111-2222-3333-4444-555555555555",
            server_version="5.7.41-log",
            epoch=3,
            fingerprint=PositionFingerprint(1, 2, 30, 4),
            end_fingerprint=PositionFingerprint(1, 2, 40, 0xFFFFFFFF),
            offset=7,
            end_offset=1 << 33,
        ),
        carried(LAST, LATER),
    )
    defaults = RangePartition(LAST.position, FIRST.position, "", (), True, None)
    same = {
        field.name
        for field in fields(RangePartition)
        if getattr(ranges[0], field.name) == getattr(defaults, field.name)
    }
    assert same == {"log"}  # all other fields are tested with values that are not their defaults
    BatchHandoff(folder).write(FIRST, LATER, ranges)
    assert BatchHandoff(folder).read(FIRST, LATER) == ranges


def test_damaged_handoff_file_is_ignored(folder: str) -> None:
    file = Path(folder) / "batch"
    block = EventBlock("mysql-bin.000003", 1500, 4, b"event" * 9)
    BatchHandoff(folder).write(FIRST, LAST, [replace(carried(FIRST, LAST), blocks=(block,))])
    whole = file.read_bytes()
    other_version = whole.replace(b'"version": 3', b'"version": 4')
    assert other_version != whole
    # The file is complete even without the 8-byte end marker of its stream.
    cut = [whole[:length] for length in range(len(whole) - 8)]
    for damaged in (*cut, other_version, b"{}", pickle.dumps(((FIRST, LAST), ()))):
        file.write_bytes(damaged)
        assert BatchHandoff(folder).read(FIRST, LAST) is None
    file.write_bytes(whole)
    assert BatchHandoff(folder).read(FIRST, LAST) is not None


def test_pickled_code_in_a_handoff_file_is_not_executed(folder: str, tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "was run",)

    (Path(folder) / "batch").write_bytes(pickle.dumps(((FIRST, LAST), Runs())))
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    assert not (tmp_path / "was run").exists()


def test_batch_without_ranges_is_handed_over_as_empty(folder: str) -> None:
    """The stream reader knows that the batch has no captured changes."""
    BatchHandoff(folder).write(FIRST, LAST, [])
    assert BatchHandoff(folder).read(FIRST, LAST) == ()


def test_handoff_is_active_only_after_a_read_while_its_folder_exists(folder: str) -> None:
    mirror = BatchHandoff(folder)
    assert mirror.read(FIRST, LAST) is None
    assert not mirror.is_active()
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    assert mirror.read(FIRST, LAST) is not None
    assert mirror.is_active()
    Path(folder).rmdir()
    assert not mirror.is_active()
    Path(folder).mkdir()


def test_handoff_in_a_missing_folder_writes_and_reads_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path / "elsewhere")
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o755])
def test_handoff_folder_accessible_to_others_is_not_used(folder: str, mode: int) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    Path(folder).chmod(mode)
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    BatchHandoff(folder).write(LAST, LATER, [carried(LAST, LATER)])
    Path(folder).chmod(0o700)
    assert BatchHandoff(folder).read(LAST, LATER) is None


def test_handoff_folder_of_another_user_is_not_read(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    monkeypatch.setattr("os.getuid", lambda: Path(folder).stat().st_uid + 1)
    assert BatchHandoff(folder).read(FIRST, LAST) is None


def test_symlink_to_the_handoff_folder_is_not_read(folder: str, tmp_path: Path) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    (tmp_path / "link").symlink_to(folder)
    assert BatchHandoff(str(tmp_path / "link")).read(FIRST, LAST) is None


def test_failed_handoff_write_hands_over_nothing(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, _: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    def fail_too(_: Path) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", fail)
        BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
        assert [*Path(folder).iterdir()] == []
        patched.setattr(Path, "unlink", fail_too)
        BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    assert BatchHandoff.new(str(Path(folder) / "none")) is None


def test_handoff_folder_is_removed_with_its_original_object_not_with_a_copy(tmp_path: Path) -> None:
    mirror = BatchHandoff.new(str(tmp_path))
    assert mirror is not None
    folder = Path(mirror.folder)
    BatchHandoff(mirror.folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    copy = pickle.loads(pickle.dumps(mirror))
    assert copy.read(FIRST, LAST) is not None
    del copy
    gc.collect()
    assert folder.is_dir()
    del mirror
    gc.collect()
    assert not folder.exists()
