"""The status page of `ingest`: one self-contained HTML page that reloads itself.

Without scripts: the state of a mirror changes in seconds, and a page that is only text works in
every browser, through every tunnel, and for a program. Everything that comes from a server or an
error is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from pyspark_mysqlbinlog.connector.metrics.log_lines import duration_text
from pyspark_mysqlbinlog.connector.metrics.model import (
    QueryMetrics,
    SnapshotMetrics,
    SourceMetrics,
    TableMetrics,
)

__all__ = ["status_page"]

_REFRESH_SECONDS = 5
_KIB = 1024
_REMEDY = (
    "Correct the cause. Then stop the mirror, and start it with the same checkpoint and a reload:"
    ' <code>--option "reload=ID: {table}"</code>, with an ID that was not used before.'
)
_STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --dim: #5b6472; --good: #1a7f37; --bad: #c62828;
  --busy: #1f5fbf; --panel: #f6f7f9; --text: #16191d; --page: #fff; }
@media (prefers-color-scheme: dark) { :root { --line: #3a414c; --dim: #a0a9b6; --good: #57c97a;
  --bad: #ff8078; --busy: #7fb0ff; --panel: #1d2127; --text: #e6e8eb; --page: #131619; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; max-width: 72rem; padding: 1.2rem; }
h1 { font-size: 1.25rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); }
.busy { color: var(--busy); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .6rem;
  margin: 1rem 0; }
dl div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem .7rem; }
dt { color: var(--dim); font-size: .85rem; } dd { margin: 0; font-size: 1.15rem;
  overflow-wrap: anywhere; }
dd small { display: block; font-size: .8rem; color: var(--dim); }
@media (min-width: 40rem) { .wide { grid-column: auto / span 2; } }
.stop { border: 1px solid var(--bad); border-left-width: .3rem; border-radius: .4rem;
  padding: .5rem .8rem; margin: .5rem 0; overflow-wrap: anywhere; }
.stop p { margin: .2rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--dim); font-weight: 500; font-size: .85rem; }
td:first-child { overflow-wrap: anywhere; min-width: 9rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
progress { width: 9rem; vertical-align: middle; accent-color: var(--busy); }
code { background: var(--panel); padding: .05rem .25rem; border-radius: .2rem; }
"""


def status_page(query: QueryMetrics) -> str:
    """Return the page of a mirror."""
    at = datetime.fromtimestamp(query.at, UTC)
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(_title(query))}</title><style>{_STYLE}</style></head><body>",
            "<h1>pyspark-mysqlbinlog</h1>",
            f'<div>{_state(query)} <span class="dim">at {at:%Y-%m-%d %H:%M:%S} UTC</span></div>',
            f"<dl>{''.join(_tiles(query))}</dl>",
            *_snapshot(query.source),
            *_stops(query.stopped),
            *_tables(query.tables),
            "</body></html>\n",
        ]
    )


def _title(query: QueryMetrics) -> str:
    """Return the title, by which a tab in the background shows what is wrong."""
    stopped = len(query.stopped)
    if not query.is_active:
        return "not running"
    if stopped:
        return f"{stopped:,} stopped"
    return f"lag {_lag(query)}"


def _state(query: QueryMetrics) -> str:
    if not query.is_active:
        return '<strong class="bad">not running</strong>'
    if query.stopped:
        count = "1 table" if len(query.stopped) == 1 else f"{len(query.stopped):,} tables"
        return f'<strong class="bad">{count} stopped</strong>'
    if query.source is None:
        return '<strong class="dim">starting</strong>'
    if query.lag_seconds is None:
        return (
            '<strong class="bad">lag unknown</strong> <span class="dim">(the end of the server\'s'
            " binlog was not confirmed for a minute: is the connection lost? See the log)</span>"
        )
    if query.lag_seconds:
        return '<strong class="busy">applying changes</strong>'
    return '<strong class="good">everything is applied</strong>'


def _tiles(query: QueryMetrics) -> Iterator[str]:
    source = query.source
    yield _tile("Lag", _lag(query))
    if source is not None:
        files = source.lag_files or 0
        yield _tile(
            "To read",
            "unknown" if source.lag_bytes is None else _bytes(source.lag_bytes),
            f"{files:,} more files" if files else "",
        )
        purge = source.seconds_until_purge
        yield _tile("Binlog purge", "no risk" if purge is None else f"in {duration_text(purge)}")
        yield _tile("Applied up to", f"{source.file}:{source.pos}", is_wide=True)
    seconds = query.batches.last_seconds
    yield _tile(
        "Rows", f"{query.rows:,}", f"{sum(each.rows_per_second for each in query.tables):,.0f}/s"
    )
    yield _tile(
        "Batches",
        f"{query.batches.count:,}",
        "" if seconds is None else f"the last in {seconds:,.1f} s",
    )
    if source is not None:
        yield _tile("Reconnects", f"{source.reconnects:,}")
        yield _tile("Failovers", f"{source.failovers:,}")


def _tile(name: str, value: str, more: str = "", *, is_wide: bool = False) -> str:
    small = f"<small>{escape(more)}</small>" if more else ""
    begin = '<div class="wide">' if is_wide else "<div>"
    return f"{begin}<dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"


def _snapshot(source: SourceMetrics | None) -> Iterator[str]:
    snapshot: SnapshotMetrics | None = None if source is None else source.snapshot
    if snapshot is None or not snapshot.tables_remaining:
        return
    tables = snapshot.tables_completed + snapshot.tables_remaining
    left = snapshot.seconds_left
    time_left = "" if left is None else f", about {duration_text(left)} left"
    yield (
        f"<h2>Snapshot</h2><div>{_bar(snapshot.tables_completed, tables)}"
        f" {snapshot.tables_completed:,} of {tables:,} tables, about {snapshot.rows:,}"
        f" rows{time_left}</div>"
    )


def _stops(tables: tuple[TableMetrics, ...]) -> Iterator[str]:
    if not tables:
        return
    yield "<h2>Stopped</h2>"
    for table in tables:
        reasons = [
            f"<p><strong>{what}{escape(table.name)}</strong>: {escape(reason)}</p>"
            for what, reason in (
                ("", table.stopped),
                ("the change log of ", table.change_log_stopped),
            )
            if reason is not None
        ]
        remedy = _REMEDY.format(table=escape(table.name))
        yield f'<div class="stop">{"".join(reasons)}<p class="dim">{remedy}</p></div>'


def _tables(tables: tuple[TableMetrics, ...]) -> Iterator[str]:
    if not tables:
        yield (
            '<p class="dim">Tables are listed after the first batch since the start of the'
            " process.</p>"
        )
        return
    count = "1 table" if len(tables) == 1 else f"{len(tables):,} tables"
    yield (
        f'<h2>{count}</h2><div class="scroll"><table><thead><tr><th>Table<th>State'
        '<th class="n">Rows<th class="n">Rows/s<th class="n">Bytes<th class="n">Lag at the last'
        " commit</tr></thead><tbody>"
    )
    for table in sorted(tables, key=_urgency):
        lag = table.commit_lag_seconds
        yield (
            f"<tr><td>{escape(table.name)}<td>{_table_state(table)}"
            f'<td class="n">{table.rows:,}<td class="n">{table.rows_per_second:,.0f}'
            f'<td class="n">{_bytes(table.bytes)}'
            f'<td class="n">{"" if lag is None else duration_text(lag)}</tr>\n'
        )
    yield "</tbody></table></div>"


def _urgency(table: TableMetrics) -> tuple[bool, bool, float, str]:
    """Return the order of tables: stopped ones, those in a snapshot, those with the largest lag."""
    return (
        not table.is_stopped,
        not table.in_snapshot,
        -(table.commit_lag_seconds or 0.0),
        table.name,
    )


def _table_state(table: TableMetrics) -> str:
    if table.stopped is not None:
        return '<span class="bad">stopped</span>'
    if table.change_log_stopped is not None:
        return '<span class="bad">change log stopped</span>'
    if not table.in_snapshot:
        return '<span class="good">in sync</span>'
    estimate = table.snapshot_rows_estimate
    if estimate is None:
        return f'<span class="busy">snapshot, {table.snapshot_rows:,} rows</span>'
    return (
        f"{_bar(table.snapshot_rows, estimate)}"
        f' <span class="busy">{table.snapshot_rows:,} of about {estimate:,}</span>'
    )


def _lag(query: QueryMetrics) -> str:
    return "unknown" if query.lag_seconds is None else duration_text(query.lag_seconds)


def _bar(done: int, total: int) -> str:
    # An estimate may be too small.
    total = max(total, done, 1)
    return f'<progress max="{total}" value="{done}">{100 * done // total} %</progress>'


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= _KIB
    return f"{value:,.1f} TiB"
