"""A folder in memory, for the many small files of servers, Spark and Delta."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["folder_in_memory"]

# 100 MB for each server, and a reserve for large binlogs.
_NEEDED_BYTES = 6 << 30


def folder_in_memory() -> str | None:
    """Return a file system in memory with enough space for a run's files, if there is one.

    A server syncs its files at each CREATE and DROP, which takes longer than its other work. Spark
    and Delta write some twenty files for each batch of a mirror: a seventh of the CPU time of its
    tests on a disk.
    """
    folder = Path("/dev/shm")
    try:
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _NEEDED_BYTES:
            for line in Path("/proc/meminfo").read_text().splitlines():
                name, _, value = line.partition(":")
                if name == "MemAvailable" and 1024 * int(value.split()[0]) > _NEEDED_BYTES:
                    return str(folder)
    except OSError:
        pass
    return None
