"""The run: measure this project and its peers side by side.

It starts a MySQL of its own, writes the workload, lets everything read it by turns, and writes the
figures to results.json, docs/explanation/benchmarks.md and its chart. With --tuning it measures the
choices in the plan of a batch instead (see `tuning`), with --loads first loads and mirrors (see
`loads`). With --short nothing is written and no figure means anything: it shows that every part of
all of them still runs, and counts every row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import loads
import tuning
from helpers.quick_java import java_options
from jars import java_peers, missing_java
from latency import latency_measures
from machine import describe
from memory import measure_memory, write_backlog
from our_reads import (
    decode_measures,
    our_checksums,
    socket_reads,
    start_up,
    tail_measure,
)
from peers import (
    debezium,
    java_log_reader,
    java_verifies_checksums,
    python_replication,
)
from results import collect
from rounds import Measure, run_rounds
from scale import FULL, FULL_LOADS, SHORT, SHORT_LOADS, Scale
from spark_reads import save_ready, spark_reads
from workers import Worker, python_worker
from workload import Workload, running_server, write_workload

_HERE = Path(__file__).resolve().parent
_RESULTS = _HERE / "results.json"
_TUNING = _HERE / "tuning.json"
_LOADS = _HERE / "loads.json"
_DOCS = _HERE.parent / "docs"
_CHART = _DOCS / "explanation" / "benchmarks.svg"
_MOST_LATENCY_ROUNDS = 3


def main() -> None:
    arguments = _arguments()
    scale = SHORT
    if not arguments.short:
        memory_bytes = int(arguments.memory * 1e9)
        scale = replace(FULL, rounds=arguments.rounds, memory_bytes=memory_bytes)
    if arguments.report:
        _write(json.loads(_RESULTS.read_text(encoding="utf-8")))
        return
    missing = missing_java()
    if missing is not None:
        raise SystemExit(missing)
    # Whoever ends us early: the server and the workers are to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.short:
        # Most of it is JVMs that start, and none of its figures counts.
        os.environ.setdefault("JDK_JAVA_OPTIONS", java_options())
    is_log = arguments.loads is None
    for chosen, measure, path, write in (
        (is_log and not arguments.tuning, _measure, _RESULTS, _write),
        (arguments.tuning or (is_log and arguments.short), _tune, _TUNING, _write_pages),
    ):
        if not chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            results = measure(scale, Path(folder))
        if not arguments.short:
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            write(results)
    if arguments.loads is not None or arguments.short:
        _measure_loads(arguments)
    if arguments.short:
        sys.stderr.write("every part ran\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few thousand rows, once")
    parser.add_argument("--tuning", action="store_true", help="what the plan of a batch is made of")
    parser.add_argument(
        "--loads",
        nargs="*",
        choices=list(loads.PARTS),
        metavar="PART",
        help=f"first loads and mirrors; all of {', '.join(loads.PARTS)}, or some",
    )
    parser.add_argument("--rows", type=int, default=FULL_LOADS.rows, help="of --loads' large table")
    parser.add_argument(
        "--lag-seconds", type=float, default=FULL_LOADS.lag_seconds, help="that its lag takes"
    )
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument(
        "--memory", type=float, default=0.0, metavar="GB", help="also measure memory at a backlog"
    )
    parser.add_argument(
        "--report", action="store_true", help="write the document again from results.json"
    )
    arguments = parser.parse_args()
    if arguments.memory and (arguments.tuning or arguments.loads is not None):
        parser.error("--memory is no part of --tuning and --loads")
    if arguments.tuning and arguments.loads is not None:
        parser.error("--tuning and --loads are two runs")
    return arguments


def _measure(scale: Scale, folder: Path) -> dict[str, Any]:
    load = os.getloadavg()[0]
    java = java_peers()
    with ExitStack() as stack:
        stack.enter_context(_logs_of_failures(folder))
        server = stack.enter_context(running_server())
        workload = write_workload(server, folder, scale)

        worker = partial(_worker, stack, folder)
        kernel, python = worker("our_worker"), worker("our_worker", "python")
        spark = worker("spark_worker")
        ready = save_ready(kernel, workload, folder)
        measures: list[Measure] = [
            *decode_measures(kernel, python, workload),
            *socket_reads(worker("dump_worker"), workload),
            tail_measure(kernel, workload),
            *java_log_reader(stack, java, workload, folder),
            *python_replication(stack, workload, folder, scale.piece_rows),
            *spark_reads(spark, workload, ready),
            *debezium(stack, java, workload, folder),
            start_up(kernel, workload, folder),
        ]
        series = run_rounds(measures, scale.rounds, warm=scale.warm_up)
        # What follows writes to the log, which nobody reads again.
        latencies = latency_measures(
            spark, worker("writer_worker"), workload, ready["struct"], scale
        )
        rounds = min(scale.rounds, _MOST_LATENCY_ROUNDS)
        series |= run_rounds(list(latencies), rounds, warm=scale.warm_up)
        return collect(
            scale,
            describe(server, java.libraries, load),
            workload,
            series,
            memory=_memory(worker("spark_worker"), workload, scale.memory_bytes),
            verifies={
                "this project": our_checksums(kernel, workload, folder),
                "mysql-binlog-connector-java (and Debezium with it)": java_verifies_checksums(
                    java, workload, folder
                ),
            },
        )


def _tune(scale: Scale, folder: Path) -> dict[str, Any]:
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        stack.enter_context(_logs_of_failures(folder))
        server = stack.enter_context(running_server())
        workload = write_workload(server, folder, scale)

        worker = partial(_worker, stack, folder)
        ready = save_ready(worker("our_worker"), workload, folder)["struct"]
        children = tuning.Children(
            tuning=worker("tuning_worker"),
            spark=worker("spark_worker"),
            spark_python=worker("spark_worker", "python"),
            writer=worker("writer_worker"),
        )
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": describe(server, {}, load),
            "rounds": scale.rounds,
            "choices": tuning.measure(children, workload, ready, folder, scale),
        }


def _measure_loads(arguments: argparse.Namespace) -> None:
    scale = SHORT_LOADS
    if not arguments.short:
        scale = replace(
            FULL_LOADS,
            rows=arguments.rows,
            slow_rows=min(FULL_LOADS.slow_rows, arguments.rows),
            rounds=arguments.rounds,
            lag_seconds=arguments.lag_seconds,
        )
    names = arguments.loads or list(loads.PARTS)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        _logs_of_failures(Path(folder)),
    ):
        for name, found in loads.measure(names, scale, Path(folder)):
            loads.show(name, found)
            if not arguments.short:
                stored = json.loads(_LOADS.read_text(encoding="utf-8")) if _LOADS.exists() else {}
                stored[name] = found
                _LOADS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
                _write_pages()


def _memory(spark: Worker, workload: Workload, size: int) -> dict[str, Any]:
    if not size:
        return {}
    begin = write_backlog(workload, size)
    return {
        payload: measure_memory(spark, workload, payload, begin) for payload in ("struct", "json")
    }


def _worker(stack: ExitStack, folder: Path, module: str, implementation: str = "c") -> Worker:
    """A child that ends with the stack."""
    log = folder / f"{module}-{implementation}.log"
    return stack.enter_context(python_worker(module, log, MYSQLBINLOG_IMPL=implementation))


@contextmanager
def _logs_of_failures(folder: Path) -> Iterator[None]:
    """When something fails, what the children wrote last."""
    try:
        yield
    except Exception:
        for log in sorted(folder.glob("*.log")):
            text = log.read_text(errors="replace")[-3000:]
            if text:
                sys.stderr.write(f"\n--- {log.name}\n{text}\n")
        raise


def _write(results: dict[str, Any]) -> None:
    from chart import draw

    draw(results, _CHART)
    _write_pages()


def _write_pages(_: object = None) -> None:
    """Make the tables of the page again, from the JSON."""
    subprocess.run([sys.executable, _DOCS / "_hooks"], check=True)
