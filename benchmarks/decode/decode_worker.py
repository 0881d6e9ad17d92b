"""Child process without Spark that decodes on one core, and runs the driver's tail.

It calls the classes of the data source as Spark does. MYSQLBINLOG_IMPL selects the implementation.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from benchmarks.decode.batch_read import BatchRead
from benchmarks.harness.workers import answer_commands
from benchmarks.workload.memory_log import MemoryStream
from helpers.logs.corrupt_logs import from_bytes
from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.transaction_payload import parse_payload

__all__: list[str] = []

# Spark asks every 10 ms when it has nothing to do. A scan takes some 70 ms, and its clock runs
# until an answer says that it is over: asked this often, it runs at most 2 ms too long, and there
# are enough waits for a p99.
_BETWEEN_POLLS = 0.002
_DEADLINE = 120.0


@contextmanager
def _on_one_core() -> Iterator[None]:
    """Let this process, and what it starts meanwhile, run on one core."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everywhere)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)


def decode(options: str, expected: str, place: str) -> dict[str, Any]:
    """Decode a log into record batches on one core: checksums, filter and decode.

    place : where the log's bytes are before: memory, or file, which is read then (and is in the
        page cache).
    """
    read = BatchRead(options)
    stream = MemoryStream if place == "memory" else FileStream
    with (
        _on_one_core(),
        patch("pyspark_mysqlbinlog.connector.log.files.file_log.FileStream", stream),
    ):
        rows, seconds = read.timed()
    if rows != int(expected):
        return {"error": f"{rows} rows came out, expected {expected}"}
    return {"rows": rows, "seconds": seconds}


def decompress(path: str) -> dict[str, Any]:
    """Decompress all payloads of a binlog with libzstd alone, on one core."""
    events, _ = from_bytes(Path(path).read_bytes())
    payloads = [
        parse_payload(event.body)
        for event in events
        if event.kind == EventType.TRANSACTION_PAYLOAD_EVENT
    ]
    codec = pa.Codec("zstd")
    with _on_one_core():
        begin = time.perf_counter()
        for size, data in payloads:
            codec.decompress(data, decompressed_size=size)
        seconds = time.perf_counter() - begin
    return {"seconds": seconds}


def save(options: str, path: str) -> dict[str, Any]:
    """Decode files into one Arrow file; rows in it."""
    read = BatchRead(options)
    rows = 0
    with pa.ipc.new_file(path, to_arrow_schema(read.schema, timezone="UTC")) as file:
        for batch in read.batches():
            file.write_batch(batch)
            rows += batch.num_rows
    return {"rows": rows, "schema": read.schema.json()}


def pickled(options: str, path: str) -> dict[str, Any]:
    """Pickle a reader and its first partition, as Spark sends them to an executor."""
    read = BatchRead(options)
    # Spark has no annotations for it.
    pickler: Any = CloudPickleSerializer
    Path(path).write_bytes(pickler().dumps((read.reader, read.partitions[0])))
    return {}


def tail(options: str, end_file: str, end_pos: str) -> dict[str, Any]:
    """Let the driver's tail run to a position, and request the latest offset meanwhile.

    The time begins at the first offset after the start, so that connecting is excluded; `from` and
    `to` are the positions of the measured part. If the log is so short that the first offset is its
    end, they are equal, and the time includes everything.
    """
    source = MySQLBinlogDataSource(json.loads(options))
    reader = source.streamReader(source.schema())
    assert isinstance(reader, MySQLBinlogStreamReader)
    limit = reader.getDefaultReadLimit()
    offset = reader.initialOffset()
    end = (end_file, int(end_pos))
    waits: list[float] = []
    first, begin = None, time.perf_counter()
    deadline = time.monotonic() + _DEADLINE
    try:
        # Batch 0 is empty, and the tail starts after it.
        offset = reader.latestOffset(offset, limit)
        while True:
            asked = time.perf_counter()
            latest = reader.latestOffset(offset, limit)
            answered = time.perf_counter()
            if first is not None:
                waits.append(answered - asked)
            is_first = first is None and latest != offset
            offset = latest
            if is_first:
                first = offset
            if (offset["file"], offset["pos"]) >= end:
                break
            if is_first:
                begin = answered
            if time.monotonic() > deadline:
                return {"error": f"the tail has only come to {offset['file']}:{offset['pos']}"}
            time.sleep(_BETWEEN_POLLS)
    finally:
        reader.stop()
    assert first is not None
    return {
        "from": [first["file"], first["pos"]],
        "to": [offset["file"], offset["pos"]],
        "seconds": answered - begin,
        "waits": waits,
    }


if __name__ == "__main__":
    answer_commands(
        {
            "decode": decode,
            "decompress": decompress,
            "save": save,
            "pickled": pickled,
            "tail": tail,
        }
    )
