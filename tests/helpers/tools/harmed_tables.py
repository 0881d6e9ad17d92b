"""Mirrors that end during a snapshot, and damage to their Delta tables after that."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from helpers.mirrors.delta_mirrors import MirroredDatabase
from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner

__all__ = ["HARMS", "FolderCopies", "interrupted"]


class _Interrupted(Exception):  # noqa: N818 (in place of a kill)
    pass


@contextmanager
def interrupted(
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
    before_step: Callable[[], None] = lambda: None,
    *,
    may_end: bool = False,
) -> Iterator[None]:
    """End a mirror's run in the block before the sub-batch number `steps`, from 0.

    before_step : called before each sub-batch.
    may_end : the run may have fewer sub-batches; otherwise that is an AssertionError.
    """
    take, left, is_interrupted = BatchRunner._apply_sub_batch, steps, False

    def counted(runner: BatchRunner, *given: Any) -> None:
        nonlocal left, is_interrupted
        if not left:
            is_interrupted = True
            raise _Interrupted
        left -= 1
        before_step()
        take(runner, *given)

    with monkeypatch.context() as patched:
        patched.setattr(BatchRunner, "_apply_sub_batch", counted)
        try:
            yield
        except StreamingQueryException as error:
            if _Interrupted.__name__ not in str(error):
                raise
        assert is_interrupted or may_end, f"the run ended before step {steps}, after {steps - left}"


class FolderCopies:
    """Copies of a folder at several times, the oldest first."""

    def __init__(self, folder: Path, into: Path) -> None:
        self._folder, self._into = folder, into
        self.all: list[Path] = []

    def keep(self) -> None:
        """Copy the folder in its current state; it need not exist."""
        copy = self._into / str(len(self.all))
        if self._folder.exists():
            shutil.copytree(self._folder, copy)
        self.all.append(copy)

    def last_older(self) -> int:
        """Return the number of the last copy of a Delta table that lacks a commit."""
        commits = _commits(self._folder)
        return max(number for number, copy in enumerate(self.all) if _commits(copy) < commits)

    def put_back(self, number: int) -> None:
        """Replace the folder with a copy."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.all[number].exists():
            shutil.copytree(self.all[number], self._folder)


def _commits(table: Path) -> int:
    return len([*table.glob("_delta_log/*.json")])


Harm = Callable[[MirroredDatabase, FolderCopies, random.Random, pytest.MonkeyPatch], None]


def _nothing(*_: Any) -> None:
    """Leave the table unchanged; the mirror is only down."""


def _remove(mirrored: MirroredDatabase, *_: Any) -> None:
    shutil.rmtree(mirrored.folder / "lake" / mirrored.database / "t")


def _restore(
    mirrored: MirroredDatabase, _: FolderCopies, chance: random.Random, *rest: Any
) -> None:
    table = mirrored.delta("t")
    table.restore(chance.randrange(max(table.version() - 6, 0), table.version()))


def _put_back(_: Any, copies: FolderCopies, chance: random.Random, *rest: Any) -> None:
    copies.put_back(chance.randrange(max(len(copies.all) - 1, 1)))


def _load_by_another(
    mirrored: MirroredDatabase,
    _: FolderCopies,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = dict(mirrored.options)
    mirrored.options["tables"] = f"{mirrored.database}.t"
    with interrupted(monkeypatch, chance.choice([1, 2, 3, 1000]), may_end=True):
        mirrored.run("another checkpoint")
    mirrored.options = options


# Damage to the Delta table `t` while its mirror is down.
HARMS: dict[str, Harm] = {
    "nothing": _nothing,
    "removed": _remove,
    "restored": _restore,
    "older copy": _put_back,
    "another checkpoint": _load_by_another,
}
