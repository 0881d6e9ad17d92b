"""Write the generated parts of the pages in docs/ again; with --check, name those that are stale.

A page is written by hand around its generated parts. Such a part is between two comments, and is
committed, so that it is readable on GitHub::

    <!-- generated: option-table connection -->
    ...
    <!-- generated: end -->

The name is a function of one of the modules here, and the words after it are its arguments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmark_tables import compressed_table, log_tables, snapshot_tables, tuning_table
from check_tables import check_table
from command_tables import command_table
from docstring_tables import argument_table, attribute_table
from error_tree import error_tree
from metric_tables import metric_table
from option_tables import option_table

_DOCS = Path(__file__).resolve().parents[1]
_PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>(?!end)[\w-]+)(?P<words>[^>]*?) -->\n)"
    r".*?(?P<end><!-- generated: end -->)",
    re.DOTALL,
)
_PARTS: dict[str, Callable[..., str]] = {
    "argument-table": argument_table,
    "attribute-table": attribute_table,
    "check-table": check_table,
    "command-table": command_table,
    "error-tree": error_tree,
    "log-benchmarks": log_tables,
    "metric-table": metric_table,
    "option-table": option_table,
    "snapshot-benchmarks": snapshot_tables,
    "tuning-benchmarks": tuning_table,
    "compressed-benchmarks": compressed_table,
}


def generated(text: str) -> str:
    """Return a page's text with its generated parts as they should be."""

    def part(found: re.Match[str]) -> str:
        made = _PARTS[found["name"]](*found["words"].split())
        return f"{found['begin']}\n{made.strip()}\n\n{found['end']}"

    return _PART.sub(part, text)


def main() -> None:
    stale = []
    for path in sorted(_DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        fresh = generated(text)
        if fresh != text:
            stale.append(path.relative_to(_DOCS.parent).as_posix())
            if "--check" not in sys.argv:
                path.write_text(fresh, encoding="utf-8")
    if stale:
        print("\n".join(stale))
        if "--check" in sys.argv:
            raise SystemExit("stale generated parts: run `python docs/_hooks`")


if __name__ == "__main__":
    main()
