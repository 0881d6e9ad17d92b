"""A batch read through the data source's own classes, as Spark calls them, without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource

__all__ = ["BatchRead"]


class BatchRead:
    """One batch read, planned.

    Parameters
    ----------
    options : of the data source, as JSON.
    """

    def __init__(self, options: str) -> None:
        source = MySQLBinlogDataSource(json.loads(options))
        self.schema: StructType = source.schema()
        reader = source.reader(self.schema)
        assert isinstance(reader, DataSourceReader)
        self.reader = reader
        self.partitions = list(reader.partitions())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What its ranges hold, one after the other."""
        for partition in self.partitions:
            for batch in self.reader.read(partition):
                assert isinstance(batch, pa.RecordBatch)
                yield batch

    def timed(self) -> tuple[int, float]:
        """Rows, and the seconds in which they came."""
        begin = time.perf_counter()
        rows = sum(batch.num_rows for batch in self.batches())
        return rows, time.perf_counter() - begin
