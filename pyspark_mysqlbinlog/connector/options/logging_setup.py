"""Log lines with time, level and logger, in the processes that Spark starts for the source.

Logging is not configured there: Python prints bare messages, from WARNING on. The package's logger
gets its own handler if no other handler receives its lines; the root logger is unchanged.
"""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "configure_logging"]

LOGGER = logging.getLogger("pyspark_mysqlbinlog")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure_logging() -> None:
    """Write lines from INFO on to stderr, unless logging is already configured."""
    if LOGGER.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    LOGGER.addHandler(handler)
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
