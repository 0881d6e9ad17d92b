"""Samples of test cases: the same seed gives the same cases, another seed gives others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.samples import mark_newer, take_samples
from helpers.servers.mysql57 import MySQL57Server


class Case:
    """A test case with the attributes that `take_samples` uses.

    marks : of the test.
    params : of the case; their values are its id.
    """

    def __init__(self, test: str, *marks: pytest.MarkDecorator, **params: str) -> None:
        self.nodeid = f"tests/{test}" + (f"[{'-'.join(params.values())}]" if params else "")
        self.path = Path(self.nodeid.partition("::")[0])
        self.fixturenames = list(params)
        if params:
            self.callspec = SimpleNamespace(params=params)
        self._marks = [decorator.mark for decorator in marks]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self._marks if mark.name == name), None)

    def add_marker(self, decorator: pytest.MarkDecorator) -> None:
        self._marks.append(decorator.mark)


def taken(cases: list[Any], seed: str, **settings: Any) -> list[str]:
    """Return the ids of the cases that a run with this seed takes."""
    take_samples(cases, seed, is_whole=settings.pop("is_whole", False), **settings)
    return [case.nodeid for case in cases if not case.get_closest_marker("slow")]


def numbered(test: str, count: int, *marks: pytest.MarkDecorator) -> list[Any]:
    return [Case(test, *marks, n=str(number)) for number in range(count)]


def live() -> list[Any]:
    """Return 400 cases of a live server, in 31 files, and some other cases."""
    cases = numbered("live/test_many.py::test_a", 100)
    for number in range(30):
        cases += numbered(f"e2e/test_{number}.py::test_b", 10)
    cases += numbered("unit/test_c.py::test_c", 10)
    cases.append(Case("live/test_d.py::test_d", mysql56=""))
    mark_newer(cases)
    return cases


def test_sample_marker_takes_the_given_number_of_cases() -> None:
    marks = pytest.mark.sample(3)
    found = {tuple(taken(numbered("a.py::test_a", 9, marks), str(seed))) for seed in range(20)}
    assert {len(cases) for cases in found} == {3}
    assert len(found) > 10
    assert len(taken(numbered("a.py::test_a", 2, marks), "1")) == 2
    assert taken(numbered("a.py::test_a", 9, marks), "1", is_whole=True) == []


def test_sample_by_a_parameter_takes_all_cases_of_the_same_value_in_a_file() -> None:
    mark = pytest.mark.sample(1, by="batches")
    chosen = set()
    for seed in range(20):
        cases: list[Any] = [
            Case(f"a.py::{test}", mark, batches=batches, n=str(number))
            for test in ("test_a", "test_b")
            for batches in ("one", "several")
            for number in range(4)
        ]
        found = taken(cases, str(seed))
        assert len(found) == 8
        chosen.add(frozenset(case.partition("[")[2].partition("-")[0] for case in found))
    assert chosen == {frozenset({"one"}), frozenset({"several"})}


def test_one_server_marker_runs_each_case_on_one_server() -> None:
    chosen = set()
    for seed in range(20):
        cases: list[Any] = [
            Case("a.py::test_a", pytest.mark.one_server, server=server, n=str(number))
            for server in ("mysql", "mariadb")
            for number in range(4)
        ]
        found = taken(cases, str(seed))
        assert sorted(case[-2] for case in found) == ["0", "1", "2", "3"]
        chosen.update(found)
    assert len(chosen) == 8


def test_newer_marker_is_on_cases_of_a_live_server_only() -> None:
    newer = [case.nodeid for case in live() if case.get_closest_marker("newer")]
    assert len(newer) == 400
    assert {nodeid.split("/")[1] for nodeid in newer} == {"live", "e2e"}


def test_newer_server_sample_has_given_size_and_at_most_25_cases_per_file() -> None:
    def part(seed: int, count: int | None) -> set[str]:
        cases = live()
        found = {*taken(cases, str(seed), is_newer=True, newer_cases=count)}
        return {case.nodeid for case in cases if case.get_closest_marker("newer")} & found

    assert part(1, 60) == part(1, 60)
    assert len(part(1, None)) == 400
    assert len(part(1, 1000)) == 325  # 25 of the 100 cases in one file
    seen: set[str] = set()
    for seed in range(60):
        found = part(seed, 60)
        assert len(found) == 60
        assert sum("test_many" in nodeid for nodeid in found) <= 25
        seen |= found
    # Cases that one seed leaves out run with others.
    assert len(seen) > 350


def test_newer_server_sample_reports_taken_and_total_cases() -> None:
    counts = take_samples(live(), "1", is_whole=False, is_newer=True, newer_cases=60)
    assert counts == {"tests of the newer server": (60, 400)}


def test_group_sample_takes_cases_across_its_tests() -> None:
    marks = pytest.mark.sample(3, group="kills")
    counts: set[int] = set()
    names: set[str] = set()
    for seed in range(40):
        cases = [case for test in "abcde" for case in numbered(f"{test}.py::test", 2, marks)]
        found = taken(cases, str(seed))
        counts.add(len(found))
        names.update(found)
    assert counts == {3}
    assert len(names) == 10


def test_missing_server_is_never_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in (None, "it is missing"):
        monkeypatch.setattr(MySQL57Server, "missing", lambda reason=reason: reason)
        names: set[str] = set()
        for seed in range(40):
            kinds = [
                Case("a.py::test", pytest.mark.one_server, kind=kind)
                for kind in ("mysql56", "mysql57", "mysql9")
            ]
            names.update(taken(kinds, str(seed)))
        assert ("tests/a.py::test[mysql57]" in names) == (reason is None)
        assert len(names) == (3 if reason is None else 2)
