"""What a stream's reader hands over to a mirror: this batch and no other."""

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


def test_a_batch(folder: str) -> None:
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
        # The log was begun anew, with other events at the same places.
        (FIRST, replace(LAST, fingerprint=PositionFingerprint(1, 2, 30, 5))),
        (FIRST, replace(LAST, schemas="others")),
        (FIRST, replace(LAST, snapshot=SnapshotState(rows=1).pack())),
    ],
)
def test_another_batch(folder: str, other: tuple[Offset, Offset]) -> None:
    reader, mirror = BatchHandoff(folder), BatchHandoff(folder)
    reader.write(FIRST, LAST, [carried(FIRST, LAST)])
    assert mirror.read(*other) is None
    reader.write(*other, [carried(*other)])
    assert mirror.read(*other) == (carried(*other),)
    assert mirror.read(FIRST, LAST) is None


def test_what_is_not_carried_is_not_handed_over(folder: str) -> None:
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
    assert same == {"log"}  # each other field is tried with a value that is not its default
    BatchHandoff(folder).write(FIRST, LATER, ranges)
    assert BatchHandoff(folder).read(FIRST, LATER) == ranges


def test_a_damaged_file_is_ignored(folder: str) -> None:
    file = Path(folder) / "batch"
    block = EventBlock("mysql-bin.000003", 1500, 4, b"event" * 9)
    BatchHandoff(folder).write(FIRST, LAST, [replace(carried(FIRST, LAST), blocks=(block,))])
    whole = file.read_bytes()
    other_version = whole.replace(b'"version": 3', b'"version": 4')
    assert other_version != whole
    # A stream without its end marker of 8 bytes is whole all the same.
    cut = [whole[:length] for length in range(len(whole) - 8)]
    for damaged in (*cut, other_version, b"{}", pickle.dumps(((FIRST, LAST), ()))):
        file.write_bytes(damaged)
        assert BatchHandoff(folder).read(FIRST, LAST) is None
    file.write_bytes(whole)
    assert BatchHandoff(folder).read(FIRST, LAST) is not None


def test_nothing_that_is_read_from_the_file_is_run(folder: str, tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "was run",)

    (Path(folder) / "batch").write_bytes(pickle.dumps(((FIRST, LAST), Runs())))
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    assert not (tmp_path / "was run").exists()


def test_a_batch_without_ranges(folder: str) -> None:
    """Its reader knows that nothing of it is wanted."""
    BatchHandoff(folder).write(FIRST, LAST, [])
    assert BatchHandoff(folder).read(FIRST, LAST) == ()


def test_who_was_given_nothing(folder: str) -> None:
    mirror = BatchHandoff(folder)
    assert mirror.read(FIRST, LAST) is None
    assert not mirror.is_active()
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    assert mirror.read(FIRST, LAST) is not None
    assert mirror.is_active()
    Path(folder).rmdir()
    assert not mirror.is_active()
    Path(folder).mkdir()


def test_a_folder_that_is_elsewhere(tmp_path: Path) -> None:
    folder = str(tmp_path / "elsewhere")
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o755])
def test_a_folder_that_others_may_look_into(folder: str, mode: int) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    Path(folder).chmod(mode)
    assert BatchHandoff(folder).read(FIRST, LAST) is None
    BatchHandoff(folder).write(LAST, LATER, [carried(LAST, LATER)])
    Path(folder).chmod(0o700)
    assert BatchHandoff(folder).read(LAST, LATER) is None


def test_a_folder_of_somebody_else(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    monkeypatch.setattr("os.getuid", lambda: Path(folder).stat().st_uid + 1)
    assert BatchHandoff(folder).read(FIRST, LAST) is None


def test_a_link_in_the_folders_place(folder: str, tmp_path: Path) -> None:
    BatchHandoff(folder).write(FIRST, LAST, [carried(FIRST, LAST)])
    (tmp_path / "link").symlink_to(folder)
    assert BatchHandoff(str(tmp_path / "link")).read(FIRST, LAST) is None


def test_a_disk_that_is_full(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_folder_goes_with_the_mirrors_object(tmp_path: Path) -> None:
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
