"""The table of the checks of `pyspark-mysqlbinlog doctor`, from their docstrings."""

from __future__ import annotations

import inspect

from pyspark_mysqlbinlog.connector.doctor.connection import connection
from pyspark_mysqlbinlog.connector.doctor.examination import CHECKS, TARGET_CHECKS, check_name

__all__ = ["check_table"]


def check_table() -> str:
    """Return the names of all checks with what is in order."""
    lines = ["| check | what is in order |", "|---|---|"]
    for check in (connection, *CHECKS, *TARGET_CHECKS):
        summary = " ".join((inspect.getdoc(check) or "").partition("\n\n")[0].split())
        lines.append(f"| {check_name(check)} | {summary.removesuffix('.')} |")
    return "\n".join(lines)
