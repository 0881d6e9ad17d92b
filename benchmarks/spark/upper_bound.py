"""Spark's upper bound: a data source whose batches are prepared.

They lie in an Arrow file that is mapped into memory; giving them to Spark is all that is done here.
So what a query over them takes is what Spark itself takes, with Python's side at no cost.

`ready` is read as a batch, or as a stream with Trigger.AvailableNow; `ready_clock` is a stream that
has so many rows a second, by the clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

__all__ = ["ReadyBatches", "ReadyClock"]

Offset = dict[str, Any]


@dataclass
class _Batches(InputPartition):
    """Some of the file's batches."""

    path: str
    first: int
    stop: int


@dataclass
class _Rows(InputPartition):
    """So many rows of the file's first batch."""

    path: str
    rows: int


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _Batches | _Rows)
    with pa.ipc.open_file(pa.memory_map(partition.path)) as file:
        if isinstance(partition, _Rows):
            yield file.get_batch(0).slice(0, partition.rows)
            return
        for number in range(partition.first, partition.stop):
            yield file.get_batch(number)


def _all_batches(path: str, parts: int) -> list[InputPartition]:
    with pa.ipc.open_file(pa.memory_map(path)) as file:
        count = file.num_record_batches
    cuts = [count * part // parts for part in range(parts + 1)]
    return [_Batches(path, first, stop) for first, stop in pairwise(cuts) if first < stop]


class ReadyBatches(DataSource):
    """Options: `path` of the Arrow file, `parts` to read it in; the schema is given."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options["path"], int(self.options["parts"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StreamReader(self.options["path"], int(self.options["parts"]))


class _Reader(DataSourceReader):
    def __init__(self, path: str, parts: int) -> None:
        self._path = path
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return _all_batches(self._path, self._parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Batch 0 is empty, as with this package; batch 1 has all rows."""

    def __init__(self, path: str, parts: int) -> None:
        self._path = path
        self._parts = parts
        self._asked = False

    def initialOffset(self) -> Offset:
        return {"done": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        if not self._asked:
            self._asked = True
            return start
        return {"done": 1}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [] if start == end else _all_batches(self._path, self._parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


class ReadyClock(DataSource):
    """Options: `path` of the Arrow file, `begin` as seconds since 1970, `rate` in rows a second."""

    @classmethod
    def name(cls) -> str:
        return "ready_clock"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self.options
        return _ClockReader(options["path"], float(options["begin"]), float(options["rate"]))


class _ClockReader(DataSourceStreamReader):
    def __init__(self, path: str, begin: float, rate: float) -> None:
        self._path = path
        self._begin = begin
        self._rate = rate

    def initialOffset(self) -> Offset:
        return {"rows": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        # Before the begin there are none.
        return {"rows": max(start["rows"], int((time.time() - self._begin) * self._rate))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        rows = end["rows"] - start["rows"]
        return [_Rows(self._path, rows)] if rows else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)
