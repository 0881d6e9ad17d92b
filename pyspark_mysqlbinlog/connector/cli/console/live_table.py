"""Shows the progress of `ingest` in a terminal: a live table below the log lines."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Self

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.filesize import decimal as bytes_text
from rich.live import Live
from rich.measure import Measurement
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pyspark_mysqlbinlog.connector.delta.query.progress import recent_rates

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.query.progress import MirrorProgress, TableProgress

__all__ = ["LiveTable", "table_of"]

# Lines of the terminal that are not for tables, including those of the log above.
_OTHER_LINES = 9
_BAR_WIDTH = 20
# Narrower terminals show no bars and bytes, to leave columns for long names.
_MIN_WIDE_COLUMNS = 110


class LiveTable:
    """A line for each table; of many tables, for the most relevant ones."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(Text("starting Spark", style="dim"), console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, progress: MirrorProgress) -> None:
        most = max(self._console.height - _OTHER_LINES, 3)
        is_wide = self._console.width >= _MIN_WIDE_COLUMNS
        self._live.update(table_of(progress, time(), most=most, is_wide=is_wide), refresh=True)

    def line(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def table_of(
    progress: MirrorProgress, now: float, *, most: int, is_wide: bool = True
) -> RenderableType:
    """Return the display at a moment, with at most `most` tables.

    is_wide : whether to show bars and bytes.
    """
    if not progress.batches:
        return Text("waiting for the first batch", style="dim")
    of_late = recent_rates(progress, now)
    shown = Table(box=None, header_style="dim")
    # Columns that do not wrap keep their width at the expense of the others. Names must not.
    shown.add_column("table")
    shown.add_column("state", min_width=len("snapshot 100%"))
    for title in ("rows", "rows/s", *(["bytes"] if is_wide else []), "lag"):
        shown.add_column(title, justify="right", no_wrap=True)
    names = sorted(
        progress.tables,
        key=lambda name: (
            progress.tables[name].stopped is None,
            not progress.tables[name].in_snapshot or not progress.tables[name].snapshot_rows,
            -of_late.get(name, 0.0),
            name,
        ),
    )
    for name in names[:most]:
        table, rate = progress.tables[name], of_late.get(name, 0.0)
        shown.add_row(
            _TableName(name),
            _state(table, rate, is_wide=is_wide),
            f"{table.rows:,}",
            f"{rate:,.0f}",
            *([bytes_text(table.bytes)] if is_wide else []),
            "" if table.lag is None else f"{table.lag:.1f} s",
        )
    last = progress.batches[-1]
    foot = f"batch {last.number}, up to {last.file}:{last.pos}"
    if names[most:]:
        foot = f"and {len(names) - most:,} more tables; {foot}"
    return Group(shown, Text(foot, style="dim"))


class _TableName:
    """A name on one line: where the column is narrower, its middle is left out.

    Tables of one database differ at the end.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = min(cell_len(self._name), options.max_width)
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        name, width = self._name, max(options.max_width, 1)
        if cell_len(name) > width:
            head = (width - 1) // 2
            tail = set_cell_size(name[::-1], width - 1 - head)[::-1]
            name = f"{set_cell_size(name, head)}…{tail}"
        yield Text(name, no_wrap=True)


def _state(table: TableProgress, rate: float, *, is_wide: bool) -> RenderableType:
    if table.stopped is not None:
        return Text(f"stopped: {table.stopped}", style="red")
    if not table.in_snapshot:
        return Text("in sync", style="green")
    if table.snapshot_rows_estimate is None:
        return Text(f"snapshot, {table.snapshot_rows:,} rows" if is_wide else "snapshot")
    # The server's number is an estimate, and may be too small.
    left = max(table.snapshot_rows_estimate - table.snapshot_rows, 0)
    time_left = f"{left / rate:.0f} s left" if rate and left else ""
    if not is_wide:
        expected = max(table.snapshot_rows_estimate, table.snapshot_rows, 1)
        part = f"snapshot {100 * table.snapshot_rows / expected:.0f}%"
        return Text(f"{part}, {time_left}" if time_left else part)
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(
            total=max(table.snapshot_rows_estimate, 1),
            completed=table.snapshot_rows,
            width=_BAR_WIDTH,
        ),
        Text(f"{table.snapshot_rows:,} of about {table.snapshot_rows_estimate:,}"),
        Text(time_left, style="dim"),
    )
    return line
