"""Docstring entries of the form ``name : meaning``, as griffe reads them in numpy's style.

There a colon after a name begins its type, and the meaning is on lines of its own. The types are in
the annotations here, so an entry has its meaning after the colon.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["OneLineEntries"]

_SECTION = re.compile(
    r"^(?P<head>(?:Parameters|Attributes)\n-+\n)(?P<entries>.*?)(?=\n\n\S[^\n]*(?:\n-+\n|[.:]\n|[.:]\Z)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : ", re.MULTILINE)


class OneLineEntries(griffe.Extension):
    """Move each meaning to a line of its own."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        if obj.is_alias or obj.docstring is None:
            return
        obj.docstring.value = _SECTION.sub(
            lambda found: found["head"] + _ENTRY.sub(r"\g<names>\n    ", found["entries"]),
            obj.docstring.value,
        )
