"""Initial snapshots and Delta mirrors: parts that run one by one.

``make bench BENCH_ARGS=--snapshots`` runs all, ``BENCH_ARGS="--snapshots lag"`` some. Each is
printed, and written to snapshots.json and the tables in docs/explanation/benchmarks.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import describe
from benchmarks.harness.scale import SnapshotScale
from benchmarks.mirror.batches import mirror_batches
from benchmarks.mirror.lag import mirror_lag
from benchmarks.mirror.snapshot_to_delta import snapshot_to_delta
from benchmarks.mirror.workload_log import mirror_workload
from benchmarks.peers.jars import java_peers
from benchmarks.snapshot.fixture import Bench, Found
from benchmarks.snapshot.throughput import snapshot_throughput
from benchmarks.snapshot.time_to_first_row import time_to_first_row
from benchmarks.workload.workload import running_server

__all__ = ["PARTS", "measure", "show"]

PARTS: dict[str, Callable[[Bench], Found]] = {
    "snapshot_throughput": snapshot_throughput,
    "time_to_first_row": time_to_first_row,
    "snapshot_to_delta": snapshot_to_delta,
    "mirror": mirror_batches,
    "workload": mirror_workload,
    "lag": mirror_lag,
}
_TITLES = {
    "snapshot_throughput": "A first load into Spark",
    "time_to_first_row": "The first rows of a load",
    "snapshot_to_delta": "A first load into Delta",
    "mirror": "Batches of a mirror",
    "workload": "A mirror of the workload's log",
    "lag": "From commit to visible in Delta",
}


def measure(
    names: Sequence[str], scale: SnapshotScale, folder: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part's name and figures, as soon as it has run."""
    java = java_peers()
    with running_server() as server:
        bench = Bench(server, folder, java.jars, scale)
        for name in names:
            load = os.getloadavg()[0]
            found = PARTS[name](bench)
            yield (
                name,
                {
                    "date": datetime.now(UTC).date().isoformat(),
                    "machine": describe(server, java.libraries, load),
                    "scale": asdict(scale),
                    **asdict(found),
                },
            )


def show(name: str, found: dict[str, Any]) -> None:
    """Print a part."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{_TITLES[name]}, {found['date']}", caption=found["told"])
    for number, head in enumerate(found["head"]):
        table.add_column(head, justify="right" if number else "left")
    for cells in found["cells"]:
        table.add_row(*cells)
    console = Console()
    console.print(table)
    for note in found["notes"]:
        console.print(note, highlight=False)
