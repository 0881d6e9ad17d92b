"""Metrics of the streams and mirrors of a Spark session, for Prometheus, OpenTelemetry and the log.

Spark notifies a listener of a query's start, its batches and its end. Of an idle query it reports
only the identifier, and of a running batch nothing. So a thread also polls the state of the
queries, once a second.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from pyspark_mysqlbinlog.connector.metrics.log_lines import line_of
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics
from pyspark_mysqlbinlog.connector.metrics.reading import readings
from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch
from pyspark_mysqlbinlog.connector.options.logging_setup import configure_logging
from pyspark_mysqlbinlog.connector.options.values import parse_duration
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror

__all__ = ["MySQLBinlogMetrics"]

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_KEPT_ENDED = 100


class MySQLBinlogMetrics(StreamingQueryListener):
    """A listener that reports the metrics of this package's queries in a session.

    Parameters
    ----------
    session
        The session whose queries are reported.
    mirrors
        Mirrors whose queries run in the session. They are reported with each table.
    log_interval
        How often a line for each query is logged, such as ``1m``; None for never. The level is
        INFO. Unless logging is configured, the lines go to stderr.

    Attributes
    ----------
    mirrors
        The same, as a list to which others can be added.

    Examples
    --------
    >>> metrics = MySQLBinlogMetrics(spark)  # doctest: +SKIP
    >>> spark.streams.addListener(metrics)  # doctest: +SKIP
    >>> metrics.register_prometheus()  # doctest: +SKIP
    """

    def __init__(
        self,
        session: SparkSession,
        *,
        mirrors: Sequence[DeltaMirror] = (),
        log_interval: str | None = "1m",
    ) -> None:
        super().__init__()
        # Spark sets the attribute `spark` in Spark Connect only.
        self._session = session
        self.mirrors = [*mirrors]
        self._log_seconds = _seconds(log_interval)
        if self._log_seconds is not None:
            configure_logging()
        self._lock = Lock()
        # Queries in the order of their starts; ended ones are kept for a while.
        self._watches: dict[str, QueryWatch] = {}
        self._running: set[str] = set()
        self._thread: Thread | None = None
        self._closed = Event()

    def metrics(self) -> tuple[QueryMetrics, ...]:
        """Return the metrics of each query, as they are now."""
        with self._lock:
            watches = [*self._watches.values()]
        return tuple(each for watch in watches for each in watch.metrics())

    def register_prometheus(self, registry: Any = None) -> None:
        """Add the metrics to a registry of prometheus-client, by default to its own."""
        from prometheus_client import REGISTRY

        from pyspark_mysqlbinlog.connector.metrics.prometheus import MetricsCollector

        (registry or REGISTRY).register(MetricsCollector(self.metrics))

    def register_opentelemetry(self, meter_provider: Any = None) -> None:
        """Add the metrics to a meter provider of OpenTelemetry, by default to the global one."""
        from opentelemetry import metrics

        from pyspark_mysqlbinlog.connector.metrics.otel import register_instruments

        meter = metrics.get_meter("pyspark_mysqlbinlog", meter_provider=meter_provider)
        register_instruments(meter, self.metrics)

    def close(self) -> None:
        """End the thread; call it after the listener was removed."""
        self._closed.set()

    # --- called by Spark

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._begin(str(event.id), event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = json.loads(event.progress.json)
        if any(readings(progress)):
            # The listener may have been added after the query started.
            self._begin(progress["id"], progress.get("name")).add(progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: the thread polls the query."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self._lock:
            self._running.discard(str(event.id))
            watch = self._watches.get(str(event.id))
        if watch is not None:
            watch.end()

    # --- inside

    def _begin(self, query: str, name: str | None) -> QueryWatch:
        with self._lock:
            if query not in self._running:
                # A query that is started again has the identifier of its checkpoint.
                self._watches.pop(query, None)
                self._watches[query] = QueryWatch(name or query)
                self._running.add(query)
                for each in [*self._watches][:-_KEPT_ENDED]:
                    if each not in self._running:
                        del self._watches[each]
            if self._thread is None:
                self._thread = Thread(target=self._run, name="mysqlbinlog-metrics", daemon=True)
                self._thread.start()
            return self._watches[query]

    def _run(self) -> None:
        logged_at, warned = monotonic(), set[str]()
        while not self._closed.wait(_POLL_SECONDS):
            for query, watch in self._active():
                try:
                    watch.mirror = next(
                        (each for each in self.mirrors if each.query_id == query), watch.mirror
                    )
                    self._observe(query, watch)
                except Exception as error:  # noqa: BLE001 (logged; the next round asks again)
                    # Spark may have ended; the last known values grow old.
                    if query not in warned:
                        warned.add(query)
                        _LOG.warning("cannot ask for the state of %s: %r", watch.name, error)
            if self._log_seconds is not None and monotonic() - logged_at >= self._log_seconds:
                logged_at = monotonic()
                for metrics in self.metrics():
                    if metrics.is_active:
                        _LOG.info("%s", line_of(metrics))

    def _active(self) -> Iterator[tuple[str, QueryWatch]]:
        with self._lock:
            found = [(query, self._watches[query]) for query in self._running]
        return iter(found)

    def _observe(self, query: str, watch: QueryWatch) -> None:
        found = self._session.streams.get(query)
        if found is not None:
            watch.observe(found)


def _seconds(interval: str | None) -> float | None:
    if interval is None:
        return None
    try:
        return parse_duration(interval)
    except ValueError:
        raise OptionError(
            f"log_interval: expected a duration such as 1m, or None, found {interval!r}"
        ) from None
