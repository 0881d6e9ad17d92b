"""All samples of one measure, as they are stored."""

from __future__ import annotations

from typing import Any

from benchmarks.harness.interleaved import Sample, Series, percentile

__all__ = ["stored_series"]


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
