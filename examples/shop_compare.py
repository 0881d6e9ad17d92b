"""Compare Delta tables with the rows that SELECT returns, and print the result as a table."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shop_server import Server
from shop_workload import DATABASE, TABLES

__all__ = ["compare"]

# Added by the mirror: the position of each row's last change.
_SEQ = "_seq"

Rows = Counter[tuple[Any, ...]]


def compare(console: Console, server: Server, lake: Path) -> bool:
    """Print the comparison; return whether each Delta table is equal to its MySQL table."""
    shown = Table(title="Delta tables compared with their MySQL tables", title_style="bold")
    shown.add_column("table", style="bold")
    for title in ("columns", "rows in MySQL", "rows in Delta", "only in MySQL", "only in Delta"):
        shown.add_column(title, justify="right")
    shown.add_column("content")
    differences = []
    for table in TABLES:
        names, expected = _selected(server, table)
        delta = DeltaTable(lake / DATABASE / table).to_pyarrow_table().drop([_SEQ])
        same_names = sorted(delta.column_names) == sorted(names)
        found: Rows = Counter()
        if same_names:
            found.update(_plain(row.values()) for row in delta.select(names).to_pylist())
        else:
            differences.append(f"{table}: columns {delta.column_names}, expected {names}")
        missing, extra = expected - found, found - expected
        differences += [f"{table}: only in MySQL: {row}" for row in list(missing)[:3]]
        differences += [f"{table}: only in Delta: {row}" for row in list(extra)[:3]]
        equal = same_names and not missing and not extra
        shown.add_row(
            table,
            str(len(names)),
            *(f"{rows:,}" for rows in (expected.total(), delta.num_rows)),
            *(f"{rows.total():,}" for rows in (missing, extra)),
            "[green]equal[/]" if equal else "[bold red]DIFFERENT[/]",
        )
    console.print(shown)
    for line in differences:
        console.print(f"[red]{escape(line)}[/]")
    return not differences


def _selected(server: Server, table: str) -> tuple[list[str], Rows]:
    """Return the names of the columns, and the rows."""
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")
        return [column[0] for column in cursor.description], Counter(map(_plain, cursor))


def _plain(row: Any) -> tuple[Any, ...]:
    """Return the values of a row with rounded floats, and datetimes without time zone."""
    return tuple(map(_plain_value, row))


def _plain_value(value: Any) -> Any:
    if isinstance(value, float):  # SELECT shows six digits of a FLOAT
        return float(f"{value:.6g}")
    if isinstance(value, datetime):  # Delta's are in UTC, as is this session of MySQL
        return value.replace(tzinfo=None)
    return value
