"""The executor's part of a batch or a stream: to read one task.

A reader is pickled as a `TaskReader`. Otherwise each of Spark's Python workers would import the
code that plans the tasks: the tail, the snapshot's planner and the SQL of the server's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.arrow_ipc import SLIM_IPC_ROWS, packets
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.connector.source.stream.gap_rows import GapPartition, gap_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TaskReader"]


class TaskReader:
    """Reads the changes of one task after the other, each in the order of the binlog.

    Parameters
    ----------
    schema : of the changes.
    packing : if set, Spark gets the changes as IPC messages of this kind (see `arrow_ipc`).
    """

    def __init__(
        self, options: Options, schema: StructType, packing: StructType | None = None
    ) -> None:
        self._options = options
        self._schema = schema
        self._packing = packing

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of one task."""
        batches = self._changes(partition)
        return batches if self._packing is None else packets(batches, self._packing)

    def _changes(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options, schema = self._options, arrow_schema(self._schema)
        is_typed = self._packing == SLIM_IPC_ROWS
        if isinstance(partition, ChunkPartition):
            from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks

            return read_chunks(options, partition, schema, typed=is_typed)
        if isinstance(partition, GapPartition):
            return gap_rows(partition, schema)
        if type(partition) is InputPartition:
            # Spark creates one partition itself if a batch has none.
            return iter(())
        assert isinstance(partition, RangePartition)
        if is_typed:
            from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_range

            return read_typed_range(options, partition, schema)
        from pyspark_mysqlbinlog.connector.ranges.reader import read_range

        return read_range(options, partition, schema)
