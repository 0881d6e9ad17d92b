"""A process that ends at one of Delta's commits."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from pyspark_mysqlbinlog.connector.delta.engine import DeltaTarget

__all__ = ["KilledCommits", "Moment"]

Moment = Literal["before", "after"]


class KilledError(Exception):
    """What the batch ends with."""


class KilledCommits:
    """Ends a batch at the commit of this number, of whatever table; commits are made as they are.

    moment : in front of the commit, or behind it.

    Attributes
    ----------
    left : commits until then; it is none when it is 0 or less.
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
