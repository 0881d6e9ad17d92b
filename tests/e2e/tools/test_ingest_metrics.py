"""Metrics and status page that `ingest` serves over HTTP while it runs."""

from __future__ import annotations

import html
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.servers import Server
from helpers.tools.ingest_process import COMMAND
from helpers.waiting import patience, wait_until


class Served:
    """A running `ingest` of a database, with both ports."""

    def __init__(self, server: Server, database: str, folder: Path) -> None:
        password = folder / "password"
        password.write_text(server.password, encoding="utf-8")
        self._log = folder / "log"
        command = [
            *COMMAND,
            *("--host", server.host, "--port", str(server.port), "--user", server.user),
            *("--password-file", str(password), "--tables", f"{database}.*"),
            *("--target", f"{folder}/lake/{{database}}/{{table}}"),
            *("--checkpoint", str(folder / "checkpoint"), "--conf", "spark.master=local[2]"),
            *("--option", "heartbeatInterval=1s", "--metrics-port", "0", "--status-port", "0"),
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def url(self, name: str) -> str:
        """Return the URL from the line that names it in the log."""

        def metric_value() -> str | None:
            assert self.process.poll() is None, self.log
            found = re.search(rf"^{name}: (http://\S+)$", self.log, re.MULTILINE)
            return None if found is None else found[1]

        return wait_until(metric_value, lambda: f"{name} is served: {self.log}")

    def page(self) -> str:
        return html.unescape(self._get("status page"))

    def values(self, table: str | None = None) -> dict[str, float]:
        """Return the metrics of a table or of the query, without the prefix of their names."""
        return {
            sample.name.removeprefix("mysqlbinlog_"): sample.value
            for family in text_string_to_metric_families(self._get("metrics"))
            for sample in family.samples
            if sample.labels.get("table") == table
        }

    def wait_for(self, values: dict[str, float], table: str | None = None) -> None:
        def are_there() -> bool:
            assert self.process.poll() is None, self.log
            found = self.values(table)
            return all(found.get(name) == value for name, value in values.items())

        wait_until(
            are_there, lambda: f"{values}, found {self.values(table)}: {self.log}", every=0.3
        )

    def _get(self, name: str) -> str:
        with urllib.request.urlopen(self.url(name), timeout=patience(60)) as answer:
            return str(answer.read().decode("utf-8"))


def test_metrics_and_status_page_are_served_also_after_a_table_stopped(
    live_server: Server, database: str, tmp_path: Path
) -> None:
    live_server.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, v INT, w INT)",
        "CREATE TABLE items (id INT PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 1, 1), (2, 2, 2)",
        database=database,
    )
    served = Served(live_server, database, tmp_path)
    try:
        ports = [
            int(served.url(name).split(":")[2].split("/")[0]) for name in ("metrics", "status page")
        ]
        for port in ports:
            # The ports are open on 127.0.0.1 only, not on other addresses of loopback.
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), timeout=patience(60))
        served.wait_for({"table_rows_total": 2, "table_stopped": 0}, "orders")
        served.wait_for({"lag_seconds": 0, "lag_bytes": 0, "snapshot_tables_remaining": 0})
        live_server.execute(
            "INSERT INTO items VALUES (1), (2), (3)",
            "DELETE FROM orders WHERE id = 1",
            database=database,
        )
        served.wait_for({"table_rows_total": 3}, "items")
        served.wait_for({"table_rows_total": 3}, "orders")
        served.wait_for({"lag_seconds": 0, "rows_total": 6, "tables": 2, "tables_stopped": 0})
        found = served.values()
        assert found["query_active"] == 1
        assert found["reconnects_total"] == found["failovers_total"] == found["lag_files"] == 0
        assert found["batches_total"] >= 2
        assert found["batch_duration_seconds_total"] >= found["last_batch_duration_seconds"] > 0
        assert served.values("items")["table_commit_lag_seconds"] >= 0
        page = served.page()
        assert f"{database}.orders" in page
        assert "everything is applied" in page

        # The row image lacks a column, whose value is unknown.
        live_server.execute(
            "SET binlog_row_image = MINIMAL", "UPDATE orders SET v = 3", database=database
        )
        served.wait_for({"table_stopped": 1}, "orders")
        served.wait_for({"table_stopped": 0}, "items")
        served.wait_for({"tables_stopped": 1, "lag_seconds": 0})
        wait_until(lambda: "1 table stopped" in served.page(), "the page shows it")
        assert "binlog_row_image" in served.page()
        assert f"reload=ID: {database}.orders" in served.page()

        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(patience(120)) == 1, served.log
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=patience(60))
        assert "Traceback" not in served.log
    finally:
        served.process.kill()
        served.process.wait()
