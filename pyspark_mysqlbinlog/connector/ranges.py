"""Ranges: how a batch is cut into tasks.

A range lies between two boundaries. What is still in the buffer travels in the task (carried), as
long as a task stays small enough for Spark; the rest is fetched by whoever runs the task (pulled),
by few enough tasks that a server never sees more than `maxConnections` of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.buffer import MOST_CARRIED, Span
from pyspark_mysqlbinlog.protocol.blocks import EventBlock

__all__ = ["TARGET_PARTITION_BYTES", "Cut", "RangePartition", "cut", "pulled"]

# Log bytes of a range that is not carried, where the query does not say.
TARGET_PARTITION_BYTES = 32 << 20

# More tasks than this cost more in scheduling than a pull costs in fetching.
_MOST_CARRIED_TASKS = 64


@dataclass
class RangePartition(InputPartition):
    """One task's part of the log.

    Attributes
    ----------
    start, end : events from `start` up to `end` belong to it; boundaries, or places inside of one
        long transaction.
    schemas : packed schema history that covers the range.
    pending_xa : prepared XA transactions at `start` that hold no wanted rows.
    case_sensitive : whether the server tells table names by case.
    blocks : the wanted events, when they are carried; None when they are to be pulled.
    prelude : what a range that begins inside of a transaction can't be read without.
    ends_inside : `end` is no boundary; another range goes on with the transaction.
    server_uuid : of the server that wrote the range; empty where it has none.
    server_version : what its statements are to be read with.
    epoch : of `seq`.
    """

    start: Position
    end: Position
    schemas: str
    pending_xa: tuple[str, ...]
    case_sensitive: bool
    blocks: tuple[EventBlock, ...] | None
    prelude: tuple[EventBlock, ...] = ()
    ends_inside: bool = False
    server_uuid: str = ""
    server_version: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """A range before it gets its schemas."""

    start: Position
    end: Position
    log_bytes: int
    blocks: tuple[EventBlock, ...] | None
    pending_xa: tuple[str, ...]
    prelude: tuple[EventBlock, ...] = ()
    ends_inside: bool = False


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
    parts: list[Cut] = []
    for span in spans:
        begin = max(start, span.start)
        if span.blocks is not None and span.kept_bytes <= MOST_CARRIED:
            parts.append(Cut(begin, span.end.position, span.log_bytes, span.blocks, pending_xa))
        else:
            parts += _pieces(begin, span, pending_xa)
        pending_xa = span.end.pending_xa
    pulled_bytes = sum(part.log_bytes for part in parts if part.blocks is None)
    cuts = _join(parts, max(target_bytes, -(-pulled_bytes // most_pulls)))
    carried = sum(part.blocks is not None for part in cuts)
    if len(cuts) - carried <= most_pulls and carried <= _MOST_CARRIED_TASKS:
        return cuts
    # Too many: fetch all of it, by `most_pulls` tasks of about the same size.
    parts = [replace(part, blocks=None) for part in parts]
    cuts = _join(parts, -(-sum(part.log_bytes for part in parts) // most_pulls))
    while len(cuts) > most_pulls:
        cuts[-2:] = [_joined(cuts[-2], cuts[-1])]
    return cuts


def _pieces(begin: Position, span: Span, pending_xa: tuple[str, ...]) -> list[Cut]:
    """A span to pull, cut inside of its long transactions."""
    pieces = [piece for piece in span.pieces if piece.start > begin]
    starts = [begin, *(piece.start for piece in pieces)]
    ends = [*(piece.start for piece in pieces), span.end.position]
    at = [0, *(piece.log_bytes for piece in pieces), span.log_bytes]
    preludes = [(), *(piece.prelude for piece in pieces)]
    pending = [pending_xa, *(piece.pending_xa for piece in pieces)]
    return [
        Cut(starts[n], ends[n], at[n + 1] - at[n], None, pending[n], preludes[n], n < len(pieces))
        for n in range(len(starts))
    ]


def _join(parts: list[Cut], target_bytes: int) -> list[Cut]:
    """Join neighbours of one kind while they stay small enough."""
    joined: list[Cut] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and (last.blocks is None) == (part.blocks is None):
            if part.blocks is None:
                small = last.log_bytes + part.log_bytes <= target_bytes
            else:
                small = _carried(last) + _carried(part) <= MOST_CARRIED
            if small:
                joined[-1] = _joined(last, part)
                continue
        joined.append(part)
    return joined


def _joined(first: Cut, second: Cut) -> Cut:
    blocks = None if first.blocks is None else first.blocks + (second.blocks or ())
    log_bytes = first.log_bytes + second.log_bytes
    return replace(
        first, end=second.end, log_bytes=log_bytes, blocks=blocks, ends_inside=second.ends_inside
    )


def _carried(part: Cut) -> int:
    return sum(len(block.data) for block in part.blocks or ())


def pulled(start: Position, end: Position, pending_xa: tuple[str, ...]) -> list[Cut]:
    """One range of which nothing is known but its ends: a replay after a restart."""
    return [Cut(start, end, 0, None, pending_xa)]
