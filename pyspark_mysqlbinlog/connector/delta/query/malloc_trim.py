"""Returns free memory that the C library keeps to the operating system.

glibc has up to eight arenas per core, and a thread allocates from one of them. Memory freed there
is kept for that arena alone, and each batch has new threads: after a dozen snapshots a process had
2.7 GB, three times what one snapshot takes. With other C libraries nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from time import monotonic

__all__ = ["trim_after_batch"]

# Bytes as Arrow. A smaller batch leaves little free memory.
_MIN_BATCH_BYTES = 8 << 20
# Seconds. Returned memory has to be allocated again, so it is not returned more often.
_MIN_INTERVAL_SECONDS = 10.0

# Time of the last trim by any mirror of this process.
_done = monotonic()


def trim_after_batch(size: int) -> None:
    """Return free memory after a batch of `size` bytes, if it is large and the interval is over."""
    global _done  # noqa: PLW0603 (free memory is shared by the process)
    now = monotonic()
    if size < _MIN_BATCH_BYTES or now - _done < _MIN_INTERVAL_SECONDS:
        return
    _done = now
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def _malloc_trim() -> Callable[[int], int] | None:
    """Return glibc's malloc_trim; None with another C library."""
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
