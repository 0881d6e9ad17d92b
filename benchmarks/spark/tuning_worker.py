"""What the plan of a batch is tuned with, as a child process: see `tuning`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from benchmarks.decode.batch_read import BatchRead
from benchmarks.harness.workers import answer_commands
from pyspark_mysqlbinlog.connector.ranges import blocks as range_blocks

__all__: list[str] = []


def cut(source: str, target: str, rows: str) -> dict[str, Any]:
    """Copy an Arrow file with other batches, of so many rows."""
    with pa.ipc.open_file(pa.memory_map(source)) as file:
        table = file.read_all().combine_chunks()
    with pa.ipc.new_file(target, table.schema) as copy:
        copy.write_table(table, max_chunksize=int(rows))
    return {}


def decode(options: str, is_ahead: str) -> dict[str, Any]:
    """Decode files on all cores; `is_ahead` is no if nothing is fetched during the decode."""
    read = BatchRead(options)
    with ExitStack() as stack:
        if is_ahead == "no":
            stack.enter_context(patch.object(range_blocks, "prefetched", _in_turns))
        rows, seconds = read.timed()
    return {"rows": rows, "seconds": seconds}


def _in_turns(make: Any, _size: Any, _most: int) -> Generator[Any]:
    """What stands in for `prefetched`: each block is made when it is asked for."""
    yield from make(None)


if __name__ == "__main__":
    answer_commands({"cut": cut, "decode": decode})
