"""Reads a planned batch of a mirror from another server, if its own is lost.

The batch was planned on the lost server, and Delta tables record positions there. Each of them has
all of the batch or nothing of it: with several hosts, batches are not split. The other server has
the same transactions between two positions of its own (see source/stream_failover.py). Their
changes take the place of the batch's: `seq` has their order, at the last byte of the batch's range.
So they are after everything before the batch and before everything after it, and a table that has
the batch drops them. `source` shows where they were read.
"""

from __future__ import annotations

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.states import sorted_by_seq
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.source.stream_failover import StreamFailover

__all__ = ["BatchReplay"]


class BatchReplay:
    """Reads batches of one mirror from another server than the one they were planned on.

    Parameters
    ----------
    options : of its stream.
    """

    def __init__(self, options: Options, reading: DirectReader) -> None:
        self._failover = StreamFailover(options)
        self._tables = options.table_filter_hash
        self._reading = reading

    def is_due(self, first: Offset, last: Offset) -> bool:
        """Whether the server of a batch is lost, and another one may have it."""
        is_plain = {first.tables, last.tables} == {self._tables} and first.epoch == last.epoch
        return (
            self._failover.is_possible
            and is_plain
            and first.position != last.position
            and self._failover.is_lost(last)
        )

    def read(self, first: Offset, last: Offset) -> SubBatch:
        """Read the batch between two offsets; raises as `StreamFailover.replayed` does."""
        begin, end = self._failover.replayed(first, last)
        if end.server_uuid == last.server_uuid:
            # It is back.
            return SubBatch.from_changes(first, last, self._reading.of_log(first, last))
        LOG.warning(
            "the batch from %s to %s of the server %s is read from the server %s, from %s to %s",
            first.position,
            last.position,
            last.server_uuid,
            end.server_uuid,
            begin.position,
            end.position,
        )
        changes, images = self._reading.of_log(begin, end)
        moved = _at_end(sorted_by_seq(changes), last)
        return SubBatch.from_changes(first, last, (moved, images), is_replay=True)


def _at_end(changes: pa.Table, last: Offset) -> pa.Table:
    """Return changes with their order as `seq`, right before the end of a batch."""
    count = changes.num_rows
    seq = pa.StructArray.from_arrays(
        [
            pa.array([last.epoch] * count, pa.int32()),
            pa.array([last.position.number] * count, pa.int32()),
            pa.array([last.position.pos - 1] * count, pa.int64()),
            pa.array(range(count), pa.int32()),
        ],
        fields=[*SEQ_TYPE],
    )
    place = changes.schema.get_field_index("seq")
    field = changes.schema.field(place)
    return changes.set_column(place, field, seq.cast(field.type))
