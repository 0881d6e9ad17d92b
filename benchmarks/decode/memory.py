"""Resident memory of the driver's and worker processes while they read a large backlog."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from benchmarks.decode.source_options import server_options
from benchmarks.harness.processes import processes
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.workload.orders import DATABASE, TABLE
from benchmarks.workload.workload import Workload

__all__ = ["measure_memory", "peaks_of", "write_backlog"]

_BACKLOG = "backlog"
_STATEMENT_ROWS = 10_000
_DRIVER = "python_streaming_source_runner"
_WORKER = "pyspark.daemon"
_BETWEEN_LOOKS = 0.05
_TRIES = 10


def write_backlog(workload: Workload, size: int) -> tuple[str, int]:
    """Write rows as the workload's into another table until the log has grown by `size` bytes.

    Gives the place where it begins, and the number of rows.
    """
    server = workload.server
    table = f"{DATABASE}.{_BACKLOG}"
    # Nothing but the log is of interest: the server needs no more than a heap for the rows.
    server.execute(
        f"CREATE TABLE {table} LIKE {DATABASE}.{TABLE}",
        f"ALTER TABLE {table} DROP PRIMARY KEY, ENGINE=MyISAM",
    )
    server.rotate()
    start = "{}:{}".format(*server.position())
    rows, written, begin = 0, 0, 1
    with server.connect() as connection, connection.cursor() as cursor:
        while written < size:
            count = cursor.execute(
                f"INSERT INTO {table} SELECT * FROM {DATABASE}.{TABLE}"
                f" WHERE id BETWEEN {begin} AND {begin + _STATEMENT_ROWS - 1}"
            )
            begin = begin + _STATEMENT_ROWS if count else 1
            rows += count
            written = rows * workload.bulk.size // workload.bulk.total
    return start, rows


def measure_memory(spark: Worker, workload: Workload, payload: str, begin: tuple[str, int]) -> Any:
    """Stream the backlog into noop; the most that a driver's process and a worker had, in bytes."""
    start, rows = begin
    options = server_options(workload.server, payload, start)
    options["tables"] = f"{DATABASE}.{_BACKLOG}"
    for _ in range(_TRIES):
        begun = time.monotonic()
        with peaks_of(spark, {_DRIVER: _DRIVER, _WORKER: _WORKER}) as peaks:
            spark.ask("stream", "mysqlbinlog", json.dumps(options), "", rows)
        seconds = time.monotonic() - begun
        # The processes of a short stream may end between two checks.
        if all(peaks.values()):
            break
    for kind, most in peaks.items():
        # A process that was never measured would be within any limit.
        if not most:
            raise WorkerError(f"no process of {kind} was seen in {seconds:.1f} s of streaming")
    return {
        "rows": rows,
        "seconds": seconds,
        "driver": peaks[_DRIVER],
        "worker": peaks[_WORKER],
    }


@contextmanager
def peaks_of(
    child: Worker, kinds: Mapping[str, str], between: float = _BETWEEN_LOOKS
) -> Iterator[dict[str, int]]:
    """The most resident memory, in bytes, that any one process of a kind has meanwhile.

    kinds : name -> what the command line of such a process contains; the first that fits counts. A
        process may be the child itself, or one below it.
    between : seconds between two looks.
    """
    peaks = dict.fromkeys(kinds, 0)
    done = Event()

    def look() -> None:
        while not done.wait(between):
            for each in processes(child.pid):
                kind = next((kind for kind, part in kinds.items() if part in each.command), None)
                if kind is not None and each.resident > peaks[kind]:
                    peaks[kind] = each.resident

    looking = Thread(target=look)
    looking.start()
    try:
        yield peaks
    finally:
        done.set()
        looking.join()
