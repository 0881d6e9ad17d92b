"""Batches of a mirror, compared with the merges alone: what all but the engine costs.

Each batch is one transaction that changes rows all over each table. When it is in Delta, delta-rs
merges the very same Arrow tables into copies of the Delta tables.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.interleaved import Sample, Series
from benchmarks.mirror.snapshot_to_delta import mirror_options
from benchmarks.snapshot.fixture import Bench, Found
from benchmarks.workload.orders import DATABASE

__all__ = [
    "assert_equal",
    "cells_of",
    "mirror_batches",
    "mirrored_tables",
    "parts_of",
    "said_share",
]

_TARGET = 0.7
_TABLES = ("mirrored0", "mirrored1", "mirrored2")
# What each update changes: a number, so that sums tell whether all is there.
_COLUMN = "customer"
# The first batch opens tables, and is not counted.
_WARM = 1
_SPARK = ("latestOffset", "queryPlanning", "getBatch", "walCommit", "commitOffsets")
_PARTS = ("collect", "read the binlog", "read values", "final states", "merge")


def mirrored_tables(bench: Bench) -> tuple[str, ...]:
    """Their names; each is filled."""
    for name in _TABLES:
        bench.fill(name, bench.scale.mirror_rows)
    return _TABLES


def mirror_batches(bench: Bench) -> Found:
    """Seconds of batches, and of merges."""
    scale, tables = bench.scale, mirrored_tables(bench)
    rows = scale.updates * len(tables)
    batches, merges = Series(), Series()
    with bench.worker("mirror.delta_worker") as child:
        child.ask("begin", mirror_options(bench, f"{DATABASE}.mirrored*"), "yes")
        child.ask("go_on", "")
        for number in range(_WARM + scale.batches):
            _update(bench, tables, number)
            answer = child.ask("applied", *bench.server.position())
            (batch,) = answer["batches"]
            assert batch["rows"] == rows
            merged = child.ask("merged")["seconds"]
            if number >= _WARM:
                durations = batch["durations"]
                seconds = durations["triggerExecution"]
                parts = parts_of([durations], answer["spent"])
                batches.samples.append(Sample(seconds, rows, more=parts))
                merges.samples.append(Sample(merged, rows))
        assert_equal(bench, tables, child.ask("sums", _COLUMN), _COLUMN)
        child.ask("end")
    return _found(bench, batches, merges)


def _update(bench: Bench, tables: tuple[str, ...], number: int) -> None:
    """One transaction, which a batch never parts, of rows that lie all over the tables."""
    every = bench.scale.mirror_rows // bench.scale.updates
    with bench.server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for table in tables:
            changed = cursor.execute(
                f"UPDATE {DATABASE}.{table} SET {_COLUMN} = {_COLUMN} + 1, amount = amount + 1"
                f" WHERE id % {every} = {number * 7 % every}"
            )
            assert changed == bench.scale.updates
        connection.commit()


def parts_of(
    durations: Sequence[Mapping[str, float]], spent: Mapping[str, float]
) -> dict[str, float]:
    """Return the seconds of batches by phase, in their order within a batch.

    durations : of each batch, as Spark reports them.
    """
    own = sum(each.get(name, 0.0) for each in durations for name in _SPARK)
    parts = {"Spark, around the batch": own} | {name: spent.get(name, 0.0) for name in _PARTS}
    total = sum(each["triggerExecution"] for each in durations)
    return parts | {"other": total - sum(parts.values())}


def assert_equal(bench: Bench, tables: tuple[str, ...], found: dict[str, Any], column: str) -> None:
    """What was measured did what it should."""
    for table in tables:
        ((total,),) = bench.server.execute(f"SELECT SUM({column}) FROM {DATABASE}.{table}")
        for kind, sums in found.items():
            assert sums[table] == total, f"{kind} of {table}: {sums[table]}, expected {total}"


def _found(bench: Bench, batches: Series, merges: Series) -> Found:
    scale = bench.scale
    found = Found(
        told=(
            f"3 tables of {scale.mirror_rows:,} rows of 12 columns, {scale.updates:,} updates of"
            f" each in a batch, {scale.batches} batches, each compared with"
            " delta-rs' merges of the same"
            " Arrow tables into copies of the same tables; medians."
        ),
        head=("", "seconds", "in the batches"),
        cells=cells_of(batches, merges),
        notes=[said_share(batches, merges)],
    )
    found.keep({"mirror": batches, "merges": merges})
    return found


def said_share(batches: Series, merges: Series, of: str = "batches") -> str:
    """What of the batches' time the merges alone would take.

    of : what the samples are.
    """
    ratios = [
        merge.seconds / batch.seconds
        for batch, merge in zip(batches.samples, merges.samples, strict=True)
    ]
    middle, spread = statistics.median(ratios), f"{min(ratios):.2f} … {max(ratios):.2f} in the {of}"
    met = "met" if middle >= _TARGET else "not met"
    return f"merges / mirror: {middle:.2f} ({spread}), target {_TARGET}: {met}"


def cells_of(batches: Series, merges: Series) -> list[list[str]]:
    """Both, and the parts of the batches."""
    parts = {
        name: statistics.median(sample.more[name] for sample in batches.samples)
        for name in batches.samples[0].more
    }
    return [
        *(_cells(name, each) for name, each in (("mirror", batches), ("merges", merges))),
        *([f"mirror: {name}", f"{seconds:.2f}", ""] for name, seconds in parts.items()),
    ]


def _cells(name: str, series: Series) -> list[str]:
    seconds = [sample.seconds for sample in series.samples]
    spread = f"{min(seconds):.2f} … {max(seconds):.2f}"
    return [name, f"{statistics.median(seconds):.2f}", spread]
