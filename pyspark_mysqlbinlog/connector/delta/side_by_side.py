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
    run = inheritable_thread_target(spark)(work)
    with ThreadPoolExecutor(min(_MOST, len(items))) as threads:
        yield from threads.map(run, items)
