"""The status page: its contents, well-formed HTML, and escaped names."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers.tools.metrics import HOSTILE, NOW, mirror_metrics
from helpers.waiting import patience
from pyspark_mysqlbinlog.connector.metrics.model import QueryMetrics, SourceMetrics, TableMetrics
from pyspark_mysqlbinlog.connector.metrics.status_page import status_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_EMPTY = {"meta"}
# Their end tags may be omitted.
_OPEN = {"td", "th"}


class Read(HTMLParser):
    """The contents of a page; AssertionError if an element is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self._stack: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self._stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in _OPEN:
            self.rows[-1].append("")
        elif tag not in _EMPTY:
            self._stack.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in {"src", "href"}
            assert value is not None or name == "open"

    def handle_endtag(self, tag: str) -> None:
        if tag != "tr":
            assert self._stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._stack[-1:] == ["style"]:
            return
        self.text += data
        if "table" in self._stack and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_status_page_shows_tables_lag_snapshot_and_stop_reasons() -> None:
    page = Read(status_page(mirror_metrics()))
    assert [row[:2] for row in page.rows[1:]] == [
        ["shop.keyless", "stopped"],
        ["shop.log", "change log stopped"],
        ["shop.orders", "20 % 800 of about 4,000"],
        ["shop.lines", "in sync"],
    ]
    for text in (
        "2 tables stopped",
        "12 s",
        "120.6 KiB",
        "2 more files",
        "in 2.0 h",
        "bin.000007:4711",
        "the table has no key; add one",
        "the change log of shop.log: a gap; reload it",
        'reload=ID: shop.keyless"',
        "4 of 6 tables, about 5,000 rows, about 90 s left",
        "2023-11-14 22:13:20 UTC",
    ):
        assert text in page.text, text
    assert "script" not in page.tags


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (QueryMetrics("q", NOW), "starting"),
        (QueryMetrics("q", NOW, source=SourceMetrics()), "lag unknown"),
        (QueryMetrics("q", NOW, lag_seconds=0.0, source=SourceMetrics()), "everything is applied"),
        (QueryMetrics("q", NOW, lag_seconds=5.0, source=SourceMetrics()), "applying changes"),
        (QueryMetrics("q", NOW, is_active=False), "not running"),
    ],
)
def test_status_page_without_tables_shows_the_query_state(query: QueryMetrics, shown: str) -> None:
    page = Read(status_page(query))
    assert shown in page.text
    assert "Tables are listed after the first batch" in page.text


def test_status_page_escapes_hostile_names_and_errors() -> None:
    table = TableMetrics(f"a{HOSTILE}", HOSTILE, stopped=HOSTILE, change_log_stopped=HOSTILE)
    text = status_page(mirror_metrics(table, source=SourceMetrics(file=HOSTILE)))
    page = Read(text)
    assert "script" not in page.tags
    assert page.text.count(HOSTILE) >= 5
    assert page.rows[1][0] == f"a{HOSTILE}.{HOSTILE}"


def test_status_page_lists_stopped_and_lagging_tables_first() -> None:
    tables = [TableMetrics("shop", f"t{number:04}", number, number) for number in range(1000)]
    tables[500] = TableMetrics("shop", "stops", stopped="no key")
    tables[600] = TableMetrics("shop", "lags", commit_lag_seconds=9.0)
    tables[700] = TableMetrics("shop", "loads", in_snapshot=True)
    text = status_page(mirror_metrics(*tables))
    page = Read(text)
    assert [row[0] for row in page.rows[1:5]] == [
        "shop.stops",
        "shop.loads",
        "shop.lags",
        "shop.t0000",
    ]
    assert len(page.rows) == 1001
    assert len(text) < 300_000


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1200, 380])
def test_status_page_in_a_browser_needs_no_horizontal_scrolling(tmp_path: Path, width: int) -> None:
    long = TableMetrics("shop", "t" * 60, 10**12, 10**15, 1e6, 1e6, stopped="reason " * 100)
    hostile = TableMetrics("shop", HOSTILE, in_snapshot=True, snapshot_rows_estimate=7)
    page = tmp_path / "page.html"
    # The page itself has no script; this one measures its width.
    measure = "<script>document.title = document.documentElement.scrollWidth</script>"
    text = status_page(mirror_metrics(long, hostile))
    page.write_text(re.sub("</body>", f"{measure}</body>", text))
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            f"--user-data-dir={tmp_path / 'profile'}",
            *(f"--window-size={width},900", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(120),
    )
    title = re.search(r"<title>(\d+)</title>", done.stdout)
    assert title is not None, done.stdout
    # A window is at least 500 pixels wide.
    assert int(title[1]) <= max(width, 500)
    assert done.stdout.count("<script>") == 1
