"""Display of a mirror's progress: lines of text, lines of JSON, and a table in a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from pyspark_mysqlbinlog.connector.cli.console.live_table import LiveTable, table_of
from pyspark_mysqlbinlog.connector.cli.console.output import Lines, as_json, as_text
from pyspark_mysqlbinlog.connector.delta.query.progress import (
    BatchProgress,
    MirrorProgress,
    TableBatch,
    TableProgress,
    recent_rates,
)

NOW = 1_700_000_000.0


def batch(
    number: int, committed_at: float = NOW, *, in_snapshot: int = 0, **rows: int
) -> BatchProgress:
    """Return a batch of one second with this number of changes per table of `shop`."""
    parts = {f"shop.{name}": TableBatch(n, 0, n * 10, 0.5, 1.25) for name, n in rows.items()}
    count = sum(rows.values())
    return BatchProgress(number, count, 1.0, committed_at, "bin.000007", 4711, in_snapshot, parts)


IN_SNAPSHOT = MirrorProgress(
    {
        "shop.orders": TableProgress(1500, 15000, 2.5, True, 1000, 4000),
        "shop.ñ漢": TableProgress(0, 0, None, True, 0, None),
        "shop.keyless": TableProgress(stopped="the table has no primary key"),
        "shop.lines": TableProgress(70, 700, 1.25),
    },
    (
        BatchProgress(
            4,
            1570,
            2.0,
            NOW,
            "bin.000007",
            4711,
            2,
            {
                "shop.orders": TableBatch(1500, 1000, 15000, 0.7, 2.5),
                "shop.lines": TableBatch(70, 0, 700, 0.1, 1.25),
            },
        ),
    ),
)


def test_progress_json_lists_tables_of_the_batch_and_stopped_tables() -> None:
    text = as_json(IN_SNAPSHOT.batches[0], IN_SNAPSHOT)
    assert text.isascii()
    assert json.loads(text) == {
        "batch": 4,
        "time": "2023-11-14T22:13:20.000+00:00",
        "rows": 1570,
        "duration_seconds": 2.0,
        "lag_seconds": 2.5,
        "file": "bin.000007",
        "pos": 4711,
        "tables_in_snapshot": 2,
        "tables": {
            "shop.orders": {
                "rows": 1500,
                "bytes": 15000,
                "duration_seconds": 0.7,
                "lag_seconds": 2.5,
                "snapshot_rows": 1000,
                "snapshot_rows_estimate": 4000,
            },
            "shop.lines": {"rows": 70, "bytes": 700, "duration_seconds": 0.1, "lag_seconds": 1.25},
        },
        "stopped": {"shop.keyless": "the table has no primary key"},
    }
    alone = MirrorProgress({"shop.a": TableProgress(1)}, (batch(1, a=1),))
    assert "stopped" not in json.loads(as_json(alone.batches[0], alone))


def test_progress_text_shows_snapshot_and_lag() -> None:
    line = as_text(IN_SNAPSHOT.batches[0], IN_SNAPSHOT)
    assert line.partition(" batch ")[2] == (
        "4: 1,570 rows in 2.0 s, lag 2.5 s, up to bin.000007:4711; snapshot of 2 tables,"
        " shop.orders has 1,000 of about 4,000 rows"
    )
    done = MirrorProgress({"shop.a": TableProgress(1)}, (batch(5, a=1),))
    line = as_text(done.batches[0], done)
    assert line.endswith(" batch 5: 1 row in 1.0 s, lag 1.2 s, up to bin.000007:4711")


def test_batches_with_rows_or_end_of_snapshot_print_one_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batches = [
        batch(0, in_snapshot=1),
        batch(1, in_snapshot=1, a=2),
        batch(2),
        batch(3),
        batch(4, a=1),
    ]
    table = {"shop.a": TableProgress(3)}
    with Lines(as_json) as lines:
        for upto in (1, 2, 2, 4, 5):
            lines.show(MirrorProgress(table, tuple(batches[:upto])))
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    # Batch 2 has no rows, and ends the snapshot.
    assert [(each["batch"], each["tables_in_snapshot"]) for each in objects] == [
        (1, 1),
        (2, 0),
        (4, 0),
    ]


def test_row_rates_count_only_recent_batches() -> None:
    batches = (batch(1, NOW - 60, a=900), batch(2, NOW - 9, a=10, b=5), batch(3, NOW - 1, a=20))
    assert recent_rates(MirrorProgress({}, batches), NOW) == {"shop.a": 3.0, "shop.b": 0.5}
    # A batch that took longer than the window, as in a snapshot.
    long = replace(batch(1, NOW, a=3000), duration_seconds=30.0)
    assert recent_rates(MirrorProgress({}, (long,)), NOW) == {"shop.a": 100.0}
    assert recent_rates(MirrorProgress({}, batches), NOW + 60) == {}


def shown(progress: MirrorProgress, *, most: int = 20, width: int = 120) -> list[str]:
    console = Console(file=StringIO(), width=width)
    console.print(table_of(progress, NOW, most=most, is_wide=width >= 120))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_terminal_table_has_one_line_per_table_with_stopped_ones_first() -> None:
    head, *lines, foot = shown(IN_SNAPSHOT)
    assert head.split() == ["table", "state", "rows", "rows/s", "bytes", "lag"]
    # Stopped tables come first, then tables in snapshot.
    assert [line.split()[0] for line in lines] == [
        "shop.keyless",
        "shop.orders",
        "shop.lines",
        "shop.ñ漢",
    ]
    keyless, orders, table, waiting = lines
    assert "stopped: the table has no primary key" in keyless
    assert "1,000 of about 4,000" in orders
    # 150 rows a second, and 3,000 left.
    assert orders.split("of about 4,000")[1].split() == [
        *("20", "s", "left", "1,500", "150"),
        *("15.0", "kB", "2.5", "s"),
    ]
    assert table.split() == ["shop.lines", "in", "sync", "70", "7", "700", "bytes", "1.2", "s"]
    assert "snapshot, 0 rows" in waiting
    assert foot.strip() == "batch 4, up to bin.000007:4711"


def test_narrow_terminal_keeps_one_line_per_table() -> None:
    """A progress bar would be wrapped over several lines, so only its percentage is shown."""
    head, _, *lines, _ = shown(IN_SNAPSHOT, width=70)
    assert head.split() == ["table", "state", "rows", "rows/s", "lag"]
    orders = ["shop.orders", "snapshot", "25%,", "20", "s", "left", "1,500", "150", "2.5", "s"]
    assert lines[-3].split() == orders
    assert [line.split()[:2] for line in lines[-2:]] == [
        ["shop.lines", "in"],
        ["shop.ñ漢", "snapshot"],
    ]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_narrow_terminal_shortens_long_names_and_keeps_states(width: int) -> None:
    database = "d" * 64
    tables = {
        f"{database}.orders": TableProgress(2, lag=0.5),
        f"{database}.ñ漢": TableProgress(3, lag=0.5),
    }
    _, *lines, _ = shown(MirrorProgress(tables, (batch(1, orders=2),)), width=width)
    (start, orders), (_, wide) = (line.split()[0].split("…") for line in lines)
    assert start == "d" * len(start)
    assert orders.endswith(".orders")
    assert wide.endswith(".ñ漢")
    assert [line.split()[1:] for line in lines] == [
        ["in", "sync", "2", "0", "0.5", "s"],
        ["in", "sync", "3", "0", "0.5", "s"],
    ]


def test_terminal_table_over_its_limit_shows_the_most_active_tables() -> None:
    tables = {f"shop.t{n}": TableProgress(n) for n in range(1000)}
    *lines, foot = shown(MirrorProgress(tables, (batch(9, t7=5, t500=50),)), most=3)[1:]
    assert [line.split()[0] for line in lines] == ["shop.t500", "shop.t7", "shop.t0"]
    assert foot.strip() == "and 997 more tables; batch 9, up to bin.000007:4711"


def test_live_table_leaves_log_lines_and_the_last_table_on_screen() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=120, height=30, color_system=None)
    with LiveTable(console) as live:
        live.show(MirrorProgress())
        live.line("2026-11-23 16:34:06,001 INFO [x] a line of the log")
        live.show(IN_SNAPSHOT)
    text = file.getvalue()
    assert "starting Spark" in text
    assert "INFO [x] a line of the log" in text
    assert text.rindex("shop.orders") > text.index("a line of the log")
    # The cursor is shown again.
    assert text.rstrip().endswith("\x1b[?25h")
