"""The peers' measures: mysql-binlog-connector-java, Debezium Engine, python-mysql-replication."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.decode.source_options import address
from benchmarks.harness.interleaved import Measure, Sample
from benchmarks.harness.workers import Worker, WorkerError, python_worker
from benchmarks.peers.jars import JavaPeers
from benchmarks.workload.orders import DATABASE, TABLE
from benchmarks.workload.workload import Part, Workload, flipped

__all__ = ["debezium", "java_log_reader", "java_verifies_checksums", "python_replication"]

# The JIT compiler takes some passes until the library is as fast as it gets.
_JAVA_WARM_UP = 5
# Debezium's defaults are 2,048, 8,192 and 500 ms.
_DEBEZIUM_TUNED = "max.batch.size=8192,max.queue.size=32768,poll.interval.ms=10"


def _address(workload: Workload) -> tuple[object, ...]:
    server = workload.server
    return server.host, server.port, server.user, server.password


def _checked(answer: dict[str, Any], rows: int) -> Sample:
    """A sample that counts all rows; those that came before the clock ran are not timed."""
    if answer["rows"] < rows:
        raise WorkerError(f"{answer['rows']} rows were counted, expected {rows}")
    return Sample(answer["seconds"], answer.get("timed_rows", answer["rows"]))


def _with_size(sample: Sample, size: int) -> Sample:
    return Sample(sample.seconds, sample.rows, size, sample.more)


def java_log_reader(
    stack: ExitStack, java: JavaPeers, workload: Workload, logs: Path
) -> Iterator[Measure]:
    """mysql-binlog-connector-java on one thread: a file's bytes in memory, and over the socket."""
    worker = stack.enter_context(java.worker("LogReader", logs / "java-log-reader.log"))

    def memory(part: Part) -> Callable[[], Sample]:
        return lambda: _with_size(_checked(worker.ask("memory", part.path), part.total), part.size)

    def socket(part: Part) -> Callable[[], Sample]:
        words = ("socket", *_address(workload), part.file, part.size)
        return lambda: _with_size(_checked(worker.ask(*words), part.total), part.size)

    for name, part in ("bulk", workload.bulk), ("single", workload.single):
        yield Measure(f"java library, memory, {name}", memory(part), _JAVA_WARM_UP)
        yield Measure(f"java library, socket, {name}", socket(part), 1)


def java_verifies_checksums(java: JavaPeers, workload: Workload, logs: Path) -> bool:
    """Whether the library notices a flipped bit in a row's text.

    Debezium reads with the same library.
    """
    damaged = flipped(workload.bulk, logs / "damaged-java")
    with java.worker("LogReader", logs / "java-checksums.log") as worker:
        try:
            worker.ask("memory", damaged)
        except WorkerError:
            return True
        return False


def debezium(
    stack: ExitStack, java: JavaPeers, workload: Workload, logs: Path
) -> Iterator[Measure]:
    """Debezium's embedded engine, on the whole backlog."""
    worker = stack.enter_context(java.worker("EngineReader", logs / "debezium.log"))

    def run(kind: str, settings: str) -> Sample:
        folder = Path(tempfile.mkdtemp(dir=logs, prefix="debezium-"))
        try:
            answer = worker.ask(
                kind,
                *_address(workload),
                f"{DATABASE}.{TABLE}",
                workload.rows,
                folder,
                workload.bulk.file,
                settings,
            )
        finally:
            shutil.rmtree(folder)
        return _checked(answer, workload.rows)

    yield Measure("debezium, json", lambda: run("json", ""))
    yield Measure("debezium, records", lambda: run("connect", ""))
    yield Measure("debezium, records, tuned", lambda: run("connect", _DEBEZIUM_TUNED))


def python_replication(
    stack: ExitStack, workload: Workload, logs: Path, rows: int
) -> Iterator[Measure]:
    """python-mysql-replication, on the beginning of each file."""
    worker: Worker = stack.enter_context(
        python_worker("peers.replication_worker", logs / "python.log")
    )

    def run(part: Part) -> Sample:
        wanted = min(rows, part.total)
        return _checked(worker.ask("read", address(workload.server), part.file, wanted), wanted)

    yield Measure("python-mysql-replication, bulk", lambda: run(workload.bulk))
    yield Measure("python-mysql-replication, single", lambda: run(workload.single))
