"""A mirror of the workload's log: bulk INSERTs, then transactions of one row, beside the merges.

The mirror begins with the empty table. When the log is written it takes all of it, batch by batch,
and then delta-rs merges the very same Arrow tables into a copy of the empty Delta table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from pymysql.constants import CLIENT

from delta_load import mirror_options
from load_bench import Bench, Found
from mirror_batches import cells_of, expect_equal, parts_of, said_share
from orders import CREATE, DATABASE, TABLE, Orders
from rounds import Sample, Series
from workers import Worker

__all__ = ["mirror_workload"]

_TABLE = "followed"
# A mirror of its own, before anything is measured: the first batches of a JVM take several times as
# long.
_WARM_TABLE = "warmed"
_WARM_SHARE = 20
_COLUMN = "quantity"
_STATEMENTS_A_TRIP = 100


def mirror_workload(bench: Bench) -> Found:
    """Seconds of all batches, and of all merges."""
    scale = bench.scale
    bench.server.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    with bench.worker("delta_worker") as child:
        warm = max(scale.log_bulk // _WARM_SHARE, 1000), max(scale.log_single // _WARM_SHARE, 1)
        _follow(bench, child, _WARM_TABLE, *warm)
        child.ask("end")
        answer = _follow(bench, child, _TABLE, scale.log_bulk, scale.log_single)
        merged = child.ask("merged")["seconds"]
        expect_equal(bench, (_TABLE,), child.ask("sums", _COLUMN), _COLUMN)
        child.ask("end")
    batches = answer["batches"]
    rows = scale.log_bulk + scale.log_single
    assert sum(batch["rows"] for batch in batches) == rows
    parts = parts_of([batch["durations"] for batch in batches], answer["spent"])
    seconds = sum(batch["durations"]["triggerExecution"] for batch in batches)
    mirror = Series([Sample(seconds, rows, more=parts)])
    merges = Series([Sample(merged, rows)])
    found = Found(
        told=(
            f"The log above: {scale.log_bulk:,} rows by INSERTs of 1,000 and {scale.log_single:,}"
            f" transactions of one row, in {len(batches)} batches, beside delta-rs' merges of the"
            " same Arrow tables into a copy of the empty table."
        ),
        head=("", "seconds", ""),
        cells=cells_of(mirror, merges),
        notes=[said_share(mirror, merges)],
    )
    found.keep({"mirror": mirror, "merges": merges})
    return found


def _follow(bench: Bench, child: Worker, table: str, bulk: int, single: int) -> dict[str, Any]:
    """Write a log, and then have a mirror that began in front of it follow it to its end."""
    bench.server.execute(_renamed(CREATE, table))
    child.ask("begin", mirror_options(bench, f"{DATABASE}.{table}"), "yes")
    orders = Orders()
    _write(bench, table, orders.bulk(bulk), 1)
    changes = orders.single(single, bulk)
    _write(bench, table, (statement for _, statement in changes), _STATEMENTS_A_TRIP)
    child.ask("go_on", "")
    return child.ask("applied", *bench.server.position())


def _renamed(statement: str, table: str) -> str:
    """The statement on a table of its own: other parts have filled that of this name."""
    return statement.replace(f"{DATABASE}.{TABLE}", f"{DATABASE}.{table}", 1)


def _write(bench: Bench, table: str, statements: Iterable[str], a_trip: int) -> None:
    # In autocommit each statement is a transaction; many a trip only saves the trips.
    with (
        bench.server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection,
        connection.cursor() as cursor,
    ):
        remaining = (_renamed(statement, table) for statement in statements)
        while some := list(islice(remaining, a_trip)):
            cursor.execute(";".join(some))
            while cursor.nextset():
                pass
