"""The decode of compressed transactions, against libzstd alone and the decode of plain ones.

``make bench BENCH_ARGS=--compressed`` writes compressed.json, and the table in
docs/explanation/benchmarks.md. A MySQL 9 writes the workload twice, without and with
binlog_transaction_compression.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.decode.source_options import file_options
from benchmarks.harness.interleaved import Measure, Sample, Series, run_rounds
from benchmarks.harness.machine import describe
from benchmarks.harness.scale import Scale
from benchmarks.harness.series import stored_series
from benchmarks.harness.targets import PerformanceTarget, ratio
from benchmarks.harness.workers import Worker
from benchmarks.workload.workload import Part, Workload, write_workload
from helpers.servers import MySQL9Server

__all__ = ["WrittenTwice", "measure", "written_workloads"]

_FILES = ("bulk", "single")
_PAYLOADS = ("struct", "json")
_AT_LEAST = 0.8


@dataclass(frozen=True, slots=True)
class WrittenTwice:
    """The same workload in two binlogs.

    Attributes
    ----------
    machine : what it was written on; see `describe`.
    """

    plain: Workload
    compressed: Workload
    machine: dict[str, Any]


def written_workloads(folder: Path, scale: Scale, load: float) -> WrittenTwice:
    """Let a server write the workload plain, and another one compressed.

    load : of the machine, before anything was begun.
    """
    reason = MySQL9Server.missing()
    if reason is not None:
        raise SystemExit(reason)
    found: list[Workload] = []
    for compression in ("OFF", "ON"):
        options = [
            "--innodb-buffer-pool-size=512M",
            "--max-allowed-packet=64M",
            "--max-binlog-size=1G",
            f"--binlog-transaction-compression={compression}",
        ]
        with MySQL9Server(options) as server:
            (folder / compression).mkdir()
            found.append(write_workload(server, folder / compression, scale))
            machine = describe(server, {}, load)
    plain, compressed = found
    return WrittenTwice(plain, compressed, machine)


@dataclass(frozen=True, slots=True)
class _Case:
    """One file of the workload, decoded to one payload."""

    file: str
    payload: str
    written: WrittenTwice

    @property
    def target(self) -> PerformanceTarget:
        name = f"{self.payload}, {self.file}"
        return PerformanceTarget(
            name,
            f"decode, kernel, {name}, compressed",
            f"libzstd, then decode, kernel, {name}, plain",
            _AT_LEAST,
        )

    def part(self, workload: Workload) -> Part:
        return workload.bulk if self.file == "bulk" else workload.single

    def measures(self, kernel: Worker) -> Iterator[Measure]:
        def decode(workload: Workload) -> Sample:
            part = self.part(workload)
            options = json.dumps(file_options(workload, part, self.payload))
            answer = kernel.ask("decode", options, part.total, "memory")
            return Sample(answer["seconds"], answer["rows"], part.size)

        def decompress_and_decode() -> Sample:
            answer = kernel.ask("decompress", self.part(self.written.compressed).path)
            decoded = decode(self.written.plain)
            return Sample(answer["seconds"] + decoded.seconds, decoded.rows, decoded.size)

        yield Measure(self.target.ours, lambda: decode(self.written.compressed))
        yield Measure(self.target.against, decompress_and_decode)


def measure(kernel: Worker, written: WrittenTwice, scale: Scale) -> list[dict[str, Any]]:
    """One entry for each file of the workload and each payload."""
    cases = [_Case(file, payload, written) for file in _FILES for payload in _PAYLOADS]
    measures = [each for case in cases for each in case.measures(kernel)]
    series = run_rounds(measures, scale.rounds, warm=scale.warm_up)
    return [_entry(case, series) for case in cases]


def _entry(case: _Case, series: Mapping[str, Series]) -> dict[str, Any]:
    target = case.target
    plain, compressed = case.part(case.written.plain), case.part(case.written.compressed)
    middle, low, high = ratio(target, series)
    return {
        "name": target.name,
        "rows": plain.total,
        "bytes_plain": plain.size,
        "bytes_compressed": compressed.size,
        "ours": stored_series(series[target.ours]),
        "against": stored_series(series[target.against]),
        "ratio": round(middle, 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "at_least": target.at_least,
    }
