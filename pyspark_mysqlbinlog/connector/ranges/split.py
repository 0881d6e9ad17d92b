"""Splitting a batch into ranges, one per task.

A range is between two boundaries. Events that are still in the buffer are sent in the task (inline)
while the task stays small enough for Spark. The executor fetches the rest, in so few tasks that a
server never sees more than `maxConnections` of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.tail.buffer import MAX_INLINE_BYTES_PER_TASK
from pyspark_mysqlbinlog.connector.tail.buffer_types import Span
from pyspark_mysqlbinlog.protocol.blocks import EventBlock

__all__ = [
    "MAX_INLINE_BYTES_PER_BATCH",
    "RangePartition",
    "RangePlan",
    "fetched_range",
    "split_into_ranges",
]

# More tasks than this cost Spark more than fetching their events by one
# (docs/explanation/benchmarks.md).
_MAX_INLINE_TASKS = 4
# Per batch.
MAX_INLINE_BYTES_PER_BATCH = _MAX_INLINE_TASKS * MAX_INLINE_BYTES_PER_TASK


@dataclass
class RangePartition(InputPartition):
    """One task's part of the binlog.

    Attributes
    ----------
    start, end : events from `start` up to `end` belong to it; boundaries, or positions inside one
        long transaction.
    schemas : packed schema history that covers the range.
    pending_xa : prepared XA transactions at `start`; see `EventFilter`.
    case_sensitive : whether the server distinguishes table names by case.
    blocks : the captured events of an inline range; None for a range to fetch.
    prelude : the context that a range needs if it begins inside a transaction.
    ends_inside : `end` is no boundary; another range continues the transaction.
    server_uuid : of the server that wrote the range; empty if it has none.
    server_version : for parsing its statements; of files, that of the first one.
    epoch : of `seq`.
    fingerprint, end_fingerprint : of `start` and of `end`; None if unknown.
    offset, end_offset : if `start` or `end` is inside a payload, it is the position of the payload,
        and this the offset in its stream; otherwise 0.
    log : the files of the range, as they were when it was planned; None for a server.
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
    log: FileLog | None = None
    fingerprint: PositionFingerprint | None = None
    end_fingerprint: PositionFingerprint | None = None
    offset: int = 0
    end_offset: int = 0


@dataclass(frozen=True, slots=True)
class RangePlan:
    """A range without its schemas."""

    start: Position
    end: Position
    log_bytes: int
    blocks: tuple[EventBlock, ...] | None
    pending_xa: tuple[str, ...]
    prelude: tuple[EventBlock, ...] = ()
    ends_inside: bool = False
    fingerprint: PositionFingerprint | None = None
    offset: int = 0
    end_offset: int = 0


def split_into_ranges(
    start: Position,
    spans: Sequence[Span],
    *,
    pending_xa: tuple[str, ...],
    fingerprint: PositionFingerprint | None = None,
    target_bytes: int,
    max_fetches: int,
) -> list[RangePlan]:
    """Split the spans after `start` into ranges, in binlog order.

    Parameters
    ----------
    spans : the batch's spans.
    pending_xa, fingerprint : at `start`.
    target_bytes : approximate binlog bytes of a fetched range, unless there would be too many.
    max_fetches : the maximum number of fetched ranges.
    """
    parts: list[RangePlan] = []
    for span in spans:
        begin = start
        if span.start.position > start:
            begin, pending_xa = span.start.position, span.start.pending_xa
            fingerprint = span.start.fingerprint
        if span.blocks is not None and span.kept_bytes <= MAX_INLINE_BYTES_PER_TASK:
            part = RangePlan(begin, span.end.position, span.log_bytes, span.blocks, pending_xa)
            parts.append(replace(part, fingerprint=fingerprint))
        else:
            parts += _pieces(begin, span, pending_xa, fingerprint)
        pending_xa = span.end.pending_xa
    cuts = _cut_kinds(parts, target_bytes, max_fetches)
    carried = sum(part.blocks is not None for part in cuts)
    if len(cuts) - carried <= max_fetches and carried <= _MAX_INLINE_TASKS:
        return cuts
    # Too many: fetch the whole batch.
    return _even([replace(part, blocks=None) for part in parts], target_bytes, max_fetches)


def _cut_kinds(parts: list[RangePlan], target_bytes: int, max_fetches: int) -> list[RangePlan]:
    """Join neighbours, but never an inline range with one to fetch."""
    cuts: list[RangePlan] = []
    for is_pulled, neighbours in groupby(parts, lambda part: part.blocks is None):
        if is_pulled:
            cuts += _even(list(neighbours), target_bytes, max_fetches)
        else:
            cuts += _carriable(neighbours)
    return cuts


def _pieces(
    begin: Position,
    span: Span,
    pending_xa: tuple[str, ...],
    fingerprint: PositionFingerprint | None,
) -> list[RangePlan]:
    """Split a span to fetch inside its long transactions."""
    pieces = [piece for piece in span.pieces if piece.start > begin]
    starts = [begin, *(piece.start for piece in pieces)]
    ends = [*(piece.start for piece in pieces), span.end.position]
    at = [0, *(piece.log_bytes for piece in pieces), span.log_bytes]
    preludes = [(), *(piece.prelude for piece in pieces)]
    pending = [pending_xa, *(piece.pending_xa for piece in pieces)]
    known = [fingerprint, *(piece.fingerprint for piece in pieces)]
    offsets = [0, *(piece.offset for piece in pieces), 0]
    return [
        RangePlan(
            starts[n],
            ends[n],
            at[n + 1] - at[n],
            None,
            pending[n],
            preludes[n],
            ends_inside=n < len(pieces),
            fingerprint=known[n],
            offset=offsets[n],
            end_offset=offsets[n + 1],
        )
        for n in range(len(starts))
    ]


def _even(parts: list[RangePlan], target_bytes: int, most: int) -> list[RangePlan]:
    """Join into about as many ranges as the target implies, of equal size: all end together."""
    total = sum(part.log_bytes for part in parts)
    count = min(max(round(total / target_bytes), 1), most)
    tasks: list[list[RangePlan]] = []
    before, last = 0, -1
    for part in parts:
        # A part belongs to the range that contains the middle of the part.
        place = (2 * before + part.log_bytes) * count // (2 * total + 1)
        if place == last:
            tasks[-1].append(part)
        else:
            tasks.append([part])
        before, last = before + part.log_bytes, place
    return [_joined(task) for task in tasks]


def _carriable(parts: Iterable[RangePlan]) -> list[RangePlan]:
    """Join neighbours while they fit in one task."""
    tasks: list[list[RangePlan]] = []
    size = 0
    for part in parts:
        more = sum(len(block.data) for block in part.blocks or ())
        size += more
        if tasks and size <= MAX_INLINE_BYTES_PER_TASK:
            tasks[-1].append(part)
        else:
            tasks.append([part])
            size = more
    return [_joined(task) for task in tasks]


def _joined(parts: list[RangePlan]) -> RangePlan:
    """Join neighbours of one kind into one range."""
    blocks = None
    if parts[0].blocks is not None:
        blocks = tuple(block for part in parts for block in part.blocks or ())
    return replace(
        parts[0],
        end=parts[-1].end,
        log_bytes=sum(part.log_bytes for part in parts),
        blocks=blocks,
        ends_inside=parts[-1].ends_inside,
        end_offset=parts[-1].end_offset,
    )


def fetched_range(
    start: Position,
    end: Position,
    pending_xa: tuple[str, ...],
    fingerprint: PositionFingerprint | None = None,
) -> list[RangePlan]:
    """Return one range of which only the ends are known: a replay after a restart."""
    return [RangePlan(start, end, 0, None, pending_xa, fingerprint=fingerprint)]
