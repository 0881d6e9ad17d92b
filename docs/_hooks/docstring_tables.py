"""Tables of a class's arguments or attributes, from its signature and its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pyspark_mysqlbinlog
from pyspark_mysqlbinlog.connector.delta.query import progress

__all__ = ["argument_table", "attribute_table"]


def argument_table(name: str) -> str:
    """Return the table of the arguments of a public class."""
    documented = getattr(pyspark_mysqlbinlog, name)
    meanings = dict(_entries(documented, "Parameters"))
    lines = ["| argument | type | default | meaning |", "|---|---|---|---|"]
    for each in inspect.signature(documented).parameters.values():
        default = "required" if each.default is each.empty else f"`{each.default!r}`"
        kind = _shown(each.annotation)
        lines.append(f"| `{each.name}` | `{kind}` | {default} | {meanings.pop(each.name)} |")
    if meanings:
        raise ValueError(f"{name} has no arguments {sorted(meanings)}")
    return "\n".join(lines)


def attribute_table(name: str) -> str:
    """Return the table of the fields of a class that `DeltaMirror.progress` is made of."""
    documented = getattr(progress, name)
    kinds = {key: str(kind) for key, kind in documented.__annotations__.items()}
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for each, meaning in _entries(documented, "Attributes"):
        kind = _shown(kinds.pop(each))
        lines.append(f"| `{each}` | `{kind}` | {meaning} |")
    if kinds:
        raise ValueError(f"{name} does not document {sorted(kinds)}")
    return "\n".join(lines)


def _shown(annotation: object) -> str:
    """Return an annotation's text without the bar that would end a table's cell."""
    return str(annotation).replace(" | ", " or ")


def _entries(documented: type, section: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a section in numpy's style, and what it says of each."""
    text = inspect.cleandoc(documented.__doc__ or "")
    found = re.search(
        rf"^{section}\n-+\n(.*?)(?=\n\n\w[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise ValueError(f"{documented.__name__} has no section {section}")
    for entry in re.split(r"\n(?=\S)", found[1].strip()):
        head, *rest = entry.split("\n")
        names, _, first = head.partition(" : ")
        meaning = " ".join([first, *map(str.strip, rest)]).strip()
        meaning = re.sub(r"``([^`]+)``", r"`\1`", meaning).replace("|", "\\|")
        meaning = meaning[:1].upper() + meaning[1:]
        for each in names.split(", "):
            yield each, meaning
