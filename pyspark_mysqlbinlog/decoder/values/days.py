"""MySQL's dates as days since 1970, where there is such a day.

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
    """Days since 1970, proleptic Gregorian as Spark's and MySQL's dates are.

    None for what is no day: 0000-00-00, 2026-11-00, 2026-02-31 (ALLOW_INVALID_DATES), and the
    year 0, which is before Spark's and Python's first date.
    """
    try:
        return dt.date(ymd // 10_000, ymd // 100 % 100, ymd % 100).toordinal() - _EPOCH
    except ValueError:
        return None
