"""A lock for Spark Connect's local server, which has a fixed port: tests that use it take turns."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["connect_turn"]

_FILE = Path(tempfile.gettempdir()) / f"pyspark-mysqlbinlog-tests-connect-{os.getuid()}"


@contextlib.contextmanager
def connect_turn() -> Iterator[None]:
    """Wait until no other test process has such a server, and prevent one during the block."""
    with _FILE.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
