"""The numbers of a log as one HTML page, which needs nothing else: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark_mysqlbinlog.connector.inspection.figures.charts import (
    Bar,
    Column,
    bar_chart,
    column_chart,
    short,
    text,
)
from pyspark_mysqlbinlog.connector.inspection.figures.statistics import (
    LogStatistics,
    Period,
    size_ranges,
    table_totals,
)
from pyspark_mysqlbinlog.connector.inspection.literals import name_text
from pyspark_mysqlbinlog.connector.inspection.tally import OperationCount
from pyspark_mysqlbinlog.connector.inspection.text import event_name, time_text

__all__ = ["report_page"]

_SHOWN_TABLES = 20
_SHOWN_TYPES = 12
_OPERATIONS = (("c", "inserts", "insert"), ("u", "updates", "update"), ("d", "deletes", "delete"))

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --dim: #66717f; --line: #dfe4ea; --paper: #fff;
  --card: #f6f8fa; --one: #4063d8; --insert: #2a9d62; --update: #d98e04; --delete: #cb3c3c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ee; --dim: #98a3b1; --line: #39424e; --paper: #14191f; --card: #1d242c;
    --one: #7d9bff; --insert: #46c285; --update: #e9ae3c; --delete: #ef6d6d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 980px; padding: 28px 20px 60px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 34px 0 10px; }
p { color: var(--dim); margin: 0 0 8px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 18px 0 6px; }
.tile { background: var(--card); border-radius: 8px; padding: 10px 16px; min-width: 130px; }
.tile b { display: block; font-size: 20px; }
.tile span { color: var(--dim); font-size: 13px; }
svg { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .axis { fill: var(--dim); }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
.grid { stroke: var(--line); } .one { fill: var(--one); } .insert { fill: var(--insert); }
.update { fill: var(--update); } .delete { fill: var(--delete); }
.key { color: var(--dim); font-size: 13px; }
.key i { display: inline-block; width: 11px; height: 11px; margin: 0 5px 0 14px; }
.key i.insert { background: var(--insert); } .key i.update { background: var(--update); }
.key i.delete { background: var(--delete); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--dim); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
"""


def report_page(statistics: LogStatistics) -> str:
    """Return the page."""
    title = (
        " to ".join(dict.fromkeys((statistics.files[0], statistics.files[-1])))
        if statistics.files
        else "binlog"
    )
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Even if a name were not escaped, nothing would run and nothing would be fetched.
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{text(title)}</title><style>{_STYLE}</style></head><body>\n",
            "\n".join(_sections(statistics, title)),
            "\n</body></html>\n",
        )
    )


def _sections(statistics: LogStatistics, title: str) -> Iterator[str]:
    yield f"<h1>{text(title)}</h1>"
    if statistics.first is not None and statistics.last is not None:
        yield f"<p>{time_text(statistics.first)} to {time_text(statistics.last)} UTC</p>"
    yield _tiles(statistics)
    if statistics.timeline:
        yield from _timelines(statistics)
    if statistics.tables:
        yield from _tables(statistics)
    yield "<h2>Transactions by size</h2>"
    yield bar_chart("Transactions by bytes", [*_histogram(statistics.by_bytes, "bytes")])
    yield "<h2>Transactions by rows</h2>"
    yield bar_chart("Transactions by rows", [*_histogram(statistics.by_rows, "rows")])
    yield from _largest(statistics)
    yield from _bursts(statistics)
    yield "<h2>Events by type</h2>"
    yield bar_chart("Bytes by type of event", [*_types(statistics)])


def _tiles(statistics: LogStatistics) -> str:
    seconds = (statistics.last or 0) - (statistics.first or 0) + 1
    tiles = [
        (f"{statistics.transactions:,}", "transactions"),
        (f"{statistics.rows:,}", "row changes"),
        (f"{short(statistics.bytes)}B", "in transactions"),
        (f"{len(statistics.tables):,}", "tables with changes"),
        (f"{short(statistics.transactions / seconds)}/s", "transactions on average"),
    ]
    cells = (f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for value, name in tiles)
    return f'<div class="tiles">{"".join(cells)}</div>'


def _timelines(statistics: LogStatistics) -> Iterator[str]:
    first, last = statistics.timeline[0].time, statistics.timeline[-1].time + statistics.period
    span = max(last - first, 1)
    labels = [(part / 4, time_text(first + span * part / 4)[5:]) for part in range(5)]
    for name, values in (
        ("Transactions", [each.transactions for each in statistics.timeline]),
        ("Rows", [each.rows for each in statistics.timeline]),
        ("Bytes", [each.bytes for each in statistics.timeline]),
    ):
        yield f"<h2>{name} per {_length(statistics.period)}</h2>"
        columns = [
            Column(
                (each.time - first) / span,
                statistics.period / span,
                value,
                f"{time_text(each.time)}: {value:,} {name.lower()}",
            )
            for each, value in zip(statistics.timeline, values, strict=True)
        ]
        yield column_chart(f"{name} over time", columns, labels)


def _length(seconds: int) -> str:
    """Return a length of time in its largest unit: ``minute``, ``15 minutes``."""
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next(each for each in units if seconds % each[0] == 0)
    count = seconds // size
    return unit if count == 1 else f"{count:,} {unit}s"


def _tables(statistics: LogStatistics) -> Iterator[str]:
    totals = table_totals(statistics.tables)
    key = "".join(f'<i class="{kind}"></i>{name}' for _, name, kind in _OPERATIONS)
    by_rows = sorted(totals, key=lambda each: (-each[1].rows, each[0]))
    yield f'<h2>Rows by table</h2><p class="key">{key}</p>'
    yield bar_chart(
        "Rows by table",
        [_table_bar(statistics, name, "rows") for name, _ in by_rows[:_SHOWN_TABLES]],
    )
    yield f'<h2>Bytes by table</h2><p class="key">{key}</p>'
    yield bar_chart(
        "Bytes by table",
        [_table_bar(statistics, name, "bytes") for name, _ in totals[:_SHOWN_TABLES]],
    )
    if len(totals) > _SHOWN_TABLES:
        yield f"<p>{len(totals) - _SHOWN_TABLES:,} more tables are not shown.</p>"


def _table_bar(statistics: LogStatistics, name: tuple[str, str], unit: str) -> Bar:
    operations = statistics.tables[name]
    counts = [operations.get(op, OperationCount()) for op, _, _ in _OPERATIONS]
    values = [each.rows if unit == "rows" else each.bytes for each in counts]
    parts = ", ".join(
        f"{value:,} by {what}" for value, (_, what, _) in zip(values, _OPERATIONS, strict=True)
    )
    kinds = [kind for _, _, kind in _OPERATIONS]
    total = sum(values)
    label = f"{total:,}" if unit == "rows" else f"{short(total)}B"
    return Bar(
        ".".join(name), [*zip(values, kinds, strict=True)], label, f"{name_text(*name)}: {parts}"
    )


def _histogram(histogram: Sequence[int], unit: str) -> Iterator[Bar]:
    for first, last, count in size_ranges(histogram):
        name = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        yield Bar(
            f"{name} {unit if last > 1 else unit[:-1]}",
            [(count, "one")],
            f"{count:,}",
            f"{count:,} transactions",
        )


def _types(statistics: LogStatistics) -> Iterator[Bar]:
    found = sorted(statistics.types.items(), key=lambda each: -each[1][1])
    for kind, (count, size) in found[:_SHOWN_TYPES]:
        tip = f"{count:,} events, {size:,} bytes"
        yield Bar(event_name(kind), [(size, "one")], f"{short(size)}B", tip)


def _largest(statistics: LogStatistics) -> Iterator[str]:
    for title, chosen in (
        ("Largest transactions", statistics.largest),
        ("Transactions with the most rows", statistics.most_rows),
    ):
        rows = [
            (
                f"{each.file}:{each.pos}",
                time_text(each.time),
                *(f"{number:,}" for number in (each.bytes, each.rows, each.events)),
            )
            for each in chosen
        ]
        yield _table(title, ("begin", "time (UTC)", "bytes", "rows", "events"), rows)


def _bursts(statistics: LogStatistics) -> Iterator[str]:
    def numbers(each: Period) -> Iterator[str]:
        return (f"{number:,}" for number in (each.transactions, each.rows, each.bytes))

    rows = [(time_text(each.time), *numbers(each)) for each in statistics.busiest]
    yield _table("Busiest seconds", ("time (UTC)", "transactions", "rows", "bytes"), rows)
    gaps = [
        (time_text(each.after), f"{each.seconds:,} s", f"{each.file}:{each.pos}")
        for each in statistics.gaps
    ]
    head = ("after (UTC)", "without a transaction", "next transaction")
    yield _table("Gaps", head, gaps) if gaps else "<h2>Gaps</h2><p>None of 2 seconds or more.</p>"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th>{text(each)}</th>" for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<h2>{text(title)}</h2><div class="wide"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
