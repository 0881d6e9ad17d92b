"""The dashboard and alert rules of examples/monitoring match the existing metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyspark_mysqlbinlog.connector.metrics.families import FAMILIES

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "examples" / "monitoring"
LABELS = {family.name: {*family.labels} for family in FAMILIES}
_NAME = re.compile(r"\bmysqlbinlog_\w+")
_TEMPLATE = re.compile(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}")


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> list[tuple[str, str]]:
    """Return each expression with the text that shows its labels."""
    shown = [
        (target["expr"], target["legendFormat"])
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    ]
    return shown + [(rule["expr"], str(rule["annotations"])) for rule in rules()]


@pytest.mark.parametrize(("expression", "text"), expressions())
def test_example_expressions_use_only_existing_metrics_and_labels(
    expression: str, text: str
) -> None:
    names = _NAME.findall(expression)
    assert names
    for name in names:
        assert name in LABELS
        assert {*re.findall(r"(\w+)=~?\"", expression)} <= LABELS[name]
        assert {*_TEMPLATE.findall(text)} <= LABELS[name]


def test_example_dashboard_and_alerts_use_every_metric() -> None:
    shown = {name for expression, _ in expressions() for name in _NAME.findall(expression)}
    assert shown == {*LABELS}


def test_dashboard_query_variable_lists_the_query_labels() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert variables["query"]["query"]["query"] == ("label_values(mysqlbinlog_query_active, query)")


def test_dashboard_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & taken
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_promtool_accepts_the_example_configuration() -> None:
    done = subprocess.run(
        ["promtool", "check", "config", str(FOLDER / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout
