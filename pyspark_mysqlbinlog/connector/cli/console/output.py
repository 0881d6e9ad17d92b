"""Shows the progress of `ingest` as lines of text or JSON. For terminals see `live_table`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.query.progress import (
        BatchProgress,
        MirrorProgress,
        TableProgress,
    )

__all__ = ["Display", "Lines", "as_json", "as_text"]


class Display(Protocol):
    """Shows a mirror's progress, within its `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: MirrorProgress) -> None:
        """Show the current progress; called at intervals."""

    def line(self, text: str) -> None:
        """Show a line of a log."""


class Lines:
    """Writes a line for each batch with rows to stdout.

    form : formats a batch and the state of the tables.
    """

    def __init__(self, form: Callable[[BatchProgress, MirrorProgress], str]) -> None:
        self._form = form
        self._last_shown = -1
        self._in_snapshot = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, progress: MirrorProgress) -> None:
        for batch in self._news(progress):
            sys.stdout.write(self._form(batch, progress) + "\n")
        sys.stdout.flush()

    def line(self, text: str) -> None:
        sys.stderr.write(text + "\n")

    def _news(self, progress: MirrorProgress) -> Iterator[BatchProgress]:
        for batch in progress.batches:
            if batch.number > self._last_shown:
                self._last_shown = batch.number
                # The end of the snapshot is shown, even if its batch has no rows.
                if batch.rows or batch.tables_in_snapshot < self._in_snapshot:
                    yield batch
                self._in_snapshot = batch.tables_in_snapshot


def as_json(batch: BatchProgress, progress: MirrorProgress) -> str:
    """Return one line; docs/reference/command-line.md lists its fields."""
    lags = [part.lag for part in batch.tables.values() if part.lag is not None]
    fields: dict[str, Any] = {
        "batch": batch.number,
        "time": datetime.fromtimestamp(batch.committed_at, UTC).isoformat(timespec="milliseconds"),
        "rows": batch.rows,
        "duration_seconds": round(batch.duration_seconds, 3),
        "lag_seconds": round(max(lags), 3) if lags else None,
        "file": batch.file,
        "pos": batch.pos,
        "tables_in_snapshot": batch.tables_in_snapshot,
        "tables": {
            name: {
                "rows": part.rows,
                "bytes": part.bytes,
                "duration_seconds": round(part.duration_seconds, 3),
                "lag_seconds": None if part.lag is None else round(part.lag, 3),
                **_snapshot(progress.tables[name]),
            }
            for name, part in batch.tables.items()
        },
    }
    stopped = {name: each.stopped for name, each in progress.tables.items() if each.stopped}
    return json.dumps(fields | ({"stopped": stopped} if stopped else {}))


def _snapshot(table: TableProgress) -> Mapping[str, Any]:
    if not table.in_snapshot:
        return {}
    return {
        "snapshot_rows": table.snapshot_rows,
        "snapshot_rows_estimate": table.snapshot_rows_estimate,
    }


def as_text(batch: BatchProgress, progress: MirrorProgress) -> str:
    """Format a batch as one line, with the time as in log lines."""
    committed = datetime.fromtimestamp(batch.committed_at).astimezone()
    rows = "1 row" if batch.rows == 1 else f"{batch.rows:,} rows"
    seconds = f"{batch.duration_seconds:.1f} s"
    text = f"{committed:%Y-%m-%d %H:%M:%S} batch {batch.number}: {rows} in {seconds}"
    lags = [part.lag for part in batch.tables.values() if part.lag is not None]
    if lags:
        text += f", lag {max(lags):.1f} s"
    text += f", up to {batch.file}:{batch.pos}"
    if batch.tables_in_snapshot:
        tables = (
            "1 table" if batch.tables_in_snapshot == 1 else f"{batch.tables_in_snapshot} tables"
        )
        text += f"; snapshot of {tables}"
        for name, part in batch.tables.items():
            table = progress.tables[name]
            if part.snapshot_rows and table.in_snapshot:
                estimate = table.snapshot_rows_estimate
                of = "" if estimate is None else f" of about {estimate:,}"
                text += f", {name} has {table.snapshot_rows:,}{of} rows"
    return text
