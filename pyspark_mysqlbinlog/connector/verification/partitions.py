"""Digests of one side of a comparison, spilled to disk in partitions by the digests of the keys.

A row's partition depends on its key only, so the partitions of both sides with one number can be
compared on their own. Memory holds one partition, however large the table is.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any, Self

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.verification.digests import KEY

__all__ = ["HashPartitions", "partition_count"]

# The bytes of a partition's digests and keys, of both sides together.
_PARTITION_BYTES = 64 << 20
# Two digests, and what Arrow adds.
_ROW_BYTES = 40
# A digest's part that selects the partition has 16 bits; each partition has an open file.
_MAX_PARTITIONS = 256


def partition_count(rows: int, key_bytes: int) -> int:
    """Return how many partitions, a power of two, hold so many rows on each side.

    key_bytes : of a row's key, approximately.
    """
    needed = 2 * rows * (_ROW_BYTES + key_bytes) // _PARTITION_BYTES
    return min(1 << needed.bit_length(), _MAX_PARTITIONS)


class HashPartitions:
    """The partitions of one side; threads can add rows to it at the same time.

    Parameters
    ----------
    folder : for its files; it must exist, and be used by nothing else.
    count : a power of two.

    Attributes
    ----------
    rows : how many were added.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.rows = 0
        self._folder = folder
        self._count = count
        self._lock = Lock()
        self._files = ExitStack()
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def add(self, rows: pa.Table) -> None:
        """Add rows with the column `KEY`; all calls have the same columns."""
        if not rows.num_rows:
            return
        numbers = _numbers(rows.column(KEY).combine_chunks(), self._count)
        ordered = rows.take(pc.sort_indices(numbers))
        counts = sorted((each["values"], each["counts"]) for each in _counts(numbers))
        with self._lock:
            self.rows += rows.num_rows
            begin = 0
            for number, count in counts:
                self._writer(number, rows.schema).write_table(ordered.slice(begin, count))
                begin += count

    def flush(self) -> None:
        """Write everything to disk; nothing can be added after it."""
        with self._lock:
            self._writers.clear()
            self._files.close()

    def clear(self) -> None:
        """Forget all rows."""
        self.flush()
        for path in self._folder.iterdir():
            path.unlink()
        self.rows = 0

    def read(self, number: int) -> pa.Table | None:
        """Return the rows of a partition; None if it has none."""
        path = self._path(number)
        if not path.exists():
            return None
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()

    def _writer(self, number: int, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
        if number not in self._writers:
            file = self._files.enter_context(self._path(number).open("wb"))
            made = pa.ipc.new_stream(file, schema)
            self._writers[number] = self._files.enter_context(made)
        return self._writers[number]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrows"


def _numbers(digests: Any, count: int) -> Any:
    """Return the partition of each digest: the low bits of its first two bytes."""
    width: int = digests.type.byte_width
    start = digests.offset * width
    data = digests.buffers()[1].slice(start, len(digests) * width)
    parts = pa.Array.from_buffers(pa.uint16(), len(digests) * width // 2, [None, data])
    first = pc.list_element(pa.FixedSizeListArray.from_arrays(parts, width // 2), 0)
    return pc.bit_wise_and(first, pa.scalar(count - 1, pa.uint16()))


def _counts(numbers: Any) -> list[dict[str, int]]:
    found: list[dict[str, int]] = pc.value_counts(numbers).to_pylist()
    return found
