"""A ratio between two measures of one run, and what it is to be."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.harness.interleaved import Series

__all__ = ["PerformanceTarget", "ratio"]


@dataclass(frozen=True, slots=True)
class PerformanceTarget:
    """`ours` is at least so many times as fast as `against`.

    Attributes
    ----------
    by : what is compared: changes a second, or bytes of log.
    """

    name: str
    ours: str
    against: str
    at_least: float
    by: Literal["rows", "size"] = "rows"


def ratio(target: PerformanceTarget, series: Mapping[str, Series]) -> tuple[float, float, float]:
    """(median, lowest, highest) over the rounds, each of which compares what ran in it."""

    def speeds(name: str) -> list[float]:
        return [getattr(sample, target.by) / sample.seconds for sample in series[name].samples]

    pairs = zip(speeds(target.ours), speeds(target.against), strict=True)
    found = [ours / against for ours, against in pairs]
    return statistics.median(found), min(found), max(found)
