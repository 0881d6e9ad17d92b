"""Waiting for a condition, with a deadline that grows with the machine's load."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from time import monotonic, sleep
from typing import TypeVar

__all__ = ["patience", "wait_until"]

T = TypeVar("T")

# Minimum factor of deadlines; more than 1 for a machine that is slow without load.
_FACTOR = float(os.environ.get("MYSQLBINLOG_TEST_PATIENCE") or 1)


def patience(seconds: float) -> int:
    """Return a deadline: `seconds`, multiplied by this machine's load per core if that exceeds 1.

    Deadlines of tests are generous: code that misses one hangs, and is not merely slow.
    """
    return ceil(seconds * max(1.0, _FACTOR, os.getloadavg()[0] / (os.cpu_count() or 1)))


def wait_until(
    ready: Callable[[], T | None],
    what: str | Callable[[], str],
    timeout: float = 300.0,
    *,
    every: float = 0.01,
) -> T:
    """Return the first value of `ready` that is not None or False; fail after `timeout` s.

    what : the expected condition as a sentence, or a function that returns it after the timeout.
    timeout : in seconds, extended by `patience`.
    every : seconds between two calls of `ready`.
    """
    began = monotonic()
    while True:
        value = ready()
        if value is not None and value is not False:
            return value
        if monotonic() - began > patience(timeout):
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {monotonic() - began:.0f} s: {said}")
        sleep(every)
