"""Inspection of logs that are much larger than the memory it takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pyarrow as pa
import pytest

from helpers.logs.events import LogBuilder, gtid_body, query_body, rows_body, table_map
from helpers.waiting import patience
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, EventType
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

T = EventType
# The size of the large log, and the most by which the process may grow.
LOG_BYTES = 160 << 20
MAX_GROWTH = 40 << 20
ROWS = 2000

# Inspects a small and a large log; prints the events of the large one and the growth in bytes.
PROGRAM = """
import resource, sys
from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.selection import Selection
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.inspection.figures.statistics import LogStatistics, collect
from pyspark_mysqlbinlog.connector.inspection.text import line

def inspect(path, form):
    source = BinlogFiles([path])
    entries = Entries(source)
    if form == "events":
        return sum(1 for entry in entries if line(entry))
    told = LogStatistics()
    collect(source, Selection(), lambda: entries, told)
    return sum(count for count, _ in told.types.values())

small, large, form = sys.argv[1:]
inspect(small, form)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = inspect(large, form)
print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def _transactions(size: int) -> LogBuilder:
    """Return a log of about `size` bytes, with transactions of 2,000 rows each."""
    parts = (
        (T.GTID_LOG_EVENT, gtid_body(1)),
        (T.QUERY_EVENT, query_body("BEGIN")),
        (T.TABLE_MAP_EVENT, table_map(7, "t")),
        (T.WRITE_ROWS_EVENT, rows_body(7, *range(ROWS))),
        (T.XID_EVENT, bytes(8)),
    )
    log = LogBuilder()
    log.format_description()
    while log.pos < size:
        for kind, body in parts:
            log.add(kind, body)
    return log


def _inner(kind: int, body: bytes) -> bytes:
    return HEADER.pack(1_600_000_000, int(kind), 5, HEADER_LENGTH + len(body), 0, 0) + body


def _compressed(size: int) -> LogBuilder:
    """Return a log with one transaction of about `size` bytes before compression."""
    rows = _inner(T.WRITE_ROWS_EVENT, rows_body(7, *range(ROWS)))
    parts = [
        _inner(T.QUERY_EVENT, query_body("BEGIN")),
        _inner(T.TABLE_MAP_EVENT, table_map(7, "t")),
    ]
    parts += [rows] * (size // len(rows))
    parts.append(_inner(T.XID_EVENT, pack("<Q", 1)))
    stream = b"".join(parts)
    data = pa.compress(stream, codec="zstd", asbytes=True)
    fields = ((1, len(data)), (2, 0), (3, len(stream)))
    head = b"".join(
        lenenc_int(number) + lenenc_int(len(lenenc_int(value))) + lenenc_int(value)
        for number, value in fields
    )
    log = LogBuilder()
    log.format_description("9.7.4")
    log.add(T.GTID_LOG_EVENT, gtid_body(1))
    log.add(T.TRANSACTION_PAYLOAD_EVENT, head + b"\x00" + data)
    return log


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["events", "stats"])
@pytest.mark.parametrize("make", [_transactions, _compressed])
def test_inspect_memory_stays_bounded_for_a_large_log(
    make: Callable[[int], LogBuilder], form: str, tmp_path: Path
) -> None:
    paths = []
    for size in (1 << 20, LOG_BYTES):
        folder = tmp_path / str(size)
        folder.mkdir()
        paths.append(make(size).write(folder))
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *map(str, paths), form],
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events, growth = map(int, done.stdout.split())
    assert events > LOG_BYTES // 15_000
    assert growth < MAX_GROWTH
