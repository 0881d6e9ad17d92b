"""The tables of a batch side by side: while one's commit is written another one's is prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pyspark import inheritable_thread_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["side_by_side"]

# The write of one table leaves a core idle now and then, so there may be more of them than cores.
# They take memory, so there is a most of them, however many tables there are.
_MOST = 4

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Sequence[T], spark: SparkSession) -> Iterator[R]:
    """What `work` gives for each of these, in their order; it runs in threads.

    spark : jobs that are started there belong to the query whose thread this is, and end with it.
    """
    if len(items) < 2:
        yield from map(work, items)
        return
    count = min(_MOST, len(items))
    # PySpark copies this thread's properties once for each call. Threads that share a copy write
    # each other's execution id: jobs are then noted under executions that have ended, and Spark's
    # scheduler never lets go of their plans.
    copies = [inheritable_thread_target(spark)(_nothing) for _ in range(count)]

    def inherit() -> None:
        copies.pop()()

    with ThreadPoolExecutor(count, initializer=inherit) as threads:
        yield from threads.map(work, items)


def _nothing() -> None:
    """What a thread does that only inherits."""
