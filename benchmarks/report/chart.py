"""The results as a picture: changes a second, one bar each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

__all__ = ["draw"]

_OURS, _PEER, _UPPER_BOUND = "#1f6f8b", "#b9b9b9", "#e0a458"

# What each panel shows: measure, label, colour.
_PANELS = (
    (
        "Reading rows in bulk, log to memory",
        (
            ("decode, kernel, struct, bulk", "this project, struct", _OURS),
            ("decode, kernel, variant, bulk", "this project, variant", _OURS),
            ("decode, kernel, json, bulk", "this project, json", _OURS),
            ("java library, memory, bulk", "mysql-binlog-connector-java", _PEER),
            ("decode, python, struct, bulk", "this project in pure Python", _OURS),
            ("python-mysql-replication, bulk", "python-mysql-replication", _PEER),
        ),
    ),
    (
        "Reading single-row transactions",
        (
            ("decode, kernel, struct, single", "this project, struct", _OURS),
            ("decode, kernel, json, single", "this project, json", _OURS),
            ("java library, memory, single", "mysql-binlog-connector-java", _PEER),
            ("decode, python, struct, single", "this project in pure Python", _OURS),
            ("python-mysql-replication, single", "python-mysql-replication", _PEER),
        ),
    ),
    (
        "The whole log, end to end",
        (
            ("spark upper bound, batch, struct", "Spark's upper bound, struct", _UPPER_BOUND),
            ("files to noop, struct", "this project, files to Spark", _OURS),
            ("live to noop, struct", "this project, server to Spark", _OURS),
            ("debezium, records, tuned", "Debezium Engine, tuned", _PEER),
            ("debezium, json", "Debezium Engine, JSON", _PEER),
        ),
    ),
)


def draw(results: dict[str, Any], target: Path) -> None:
    """Write an SVG that is the same for the same results."""
    measures = results["measures"]
    settings: dict[Any, Any] = {"svg.hashsalt": "benchmark", "font.size": 9, "svg.fonttype": "path"}
    with mpl.rc_context(settings):
        heights = [len(bars) for _, bars in _PANELS]
        figure, panels = plt.subplots(
            len(_PANELS), 1, figsize=(8, 6.6), height_ratios=heights, layout="constrained"
        )
        for axes, (title, bars) in zip(panels, _PANELS, strict=True):
            speeds = [measures[name]["rows_per_second"] / 1e6 for name, _, _ in bars]
            labels = [label for _, label, _ in bars]
            drawn = axes.barh(labels, speeds, color=[colour for _, _, colour in bars])
            axes.bar_label(drawn, [_told(speed) for speed in speeds], padding=3)
            axes.invert_yaxis()
            axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
            axes.spines[["top", "right", "bottom"]].set_visible(False)
            axes.set_xlim(0, max(speeds) * 1.15)
            axes.xaxis.set_visible(False)
            axes.tick_params(axis="y", length=0)
        figure.suptitle("Changes a second (more is better)", x=0.01, ha="left", fontsize=11)
        figure.savefig(target, metadata={"Date": None})
        plt.close(figure)


def _told(millions: float) -> str:
    return f"{millions:.2f} M" if millions >= 0.1 else f"{millions * 1000:.0f} k"
