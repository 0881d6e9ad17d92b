"""What Spark's JVM writes to stderr, passed on without the pages that tell nobody anything.

Those are its greeting, and the stack traces of an error that ends the query: that is told by who
waits for the query.

The JVM and the processes that it starts get one end of a pipe as their stderr, and a thread reads
the other one. So the lines can go above a live display, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Thread

__all__ = ["jvm_lines_to", "relevant_lines"]

# Of every start, whatever is wrong or right with it.
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
# Of Spark, or of the source's own process.
_ENTRY = re.compile(r"\d\d/\d\d/\d\d \d|\d{4}-\d\d-\d\d \d")


def relevant_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are."""
    is_page = False
    for line in lines:
        if is_page and not _ENTRY.match(line):
            continue
        is_page = _ENDS_QUERY.match(line) is not None
        if not _GREETING.match(line):
            yield line.rstrip("\n")


@contextlib.contextmanager
def jvm_lines_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Processes that are started in the block have their lines told, until they end."""
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
            # Whoever writes into a pipe that nobody reads stands still.
            with contextlib.suppress(OSError, ValueError):
                tell(line)
