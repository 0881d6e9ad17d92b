"""Files for users that no test can run here must fit the package and one another."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from typer.testing import CliRunner

import pyspark_mysqlbinlog
from helpers.tools.documents_shop import ROOT
from pyspark_mysqlbinlog.connector.cli.main import app

MONITORING = ROOT / "examples" / "monitoring"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
IMAGE = (MONITORING / "Dockerfile").read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("service", COMPOSE)
def test_mounted_files_of_the_compose_file_exist(service: str) -> None:
    sources = [volume.split(":")[0] for volume in COMPOSE[service].get("volumes", [])]
    assert all((ROOT / source).exists() for source in sources if source.startswith("."))


def test_ports_of_the_compose_file_are_on_loopback_only() -> None:
    ports = [port for service in COMPOSE.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_ingest_flags_in_monitoring_image_exist() -> None:
    given = set(re.findall(r"--[a-z-]+", IMAGE[IMAGE.index("pyspark-mysqlbinlog ingest") :]))
    known = set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["ingest", "--help"]).stdout))
    assert given
    assert given <= known


def test_image_ports_equal_those_in_prometheus_and_compose_files() -> None:
    metrics, status = re.findall(r"--(?:metrics|status)-port (\d+)", IMAGE)
    scraped = yaml.safe_load((MONITORING / "prometheus-compose.yml").read_text())
    assert scraped["scrape_configs"][0]["static_configs"][0]["targets"] == [f"ingest:{metrics}"]
    assert COMPOSE["ingest"]["ports"] == [f"127.0.0.1:{status}:{status}"]


def test_extras_in_monitoring_image_are_declared() -> None:
    (extras,) = re.findall(r"/source\[([a-z,]+)\]", IMAGE)
    assert set(extras.split(",")) <= set(SETTINGS["project"]["optional-dependencies"])


def test_release_workflow_runs_for_version_tags_with_full_history() -> None:
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert 'tags: ["v*"]' in workflow
    assert workflow.count("fetch-depth: 0") == 2
    assert SETTINGS["project"]["dynamic"] == ["version"]


def test_package_version_is_a_release_or_development_version() -> None:
    assert re.match(r"\d+\.\d+(\.\d+)?(\.dev\d+)?(\+|$)", pyspark_mysqlbinlog.__version__)
