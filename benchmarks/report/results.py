"""The figures of a run, as they are stored in data/results.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from benchmarks.harness.interleaved import Series
from benchmarks.harness.scale import Scale
from benchmarks.harness.series import stored_series
from benchmarks.harness.targets import PerformanceTarget, ratio
from benchmarks.report.targets import TARGETS, Limit, limits
from benchmarks.workload.workload import Part, Workload

__all__ = ["collect"]


def collect(
    scale: Scale,
    machine: dict[str, Any],
    workload: Workload,
    series: Mapping[str, Series],
    *,
    memory: Mapping[str, Any],
    verifies: Mapping[str, bool],
) -> dict[str, Any]:
    """All of it as plain data.

    verifies : who notices a flipped bit of a row, by name.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "scale": asdict(scale),
        "log": {name: _part(part) for name, part in _parts(workload)},
        "verifies_checksums": dict(verifies),
        "measures": {name: stored_series(found) for name, found in series.items()},
        "ratios": [_ratio(target, series) for target in TARGETS],
        "limits": [_limit(limit) for limit in limits(series, memory)],
        "memory": dict(memory),
    }


def _parts(workload: Workload) -> list[tuple[str, Part]]:
    return [("bulk", workload.bulk), ("single", workload.single)]


def _part(part: Part) -> dict[str, Any]:
    return {"rows": part.rows, "bytes": part.size}


def _limit(limit: Limit) -> dict[str, Any]:
    return asdict(limit) | {"found": round(limit.found, 2)}


def _ratio(target: PerformanceTarget, series: Mapping[str, Series]) -> dict[str, Any]:
    middle, low, high = ratio(target, series)
    return {
        "name": target.name,
        "ours": target.ours,
        "against": target.against,
        "ratio": round(middle, 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "at_least": target.at_least,
    }
