"""Possible problems of a server's settings or grants: one log line each."""

from __future__ import annotations

import logging
from functools import lru_cache

__all__ = ["warn_once"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")


@lru_cache(maxsize=256)
def warn_once(text: str) -> None:
    """Log a warning once per process: a reconnect reports nothing new."""
    _LOG.warning(text)
