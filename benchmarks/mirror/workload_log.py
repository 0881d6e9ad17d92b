"""A mirror of the workload's log (bulk INSERTs, then transactions of one row), and the merges.

The mirror begins with the empty table. When the log is written it takes all of it, batch by batch,
and then delta-rs merges the very same Arrow tables into a copy of the empty Delta table.

What both use of the cores is told, too. It is about what bounds a mirror on this machine, if all
its steps ran in parallel: the start of the query is in it, and the server is not.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pymysql.constants import CLIENT

from benchmarks.harness.interleaved import Sample, Series
from benchmarks.harness.processes import cpu_seconds
from benchmarks.harness.workers import Worker
from benchmarks.mirror.batches import assert_equal, cells_of, parts_of, said_share
from benchmarks.mirror.snapshot_to_delta import mirror_options
from benchmarks.snapshot.fixture import Bench, Found
from benchmarks.workload.orders import CREATE, DATABASE, TABLE, Orders

__all__ = ["mirror_workload"]

_TABLE = "followed"
# Followed before anything is measured: the first batches of a JVM take several times as long.
_WARM_TABLE = "warmed"
_COLUMN = "quantity"
_STATEMENTS_A_TRIP = 100
# Of a sample: in seconds of one core; without the server, with the start of the query.
_CPU = "CPU of all its processes"


def mirror_workload(bench: Bench) -> Found:
    """Seconds of all batches, and of all merges, each round with tables of its own."""
    scale = bench.scale
    bench.server.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    mirror, merges, batches = Series(), Series(), 0
    rows = scale.log_bulk + scale.log_single
    with bench.worker("mirror.delta_worker") as child:
        if scale.warm_up:
            _follow(bench, child, _WARM_TABLE, scale.log_bulk, scale.log_single)
            child.ask("merged")
            child.ask("end")
        for number in range(scale.rounds):
            table = f"{_TABLE}{number}"
            answer = _follow(bench, child, table, scale.log_bulk, scale.log_single)
            batches = len(answer["batches"])
            durations = [batch["durations"] for batch in answer["batches"]]
            assert sum(batch["rows"] for batch in answer["batches"]) == rows
            parts = parts_of(durations, answer["spent"])
            seconds = sum(each["triggerExecution"] for each in durations)
            mirror.samples.append(Sample(seconds, rows, more=parts | {_CPU: answer["cpu"]}))
            before = cpu_seconds(child.pid)
            merged = child.ask("merged")["seconds"]
            more = {_CPU: cpu_seconds(child.pid) - before}
            merges.samples.append(Sample(merged, rows, more=more))
            assert_equal(bench, (table,), child.ask("sums", _COLUMN), _COLUMN)
            child.ask("end")
    found = Found(
        told=(
            f"The binlog above: {scale.log_bulk:,} rows by INSERTs of 1,000 and"
            f" {scale.log_single:,} transactions of one row, in about {batches} batches, compared"
            f" with delta-rs' merges of the same Arrow tables into a copy of the empty"
            f" table; {scale.rounds} rounds, medians."
            " Appends of rows after all keys of the table count as merges."
            " Work that overlaps with a merge is in no other part."
        ),
        head=("", "seconds", "in the rounds"),
        cells=cells_of(mirror, merges),
        notes=[said_share(mirror, merges, "rounds"), _said_cores(mirror, merges)],
    )
    found.keep({"mirror": mirror, "merges": merges})
    return found


def _follow(bench: Bench, child: Worker, table: str, bulk: int, single: int) -> dict[str, Any]:
    """Write a log, then let a mirror that started before it apply it to its end."""
    bench.server.execute(_renamed(CREATE, table))
    child.ask("begin", mirror_options(bench, f"{DATABASE}.{table}"), "yes")
    orders = Orders()
    _write(bench, table, orders.bulk(bulk), 1)
    changes = orders.single(single, bulk)
    _write(bench, table, (statement for _, statement in changes), _STATEMENTS_A_TRIP)
    before = cpu_seconds(child.pid)
    child.ask("go_on", "")
    answer = child.ask("applied", *bench.server.position())
    return answer | {"cpu": cpu_seconds(child.pid) - before}


def _said_cores(mirror: Series, merges: Series) -> str:
    """What the mirror's processes use, and the least time that it takes them."""
    used, by_merges = (
        statistics.median(sample.more[_CPU] for sample in each.samples) for each in (mirror, merges)
    )
    cores = len(os.sched_getaffinity(0))
    least = used / cores
    share = statistics.median(sample.seconds for sample in merges.samples) / least
    return (
        f"the mirror's processes use {used:.1f} s of a core, the merges alone {by_merges:.1f} s:"
        f" {cores} cores, never idle, would need about {least:.1f} s, a ratio of {share:.1f}"
    )


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
