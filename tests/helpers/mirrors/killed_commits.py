"""Batches that fail at a Delta commit, as if the process were killed there."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest

from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.table import MirroredTable

__all__ = ["KilledCommits", "KilledTables", "Moment"]

Moment = Literal["before", "after"]


class KilledError(Exception):
    """The error with which the batch ends."""


class KilledCommits:
    """A batch that fails at one of its commits, counted over all tables.

    moment : before or after the commit.

    Attributes
    ----------
    left : commits up to that one; with 0 or less, the batch does not fail.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, target: DeltaTarget, moment: Moment
    ) -> None:
        self.left = 0
        self._moment = moment
        kind: Any = type(target)
        for name in ("_commit", "create"):
            monkeypatch.setattr(kind, name, self._killing(getattr(kind, name)))

    def _killing(self, commit: Any) -> Any:
        def until_killed(*given: Any) -> None:
            self.left -= 1
            if self.left == 0 and self._moment == "before":
                raise KilledError
            commit(*given)
            if self.left == 0:
                raise KilledError

        return until_killed


class KilledTables:
    """A batch in which each table's part fails after its own commit of this number.

    For each table this is as if the process had ended there, so one batch tests all tables. The
    batch fails after all of its tables.

    Parameters
    ----------
    number : of the commit, from 1.

    Attributes
    ----------
    killed : how many tables' parts have failed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, target: DeltaTarget, number: int) -> None:
        self._number, self.killed = number, 0
        self._commits: Counter[str] = Counter()
        self._is_killed = False
        kind: Any = type(target)
        for name in ("_commit", "create"):
            monkeypatch.setattr(kind, name, self._counting(getattr(kind, name)))
        monkeypatch.setattr(MirroredTable, "apply", self._bearing(MirroredTable.apply))
        monkeypatch.setattr(DeltaMirror, "__call__", self._ending(DeltaMirror.__call__))

    def _counting(self, commit: Any) -> Any:
        def count(target: Any, *given: Any) -> None:
            commit(target, *given)
            self._commits[target.uri] += 1
            if self._commits[target.uri] == self._number:
                self.killed += 1
                raise KilledError

        return count

    def _bearing(self, apply: Any) -> Any:
        def bear(*given: Any) -> int:
            try:
                return int(apply(*given))
            except KilledError:
                self._is_killed = True
                return 0

        return bear

    def _ending(self, batch: Any) -> Any:
        def end(*given: Any) -> None:
            self._commits.clear()
            self._is_killed = False
            batch(*given)
            if self._is_killed:
                raise KilledError

        return end
