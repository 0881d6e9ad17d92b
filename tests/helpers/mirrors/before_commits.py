"""Foreign commits to a Delta table just before a mirror's own commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget

__all__ = ["before_commit"]


@contextmanager
def before_commit(
    monkeypatch: pytest.MonkeyPatch, target: DeltaTarget, write: Callable[[DeltaTarget], object]
) -> Iterator[None]:
    """Call `write` once, after a mirror's check for foreign commits and before its own commit.

    target : the mirror's table, opened with the same engine; the argument of `write`.
    """
    kind: Any = type(target)
    look = kind._check_no_foreign_writes
    writes = iter([write])

    def interrupted(looking: DeltaTarget, *given: Any) -> Any:
        found = look(looking, *given)
        if looking.uri == target.uri:
            next(writes, lambda _: None)(target)
        return found

    with monkeypatch.context() as during:
        during.setattr(kind, "_check_no_foreign_writes", interrupted)
        yield
    assert next(writes, None) is None, f"{target.uri} was not looked at"
