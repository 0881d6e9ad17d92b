"""Samples of test cases: each run takes a part of the cases, chosen by a seed.

``@pytest.mark.sample(3)`` on a test with many cases takes three of them, or three per engine if the
test runs with both. A test that tries many values in one call gets parts of them as cases (see
`parts`). A test of random values is repeated: ten times with ``sample(2, of=10)``.
``sample(3, group="kills")`` takes three cases of all tests in this group; it is for tests that take
minutes. ``sample(1, by="batches")`` takes all cases of one value of this parameter, the same value
for all tests of a file: it is for fixtures of a module that take long.

``pytest.mark.one_server`` runs each case on one kind of server, for tests that do not depend on the
kind: about half of the cases of a run are on MySQL and half on MariaDB. MySQL 5.7 takes part if it
is available; no command of the project installs it.

Tests in the folders `live` and `e2e` get the marker `newer` unless they need MySQL 5.6, recorded
binlogs that it serves, or MariaDB. A run of these has all of their cases, or as many as
MYSQLBINLOG_NEWER_CASES says, from files that the seed chooses.

All other cases are marked `slow`; with ``-m slow``, all cases are. The header of a run shows the
seed, and its end shows how many cases each test had. MYSQLBINLOG_SAMPLE_SEED repeats a sample. A
case that is selected by its ID always runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

import pytest

from helpers.servers import Server
from helpers.servers.available import KINDS
from helpers.servers.mysql57 import MySQL57Server

__all__ = ["mark_newer", "parts", "take_samples"]

T = TypeVar("T")

# As they are named in the parameters of fixtures.
_KINDS: tuple[type[Server], ...] = (*KINDS, MySQL57Server)
_SERVERS = frozenset(
    {"mysql", "live_server"}.union(*((kind.name, kind.__name__) for kind in _KINDS))
)
# Limit per file if a run has a part of the cases: a file with hundreds must not be all of them.
_FILE_CASES = 25
# Fixtures and parameters of tests that do not run on the newer server.
_NOT_NEWER = frozenset({"mysql56", "serve_captured", "mariadb", "mariadb11"})


def parts(values: Sequence[T], count: int) -> list[Sequence[T]]:
    """Return the values in `count` parts; neighbors are in different parts."""
    return [values[first::count] for first in range(count)]


def mark_newer(items: Sequence[pytest.Item]) -> None:
    """Mark the tests whose server is the one chosen for live tests."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        given = {*getattr(item, "fixturenames", ())}
        given |= {str(value) for value in callspec.params.values()} if callspec else set()
        if {"live", "e2e"} & {*item.path.parts} and not _NOT_NEWER & given:
            item.add_marker(pytest.mark.newer)


def take_samples(
    items: Sequence[pytest.Item],
    seed: str,
    *,
    is_whole: bool,
    is_newer: bool = False,
    newer_cases: int | None = None,
) -> dict[str, tuple[int, int]]:
    """Mark cases that this run does not take as slow; return (taken, all) cases of each test.

    is_whole : all cases are slow, and none is counted.
    is_newer : each case runs on one kind of server, as if it were marked `one_server`.
    newer_cases : with `is_newer`, the total number of cases.
    """
    groups: defaultdict[tuple[str, str, int], list[pytest.Item]] = defaultdict(list)
    valued: defaultdict[tuple[str, str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        is_meant = not is_newer or item.get_closest_marker("newer")
        if is_meant and not item.get_closest_marker("slow"):
            sample = item.get_closest_marker("sample")
            if sample is not None and "by" in sample.kwargs:
                file = item.nodeid.partition("::")[0]
                valued[file, sample.kwargs["by"], sample.args[0]].append(item)
            elif sample is not None:
                name = sample.kwargs.get("group") or item.nodeid.partition("[")[0]
                groups[name, _engine(item), sample.args[0]].append(item)
            elif is_newer or item.get_closest_marker("one_server"):
                name = item.nodeid.partition("::")[0]
                groups[f"{name}, one server each", _without_server(item), 1].append(item)
    counts: dict[str, tuple[int, int]] = {}
    for (name, which, most), cases in groups.items():
        can_run = [case for case in cases if not _needs_missing_57(case)] or cases
        count = 0 if is_whole else min(most, len(can_run))
        taken = Random(f"{seed} {name} {which}").sample(can_run, count)
        for case in cases:
            if case not in taken:
                case.add_marker(pytest.mark.slow)
        before = counts.get(name, (0, 0))
        counts[name] = before[0] + count, before[1] + len(cases)
    for (file, parameter, most), cases in valued.items():
        values = [*dict.fromkeys(_value(case, parameter) for case in cases)]
        count = 0 if is_whole else min(most, len(values))
        chosen = Random(f"{seed} {file} {parameter}").sample(values, count)
        for case in cases:
            if _value(case, parameter) not in chosen:
                case.add_marker(pytest.mark.slow)
        counts[f"{file}, {parameter}: {', '.join(chosen)}"] = count, len(values)
    if is_newer and newer_cases is not None:
        return {"tests of the newer server": _take_of_files(items, seed, newer_cases)}
    return {} if is_whole else counts


def _take_of_files(items: Sequence[pytest.Item], seed: str, most: int) -> tuple[int, int]:
    """Mark all but `most` cases as slow; return the numbers of taken and of all cases."""
    files: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("newer") and not item.get_closest_marker("slow"):
            files[item.nodeid.partition("::")[0]].append(item)
    left = most
    names = sorted(files)
    Random(f"{seed} newer").shuffle(names)
    for name in names:
        count = min(left, _FILE_CASES, len(files[name]))
        taken = {*Random(f"{seed} newer {name}").sample(range(len(files[name])), count)}
        for number, case in enumerate(files[name]):
            if number not in taken:
                case.add_marker(pytest.mark.slow)
        left -= count
    return most - left, sum(map(len, files.values()))


def _engine(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("spark", "")) if callspec else ""


def _value(item: pytest.Item, parameter: str) -> str:
    callspec: Any = getattr(item, "callspec", None)
    return str(callspec.params[parameter])


def _needs_missing_57(item: pytest.Item) -> bool:
    kinds = {MySQL57Server.name, MySQL57Server.__name__}
    return bool(kinds & {*_parameters(item)}) and MySQL57Server.missing() is not None


def _parameters(item: pytest.Item) -> list[str]:
    """Return the parts of the case's ID."""
    return item.nodeid.partition("[")[2].removesuffix("]").split("-")


def _without_server(item: pytest.Item) -> str:
    """Return the case's ID without the kind of server."""
    test = item.nodeid.partition("[")[0]
    return f"{test}[{'-'.join(name for name in _parameters(item) if name not in _SERVERS)}"
