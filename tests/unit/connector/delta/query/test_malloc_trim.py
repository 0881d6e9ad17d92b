"""Free memory is returned to the system after large batches, at a limited rate."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyspark_mysqlbinlog.connector.delta.query import malloc_trim
from pyspark_mysqlbinlog.connector.delta.query.malloc_trim import trim_after_batch

# Ended threads leave free blocks; every hundredth block stays, so no arena's end is free.
_SCRIPT = """
import sys
from threading import Thread
from pyspark_mysqlbinlog.connector.delta.query import malloc_trim

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20

trim, calls = malloc_trim._malloc_trim(), []
kept = []
def fill():
    blocks = [bytearray(10_000) for _ in range(10_000)]
    kept.extend(blocks[::100])

for _ in range(3):
    thread = Thread(target=fill)
    thread.start()
    thread.join()
# The first calls allocate what they need themselves.
malloc_trim.trim_after_batch(0)
if trim is not None:
    malloc_trim._malloc_trim = lambda: lambda keep: calls.append(keep) or trim(keep)
resident()
before = resident()
malloc_trim._done -= 60
malloc_trim.trim_after_batch(int(sys.argv[1]))
print(before, resident(), len(calls))
"""


def around(size: int) -> tuple[int, int, int]:
    """Return the MB of a process before and after a batch of `size` bytes, and its trims.

    The process has memory that it freed and the C library keeps.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(size)], capture_output=True, text=True, check=True
    )
    before, after, calls = map(int, done.stdout.split())
    return before, after, calls


@pytest.mark.skipif(malloc_trim._malloc_trim() is None, reason="the C library is not glibc")
def test_free_memory_is_returned_to_system_after_large_batch() -> None:
    before, after, calls = around(100 << 20)
    assert calls == 1
    assert after < before - 50


def test_small_batch_does_not_trim_memory() -> None:
    before, after, calls = around(100_000)
    assert calls == 0
    # The system itself may take or give back a page.
    assert abs(after - before) <= 1


def test_memory_trims_after_large_batches_are_rate_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(malloc_trim, "_malloc_trim", lambda: calls.append)
    monkeypatch.setattr(malloc_trim, "_done", 100.0)
    for now, size in (101, 1 << 30), (111, 1000), (112, 1 << 30), (113, 1 << 30), (123, 1 << 30):
        monkeypatch.setattr(malloc_trim, "monotonic", lambda now=now: float(now))
        trim_after_batch(size)
    assert len(calls) == 2


def test_batch_without_malloc_trim_in_c_library_raises_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(malloc_trim, "_malloc_trim", lambda: None)
    monkeypatch.setattr(malloc_trim, "_done", -1000.0)
    trim_after_batch(1 << 30)
