"""First loads and Delta mirrors: parts that run one by one, and the figures of their last runs.

``make bench BENCH_ARGS=--loads`` runs all, ``BENCH_ARGS="--loads first_load lag"`` some. Each is
printed, and written to loads.json and the tables in docs/explanation/benchmarks.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from delta_load import delta_load
from first_load import first_load
from first_rows import first_rows
from jars import java_peers
from load_bench import Bench, Found
from machine import describe
from mirror_batches import mirror_batches
from mirror_lag import mirror_lag
from mirror_workload import mirror_workload
from scale import LoadScale
from workload import running_server

__all__ = ["PARTS", "measure", "show"]

PARTS: dict[str, Callable[[Bench], Found]] = {
    "first_load": first_load,
    "first_rows": first_rows,
    "delta_load": delta_load,
    "mirror": mirror_batches,
    "workload": mirror_workload,
    "lag": mirror_lag,
}
_TITLES = {
    "first_load": "A first load into Spark",
    "first_rows": "The first rows of a load",
    "delta_load": "A first load into Delta",
    "mirror": "Batches of a mirror",
    "workload": "A mirror of the workload's log",
    "lag": "From commit to visible in Delta",
}


def measure(
    names: Sequence[str], scale: LoadScale, folder: Path
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
