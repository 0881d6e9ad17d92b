"""Waiting for a condition with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

__all__ = ["until"]

T = TypeVar("T")


def until(ready: Callable[[], T | None], otherwise: str, timeout: float = 20.0) -> T:
    """The first value of `ready` that is not None or False; AssertionError after `timeout` s."""
    deadline = monotonic() + timeout
    while True:
        value = ready()
        if value is not None and value is not False:
            return value
        if monotonic() > deadline:
            raise AssertionError(f"{otherwise} in {timeout:g} s")
        sleep(0.01)
