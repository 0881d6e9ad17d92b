"""The tasks of a stream's batch: the binlog between two offsets."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.ranges.split import (
    RangePartition,
    fetched_range,
    split_into_ranges,
)
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.tail.buffer_types import Span

__all__ = ["range_partitions"]


def range_partitions(
    first: Offset,
    last: Offset,
    spans: Sequence[Span] | None,
    *,
    facts: ServerFacts,
    target_bytes: int,
    max_fetches: int,
) -> list[RangePartition]:
    """Return the ranges of one batch, in binlog order.

    Parameters
    ----------
    first : where the batch begins, with the prepared XA transactions pending there.
    last : where it ends, with the schemas of the whole batch.
    spans : what the buffer contains of it; None if unknown.
    target_bytes, max_fetches : see `split.split_into_ranges`.
    """
    if spans is None:
        cuts = fetched_range(first.position, last.position, first.prepared_xa, first.fingerprint)
    else:
        cuts = split_into_ranges(
            first.position,
            spans,
            pending_xa=first.prepared_xa,
            fingerprint=first.fingerprint,
            target_bytes=target_bytes,
            max_fetches=max_fetches,
        )
    known = {part.start: part.fingerprint for part in cuts}
    known[last.position] = last.fingerprint
    return [
        RangePartition(
            start=part.start,
            end=part.end,
            schemas=last.schemas,
            pending_xa=part.pending_xa,
            case_sensitive=facts.case_sensitive,
            blocks=part.blocks,
            prelude=part.prelude,
            ends_inside=part.ends_inside,
            server_uuid=last.server_uuid,
            server_version=facts.version,
            epoch=last.epoch,
            fingerprint=part.fingerprint,
            end_fingerprint=known.get(part.end),
            offset=part.offset,
            end_offset=part.end_offset,
        )
        for part in cuts
    ]
