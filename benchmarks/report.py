"""The results as a table in docs/performance.md, between two markers, beside the chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["BEGIN", "END", "render", "write_between"]

BEGIN = "<!-- benchmark: begin (written by `make bench`) -->"
END = "<!-- benchmark: end -->"

# Names of measures, and what a reader is told that they are.
_READS = (
    ("decode, kernel, struct", "this project, from memory, struct"),
    ("decode, kernel, json", "this project, from memory, json"),
    ("decode, kernel, variant", "this project, from memory, variant"),
    ("decode, kernel, struct, from a file", "this project, from a file, struct"),
    ("decode, python, struct", "the same in pure Python, from a file, struct"),
    ("decode, python, json", "the same in pure Python, from a file, json"),
    ("java library, memory", "mysql-binlog-connector-java, from memory"),
    ("java library, socket", "mysql-binlog-connector-java, from the server"),
    ("python-mysql-replication", "python-mysql-replication, from the server"),
)
_SPARK = (
    ("spark ceiling, batch", "Spark's own ceiling, batch: ready-made batches"),
    ("spark ceiling, stream", "Spark's own ceiling, stream"),
    ("files to noop", "this project, files, batch"),
    ("live to noop", "this project, live server's backlog, stream"),
)
_ENGINE = (
    ("debezium, json", "Debezium's engine, JSON, default settings"),
    ("debezium, records", "Debezium's engine, records, default settings"),
    ("debezium, records, tuned", "Debezium's engine, records, larger batches and queue"),
)
_BYTES = (
    ("raw socket read", "raw read of the dump: received, not looked at"),
    ("tail scan", "this project, the driver's tail, from the server"),
    ("decode, kernel, struct", "this project, from memory, struct"),
)


def write_between(document: Path, begin: str, end: str, content: str) -> None:
    """Replace what is between two markers; ValueError where a document has none."""
    text = document.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{document} has no place for the results: {begin} … {end}")
    document.write_text(f"{before}{begin}\n\n{content}\n{end}{after}", encoding="utf-8")


def render(results: dict[str, Any], chart: str) -> str:
    """Markdown."""
    measures = results["measures"]
    lines = [*_how(results), "", f"![{_ALT}]({chart})", ""]
    lines += ["Changes a second, in thousands:", ""]
    lines += ["| reading the log | rows in bulk | single-row transactions |", "|---|--:|--:|"]
    for name, told in _READS:
        cells = [_thousands(measures, f"{name}, {part}") for part in ("bulk", "single")]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    lines += ["", "| the whole log, into Spark's noop sink | struct | json |", "|---|--:|--:|"]
    for name, told in _SPARK:
        cells = [_thousands(measures, f"{name}, {payload}") for payload in ("struct", "json")]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    for name, told in _ENGINE:
        cells = [_thousands(measures, name), ""]
        lines.append(f"| {told} | {' | '.join(cells if 'JSON' not in told else cells[::-1])} |")
    lines += ["", "MB of log a second:", ""]
    lines += ["| | rows in bulk | single-row transactions | both files |", "|---|--:|--:|--:|"]
    for name, told in _BYTES:
        # Not everything reads the files one by one, or both at once.
        parts = (f"{name}, bulk", f"{name}, single", name)
        cells = [_megabytes(measures[part]) if part in measures else "" for part in parts]
        lines.append(f"| {told} | {' | '.join(cells)} |")
    lines += ["", *_ratios(results), "", *_limits(results), ""]
    return "\n".join(lines)


_ALT = "Changes a second: this project, its peers and Spark's ceiling"


def _thousands(measures: dict[str, Any], name: str) -> str:
    speed = measures[name]["rows_per_second"] / 1000
    return f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"


def _megabytes(measure: dict[str, Any]) -> str:
    return f"{measure['mb_per_second']:,.0f}"


def _how(results: dict[str, Any]) -> list[str]:
    machine, scale, log = results["machine"], results["scale"], results["log"]
    versions = machine["versions"]
    bulk, single = log["bulk"], log["single"]
    rows = sum(bulk["rows"].values())
    unverified = [name for name, verifies in results["verifies_checksums"].items() if not verifies]
    changes = ", ".join(f"{count:,} {_OPS[op]}" for op, count in sorted(single["rows"].items()))
    measured = (
        f"Measured on {results['date']}: {machine['cores']} cores ({machine['cpu']}),"
        f" {machine['memory_gb']} GB, load {machine['load_before']} before the run; server, peers"
        f" and Spark shared the cores. {scale['rounds']} rounds, in which everything ran by turns;"
        " medians."
    )
    told = (
        f"The log: {rows:,} rows of {bulk['bytes'] / rows:.0f} bytes in bulk INSERTs, then"
        f" {sum(single['rows'].values()):,} transactions of one row each ({changes}); 12 columns."
    )
    numbers = ", ".join(f"{name} {number}" for name, number in versions.items())
    if machine["load_before"] > _BUSY * machine["cores"]:
        measured += " **The machine had other work to do, so these figures say little.**"
    lines = [measured, "", told, "", f"Versions: {numbers}."]
    if unverified:
        lines += [
            "",
            f"Every reader verifies the log's CRC32 but {' and '.join(unverified)}.",
        ]
    return lines


# The part of the cores that may be at work before a run.
_BUSY = 0.25
_OPS = {"c": "inserts", "u": "updates", "d": "deletes"}


def _ratios(results: dict[str, Any]) -> list[str]:
    lines = ["| ratio | aim | found | in the rounds | |", "|---|--:|--:|--:|---|"]
    for each in results["ratios"]:
        met = "met" if each["ratio"] >= each["at_least"] else "not met"
        lines.append(
            f"| {each['name']} | {each['at_least']:g} | {each['ratio']:.2f}"
            f" | {each['low']:.2f} … {each['high']:.2f} | {met} |"
        )
    return lines


def _limits(results: dict[str, Any]) -> list[str]:
    lines = ["| limit | aim | found | |", "|---|--:|--:|---|"]
    for each in results["limits"]:
        met = "met" if each["found"] <= each["at_most"] else "not met"
        unit = each["unit"]
        found = f"{each['found']:.1f}" if each["found"] < 10 else f"{each['found']:.0f}"
        lines.append(f"| {each['name']} | {each['at_most']:g} {unit} | {found} {unit} | {met} |")
    return lines
