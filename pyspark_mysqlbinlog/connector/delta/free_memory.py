"""Memory that is free again, and that the C library keeps: given back to the system.

glibc has up to eight arenas for each core, and a thread takes its memory from one of them. What is
freed there is kept for that arena alone, and each batch has new threads: after a dozen loads a
process had 2.7 GB, three times of what one load takes. Other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from time import monotonic

__all__ = ["FreeMemory"]

# Bytes as Arrow. A smaller batch leaves little behind.
_LARGE = 8 << 20
# What was given back has to be got again: so it is done once in so many seconds.
_INTERVAL = 10.0


class FreeMemory:
    """Is looked after behind each batch."""

    def __init__(self) -> None:
        self._given_back = -math.inf

    def after_batch(self, size: int) -> None:
        """Give back what is free, behind a large batch.

        size : bytes that the batch brought.
        """
        now = monotonic()
        if size < _LARGE or now - self._given_back < _INTERVAL:
            return
        trim = _malloc_trim()
        if trim is not None:
            trim(0)
        self._given_back = now


def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's; None with another C library."""
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
