"""The ports of `ingest`: their servers, and errors before Spark starts."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from pyspark_mysqlbinlog.connector.cli.ingest import _has_opentelemetry
from pyspark_mysqlbinlog.connector.cli.main import app
from pyspark_mysqlbinlog.connector.cli.monitoring import bind
from pyspark_mysqlbinlog.connector.delta.query.progress import MirrorProgress
from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch

HOME = "127.0.0.1"


@pytest.mark.parametrize(
    ("ports", "paths"),
    [
        ((None, None), []),
        ((0, None), [["/metrics"]]),
        ((None, 0), [["/"]]),
        ((0, 0), [["/metrics"], ["/"]]),
    ],
)
def test_each_monitoring_port_has_a_server_for_its_page(
    ports: tuple[int | None, int | None], paths: list[list[str]]
) -> None:
    servers = bind(QueryWatch("q"), HOME, metrics_port=ports[0], status_port=ports[1])
    assert [[*server.pages] for server in servers] == paths
    for server in servers:
        server.server_close()


def test_one_port_for_metrics_and_status_serves_both_pages() -> None:
    with socket.socket() as free:
        free.bind((HOME, 0))
        port = free.getsockname()[1]
    (server,) = bind(QueryWatch("q"), HOME, metrics_port=port, status_port=port)
    assert [*server.pages] == ["/metrics", "/"]
    server.server_close()


def test_metrics_are_labeled_with_the_query_name() -> None:
    watch = QueryWatch("", SimpleNamespace(progress=MirrorProgress(), stopped={}))
    servers = bind(watch, HOME, metrics_port=0, status_port=0)
    metrics, status = (page for server in servers for page in server.pages.values())
    assert b"query=" not in metrics.content()
    assert b"starting" in status.content()
    watch.name = "q"
    metrics._made = None
    assert b'mysqlbinlog_query_active{query="q"} 1.0' in metrics.content()
    for server in servers:
        server.server_close()


@pytest.mark.parametrize(
    ("package", "has_it"),
    [(None, False), ("opentelemetry/proto", False), ("opentelemetry/metrics", True)],
)
def test_opentelemetry_is_detected_only_with_its_metrics_package(
    package: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_it: bool
) -> None:
    if package is not None:
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").touch()
    for name in [each for each in sys.modules if each.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert _has_opentelemetry() == has_it
    sys.modules.pop("opentelemetry", None)


def invoked(folder: Path, *more: str) -> tuple[int, str]:
    arguments = ["ingest", "--host", "db.invalid", "--user", "u", "--tables", "shop.*"]
    arguments += ["--target", f"{folder}/{{database}}/{{table}}", "--checkpoint", str(folder)]
    found = CliRunner().invoke(app, [*arguments, *more])
    return found.exit_code, found.output


@pytest.mark.parametrize("flag", ["--metrics-port", "--status-port"])
def test_monitoring_port_in_use_gives_a_one_line_error(tmp_path: Path, flag: str) -> None:
    with socket.create_server((HOME, 0)) as taken:
        port = taken.getsockname()[1]
        code, output = invoked(tmp_path, flag, str(port))
    assert code == 2
    assert output == (
        f"OptionError: {flag}: cannot listen at {HOME}:{port} (Address already in use); give"
        " another port or --listen-address\n"
    )


@pytest.mark.parametrize("address", ["203.0.113.7", "host.invalid"])
def test_listen_address_of_another_machine_gives_a_one_line_error(
    tmp_path: Path, address: str
) -> None:
    code, output = invoked(tmp_path, "--status-port", "0", "--listen-address", address)
    assert code == 2
    assert output.startswith(f"OptionError: --status-port: cannot listen at {address}:0 (")
    assert output.count("\n") == 1


def test_metrics_port_above_65535_is_rejected(tmp_path: Path) -> None:
    code, output = invoked(tmp_path, "--metrics-port", "65536")
    assert code == 2
    assert "65535" in output


def test_metrics_port_without_prometheus_client_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the package was not installed.
    monkeypatch.setattr("pyspark_mysqlbinlog.connector.cli.monitoring.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "prometheus_client", raising=False)
    code, output = invoked(tmp_path, "--metrics-port", "0")
    assert code == 2
    assert "prometheus-client is not installed" in output
