"""Waiting for a condition, with a deadline that a busy machine moves."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import ceil
from time import monotonic, sleep
from typing import TypeVar

__all__ = ["patience", "wait_until"]

T = TypeVar("T")

# Of a deadline; more than 1 for a machine that is slow without being busy.
_FACTOR = float(os.environ.get("MYSQLBINLOG_TEST_PATIENCE") or 1)
# A process may stand still for some seconds although the load of the last minute is low.
_LEAST_SECONDS = 60


def patience(seconds: float) -> int:
    """A deadline that is generous on a quiet machine, moved by the load of this one for each core.

    seconds : a minute if it is less.

    Every deadline of a test comes from here: what misses it stands still, and is not slow.
    """
    seconds = max(seconds, _LEAST_SECONDS)
    return ceil(seconds * max(1.0, _FACTOR, os.getloadavg()[0] / (os.cpu_count() or 1)))


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
    timeout : as `patience` takes it.
    every : seconds between two looks.
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
