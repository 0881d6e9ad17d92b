"""Interleaved measurements: each runs once a round, so what disturbs the machine disturbs all."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Measure", "Sample", "Series", "percentile", "run_rounds"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement.

    Attributes
    ----------
    rows, size : changes, and bytes of log, that were read in `seconds`; 0 where it is about none.
    more : other figures.
    """

    seconds: float
    rows: int = 0
    size: int = 0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measure:
    """Something to measure.

    Attributes
    ----------
    name : `ours` or a peer, and what it does: ``debezium json``.
    run : does it once.
    warm_up : how often it is done before the first round.
    """

    name: str
    run: Callable[[], Sample]
    warm_up: int = 1


@dataclass(slots=True)
class Series:
    """What all rounds gave for one measure."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def rows_per_second(self) -> float:
        return statistics.median(sample.rows / sample.seconds for sample in self.samples)

    @property
    def bytes_per_second(self) -> float:
        return statistics.median(sample.size / sample.seconds for sample in self.samples)


def percentile(values: Sequence[float], at: int) -> float:
    """By nearest rank: the least of the values that at least `at` percent of them do not exceed."""
    return sorted(values)[-(-len(values) * at // 100) - 1]


# Lists of figures: for the report only.
_LONG = ("latencies", "waits")


def run_rounds(measures: Sequence[Measure], rounds: int, *, warm: bool = True) -> dict[str, Series]:
    """Every measure's samples, in order of the rounds.

    warm : each measure warms up first.
    """
    series = {measure.name: Series() for measure in measures}
    assert len(series) == len(measures), "two measures have one name"
    for measure in measures:
        for _ in range(measure.warm_up if warm else 0):
            _say(f"warm-up: {measure.name}")
            measure.run()
    for number in range(rounds):
        # Each round begins with another one, so that none always runs after the same one.
        turn = number % len(measures)
        for measure in [*measures[turn:], *measures[:turn]]:
            sample = measure.run()
            series[measure.name].samples.append(sample)
            _say(f"round {number + 1}: {measure.name}: {_told(sample)}")
    return series


def _told(sample: Sample) -> str:
    parts = [f"{sample.seconds:.3f} s"]
    if sample.rows:
        parts.append(f"{sample.rows / sample.seconds:,.0f} rows/s")
    if sample.size:
        parts.append(f"{sample.size / sample.seconds / 1e6:,.0f} MB/s")
    parts += [f"{name} {value}" for name, value in sample.more.items() if name not in _LONG]
    return ", ".join(parts)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
