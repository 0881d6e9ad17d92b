"""Measurements without Spark: decoding by both implementations, the tail, a worker's start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.decode.source_options import address, file_options, server_options
from benchmarks.harness.interleaved import Measure, Sample
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.workload.workload import Part, Workload, flipped

__all__ = ["decode_measures", "our_checksums", "socket_reads", "start_up", "tail_measure"]

# A raw read stops a little before the end, where heartbeats and the next file's events would come.
_MARGIN = 1 << 16
_TAILS = 3


def decode_measures(kernel: Worker, python: Worker, workload: Workload) -> Iterator[Measure]:
    """On one core, from a log's bytes to record batches; Python on a piece of the file."""

    def decode(
        worker: Worker, part: Part, payload: str, *, piece: bool = False, place: str = "memory"
    ) -> Callable[[], Sample]:
        options = json.dumps(file_options(workload, part, payload, piece=piece))
        rows, size = (part.piece_rows, part.piece_end) if piece else (part.total, part.size)

        def run() -> Sample:
            answer = worker.ask("decode", options, rows, place)
            return Sample(answer["seconds"], answer["rows"], size)

        return run

    for name, part in ("bulk", workload.bulk), ("single", workload.single):
        for payload in "struct", "json", "variant":
            run = decode(kernel, part, payload)
            yield Measure(f"decode, kernel, {payload}, {name}", run, 2)
        run = decode(kernel, part, "struct", place="file")
        yield Measure(f"decode, kernel, struct, from a file, {name}", run, 2)
        for payload in "struct", "json":
            run = decode(python, part, payload, piece=True, place="file")
            yield Measure(f"decode, python, {payload}, {name}", run, 0)


def our_checksums(kernel: Worker, workload: Workload, folder: Path) -> bool:
    """Whether the decode notices a flipped bit in a row's text."""
    path = flipped(workload.bulk, folder / "damaged")
    options = file_options(workload, workload.bulk, "struct") | {"path": str(path)}
    try:
        kernel.ask("decode", json.dumps(options), workload.bulk.total, "file")
    except WorkerError as error:
        if "ChecksumError" not in str(error):
            raise
        return True
    return False


def socket_reads(dump: Worker, workload: Workload) -> Iterator[Measure]:
    """Raw reads of the dump: of each file, and of both in sequence.

    A server sends events one by one, and small ones more slowly: compare only reads of the same
    events.
    """

    def read(file: str, size: int) -> Callable[[], Sample]:
        wanted = max(size - _MARGIN, size // 2)

        def run() -> Sample:
            answer = dump.ask("read", address(workload.server), file, wanted)
            return Sample(answer["seconds"], 0, answer["bytes"])

        return run

    for name, part in ("bulk", workload.bulk), ("single", workload.single):
        yield Measure(f"raw socket read, {name}", read(part.file, part.size))
    yield Measure("raw socket read", read(workload.bulk.file, workload.size))


def tail_measure(kernel: Worker, workload: Workload) -> Measure:
    """The driver's tail over the dump of both files; how long `latestOffset` took meanwhile."""
    options = server_options(workload.server, "struct", f"{workload.bulk.file}:4")

    def place(found: list[Any]) -> int:
        """Bytes of log before a place."""
        file, pos = found
        if file == workload.bulk.file:
            return int(pos)
        return workload.bulk.size + (pos if file == workload.single.file else workload.single.size)

    def run() -> Sample:
        size, seconds, waits = 0, 0.0, []
        for _ in range(_TAILS):
            # The last boundary of the second file may be told as the beginning of the next.
            answer = kernel.ask(
                "tail", json.dumps(options), workload.single.file, workload.single.size - _MARGIN
            )
            size += place(answer["to"]) - place(answer["from"])
            seconds += answer["seconds"]
            waits += answer["waits"]
        return Sample(seconds, 0, size, {"waits": waits})

    return Measure("tail scan", run)


def start_up(kernel: Worker, workload: Workload, folder: Path) -> Measure:
    """Measure the import time that this package adds to an executor's worker."""
    path = folder / "reader.pickle"
    kernel.ask("pickled", json.dumps(file_options(workload, workload.bulk, "struct")), path)
    script = Path(__file__).with_name("start_up_worker.py")

    def run() -> Sample:
        command = [sys.executable, str(script), str(path)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return Sample(json.loads(done.stdout)["seconds"])

    return Measure("worker start-up", run)
