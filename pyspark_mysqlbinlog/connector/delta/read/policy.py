"""Decides which batches a mirror reads directly, and which Spark reads.

Spark reads:

* Short ranges of the binlog, if no handoff is possible: Spark's tasks carry them, and no other
  connection is needed. But a single one (the first of a query, the end of a backlog, one after a
  quiet minute) is read directly, since Spark may take a second to start Python for its tasks.
* Ranges up to a sub-batch in which most of the binlog is of tables that are not captured.
* Tables whose rows are read at once, which may be large: Spark can cancel a task, but a thread
  cannot be cancelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.ranges.split import MAX_INLINE_BYTES_PER_BATCH
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation

__all__ = ["ReadPolicy", "log_bytes"]

# Bytes of binlog, up to which Spark's tasks carry all captured events.
MIN_REREAD_BYTES = MAX_INLINE_BYTES_PER_BATCH
# If the captured rows, as Arrow, have less than this share of the binlog's bytes, this many batches
# are left to Spark, which requests nothing from the server twice.
MIN_SELECTIVITY = 0.2
BATCHES_LEFT_TO_SPARK = 50
# Spark ends a Python process that has been idle for this long.
WORKER_IDLE_SECONDS = 60


class ReadPolicy:
    """Decides for the batches of one query, in order.

    Parameters
    ----------
    tables : the hash of the table filter; offsets of other queries have another one.
    """

    def __init__(self, tables: str) -> None:
        self._tables = tables
        self._left = 0
        self._last_short = -math.inf

    def can_read(
        self,
        first: Offset,
        last: Offset,
        sub_batch_bytes: int,
        *,
        is_handed_off: Callable[[], bool],
        uses_handoff: Callable[[], bool],
    ) -> bool:
        """Return whether the batch between two offsets is read directly.

        is_handed_off : returns whether a handoff file has the batch.
        uses_handoff : returns whether other batches were handed off.
        """
        # Only the source can correct offsets of a query that captured other tables. Without the
        # kernel, several tasks decode faster in parallel.
        is_plain = {first.tables, last.tables} == {self._tables}
        if not is_plain or implementation() == "python":
            return False
        if first.epoch != last.epoch:
            return False
        if last.snapshot_state is not None and last.reads_chunks_since(first):
            return all(chunk.key for chunk in last.snapshot_state.chunks)
        # An empty range needs no Spark job.
        return (
            first.position == last.position
            or is_handed_off()
            or self._should_read_log(log_bytes(first, last), sub_batch_bytes, uses_handoff)
        )

    def _should_read_log(
        self, size: float, sub_batch_bytes: int, uses_handoff: Callable[[], bool]
    ) -> bool:
        """Return whether so many bytes of binlog are read directly, if there is no snapshot."""
        now = monotonic()
        is_alone = now - self._last_short > WORKER_IDLE_SECONDS
        is_short = size <= min(MIN_REREAD_BYTES, sub_batch_bytes)
        self._last_short = now if is_short else -math.inf
        if size > sub_batch_bytes:
            # Spark would deliver all of it at once.
            return True
        # A batch without a handoff, although others have one, does not fit in Spark's tasks.
        if is_short and not is_alone and not uses_handoff():
            return False
        if self._left:
            self._left -= 1
            return False
        return True

    def record_selectivity(self, first: Offset, last: Offset, captured_bytes: int) -> None:
        """Leave the next batches to Spark if little of the binlog between two offsets was captured.

        captured_bytes : bytes of the captured changes, as Arrow.
        """
        size = log_bytes(first, last)
        if MIN_REREAD_BYTES < size < math.inf and captured_bytes < MIN_SELECTIVITY * size:
            self._left = BATCHES_LEFT_TO_SPARK


def log_bytes(first: Offset, last: Offset) -> float:
    """Return the bytes of binlog between two offsets; infinite if they are in different files."""
    begin, end = first.position, last.position
    return end.pos - begin.pos if begin.file == end.file else math.inf
