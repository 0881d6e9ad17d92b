"""The listener's thread and its log lines, without Spark."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.tools.metrics import FakeQuery, progress, source
from helpers.waiting import wait_until
from pyspark_mysqlbinlog import MySQLBinlogMetrics
from pyspark_mysqlbinlog.connector.metrics import listener


class BrokenMirror:
    @property
    def query_id(self) -> str:
        raise RuntimeError("broken")


def test_failing_mirror_is_logged_once_and_does_not_end_the_metrics_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "_POLL_SECONDS", 0.01)
    query = FakeQuery()
    query.has(progress(source(0)))
    session: Any = SimpleNamespace(streams=SimpleNamespace(get=lambda _: query))
    metrics = MySQLBinlogMetrics(session, log_interval=None)
    broken: Any = BrokenMirror()
    metrics.mirrors.append(broken)
    started: Any = SimpleNamespace(id="1", name="shop")
    with caplog.at_level(logging.WARNING):
        metrics.onQueryStarted(started)
        try:
            wait_until(lambda: "broken" in caplog.text, "no warning")
            assert metrics.metrics() == ()
            metrics.mirrors.remove(broken)
            wait_until(lambda: len(metrics.metrics()) == 1, "the thread has ended")
        finally:
            metrics.close()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot ask for the state of shop: RuntimeError('broken')"
    ]


@pytest.mark.parametrize(
    ("before", "interval", "shown"),
    [
        ("", "'1m'", True),
        ("", "None", False),
        # The program's own logging configuration decides.
        ("logging.basicConfig(level=logging.WARNING)", "'1m'", False),
        ("logging.basicConfig(level=logging.INFO)", "'1m'", True),
    ],
)
def test_metrics_log_lines_follow_log_interval_and_configured_level(
    before: str, interval: str, *, shown: bool
) -> None:
    code = (
        f"import logging; {before}\n"
        "from pyspark_mysqlbinlog import MySQLBinlogMetrics\n"
        "from pyspark_mysqlbinlog.connector.metrics import listener\n"
        f"MySQLBinlogMetrics(None, log_interval={interval})\n"
        "listener._LOG.info('a line')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("a line" in done.stderr) == shown
