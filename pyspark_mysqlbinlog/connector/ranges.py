"""Ranges: how a batch is cut into tasks.

A range lies between two boundaries. What is still in the buffer travels in the task (carried), as
long as a task stays small enough for Spark; the rest is fetched by whoever runs the task (pulled), by
few enough tasks that a server never sees more than `maxConnections` of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.buffer import Span
from pyspark_mysqlbinlog.protocol.blocks import EventBlock

__all__ = ["RangePartition", "cut", "pulled"]

# Spark warns of a "very large task" from 1,000 KiB on, and dies of 60 MB ones.
_MOST_CARRIED = 900_000
# More tasks than this cost more in scheduling than a pull costs in fetching.
_MOST_CARRIED_TASKS = 64


@dataclass
class RangePartition(InputPartition):
    """One task's part of the log.

    Attributes
    ----------
    start, end : boundaries; events from `start` up to `end` belong to it.
    schemas : packed schema history that covers the range.
    pending_xa : prepared XA transactions at `start` that hold no wanted rows.
    case_sensitive : whether the server tells table names by case.
    blocks : the wanted events, when they are carried; None when they are to be pulled.
    epoch : of `seq`.
    """

    start: Position
    end: Position
    schemas: str
    pending_xa: tuple[str, ...]
    case_sensitive: bool
    blocks: tuple[EventBlock, ...] | None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """A range before it gets its schemas."""

    start: Position
    end: Position
    log_bytes: int
    blocks: tuple[EventBlock, ...] | None
    pending_xa: tuple[str, ...]


def cut(
    start: Position,
    spans: Sequence[Span],
    *,
    pending_xa: tuple[str, ...],
    target_bytes: int,
    most_pulls: int,
) -> list[Cut]:
    """Cut what lies behind `start` into ranges, in log order.

    Parameters
    ----------
    spans : what the batch holds.
    pending_xa : at `start`.
    target_bytes : log bytes of a pulled range, unless there would be too many of them.
    most_pulls : how many may be pulled at a time.
    """
    cuts: list[Cut] = []
    for span in spans:
        fits = span.blocks is not None and span.kept_bytes <= _MOST_CARRIED
        blocks = span.blocks if fits else None
        begin = max(start, span.start)
        last = cuts[-1] if cuts else None
        if last is not None and _joins(last, blocks, span, target_bytes):
            joined = None if blocks is None else (last.blocks or ()) + blocks
            cuts[-1] = Cut(
                last.start,
                span.end.position,
                last.log_bytes + span.log_bytes,
                joined,
                last.pending_xa,
            )
        else:
            cuts.append(Cut(begin, span.end.position, span.log_bytes, blocks, pending_xa))
        pending_xa = span.end.pending_xa
    pulls = [part for part in cuts if part.blocks is None]
    carried = len(cuts) - len(pulls)
    if len(pulls) <= most_pulls and carried <= _MOST_CARRIED_TASKS:
        return cuts
    return _as_pulls(cuts, most_pulls)


def _joins(last: Cut, blocks: tuple[EventBlock, ...] | None, span: Span, target_bytes: int) -> bool:
    if (last.blocks is None) != (blocks is None):
        return False
    if last.blocks is None:
        return last.log_bytes + span.log_bytes <= target_bytes
    carried = sum(len(block.data) for block in last.blocks)
    return carried + span.kept_bytes <= _MOST_CARRIED


def _as_pulls(cuts: list[Cut], most_pulls: int) -> list[Cut]:
    """Join neighbours into `most_pulls` pulled ranges of about the same size."""
    share = -(-sum(part.log_bytes for part in cuts) // most_pulls)
    joined: list[Cut] = []
    for part in cuts:
        last = joined[-1] if joined else None
        full = last is None or last.log_bytes >= share
        if last is None or (full and len(joined) < most_pulls):
            joined.append(Cut(part.start, part.end, part.log_bytes, None, part.pending_xa))
        else:
            joined[-1] = Cut(
                last.start, part.end, last.log_bytes + part.log_bytes, None, last.pending_xa
            )
    return joined


def pulled(start: Position, end: Position, pending_xa: tuple[str, ...]) -> list[Cut]:
    """One range of which nothing is known but its ends: a replay after a restart."""
    return [Cut(start, end, 0, None, pending_xa)]
