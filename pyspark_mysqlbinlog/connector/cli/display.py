"""How `ingest` tells of its progress: as lines of text or of JSON. For terminals see `live`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.progress import (
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
        """Called now and then, with what is known by then."""

    def line(self, text: str) -> None:
        """A line of a log."""


class Lines:
    """A line for each batch with rows, on stdout.

    form : makes it of a batch and of what is known of the tables.
    """

    def __init__(self, form: Callable[[BatchProgress, MirrorProgress], str]) -> None:
        self._form = form
        self._told = -1
        self._loading = 0

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
            if batch.number > self._told:
                self._told = batch.number
                # Whoever waits for the end of the load wants to hear of it in any case.
                if batch.rows or batch.loading < self._loading:
                    yield batch
                self._loading = batch.loading


def as_json(batch: BatchProgress, progress: MirrorProgress) -> str:
    """One line; docs/delta.md tells what it has."""
    lags = [part.lag for part in batch.tables.values() if part.lag is not None]
    told: dict[str, Any] = {
        "batch": batch.number,
        "time": datetime.fromtimestamp(batch.ended, UTC).isoformat(timespec="milliseconds"),
        "rows": batch.rows,
        "seconds": round(batch.seconds, 3),
        "lag_seconds": round(max(lags), 3) if lags else None,
        "file": batch.file,
        "pos": batch.pos,
        "loading": batch.loading,
        "tables": {
            name: {
                "rows": part.rows,
                "bytes": part.bytes,
                "seconds": round(part.seconds, 3),
                "lag_seconds": None if part.lag is None else round(part.lag, 3),
                **_load(progress.tables[name]),
            }
            for name, part in batch.tables.items()
        },
    }
    stopped = {name: each.stopped for name, each in progress.tables.items() if each.stopped}
    return json.dumps(told | ({"stopped": stopped} if stopped else {}))


def _load(table: TableProgress) -> Mapping[str, Any]:
    return {"loaded": table.loaded, "total": table.total} if table.is_loading else {}


def as_text(batch: BatchProgress, progress: MirrorProgress) -> str:
    """One line, with the time as the log's lines have it."""
    ended = datetime.fromtimestamp(batch.ended).astimezone()
    rows = "1 row" if batch.rows == 1 else f"{batch.rows:,} rows"
    text = f"{ended:%Y-%m-%d %H:%M:%S} batch {batch.number}: {rows} in {batch.seconds:.1f} s"
    lags = [part.lag for part in batch.tables.values() if part.lag is not None]
    if lags:
        text += f", lag {max(lags):.1f} s"
    text += f", up to {batch.file}:{batch.pos}"
    if batch.loading:
        tables = "1 table is" if batch.loading == 1 else f"{batch.loading} tables are"
        text += f"; {tables} loading"
        for name, part in batch.tables.items():
            table = progress.tables[name]
            if part.loaded and table.is_loading:
                total = "" if table.total is None else f" of about {table.total:,}"
                text += f", {name} has {table.loaded:,}{total} rows"
    return text
