"""What a batch of a mirror brings, read by the mirror's own process.

It is collected in this process in any case, and Spark's way there takes several times as long: its
planning, its tasks' processes, packets through the JVM. These are left to Spark all the same:

* Short stretches of log, which travel in its tasks: no other connection is needed for them. But one
  that comes alone (the first of a query, the end of a backlog, one after a quiet minute) is read
  here, since a second may go by until Python has started for Spark's tasks.
* Long stretches, which many executors read side by side.
* Stretches in which most of the log is of tables that nobody wants.
* Tables that are read as a whole, which may be large: Spark can end a task, and nobody a thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from time import monotonic

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_packing import is_of_version_0_1
from pyspark_mysqlbinlog.connector.columns import arrow_schema
from pyspark_mysqlbinlog.connector.delta.collect import of_batches
from pyspark_mysqlbinlog.connector.delta.typed_images import TypedImages
from pyspark_mysqlbinlog.connector.load.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.load.partition import LoadPartition
from pyspark_mysqlbinlog.connector.load.tasks import load_tasks
from pyspark_mysqlbinlog.connector.log.server_facts import server_facts
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.packets import expect_json
from pyspark_mysqlbinlog.connector.ranges.cutting import MOST_CARRIED_IN_ALL
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.reader import read_range
from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_range
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation

__all__ = ["OwnReading"]

# Bytes of log. Up to the first, Spark's tasks carry all that is wanted.
_LEAST, _MOST = MOST_CARRIED_IN_ALL, 64 << 20
# Where so little of the log is wanted (its rows, as Arrow, have less than this share of its bytes),
# so many batches are left to Spark: it asks the server for nothing twice.
_THIN_SHARE = 0.2
_LEFT_TO_SPARK = 50
# Seconds after which Spark ends a Python process that has nothing to do.
_QUIET = 60


class OwnReading:
    """Reads what one mirror takes.

    Parameters
    ----------
    options : of its stream.
    with_source : changes have the column `source`, and images as texts.
    """

    def __init__(self, options: Options, *, with_source: bool) -> None:
        self._options = options
        self._with_source = with_source
        self._schema = arrow_schema(expect_json(options))
        self._facts: ServerFacts | None = None
        self._left = 0
        self._last_short = -math.inf

    def takes(self, first: Offset, last: Offset) -> bool:
        """Whether the batch between two offsets is read here."""
        begin, end = first.position, last.position
        # What was planned by a query that wanted other tables, or by another version, is mended by
        # the source, which knows how; and without the kernel many had better decode side by side.
        is_plain = {first.tables, last.tables} == {self._options.tables_mark} and not (
            is_of_version_0_1(last.schemas)
        )
        if not is_plain or implementation() == "python":
            return False
        if first.epoch != last.epoch or begin.file != end.file or end.pos - begin.pos > _MOST:
            return False
        if last.load is not None and last.loads_since(first):
            return all(chunk.key for chunk in last.load.chunks)
        # Of nothing Spark need not be asked.
        return begin == end or self._takes_log(end.pos - begin.pos)

    def _takes_log(self, size: int) -> bool:
        """Whether so many bytes of log are read here, when nothing is loaded beside them."""
        now = monotonic()
        is_alone = now - self._last_short > _QUIET
        is_short = size <= _LEAST
        self._last_short = now if is_short else -math.inf
        if is_short and not is_alone:
            return False
        if self._left:
            self._left -= 1
            return False
        return True

    def changes(self, first: Offset, last: Offset) -> tuple[pa.Table, TypedImages]:
        """What `collected` gives of the same batch; raises as `read_range` and `read_chunks` do."""
        batches = [*self._of_log(first, last)]
        size = last.position.pos - first.position.pos
        if size > _LEAST and sum(batch.nbytes for batch in batches) < _THIN_SHARE * size:
            self._left = _LEFT_TO_SPARK
        if last.loads_since(first):
            batches += self._of_load(last)
        return of_batches(batches, self._schema, with_source=self._with_source)

    def _of_log(self, first: Offset, last: Offset) -> Iterator[pa.RecordBatch]:
        if first.position == last.position:
            return
        options = self._options
        read = read_range if self._with_source else read_typed_range
        for part in range_partitions(
            first,
            last,
            None,
            facts=self._server_facts(),
            target_bytes=options.target_partition_bytes,
            most_pulls=1,
        ):
            with closing(read(options, part, self._schema)) as batches:
                yield from batches

    def _of_load(self, last: Offset) -> Iterator[pa.RecordBatch]:
        """The chunks of the batch that ends there, read side by side."""
        options = self._options
        most = options.max_connections
        case_sensitive = self._server_facts().case_sensitive
        tasks = load_tasks(options, last, most, case_sensitive=case_sensitive)

        def read(task: LoadPartition) -> list[pa.RecordBatch]:
            return [*read_chunks(options, task, self._schema, typed=not self._with_source)]

        with ThreadPoolExecutor(most) as threads:
            for batches in threads.map(read, tasks):
                yield from batches

    def _server_facts(self) -> ServerFacts:
        if self._facts is None:
            self._facts = server_facts(self._options)
        return self._facts
