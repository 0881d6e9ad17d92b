"""What is wrong, perhaps, with a server's settings or grants: a line in the log, once."""

from __future__ import annotations

import logging
from functools import lru_cache

__all__ = ["warn_once"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")


@lru_cache(maxsize=256)
def warn_once(text: str) -> None:
    """Once in a process: a connection that is made again says nothing new."""
    _LOG.warning(text)
