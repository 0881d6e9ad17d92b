"""The order of test files: those of `live` and `e2e` alternate, and the others come last."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from helpers.order import alternate_files, merged


def test_merged_lists_are_spread_evenly_and_keep_their_order() -> None:
    assert merged(["abcd", "xy"]) == list("axbcyd")
    assert merged(["abc", ""]) == list("abc")
    assert merged([]) == []


def test_files_of_live_and_e2e_alternate_and_others_come_last() -> None:
    files = ["e2e/a", "e2e/b", "fuzz/c", "live/d", "live/e", "unit/f"]
    tests: list[Any] = [
        SimpleNamespace(nodeid=f"tests/{file}.py::test_{number}")
        for file in files
        for number in range(2)
    ]
    alternate_files(tests)
    assert [test.nodeid[-12:] for test in tests] == [
        f"{file}.py::test_{number}" for file in "adbecf" for number in range(2)
    ]
