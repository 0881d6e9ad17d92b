"""Progress and metrics of queries, for tests of the code that shows them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from pyspark_mysqlbinlog.connector.metrics.model import (
    BatchTotals,
    QueryMetrics,
    SnapshotMetrics,
    SourceMetrics,
    TableMetrics,
)

__all__ = ["HOSTILE", "NOW", "FakeQuery", "mirror_metrics", "moment", "progress", "source"]

NOW = 1_700_000_000.0
# The name of a table, or a text in an error.
HOSTILE = '<script>alert("1")</script>&\'\\\n{}%'


def moment(seconds: float) -> str:
    """Return a time as Spark and the source write it."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def source(
    behind: int | None = 0,
    *,
    end: tuple[str, int] = ("bin.000007", 4711),
    server: tuple[str, int] | None = ("bin.000007", 4711),
    observed_at: float = NOW,
    rows: int = 0,
    **latest: Any,
) -> dict[str, Any]:
    """Return a source's part of a query's progress."""
    server_position = None
    if server is not None:
        server_position = {"file": server[0], "pos": server[1], "observed_at": moment(observed_at)}
    report = {
        "snapshot": "",
        "server": server_position,
        "seconds_behind": behind,
        "bytes_behind": None if behind is None else behind * 100,
        "files_behind": None if behind is None else 0,
        "retention_left": None,
        "seconds_until_purge": None,
        "reconnects": 0,
        "failovers": 0,
    }
    return {
        "endOffset": {"file": end[0], "pos": end[1]},
        "latestOffset": report | latest,
        "numInputRows": rows,
    }


def progress(
    *sources: dict[str, Any], number: int = 1, at: float = NOW, batch_ms: int | None = None
) -> dict[str, Any]:
    """Return a query's progress; without `batch_ms`, that of an idle query."""
    durations = {"latestOffset": 1, "triggerExecution": batch_ms or 1}
    return {
        "id": "11111111-1111-1111-1111-111111111111",
        "name": None,
        "batchId": number,
        "timestamp": moment(at),
        "durationMs": durations if batch_ms is None else durations | {"addBatch": batch_ms},
        "sources": [*sources],
    }


class FakeQuery:
    """A query that reports the progress and the status that a test sets."""

    def __init__(self) -> None:
        self.id, self.name, self.isActive = "11111111-1111-1111-1111-111111111111", None, True
        self.lastProgress: Any = None
        self.status: dict[str, Any] = {
            "message": "Waiting for next trigger",
            "isTriggerActive": False,
            "isDataAvailable": False,
        }

    def has(self, progress: dict[str, Any]) -> None:
        self.lastProgress = SimpleNamespace(json=json.dumps(progress))

    def runs(self, message: str = "Processing new data") -> None:
        self.status = {"message": message, "isTriggerActive": True, "isDataAvailable": True}


def mirror_metrics(*tables: TableMetrics, **values: Any) -> QueryMetrics:
    """Return the metrics of a mirror during its snapshot, with all values known."""
    known = SourceMetrics(
        lag_bytes=123_456,
        lag_files=2,
        seconds_until_purge=7200.0,
        retention_left=0.25,
        reconnects=3,
        failovers=1,
        snapshot=SnapshotMetrics(4, 2, 5000, 90.0),
        file="bin.000007",
        pos=4711,
    )
    given: dict[str, Any] = {
        "query": "shop",
        "at": NOW,
        "lag_seconds": 12.5,
        "source": known,
        "rows": 1500,
        "batches": BatchTotals(7, 21.0, 2.5),
        "tables": tables
        or (
            TableMetrics("shop", "orders", 1000, 9000, 50.0, 1.5, True, 800, 4000),
            TableMetrics("shop", "lines", 500, 700, 0.0, 2.5),
            TableMetrics("shop", "keyless", stopped="the table has no key; add one"),
            TableMetrics("shop", "log", change_log_stopped="a gap; reload it"),
        ),
    }
    return QueryMetrics(**(given | values))
