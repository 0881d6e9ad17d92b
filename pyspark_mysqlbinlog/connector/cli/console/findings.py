"""Shows the findings of `doctor`: a table, and what to type as text for the `mysql` client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspark_mysqlbinlog.connector.doctor.finding import Finding
from pyspark_mysqlbinlog.connector.doctor.remedies import pasteable, shown

__all__ = ["remedies_of", "show_findings"]

_STYLES = {"ok": "green", "warning": "yellow", "stop": "bold red"}


def show_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print the findings, and after them the remedies."""
    console = console or Console()
    table = Table(box=None, header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    for each in findings:
        found = f"{each.found} (expected: {each.expected})" if each.expected else each.found
        # A name of the server may look like rich's markup.
        table.add_row(
            Text(each.status, style=_STYLES[each.status]), Text(each.check), Text(shown(found))
        )
    console.print(table)
    lines = remedies_of(findings)
    if lines:
        console.print(Text("\nTo correct these, for the mysql client as an administrator:\n"))
        for line in lines:
            # A statement is one line, however narrow the terminal is.
            console.print(Text(line), soft_wrap=True)
    counts = Counter(each.status for each in findings)
    summary = ", ".join(f"{counts[status]} {status}" for status in ("stop", "warning", "ok"))
    console.print(Text(f"\n{summary}"))


def remedies_of(findings: Sequence[Finding]) -> list[str]:
    """Return the lines for the `mysql` client: statements, and the rest as comments."""
    lines = []
    for each in findings:
        if each.status == "ok" or not (each.statements or each.advice):
            continue
        lines.append(f"-- {each.check}")
        lines += [f"-- {shown(each.advice)}"] if each.advice else []
        lines += [pasteable(statement) for statement in each.statements]
    return lines
