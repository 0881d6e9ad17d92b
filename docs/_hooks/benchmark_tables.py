"""Tables of the benchmarks' last runs, from the JSON that `make bench` stores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["compressed_table", "log_tables", "snapshot_tables", "tuning_table"]

_DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "report" / "data"

# Names of measures -> how the page names them.
_READS = {
    "decode, kernel, struct": "pyspark-mysqlbinlog, from memory, struct",
    "decode, kernel, json": "pyspark-mysqlbinlog, from memory, json",
    "decode, kernel, variant": "pyspark-mysqlbinlog, from memory, variant",
    "decode, kernel, struct, from a file": "pyspark-mysqlbinlog, from a file, struct",
    "decode, python, struct": "the same in pure Python, from a file, struct",
    "decode, python, json": "the same in pure Python, from a file, json",
    "java library, memory": "mysql-binlog-connector-java, from memory",
    "java library, socket": "mysql-binlog-connector-java, from the server",
    "python-mysql-replication": "python-mysql-replication, from the server",
}
_SPARK = {
    "spark upper bound, batch": "Spark's upper bound, batch",
    "spark upper bound, stream": "Spark's upper bound, stream",
    "files to noop": "pyspark-mysqlbinlog, files, batch",
    "live to noop": "pyspark-mysqlbinlog, backlog of a live server, stream",
}
_ENGINE = {
    "debezium, json": ("Debezium Engine, JSON, default settings", "json"),
    "debezium, records": ("Debezium Engine, records, default settings", "struct"),
    "debezium, records, tuned": ("Debezium Engine, records, larger batches and queue", "struct"),
}
_BYTES = {
    "raw socket read": "raw read of the dump: received, not decoded",
    "tail scan": "pyspark-mysqlbinlog, the driver's scan, from the server",
    "decode, kernel, struct": "pyspark-mysqlbinlog, from memory, struct",
}
_OPS = {"c": "inserts", "u": "updates", "d": "deletes"}

_TITLES = {
    "snapshot_throughput": "Snapshot into Spark",
    "time_to_first_row": "Time to first row",
    "snapshot_to_delta": "Snapshot into Delta",
    "mirror": "Batches of a mirror",
    "workload": "A mirror of the binlog above",
    "lag": "From commit to visible in Delta",
}


def _stored(name: str) -> dict[str, Any]:
    results = json.loads((_DATA / name).read_text(encoding="utf-8"))
    assert isinstance(results, dict)
    return results


def log_tables() -> str:
    """Return the tables of reading a binlog, compared with other readers."""
    results = _stored("results.json")
    measures = results["measures"]
    lines = [*_conditions(results), "", "Changes per second, in thousands:", ""]
    lines += ["| reading the binlog | bulk rows | single-row transactions |", "|---|--:|--:|"]
    for name, shown in _READS.items():
        cells = [_thousands(measures[f"{name}, {part}"]) for part in ("bulk", "single")]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    lines += ["", "| the whole binlog, into Spark's noop sink | struct | json |", "|---|--:|--:|"]
    for name, shown in _SPARK.items():
        cells = [_thousands(measures[f"{name}, {kind}"]) for kind in ("struct", "json")]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    for name, (shown, kind) in _ENGINE.items():
        cells = [_thousands(measures[name]) if kind == each else "" for each in ("struct", "json")]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    lines += ["", "MB of binlog per second:", ""]
    lines += ["| | bulk rows | single-row transactions | both files |", "|---|--:|--:|--:|"]
    for name, shown in _BYTES.items():
        # Not every reader reads the files one by one, or both at once.
        parts = (f"{name}, bulk", f"{name}, single", name)
        cells = [
            f"{measures[each]['mb_per_second']:,.0f}" if each in measures else "" for each in parts
        ]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_ratios(results), "", *_limits(results)])


def _thousands(measure: dict[str, Any]) -> str:
    speed = measure["rows_per_second"] / 1000
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"


def _conditions(results: dict[str, Any]) -> Iterator[str]:
    machine, scale, log = results["machine"], results["scale"], results["log"]
    bulk, single = log["bulk"], log["single"]
    rows = sum(bulk["rows"].values())
    changes = ", ".join(f"{count:,} {_OPS[op]}" for op, count in sorted(single["rows"].items()))
    yield f"- {_machine(results)} Server, peers and Spark shared the cores."
    yield f"- {scale['rounds']} interleaved rounds; medians."
    yield (
        f"- The binlog: {rows:,} rows of {bulk['bytes'] / rows:.0f} bytes in bulk INSERTs, then"
        f" {sum(single['rows'].values()):,} transactions of one row each ({changes}); 12 columns."
    )
    versions = [f"{name} {number}" for name, number in machine["versions"].items()]
    yield f"- Versions: {', '.join(versions)}."
    without = [name for name, verifies in results["verifies_checksums"].items() if not verifies]
    if without:
        yield f"- Every reader verifies the binlog's CRC32, except {' and '.join(without)}."


def _machine(results: dict[str, Any]) -> str:
    machine = results["machine"]
    return (
        f"Measured on {results['date']}: {machine['cores']} cores ({machine['cpu']}),"
        f" {machine['memory_gb']} GB, load {machine['load_before']} before the run."
    )


def _ratios(results: dict[str, Any]) -> Iterator[str]:
    yield "| ratio | target | found | in the rounds | |"
    yield "|---|--:|--:|--:|---|"
    for each in results["ratios"]:
        met = "met" if each["ratio"] >= each["at_least"] else "not met"
        found = f"{each['ratio']:.2f} | {each['low']:.2f} … {each['high']:.2f}"
        yield f"| {each['name']} | {each['at_least']:g} | {found} | {met} |"


def _limits(results: dict[str, Any]) -> Iterator[str]:
    yield "| limit | target | found | |"
    yield "|---|--:|--:|---|"
    for each in results["limits"]:
        met = "met" if each["found"] <= each["at_most"] else "not met"
        unit = each["unit"]
        found = f"{each['found']:.1f}" if each["found"] < 10 else f"{each['found']:.0f}"
        name = each["name"]
        yield f"| {name} | {each['at_most']:g} {unit} | {found} {unit} | {met} |"


def tuning_table() -> str:
    """Return the table of the choices that split a batch; the defaults are bold."""
    results = _stored("tuning.json")
    load = results["machine"]["load_before"]
    measured = (
        f"Measured on {results['date']}: {results['rounds']} interleaved rounds, medians; load"
        f" {load} before the run. The defaults are bold."
    )
    lines = [
        measured,
        "",
        "| what | setting | found |",
        "|---|---|--:|",
    ]
    last = ""
    for choice in results["choices"]:
        setting = choice["setting"]
        if choice["is_ours"]:
            setting = f"**{setting}**"
        if "p50_ms" in choice:
            found = f"{choice['p50_ms']:.0f} ms, p99 {choice['p99_ms']:.0f} ms"
        else:
            found = f"{choice['rows_per_second'] / 1000:,.0f} k rows/s"
        what = choice["what"]
        lines.append(f"| {what if what != last else ''} | {setting} | {found} |")
        last = what
    return "\n".join(lines)


def compressed_table() -> str:
    """Return the table of compressed transactions."""
    results = _stored("compressed.json")
    server = results["machine"]["versions"]["mysql"]
    lines = [
        f"- {_machine(results)} Written by MySQL {server}.",
        f"- {results['rounds']} interleaved rounds; medians. On one core, from memory.",
        "",
        "| payload, file | plain MB | zstd MB | thousand changes/s | ratio | rounds | target | |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for each in results["cases"]:
        met = "met" if each["ratio"] >= each["at_least"] else "not met"
        sizes = [f"{each[name] / 1e6:.0f}" for name in ("bytes_plain", "bytes_compressed")]
        cells = [each["name"], *sizes, _thousands(each["ours"]), f"{each['ratio']:.2f}"]
        cells += [f"{each['low']:.2f} … {each['high']:.2f}", f"{each['at_least']:g}", met]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def snapshot_tables() -> str:
    """Return the tables of snapshots and mirrors."""
    results = _stored("snapshots.json")
    lines: list[str] = []
    for name, title in _TITLES.items():
        if name not in results:
            continue
        found = results[name]
        lines += [f"### {title}", "", found["told"], ""]
        lines += [f"{_machine(found)} Server and readers shared the cores.", ""]
        lines += [f"| {' | '.join(found['head'])} |"]
        lines += ["|---|" + "--:|" * (len(found["head"]) - 1)]
        lines += [f"| {' | '.join(cells)} |" for cells in found["cells"]]
        lines += ["", *(f"- {note}" for note in found["notes"]), ""]
    # An empty cell is written in one way.
    return re.sub(r"\|  (?=\|)", "| ", "\n".join(lines))
