"""Mirrors whose steps are as short as can be, and that end between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates

__all__ = [
    "CHECKPOINTS",
    "around_batch",
    "checkpoint_names",
    "killed_behind",
    "made_ahead",
    "with_short_steps",
]

# What may become of a checkpoint behind a kill.
CHECKPOINTS = ("goes on", "lost")
Hook = Callable[[], None]


class _Killed(Exception):  # noqa: N818 (in place of a kill)
    pass


def with_short_steps(monkeypatch: pytest.MonkeyPatch, size: int = 1) -> list[int]:
    """Give steps so many bytes: by 1 each transaction is one.

    Gives how many each batch had, as they come.
    """
    made, counts = DirectReader.__init__, list[int]()
    read = DirectReader.sub_batches

    def with_steps(reading: DirectReader, *given: Any, **named: Any) -> None:
        made(reading, *given, **named)
        reading._sub_batch_bytes = size

    def counted(reading: DirectReader, *given: Any) -> Iterator[SubBatch]:
        counts.append(0)
        for step in read(reading, *given):
            counts[-1] += 1
            yield step

    monkeypatch.setattr(DirectReader, "__init__", with_steps)
    monkeypatch.setattr(DirectReader, "sub_batches", counted)
    return counts


def made_ahead(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each step's part of a table, as they come, whether the states made ahead were taken."""
    taken, of = list[bool](), PrecomputedStates.of

    def looked(prepared: PrecomputedStates, *given: Any, **named: Any) -> pa.Table | None:
        states = of(prepared, *given, **named)
        taken.append(states is not None)
        return states

    monkeypatch.setattr(PrecomputedStates, "of", looked)
    return taken


def checkpoint_names(becomes: str) -> Iterator[str]:
    """Of the run behind each kill, and of the next; `becomes` is one of CHECKPOINTS."""
    return repeat("checkpoint") if becomes == "goes on" else map("checkpoint {}".format, range(100))


@contextmanager
def killed_behind(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What runs inside must come to another step behind so many, and ends there."""
    take, left = BatchRunner._apply_sub_batch, number

    def killed(runner: BatchRunner, *given: Any) -> None:
        nonlocal left
        if not left:
            raise _Killed
        left -= 1
        take(runner, *given)

    with monkeypatch.context() as patched:
        patched.setattr(BatchRunner, "_apply_sub_batch", killed)
        with pytest.raises(Exception, match=_Killed.__name__):
            yield


def around_batch(
    monkeypatch: pytest.MonkeyPatch, number: int, before: Hook, after: Hook = lambda: None
) -> None:
    """Let something happen before the rows of a batch are read, and after it is applied.

    number : of a batch from the next one on.
    """
    call = DeltaMirror.__call__
    left = number

    def called(mirror: DeltaMirror, batch: DataFrame, number: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            before()
        call(mirror, batch, number)
        if left == 0:
            after()

    monkeypatch.setattr(DeltaMirror, "__call__", called)
