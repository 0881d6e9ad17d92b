"""Progress of a snapshot, for the query's progress and for log lines."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import TableSize
from pyspark_mysqlbinlog.names import Table

__all__ = ["SnapshotProgress"]

_LOG_INTERVAL_SECONDS = 30.0  # seconds


class SnapshotProgress:
    """Follows one process's part of a snapshot."""

    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None
        self._logged_at = monotonic()
        self._report: dict[str, Any] | None = None

    def planned(self, state: SnapshotState, sizes: Mapping[Table, TableSize]) -> None:
        """Record a planned batch, at whose end the snapshot is at `state`."""
        now = monotonic()
        if self._began is None:
            self._began = now, state.rows
        began_at, began_rows = self._began
        # The planned batch is not read yet, and the duration of the first one is unknown.
        seconds = now - began_at
        rate = (state.rows - began_rows) / seconds if seconds > 1 else None
        left = sum(sizes[load.table].rows for load in state.pending if load.table in sizes)
        self._report = {
            "tables_completed": len(state.completed),
            "tables_remaining": len(state.pending),
            "rows_read": state.rows,
            "rows_per_second": None if rate is None else round(rate),
            "estimated_seconds_left": round(left / rate) if rate else None,
        }
        if now - self._logged_at >= _LOG_INTERVAL_SECONDS or state.is_done:
            self._logged_at = now
            self._log(state)

    def report(self) -> dict[str, Any] | None:
        """Return the snapshot's part of the query's progress; None without a snapshot."""
        return self._report

    def _log(self, state: SnapshotState) -> None:
        assert self._report is not None
        if state.is_done:
            LOGGER.info("the snapshot is complete with this batch: about %d rows", state.rows)
            return
        table = ".".join(state.pending[0].table)
        rate, left = self._report["rows_per_second"], self._report["estimated_seconds_left"]
        LOGGER.info(
            "snapshot of %s: %d tables done, %d left; about %d rows, %s rows/s, %s left",
            table,
            self._report["tables_completed"],
            self._report["tables_remaining"],
            state.rows,
            "?" if rate is None else rate,
            "?" if left is None else f"{left} s",
        )
