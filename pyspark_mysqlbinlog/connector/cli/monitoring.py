"""What `ingest` serves over HTTP while it runs: metrics and a status page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec

import typer

from pyspark_mysqlbinlog.connector.metrics.http_server import Page, PageServer
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics
from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["bind", "register_opentelemetry", "serve"]

_METRICS, _STATUS = "/metrics", "/"


def bind(
    watch: QueryWatch, address: str, *, metrics_port: int | None, status_port: int | None
) -> list[PageServer]:
    """Return the servers of the ports that are given, which are bound; with one port, one server.

    Raises OptionError if a port or address cannot be used, or prometheus-client is missing.
    """
    pages: dict[tuple[str, int], dict[str, Page]] = {}
    if metrics_port is not None:
        pages["--metrics-port", metrics_port] = {_METRICS: _metrics_page(watch)}
    if status_port is not None:
        # Port 0 is any free one, so two of them are two ports.
        shared = ("--metrics-port", status_port)
        key = shared if status_port and shared in pages else ("--status-port", status_port)
        pages.setdefault(key, {})[_STATUS] = _status_page(watch)
    servers = []
    for (flag, port), found in pages.items():
        try:
            servers.append(PageServer(address, port, found))
        except OSError as error:
            raise OptionError(
                f"{flag}: cannot listen at {address}:{port} ({error.strerror or error}); give"
                " another port or --listen-address"
            ) from None
    return servers


@contextmanager
def serve(servers: list[PageServer]) -> Iterator[None]:
    """Serve until the block ends; print the URLs."""
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
            for path in server.pages:
                name = "metrics" if path == _METRICS else "status page"
                typer.echo(f"{name}: {server.url(path)}", err=True)
        yield


def _metrics_page(watch: QueryWatch) -> Page:
    if find_spec("prometheus_client") is None:
        raise OptionError(
            "--metrics-port: prometheus-client is not installed; install this package's extra"
            " metrics"
        )
    from pyspark_mysqlbinlog.connector.metrics.prometheus import CONTENT_TYPE, exposition

    return Page(CONTENT_TYPE, lambda: exposition(partial(_reported, watch)))


def register_opentelemetry(watch: QueryWatch) -> None:
    """Report the metrics to OpenTelemetry; without a configured SDK, nothing requests them."""
    from opentelemetry.metrics import get_meter

    from pyspark_mysqlbinlog.connector.metrics.otel import register_instruments

    register_instruments(get_meter("pyspark_mysqlbinlog"), partial(_reported, watch))


def _reported(watch: QueryWatch) -> tuple[QueryMetrics, ...]:
    """Return the metrics once the query has a name: before, their labels would be wrong."""
    return watch.metrics() if watch.name else ()


def _status_page(watch: QueryWatch) -> Page:
    from pyspark_mysqlbinlog.connector.metrics.status_page import status_page

    return Page("text/html; charset=utf-8", lambda: status_page(watch.metrics()[0]).encode())
