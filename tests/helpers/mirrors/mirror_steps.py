"""Mirrors with minimal sub-batches, and failures between two of them."""

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
    "killed_after",
    "made_ahead",
    "with_short_steps",
]

# What happens to the checkpoint after a kill: it is used again, or it is lost.
CHECKPOINTS = ("goes on", "lost")
Hook = Callable[[], None]


class _Killed(Exception):  # noqa: N818 (in place of a kill)
    pass


def with_short_steps(monkeypatch: pytest.MonkeyPatch, size: int = 1) -> list[int]:
    """Set the size of sub-batches in bytes; with 1, each transaction is one sub-batch.

    Return a list to which each batch adds the number of its sub-batches.
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
    """Return a list that records, per table and sub-batch, whether precomputed states are used."""
    taken, of = list[bool](), PrecomputedStates.of

    def looked(prepared: PrecomputedStates, *given: Any, **named: Any) -> pa.Table | None:
        states = of(prepared, *given, **named)
        taken.append(states is not None)
        return states

    monkeypatch.setattr(PrecomputedStates, "of", looked)
    return taken


def checkpoint_names(becomes: str) -> Iterator[str]:
    """Return the checkpoint's name for each run; `becomes` is one of CHECKPOINTS."""
    return repeat("checkpoint") if becomes == "goes on" else map("checkpoint {}".format, range(100))


@contextmanager
def killed_after(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the run in the block fail after `number` sub-batches; it must reach another one."""
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
    """Call `before` before the rows of a batch are read, and `after` after it is applied.

    number : of the batch; the next one is 1.
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
