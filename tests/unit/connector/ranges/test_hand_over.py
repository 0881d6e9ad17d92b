"""What a stream's reader hands over to a mirror: this batch and no other."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_mysqlbinlog.checkpoints.fingerprint import Fingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.ranges.cutting import RangePartition
from pyspark_mysqlbinlog.connector.ranges.hand_over import HandOver, new_folder

FIRST = Offset(Position.of("mysql-bin.000003", 1000), fingerprint=Fingerprint(1, 2, 30, 4))
LAST = replace(FIRST, position=Position.of("mysql-bin.000003", 2000))
LATER = replace(FIRST, position=Position.of("mysql-bin.000003", 3000))


class Mirror:
    """Whoever owns a folder."""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def carried(first: Offset, last: Offset) -> RangePartition:
    return RangePartition(first.position, last.position, "", (), True, blocks=())


def test_a_batch(folder: str) -> None:
    ranges = carried(FIRST, LAST), carried(LAST, LATER)
    HandOver(folder).give(FIRST, LATER, ranges)
    mirror = HandOver(folder)
    assert mirror.take(FIRST, LATER) == ranges
    assert mirror.take(FIRST, LATER) == ranges
    assert not any(Path(folder).iterdir())


@pytest.mark.parametrize(
    "other",
    [
        (FIRST, LATER),
        (LAST, LATER),
        (replace(FIRST, epoch=1), replace(LAST, epoch=1)),
        # The log was begun anew, with other events at the same places.
        (FIRST, replace(LAST, fingerprint=Fingerprint(1, 2, 30, 5))),
        (FIRST, replace(LAST, schemas="others")),
        (FIRST, replace(LAST, phase="another")),
    ],
)
def test_another_batch(folder: str, other: tuple[Offset, Offset]) -> None:
    reader, mirror = HandOver(folder), HandOver(folder)
    reader.give(FIRST, LAST, [carried(FIRST, LAST)])
    assert mirror.take(*other) is None
    reader.give(*other, [carried(*other)])
    assert mirror.take(*other) == (carried(*other),)
    assert mirror.take(FIRST, LAST) is None


def test_what_is_not_carried_is_not_handed_over(folder: str) -> None:
    reader, mirror = HandOver(folder), HandOver(folder)
    pulled = replace(carried(LAST, LATER), blocks=None)
    reader.give(FIRST, LATER, [carried(FIRST, LAST), pulled])
    assert mirror.take(FIRST, LATER) is None
    # Without ranges a batch is not empty: a reader may not know of its rows.
    reader.give(FIRST, LATER, [])
    assert mirror.take(FIRST, LATER) is None


def test_a_folder_that_is_elsewhere(tmp_path: Path) -> None:
    folder = str(tmp_path / "elsewhere")
    HandOver(folder).give(FIRST, LAST, [carried(FIRST, LAST)])
    assert HandOver(folder).take(FIRST, LAST) is None
    assert not any(tmp_path.iterdir())


def test_a_folder_goes_with_its_owner() -> None:
    owner = Mirror()
    folder = Path(new_folder(owner))
    HandOver(str(folder)).give(FIRST, LAST, [carried(FIRST, LAST)])
    assert folder.stat().st_mode & 0o777 == 0o700
    del owner
    gc.collect()
    assert not folder.exists()
