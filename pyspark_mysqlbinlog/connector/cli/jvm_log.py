"""Forwards the stderr of Spark's JVM, without its irrelevant lines.

Those are the startup messages, and the stack traces of an error that ends the query: the caller of
the query reports that error.

The stderr of the JVM and of its child processes is one end of a pipe, and a thread reads the other
end. So the lines can also be shown above a live display.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Thread

__all__ = ["jvm_lines_to", "relevant_lines"]

# Startup messages, which do not depend on the outcome.
_GREETING = re.compile(
    r"(NOTE: )?Picked up [A-Z_]+OPTIONS: "
    r"|WARNING: Using incubator modules"
    r"|WARNING: package sun\.\S+ not in"
    r"|WARNING: (A terminally deprecated|A restricted) method in "
    r"|WARNING: (sun\.misc\.Unsafe|java\.lang\.System)::"
    r"|WARNING: Please consider reporting this to the maintainers"
    r"|WARNING: Use --enable-native-access"
    r"|WARNING: Restricted methods will be blocked"
    r"|Using Spark's default log4j profile"
    r"|Setting default log level to"
    r"|Setting Spark log level to"
    r"|To adjust logging level use "
    r"|.* WARN NativeCodeLoader: "
)

_ENDS_QUERY = re.compile(
    r"\S+ \S+ ERROR (MicroBatchExecution: Query .* terminated with error"
    r"|Executor: Exception in task |TaskSetManager: .*aborting job)"
)
# First line of a log entry, by Spark or by the source's own process.
_ENTRY = re.compile(r"\d\d/\d\d/\d\d \d|\d{4}-\d\d-\d\d \d")


def relevant_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the relevant lines."""
    is_page = False
    for line in lines:
        if is_page and not _ENTRY.match(line):
            continue
        is_page = _ENDS_QUERY.match(line) is not None
        if not _GREETING.match(line):
            yield line.rstrip("\n")


@contextlib.contextmanager
def jvm_lines_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Forward the stderr of processes that are started in the block, until they end."""
    reading, writing = os.pipe()
    Thread(target=_pass_on, args=[reading, tell], name="jvm-log", daemon=True).start()
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _pass_on(reading: int, tell: Callable[[str], None]) -> None:
    with open(reading, encoding="utf-8", errors="replace") as lines:
        for line in relevant_lines(lines):
            # If the pipe were not read, its writers would block.
            with contextlib.suppress(OSError, ValueError):
                tell(line)
