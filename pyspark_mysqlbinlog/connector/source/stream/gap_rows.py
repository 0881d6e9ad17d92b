"""The row that marks a gap in a stream: changes are missing right before it.

`operations` decides whether it is delivered. It has no database and no table, because it concerns
all captured tables; its `seq` is before everything else at its position. Its time is when the file
of that position was begun: a replay must return the same row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position

__all__ = ["GapPartition", "gap_rows"]

# The least `row`: those of snapshots are negative, too.
ROW_OF_GAP = -(1 << 31)


@dataclass
class GapPartition(InputPartition):
    """A gap.

    Attributes
    ----------
    start : where the lost part begins, as FILE:POS.
    end : where the stream continues.
    seq : position of the row, with `epoch`.
    created : when the file of `seq` was begun, in seconds since 1970; None if unknown.
    """

    start: str
    end: str
    epoch: int
    seq: Position
    created: int | None

    @classmethod
    def at(cls, offset: Offset) -> GapPartition:
        """Return the gap before an offset, which is the end of an empty batch."""
        return cls(
            offset.gap, str(offset.position), offset.epoch, offset.position, _created(offset)
        )

    @classmethod
    def of_batch(cls, first: Offset, last: Offset) -> GapPartition:
        """Return the gap in place of a planned batch, all of which is lost."""
        start = str(first.position)
        return cls(start, str(last.position), last.epoch, first.position, _created(first))


def _created(offset: Offset) -> int | None:
    return None if offset.fingerprint is None else offset.fingerprint.created


def gap_rows(gap: GapPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the record batch of a gap: one row.

    schema : of the batch.
    """
    place = {"pos": gap.seq.pos, "row": ROW_OF_GAP}
    row = {
        "op": "gap",
        "ts": None if gap.created is None else datetime.fromtimestamp(gap.created, UTC),
        "seq": {"epoch": gap.epoch, "file": gap.seq.number, **place},
        "source": {
            "file": gap.seq.file,
            **place,
            "query": f"/* gap */ from {gap.start} to {gap.end}",
        },
    }
    yield pa.RecordBatch.from_pylist([row], schema)
