"""The numbers of a log as text, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pyspark_mysqlbinlog.connector.inspection.figures.statistics import (
    LogStatistics,
    size_ranges,
    table_totals,
)
from pyspark_mysqlbinlog.connector.inspection.literals import name_text, printable
from pyspark_mysqlbinlog.connector.inspection.tally import OperationCount
from pyspark_mysqlbinlog.connector.inspection.text import event_name, time_text

__all__ = ["statistics_json", "statistics_text"]

_BAR_WIDTH = 40
_NUMBER = re.compile(r"[\d,]+( to [\d,]+| s)?")


def statistics_json(statistics: LogStatistics) -> str:
    """Return one JSON object; docs/reference/command-line.md lists its fields."""
    return json.dumps(
        {
            "files": statistics.files,
            "transactions": statistics.transactions,
            "rows": statistics.rows,
            "bytes": statistics.bytes,
            "first": _iso(statistics.first),
            "last": _iso(statistics.last),
            "tables": [
                {
                    "database": name[0],
                    "table": name[1],
                    "operations": {
                        op: asdict(each) for op, each in statistics.tables[name].items()
                    },
                }
                for name, _ in table_totals(statistics.tables)
            ],
            "events": [
                {"type": event_name(kind), "events": count, "bytes": size}
                for kind, (count, size) in _by_bytes(statistics)
            ],
            "transactions_by_bytes": _ranges(statistics.by_bytes),
            "transactions_by_rows": _ranges(statistics.by_rows),
            "largest": [each._asdict() | {"time": _iso(each.time)} for each in statistics.largest],
            "most_rows": [
                each._asdict() | {"time": _iso(each.time)} for each in statistics.most_rows
            ],
            "busiest_seconds": [
                each._asdict() | {"time": _iso(each.time)} for each in statistics.busiest
            ],
            "gaps": [each._asdict() | {"after": _iso(each.after)} for each in statistics.gaps],
            "timeline_seconds": statistics.period,
            "timeline": [
                each._asdict() | {"time": _iso(each.time)} for each in statistics.timeline
            ],
        },
        ensure_ascii=False,
    )


def _iso(seconds: int | None) -> str | None:
    return None if seconds is None else time_text(seconds).replace(" ", "T") + "Z"


def _ranges(histogram: Sequence[int]) -> list[dict[str, int]]:
    return [
        {"from": first, "to": last, "transactions": count}
        for first, last, count in size_ranges(histogram)
    ]


def _by_bytes(statistics: LogStatistics) -> list[tuple[int, tuple[int, int]]]:
    return sorted(statistics.types.items(), key=lambda each: (-each[1][1], each[0]))


def statistics_text(statistics: LogStatistics) -> Iterator[str]:
    """Yield the lines of all numbers."""
    for file in statistics.files:
        yield f"# {printable(file)}"
    yield (
        f"{statistics.transactions:,} transactions, {statistics.rows:,} rows,"
        f" {statistics.bytes:,} bytes"
    )
    if statistics.first is not None and statistics.last is not None:
        yield f"from {time_text(statistics.first)} to {time_text(statistics.last)} UTC"
    yield from _table("rows by table", _TABLE_HEAD, [*_table_rows(statistics)])
    events = [
        (event_name(kind), f"{count:,}", f"{size:,}")
        for kind, (count, size) in _by_bytes(statistics)
    ]
    yield from _table("events by type", ("type", "events", "bytes"), events)
    for unit, histogram in (("bytes", statistics.by_bytes), ("rows", statistics.by_rows)):
        yield from _histogram(unit, histogram)
    for title, chosen in (
        ("largest transactions", statistics.largest),
        ("transactions with the most rows", statistics.most_rows),
    ):
        rows = [
            (
                f"{printable(each.file)}:{each.pos}",
                time_text(each.time),
                *(f"{number:,}" for number in (each.bytes, each.rows, each.events)),
            )
            for each in chosen
        ]
        yield from _table(title, ("begin", "time (UTC)", "bytes", "rows", "events"), rows)
    busiest = [
        (time_text(each.time), *(f"{n:,}" for n in (each.transactions, each.rows, each.bytes)))
        for each in statistics.busiest
    ]
    head = ("time (UTC)", "transactions", "rows", "bytes")
    yield from _table("busiest seconds", head, busiest)
    gaps = [
        (f"{each.seconds:,} s", time_text(each.after), f"{printable(each.file)}:{each.pos}")
        for each in statistics.gaps
    ]
    yield from _table("gaps", ("length", "after (UTC)", "next transaction"), gaps)


_TABLE_HEAD = ("table", "inserts", "updates", "deletes", "events", "bytes")


def _table_rows(statistics: LogStatistics) -> Iterator[tuple[str, ...]]:
    for name, total in table_totals(statistics.tables):
        operations = statistics.tables[name]
        rows = (operations.get(op, OperationCount()).rows for op in "cud")
        yield (name_text(*name), *(f"{n:,}" for n in (*rows, total.events, total.bytes)))


def _histogram(unit: str, histogram: Sequence[int]) -> Iterator[str]:
    found = size_ranges(histogram)
    most = max((count for _, _, count in found), default=1)
    rows = [
        (
            f"{first:,}" if first == last else f"{first:,} to {last:,}",
            f"{count:,}",
            "#" * max(1, round(_BAR_WIDTH * count / most)) if count else "",
        )
        for first, last, count in found
    ]
    yield from _table(f"transactions by {unit}", (unit, "transactions", ""), rows)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: numbers to the right, and texts to the left."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    aligned = [
        ">" if all(map(_NUMBER.fullmatch, column)) else "<" for column in zip(*rows, strict=True)
    ]
    yield ""
    yield title
    for row in (head, *rows):
        cells = map(
            format, row, (f"{side}{width}" for side, width in zip(aligned, widths, strict=True))
        )
        yield "  " + "  ".join(cells).rstrip()
