"""The run: measure this project and its peers next to each other.

It starts a MySQL of its own, writes the workload, lets everything read it in interleaved rounds,
and writes the figures to results.json, docs/explanation/benchmarks.md and its chart. With --tuning
it measures the choices in the plan of a batch instead (see `tuning`), with --compressed the decode
of compressed transactions (see `compressed`), with --snapshots initial snapshots and mirrors (see
`snapshot_suite`). With --short nothing is written and no figure means
anything: it shows that every part of all of them still runs, and counts every row.
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

from benchmarks import snapshot_suite
from benchmarks.decode import compressed
from benchmarks.decode.decode_bench import (
    decode_measures,
    our_checksums,
    socket_reads,
    start_up,
    tail_measure,
)
from benchmarks.decode.memory import measure_memory, write_backlog
from benchmarks.harness.interleaved import Measure, run_rounds
from benchmarks.harness.machine import describe
from benchmarks.harness.scale import FULL, FULL_SNAPSHOTS, SHORT, SHORT_SNAPSHOTS, Scale
from benchmarks.harness.workers import Worker, python_worker
from benchmarks.peers.jars import java_peers, missing_java
from benchmarks.peers.peers import (
    debezium,
    java_log_reader,
    java_verifies_checksums,
    python_replication,
)
from benchmarks.report.results import collect
from benchmarks.spark import tuning
from benchmarks.spark.latency import latency_measures
from benchmarks.spark.spark_reads import save_ready, spark_reads
from benchmarks.workload.workload import Workload, running_server, write_workload
from helpers.streams.quick_java import java_options

_HERE = Path(__file__).resolve().parent
_DATA = _HERE / "report" / "data"
_RESULTS = _DATA / "results.json"
_TUNING = _DATA / "tuning.json"
_COMPRESSED = _DATA / "compressed.json"
_SNAPSHOTS = _DATA / "snapshots.json"
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
    # SIGTERM must also end the server and the workers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.short:
        # Most of it is JVMs that start, and none of its figures counts.
        os.environ.setdefault("JDK_JAVA_OPTIONS", java_options())
    is_log = not arguments.tuning and not arguments.compressed and arguments.snapshots is None
    is_all = is_log and arguments.short
    for chosen, measure, path, write in (
        (is_log, _measure, _RESULTS, _write),
        (arguments.tuning or is_all, _tune, _TUNING, _write_pages),
        (arguments.compressed or is_all, _measure_compressed, _COMPRESSED, _write_pages),
    ):
        if not chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            results = measure(scale, Path(folder))
        if not arguments.short:
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            write(results)
    if arguments.snapshots is not None or arguments.short:
        _measure_snapshots(arguments)
    if arguments.short:
        sys.stderr.write("every part ran\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few thousand rows, once")
    parser.add_argument("--tuning", action="store_true", help="what the plan of a batch is made of")
    parser.add_argument(
        "--compressed", action="store_true", help="compressed transactions, written by a MySQL 9"
    )
    parser.add_argument(
        "--snapshots",
        nargs="*",
        choices=list(snapshot_suite.PARTS),
        metavar="PART",
        help=f"snapshots and mirrors; all of {', '.join(snapshot_suite.PARTS)}, or some",
    )
    parser.add_argument(
        "--rows", type=int, default=FULL_SNAPSHOTS.rows, help="of the large table of --snapshots"
    )
    parser.add_argument(
        "--lag-seconds", type=float, default=FULL_SNAPSHOTS.lag_seconds, help="that its lag takes"
    )
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument(
        "--memory", type=float, default=0.0, metavar="GB", help="also measure memory at a backlog"
    )
    parser.add_argument(
        "--report", action="store_true", help="write the document again from results.json"
    )
    arguments = parser.parse_args()
    runs = [arguments.tuning, arguments.compressed, arguments.snapshots is not None]
    if arguments.memory and any(runs):
        parser.error("--memory is no part of --tuning, --compressed and --snapshots")
    if sum(runs) > 1:
        parser.error("--tuning, --compressed and --snapshots are runs of their own")
    return arguments


def _measure(scale: Scale, folder: Path) -> dict[str, Any]:
    load = os.getloadavg()[0]
    java = java_peers()
    with ExitStack() as stack:
        stack.enter_context(_logs_of_failures(folder))
        server = stack.enter_context(running_server())
        workload = write_workload(server, folder, scale)

        worker = partial(_worker, stack, folder)
        kernel, python = worker("decode.decode_worker"), worker("decode.decode_worker", "python")
        spark = worker("spark.spark_worker")
        ready = save_ready(kernel, workload, folder)
        measures: list[Measure] = [
            *decode_measures(kernel, python, workload),
            *socket_reads(worker("decode.dump_worker"), workload),
            tail_measure(kernel, workload),
            *java_log_reader(stack, java, workload, folder),
            *python_replication(stack, workload, folder, scale.piece_rows),
            *spark_reads(spark, workload, ready),
            *debezium(stack, java, workload, folder),
            start_up(kernel, workload, folder),
        ]
        series = run_rounds(measures, scale.rounds, warm=scale.warm_up)
        # The following measurements write to the log, which is not read again.
        latencies = latency_measures(
            spark, worker("workload.writer_worker"), workload, ready["struct"], scale
        )
        rounds = min(scale.rounds, _MOST_LATENCY_ROUNDS)
        series |= run_rounds(list(latencies), rounds, warm=scale.warm_up)
        return collect(
            scale,
            describe(server, java.libraries, load),
            workload,
            series,
            memory=_memory(worker("spark.spark_worker"), workload, scale.memory_bytes),
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
        ready = save_ready(worker("decode.decode_worker"), workload, folder)["struct"]
        children = tuning.Children(
            tuning=worker("spark.tuning_worker"),
            spark=worker("spark.spark_worker"),
            spark_python=worker("spark.spark_worker", "python"),
            writer=worker("workload.writer_worker"),
        )
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": describe(server, {}, load),
            "rounds": scale.rounds,
            "choices": tuning.measure(children, workload, ready, folder, scale),
        }


def _measure_compressed(scale: Scale, folder: Path) -> dict[str, Any]:
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        stack.enter_context(_logs_of_failures(folder))
        written = compressed.written_workloads(folder, scale, load)
        kernel = _worker(stack, folder, "decode.decode_worker")
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": written.machine,
            "rounds": scale.rounds,
            "cases": compressed.measure(kernel, written, scale),
        }


def _measure_snapshots(arguments: argparse.Namespace) -> None:
    scale = SHORT_SNAPSHOTS
    if not arguments.short:
        scale = replace(
            FULL_SNAPSHOTS,
            rows=arguments.rows,
            slow_rows=min(FULL_SNAPSHOTS.slow_rows, arguments.rows),
            rounds=arguments.rounds,
            lag_seconds=arguments.lag_seconds,
        )
    names = arguments.snapshots or list(snapshot_suite.PARTS)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        _logs_of_failures(Path(folder)),
    ):
        for name, found in snapshot_suite.measure(names, scale, Path(folder)):
            snapshot_suite.show(name, found)
            if not arguments.short:
                stored = (
                    json.loads(_SNAPSHOTS.read_text(encoding="utf-8"))
                    if _SNAPSHOTS.exists()
                    else {}
                )
                stored[name] = found
                _SNAPSHOTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
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
    from benchmarks.report.chart import draw

    draw(results, _CHART)
    _write_pages()


def _write_pages(_: object = None) -> None:
    """Make the tables of the page again, from the JSON."""
    subprocess.run([sys.executable, _DOCS / "_hooks"], check=True)
