"""Reads a planned batch of a mirror from another server, if its own is lost.

The batch was planned on the lost server, and Delta tables record positions there. Each of them has
all of the batch or nothing of it: with several hosts, batches are not split. The other server has
the same transactions between two positions of its own (see source/stream/failover.py). Their
changes replace the batch's: `seq` numbers them in order, at the last byte of the batch's range. So
they are after everything before the batch and before everything after it, and a table that has
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
from pyspark_mysqlbinlog.connector.source.stream.failover import RESTART, StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.gaps import is_lost
from pyspark_mysqlbinlog.errors import FailoverError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["BatchReplay"]


class BatchReplay:
    """Reads batches of one mirror from another server than the one they were planned on.

    Parameters
    ----------
    options : of its stream.
    """

    def __init__(self, options: Options, reading: DirectReader) -> None:
        self._failover = StreamFailover(options, for_mirror=True)
        self._options = options
        self._tables = options.table_filter_hash
        self._reading = reading

    def read(self, first: Offset, last: Offset, *, has_failed: bool = False) -> SubBatch | None:
        """Read the batch between two offsets, if its server is lost; None if it is not.

        Raises as `StreamFailover.replayed` does; FailoverError if it has rows of a snapshot.

        has_failed : the batch could not be read from its server, which may have purged it.
        """
        if last.reads_chunks_since(first):
            # The reader of snapshot rows retries after a lost connection.
            if has_failed and self._failover.is_lost(last):
                raise FailoverError(
                    f"the server {last.server_uuid} was lost while rows of a snapshot were read"
                    f" there; {RESTART}"
                )
            return None
        if not self._may_be_elsewhere(first, last):
            return None
        moved: tuple[Offset, Offset] | None = None
        if self._failover.is_lost(last):
            moved = self._failover.replayed(first, last)
        elif has_failed and self._has_purged(first, last):
            moved = self._failover.replayed_after_purge(first, last)
        if moved is None or moved[1].server_uuid == last.server_uuid:
            # The server is available, possibly again: the batch is read from it as usual.
            return None
        begin, end = moved
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
        placed = _at_end(sorted_by_seq(changes), last)
        return SubBatch.from_changes(first, last, (placed, images), is_replay=True)

    def _has_purged(self, first: Offset, last: Offset) -> bool:
        """Return whether the server of a batch has purged a part of it."""
        settings = self._options.bound_to(last.server_uuid).server_settings()
        with ReplicaClient.connect(settings) as client:
            return is_lost(client, first, last)

    def _may_be_elsewhere(self, first: Offset, last: Offset) -> bool:
        is_plain = {first.tables, last.tables} == {self._tables} and first.epoch == last.epoch
        return self._failover.is_possible and is_plain and first.position != last.position


def _at_end(changes: pa.Table, last: Offset) -> pa.Table:
    """Return changes with a `seq` that numbers them in order, right before the end of a batch."""
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
