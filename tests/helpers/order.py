"""The order of test files in a run with several processes.

Tests of `live` mostly wait for their servers, and tests of `e2e` mostly compute. In the order of
their names, all processes would wait at the same time and later all compute. So files of both
folders alternate. Short tests come last: then all processes end at about the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

import pytest

__all__ = ["alternate_files", "merged"]

T = TypeVar("T")

# Folders of tests/ whose files alternate.
_ALTERNATING = ("e2e", "live")


def alternate_files(items: list[pytest.Item]) -> None:
    """Sort tests by files; the tests of each file stay together and keep their order."""
    files = [
        list(tests) for _, tests in groupby(items, key=lambda item: item.nodeid.partition("::")[0])
    ]
    chosen = [[file for file in files if name in _folders(file[0])] for name in _ALTERNATING]
    rest = [file for file in files if not any(name in _folders(file[0]) for name in _ALTERNATING)]
    items[:] = [test for file in (*merged(chosen), *rest) for test in file]


def merged(lists: Sequence[Sequence[T]]) -> list[T]:
    """Return the elements of all lists; each list is spread evenly and keeps its order."""
    places = [
        ((number + 0.5) / len(each), which, element)
        for which, each in enumerate(lists)
        for number, element in enumerate(each)
    ]
    return [element for _, _, element in sorted(places, key=lambda place: place[:2])]


def _folders(item: pytest.Item) -> list[str]:
    """Return the folders inside of the checkout."""
    return item.nodeid.partition("::")[0].split("/")[:-1]
