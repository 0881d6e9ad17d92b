"""Charts as inline SVG: bars over time, and rows of stacked bars.

Every text is escaped here, because names of tables and files come from the log. A chart has no
script; the exact numbers are in tooltips (`title`).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from pyspark_mysqlbinlog.connector.inspection.literals import printable

__all__ = ["Bar", "Column", "bar_chart", "column_chart", "short", "text"]

_WIDTH = 920
_PLOT_HEIGHT = 150
_TOP, _BOTTOM, _LEFT, _RIGHT = 14, 24, 64, 8
_ROW_HEIGHT, _BAR_HEIGHT = 26, 14
_NAME_WIDTH, _VALUE_WIDTH = 260, 130
_MAX_NAME = 38


class Column(NamedTuple):
    """A bar over time: its place from 0 to 1, its width likewise, its value and its tooltip."""

    place: float
    width: float
    value: int
    tip: str


class Bar(NamedTuple):
    """A row: its name, its parts as (value, CSS class), the text after it and its tooltip."""

    name: str
    parts: Sequence[tuple[int, str]]
    value: str
    tip: str


def text(value: object) -> str:
    """Return text that HTML shows as it is."""
    return escape(printable(str(value)))


def short(number: float) -> str:
    """Return a number in few characters: ``950``, ``1.5 M``."""
    for factor, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{suffix}"
    return f"{number:.3g}"


def column_chart(title: str, columns: Sequence[Column], labels: Sequence[tuple[float, str]]) -> str:
    """Return a chart of bars over time.

    labels : of the time axis: place from 0 to 1, and text.
    """
    most = max((column.value for column in columns), default=0) or 1
    width = _WIDTH - _LEFT - _RIGHT
    bottom = _TOP + _PLOT_HEIGHT
    parts = [_open(title, bottom + _BOTTOM)]
    for part in (0.0, 0.5, 1.0):
        y = bottom - part * _PLOT_HEIGHT
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="axis end" x="{_LEFT - 8}" y="{y + 4}">{short(part * most)}</text>'
        )
    for column in columns:
        height = max(column.value / most * _PLOT_HEIGHT, 1 if column.value else 0)
        x = _LEFT + column.place * width
        parts.append(
            f'<rect class="one" x="{x:.2f}" y="{bottom - height:.2f}"'
            f' width="{max(column.width * width - 0.5, 1):.2f}" height="{height:.2f}">'
            f"<title>{text(column.tip)}</title></rect>"
        )
    for place, label in labels:
        anchor = "start" if place < 0.1 else "end" if place > 0.9 else "middle"
        x = _LEFT + place * width
        parts.append(
            f'<text class="axis {anchor}" x="{x:.1f}" y="{bottom + 17}">{text(label)}</text>'
        )
    return "".join((*parts, "</svg>"))


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return a chart with a row for each bar."""
    most = max((sum(value for value, _ in bar.parts) for bar in bars), default=0) or 1
    width = _WIDTH - _NAME_WIDTH - _VALUE_WIDTH
    parts = [_open(title, _ROW_HEIGHT * len(bars))]
    for row, bar in enumerate(bars):
        middle = row * _ROW_HEIGHT + _ROW_HEIGHT / 2
        name = bar.name if len(bar.name) <= _MAX_NAME else f"{bar.name[: _MAX_NAME - 1]}…"
        parts.append(f"<g><title>{text(bar.tip)}</title>")
        parts.append(
            f'<text class="name end" x="{_NAME_WIDTH - 10}" y="{middle + 4}">{text(name)}</text>'
        )
        x = float(_NAME_WIDTH)
        for value, kind in bar.parts:
            length = value / most * width
            if value:
                parts.append(
                    f'<rect class="{kind}" x="{x:.2f}" y="{middle - _BAR_HEIGHT / 2}"'
                    f' width="{max(length, 1):.2f}" height="{_BAR_HEIGHT}"/>'
                )
            x += length
        parts.append(
            f'<text class="axis" x="{x + 8:.2f}" y="{middle + 4}">{text(bar.value)}</text>'
        )
        parts.append("</g>")
    return "".join((*parts, "</svg>"))


def _open(title: str, height: float) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{text(title)}"'
        ' xmlns="http://www.w3.org/2000/svg">'
    )
