"""Metrics for OpenTelemetry, whose library need not be installed.

Names are those of Prometheus without `_total`, with dots: `mysqlbinlog.lag_seconds`. The labels are
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.connector.metrics.families import FAMILIES, Family
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

__all__ = ["otel_name", "register_instruments"]


def otel_name(family: Family) -> str:
    """Return the name of a metric in OpenTelemetry."""
    return family.name.removesuffix("_total").replace("_", ".", 1)


def register_instruments(meter: Meter, metrics: Callable[[], Iterable[QueryMetrics]]) -> None:
    """Create an observable instrument of a meter for each metric."""
    for family in FAMILIES:
        create = (
            meter.create_observable_counter
            if family.kind == "counter"
            else meter.create_observable_gauge
        )
        create(
            otel_name(family),
            callbacks=[partial(_observations, family, metrics)],
            unit=family.unit,
            description=family.help,
        )


def _observations(
    family: Family, metrics: Callable[[], Iterable[QueryMetrics]], _options: object
) -> Iterator[Any]:
    from opentelemetry.metrics import Observation

    for labels, value in family.samples(metrics()).items():
        yield Observation(float(value), dict(zip(family.labels, labels, strict=True)))
