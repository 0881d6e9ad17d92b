"""Metrics for Prometheus, in its text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pyspark_mysqlbinlog.connector.metrics.families import FAMILIES
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics

__all__ = ["CONTENT_TYPE", "MetricsCollector", "exposition"]

# The type of `generate_latest`. The library's own constant differs in later versions.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsCollector(Collector):
    """Yields the metrics of queries, as they are when Prometheus asks."""

    def __init__(self, metrics: Callable[[], Iterable[QueryMetrics]]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without values, so that the registration queries nothing."""
        return self._families(())

    def collect(self) -> Iterator[Metric]:
        return self._families(tuple(self._metrics()))

    @staticmethod
    def _families(queries: Iterable[QueryMetrics]) -> Iterator[Metric]:
        for family in FAMILIES:
            make = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            found = make(family.name, family.help, labels=family.labels)
            for labels, value in family.samples(queries).items():
                found.add_metric(labels, float(value))
            yield found


def exposition(metrics: Callable[[], Iterable[QueryMetrics]]) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MetricsCollector(metrics))
    return generate_latest(registry)
