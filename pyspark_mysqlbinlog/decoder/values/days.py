"""MySQL's dates as days since 1970, for valid dates.

A date is the number year * 10000 + month * 100 + day, as the temporal codecs read it.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache

__all__ = ["MICROS_PER_DAY", "day_number"]

MICROS_PER_DAY = 86_400_000_000

_EPOCH = dt.date(1970, 1, 1).toordinal()


@lru_cache(maxsize=8192)
def day_number(ymd: int) -> int | None:
    """Return days since 1970, proleptic Gregorian as in Spark and MySQL.

    None for an invalid date: 0000-00-00, 2026-11-00, 2026-02-31 (ALLOW_INVALID_DATES), and the year
    0, which is before the first date of Spark and Python.
    """
    try:
        return dt.date(ymd // 10_000, ymd // 100 % 100, ymd % 100).toordinal() - _EPOCH
    except ValueError:
        return None
