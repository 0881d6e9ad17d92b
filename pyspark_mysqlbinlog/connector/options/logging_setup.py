"""Log lines with time, level and logger, in the processes that Spark starts for the source.

Nobody configures logging there, and Python then prints bare messages, from WARNING on. Our logger
gets a handler of its own where no other would take its lines; the root logger stays as it is.
"""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "configure_logging"]

LOGGER = logging.getLogger("pyspark_mysqlbinlog")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure_logging() -> None:
    """Write lines from INFO on to stderr, unless somebody has said what becomes of them."""
    if LOGGER.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    LOGGER.addHandler(handler)
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
