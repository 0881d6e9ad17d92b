"""Waiting for a condition with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")


def wait_until(
    ready: Callable[[], T | None],
    what: str | Callable[[], str],
    timeout: float = 300.0,
    *,
    every: float = 0.01,
) -> T:
    """The first value of `ready` that is not None or False; AssertionError after `timeout` s.

    what : what is waited for, as a sentence that is true in the end, or what gives it when it was
        waited for in vain.
    every : seconds between two looks.
    """
    deadline = monotonic() + timeout
    while True:
        value = ready()
        if value is not None and value is not False:
            return value
        if monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout:g} s: {said}")
        sleep(every)
