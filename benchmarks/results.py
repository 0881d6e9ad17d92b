"""The figures of a run, as they are stored in results.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bars import BARS, Bar, Limit, limits, ratio
from rounds import Sample, Series, percentile
from scale import Scale
from workload import Part, Workload

__all__ = ["collect", "stored_series"]


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
        "ratios": [_ratio(bar, series) for bar in BARS],
        "limits": [_limit(limit) for limit in limits(series, memory)],
        "memory": dict(memory),
    }


def _parts(workload: Workload) -> list[tuple[str, Part]]:
    return [("bulk", workload.bulk), ("single", workload.single)]


def _part(part: Part) -> dict[str, Any]:
    return {"rows": part.rows, "bytes": part.size}


def stored_series(found: Series) -> dict[str, Any]:
    """All samples of one measure."""
    first = found.samples[0]
    stored: dict[str, Any] = {
        "seconds": [round(sample.seconds, 4) for sample in found.samples],
    }
    if first.rows:
        stored["rows_per_second"] = round(found.rows_per_second)
    if first.size:
        stored["mb_per_second"] = round(found.bytes_per_second / 1e6, 1)
    for name in ("latencies", "waits"):
        values = [value for sample in found.samples for value in sample.more.get(name, [])]
        if values:
            stored[f"{name}_ms"] = _spread(values)
    others = [_others(sample) for sample in found.samples]
    if any(others):
        stored["more"] = others
    return stored


def _others(sample: Sample) -> dict[str, Any]:
    return {
        name: found for name, found in sample.more.items() if name not in {"latencies", "waits"}
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {
        "count": len(values),
        "p50": round(1e3 * percentile(values, 50), 2),
        "p99": round(1e3 * percentile(values, 99), 2),
        "most": round(1e3 * max(values), 2),
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return asdict(limit) | {"found": round(limit.found, 2)}


def _ratio(bar: Bar, series: Mapping[str, Series]) -> dict[str, Any]:
    middle, low, high = ratio(bar, series)
    return {
        "name": bar.name,
        "ours": bar.ours,
        "against": bar.against,
        "ratio": round(middle, 2),
        "low": round(low, 2),
        "high": round(high, 2),
        "at_least": bar.at_least,
    }
