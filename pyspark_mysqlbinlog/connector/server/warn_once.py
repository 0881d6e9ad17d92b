"""Possible problems of a server's settings or grants: one log line each, or a list of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

__all__ = ["collected_warnings", "forget_warnings", "warn_once"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")
_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the block, which are then not logged."""
    collected: list[str] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def warn_once(text: str) -> None:
    """Log a warning once per process: a reconnect reports nothing new."""
    collected = _COLLECTED.get()
    if collected is None:
        _log(text)
    else:
        collected.append(text)


@lru_cache(maxsize=256)
def _log(text: str) -> None:
    _LOG.warning(text)


def forget_warnings() -> None:
    """Forget which warnings were logged, so that each is logged again."""
    _log.cache_clear()
