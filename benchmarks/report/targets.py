"""What the project promises, as ratios between measures of one run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.interleaved import Sample, Series, percentile
from benchmarks.harness.targets import PerformanceTarget

__all__ = ["TARGETS", "Limit", "limits"]


TARGETS = (
    PerformanceTarget(
        "decode, struct: rows, against mysql-binlog-connector-java",
        "decode, kernel, struct, bulk",
        "java library, memory, bulk",
        3.0,
    ),
    PerformanceTarget(
        "decode, struct: bytes, against the raw socket read",
        "decode, kernel, struct, bulk",
        "raw socket read, bulk",
        1.0,
        "size",
    ),
    PerformanceTarget(
        "decode, json: rows, against mysql-binlog-connector-java",
        "decode, kernel, json, bulk",
        "java library, memory, bulk",
        1.3,
    ),
    PerformanceTarget(
        "driver's scan: bytes, against the raw socket read",
        "tail scan",
        "raw socket read",
        1.0,
        "size",
    ),
    PerformanceTarget(
        "decode of single-row transactions, struct, against mysql-binlog-connector-java",
        "decode, kernel, struct, single",
        "java library, memory, single",
        2.5,
    ),
    PerformanceTarget(
        "files to noop, struct, against Spark's upper bound",
        "files to noop, struct",
        "spark upper bound, batch, struct",
        0.8,
    ),
    PerformanceTarget(
        "live backlog to noop, struct, against Spark's upper bound",
        "live to noop, struct",
        "spark upper bound, batch, struct",
        0.5,
    ),
    PerformanceTarget(
        "live backlog to noop, struct, against Debezium Engine (JSON, default settings)",
        "live to noop, struct",
        "debezium, json",
        15.0,
    ),
    PerformanceTarget(
        "live backlog to noop, struct, against Debezium Engine (records, tuned)",
        "live to noop, struct",
        "debezium, records, tuned",
        15.0,
    ),
    PerformanceTarget(
        "decode, struct: compiled against pure Python",
        "decode, kernel, struct, from a file, bulk",
        "decode, python, struct, bulk",
        20.0,
    ),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that has an upper bound."""

    name: str
    found: float
    at_most: float
    unit: str


def limits(series: Mapping[str, Series], memory: Mapping[str, Any]) -> list[Limit]:
    """memory : by payload, what `memory` measured; empty where it did not."""
    found = []
    waits = _all(series, "tail scan", "waits")
    # A log so short that the first offset is its end has none.
    if waits:
        wait = 1000 * percentile(waits, 99)
        found.append(Limit("latestOffset while the driver scans, p99", wait, 5, "ms"))
    ours, made = (
        _all(series, name, "latencies")
        for name in ("latency, pyspark-mysqlbinlog", "latency, prepared")
    )
    if ours and made:
        for name, at, most in ("p50", 50, 50), ("p99", 99, 300):
            above = 1000 * (percentile(ours, at) - percentile(made, at))
            found.append(
                Limit(f"latency above that of prepared batches, {name}", above, most, "ms")
            )
    start = statistics.median(sample.seconds for sample in series["worker start-up"].samples)
    found.append(Limit("start-up in an executor's worker", 1e3 * start, 300, "ms"))
    for payload, peaks in memory.items():
        found.append(
            Limit(f"memory of the driver's process, {payload}", peaks["driver"] / 2**20, 300, "MB")
        )
        found.append(
            Limit(f"memory of an executor's worker, {payload}", peaks["worker"] / 2**20, 400, "MB")
        )
    return found


def _all(series: Mapping[str, Series], name: str, figures: str) -> list[float]:
    """Lists of figures of all rounds, as one."""
    samples: list[Sample] = series[name].samples if name in series else []
    return [figure for sample in samples for figure in sample.more[figures]]
