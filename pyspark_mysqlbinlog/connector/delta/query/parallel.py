"""Processes the tables of a batch in parallel: one is prepared while another one is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pyspark import inheritable_thread_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["map_in_threads"]

# Writing one table leaves a core idle at times, so there may be more threads than cores. Tables in
# progress take memory, so their number is limited.
MAX_PARALLEL_TABLES = 4

T = TypeVar("T")
R = TypeVar("R")


def map_in_threads(work: Callable[[T], R], items: Sequence[T], spark: SparkSession) -> Iterator[R]:
    """Yield `work`'s result for each item, in the items' order; it runs in threads.

    spark : jobs started there belong to the query that runs this thread, and end with it.
    """
    if len(items) < 2:
        yield from map(work, items)
        return
    count = min(MAX_PARALLEL_TABLES, len(items))
    # PySpark copies this thread's properties once per call. Threads that share a copy overwrite
    # each other's execution id: jobs are then recorded under executions that have ended, and
    # Spark's scheduler never releases their plans.
    copies = [inheritable_thread_target(spark)(_nothing) for _ in range(count)]

    def inherit() -> None:
        copies.pop()()

    with ThreadPoolExecutor(count, initializer=inherit) as threads:
        yield from threads.map(work, items)


def _nothing() -> None:
    """Do nothing: the thread only inherits."""
