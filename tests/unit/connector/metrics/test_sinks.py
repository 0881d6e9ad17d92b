"""The metrics in Prometheus, in OpenTelemetry and in log lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from helpers.tools.metrics import HOSTILE, NOW, mirror_metrics
from pyspark_mysqlbinlog.connector.metrics.families import FAMILIES, MAX_TABLES
from pyspark_mysqlbinlog.connector.metrics.log_lines import line_of
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics, SourceMetrics, TableMetrics
from pyspark_mysqlbinlog.connector.metrics.otel import otel_name, register_instruments
from pyspark_mysqlbinlog.connector.metrics.prometheus import MetricsCollector, exposition

Samples = dict[tuple[str, tuple[str, ...]], float]


def _values(labels: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values of labels, ordered by the labels' names."""
    return tuple(labels[name] for name in sorted(labels))


def scraped(*queries: QueryMetrics) -> Samples:
    """Return the samples that Prometheus parses."""
    text = exposition(lambda: queries).decode("utf-8")
    return {
        (sample.name, _values(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_exposition_has_every_metric_value() -> None:
    found = scraped(mirror_metrics())
    shop = ("shop",)
    assert {name: value for (name, labels), value in found.items() if labels == shop} == {
        "mysqlbinlog_query_active": 1,
        "mysqlbinlog_lag_seconds": 12.5,
        "mysqlbinlog_lag_bytes": 123456,
        "mysqlbinlog_lag_files": 2,
        "mysqlbinlog_purge_in_seconds": 7200,
        "mysqlbinlog_retention_left_ratio": 0.25,
        "mysqlbinlog_reconnects_total": 3,
        "mysqlbinlog_failovers_total": 1,
        "mysqlbinlog_rows_total": 1500,
        "mysqlbinlog_batches_total": 7,
        "mysqlbinlog_batch_duration_seconds_total": 21,
        "mysqlbinlog_last_batch_duration_seconds": 2.5,
        "mysqlbinlog_snapshot_tables_completed": 4,
        "mysqlbinlog_snapshot_tables_remaining": 2,
        "mysqlbinlog_snapshot_rows": 5000,
        "mysqlbinlog_snapshot_remaining_seconds": 90,
        "mysqlbinlog_tables": 4,
        "mysqlbinlog_tables_stopped": 2,
    }
    orders = ("shop", "shop", "orders")
    assert {name: value for (name, labels), value in found.items() if labels == orders} == {
        "mysqlbinlog_table_rows_total": 1000,
        "mysqlbinlog_table_bytes_total": 9000,
        "mysqlbinlog_table_commit_lag_seconds": 1.5,
        "mysqlbinlog_table_stopped": 0,
        "mysqlbinlog_table_snapshot_rows": 800,
        "mysqlbinlog_table_snapshot_rows_estimate": 4000,
    }
    stopped = {
        labels[2]
        for (name, labels), value in found.items()
        if name.endswith("le_stopped") and value
    }
    assert stopped == {"keyless", "log"}


def test_unknown_metric_values_have_no_series() -> None:
    found = scraped(QueryMetrics("q", NOW, source=SourceMetrics()))
    assert {name for name, _ in found} == {
        "mysqlbinlog_query_active",
        "mysqlbinlog_reconnects_total",
        "mysqlbinlog_failovers_total",
        "mysqlbinlog_rows_total",
        "mysqlbinlog_batches_total",
        "mysqlbinlog_batch_duration_seconds_total",
    }


def test_hostile_table_names_round_trip_as_prometheus_labels() -> None:
    name = f"ñ漢{HOSTILE}"
    found = scraped(mirror_metrics(TableMetrics("shop", name, 5)))
    assert found["mysqlbinlog_table_rows_total", ("shop", "shop", name)] == 5


def test_prometheus_series_are_bounded_for_many_tables() -> None:
    tables = [
        TableMetrics("shop", f"t{number}", 1, 1, 0.0, float(number)) for number in range(3000)
    ]
    tables[2500] = TableMetrics("shop", "t2500", stopped="HOSTILE" * 1000)
    found = scraped(mirror_metrics(*tables))
    names = [name for name, labels in found if len(labels) == 3]
    assert len(names) <= 6 * (MAX_TABLES + 1)
    others = ("*", "shop", "*")
    assert found["mysqlbinlog_table_rows_total", others] == 1999
    assert found["mysqlbinlog_table_commit_lag_seconds", others] == 2999
    assert found["mysqlbinlog_table_stopped", others] == 1
    assert sum(v for (n, _), v in found.items() if n == "mysqlbinlog_table_rows_total") == 2999
    assert len(exposition(lambda: [mirror_metrics(*tables)])) < 1_000_000


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_metric_names_follow_prometheus_conventions(family: Any) -> None:
    assert re.fullmatch(r"mysqlbinlog(_[a-z]+)+", family.name)
    assert family.name.endswith("_total") == (family.kind == "counter")
    unit = {"s": "_seconds", "By": "_bytes", "1": "_ratio", "": ""}[family.unit]
    assert family.name.removesuffix("_total").endswith(unit)
    assert family.help.endswith(".")


def test_collector_registration_reads_no_metrics_and_rejects_duplicates() -> None:
    registry = CollectorRegistry(auto_describe=True)
    asked: list[int] = []

    def metrics() -> list[QueryMetrics]:
        asked.append(1)
        return [mirror_metrics(), mirror_metrics(query="other")]

    registry.register(MetricsCollector(metrics))
    assert not asked
    assert registry.get_sample_value("mysqlbinlog_lag_seconds", {"query": "other"}) == 12.5
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(MetricsCollector(metrics))


def test_opentelemetry_values_equal_those_of_prometheus() -> None:
    export = pytest.importorskip("opentelemetry.sdk.metrics.export", reason="no OpenTelemetry SDK")
    from opentelemetry.sdk.metrics import MeterProvider

    reader = export.InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    queries = [mirror_metrics()]
    register_instruments(provider.get_meter("test"), lambda: queries)
    data = reader.get_metrics_data()
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    found = {
        (metric.name, _values(point.attributes)): point.value
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    names = {family.name: otel_name(family) for family in FAMILIES}
    expected = {(names[name], labels): value for (name, labels), value in scraped(*queries).items()}
    assert found == expected
    assert names["mysqlbinlog_rows_total"] == "mysqlbinlog.rows"


def test_metrics_log_line_shows_lag_snapshot_rows_and_stopped_tables() -> None:
    assert line_of(mirror_metrics()) == (
        "shop: lag 12 s, 123,456 bytes in 3 files to read, purge in 2.0 h, reconnects: 3,"
        " failovers: 1, snapshot of 2 tables with 5,000 rows so far (90 s left), 1,500 rows in"
        " 7 batches, the last in 2.5 s, 4 tables, stopped: shop.keyless and 1 more"
    )
    assert line_of(QueryMetrics("q", NOW)) == "q: lag unknown, 0 rows in 0 batches"
    idle = QueryMetrics("q", NOW, lag_seconds=0.0, source=SourceMetrics(0, 0))
    assert line_of(idle) == "q: lag 0 s, 0 rows in 0 batches"
    assert line_of(QueryMetrics("q", NOW, is_active=False)).startswith("q: not running, ")
