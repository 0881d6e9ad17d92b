"""The table of metrics, from the families that the exporters have."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.metrics.families import FAMILIES

__all__ = ["metric_table"]


def metric_table(label: str) -> str:
    """Return the table of the metrics of a query or of a table."""
    lines = ["| metric | kind | meaning |", "|---|---|---|"]
    lines += [
        f"| `{each.name}` | {each.kind} | {each.help} |"
        for each in FAMILIES
        if each.labels[-1] == label
    ]
    return "\n".join(lines)
