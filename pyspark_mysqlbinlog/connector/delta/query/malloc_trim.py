"""Memory that is free again, and that the C library keeps: given back to the system.

glibc has up to eight arenas for each core, and a thread takes its memory from one of them. What is
freed there is kept for that arena alone, and each batch has new threads: after a dozen loads a
process had 2.7 GB, three times what one load takes. Other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from time import monotonic

__all__ = ["trim_after_batch"]

# Bytes as Arrow. A smaller batch leaves little behind.
_LARGE = 8 << 20
# What was given back has to be got again: so it is done once in so many seconds.
_INTERVAL = 10.0

# When it was done last, for whichever mirror of this process.
_done = monotonic()


def trim_after_batch(size: int) -> None:
    """Give back what is free, if a batch of so many bytes has ended, and it is time."""
    global _done  # noqa: PLW0603 (memory is the process's)
    now = monotonic()
    if size < _LARGE or now - _done < _INTERVAL:
        return
    _done = now
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's; None with another C library."""
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
