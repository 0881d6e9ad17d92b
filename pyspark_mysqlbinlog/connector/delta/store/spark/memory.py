"""Limits the memory that a mirror's Delta tables use in Spark's JVM.

Delta keeps a `DeltaLog` for each table that was used in the last hour, up to 10,000 of them, each
with the table's last snapshot: about 4 MB for a small table. Here the least recently used tables
are removed from that cache; the next use of such a table reads its Delta log again.

py4j keeps an object in the JVM as long as its Python object exists. A Python object whose method
was called is part of a reference cycle, so only Python's cyclic garbage collector frees it. That
collector rarely checks objects that survived its first rounds, as those of commits in parallel
threads do. A DataFrame pins the plan of its query, with a snapshot of its table and the broadcasts
of a join, which take up to 64 MB. So DataFrames are released explicitly, and for other objects the
collector is run after a number of commits.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["OpenTables", "release"]

# Heap bytes per open table; a table uses an eighth of this, or a little more.
_HEAP_BYTES_PER_TABLE = 32 << 20
_MIN_TABLES = 16


def release(session: SparkSession, *in_jvm: Any) -> None:
    """Let the JVM free objects that are no longer used."""
    gateway: Any = session.sparkContext._gateway
    for each in in_jvm:
        gateway.detach(each)


class OpenTables:
    """The tables whose logs Delta keeps in memory for a mirror, least recently used first.

    Attributes
    ----------
    max_tables : their limit; also the number of commits between two garbage collections.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark
        heap_bytes: int = jvm._jvm.java.lang.Runtime.getRuntime().maxMemory()
        self.max_tables = max(heap_bytes // _HEAP_BYTES_PER_TABLE, _MIN_TABLES)
        self._paths: OrderedDict[str, None] = OrderedDict()
        self._commits = 0
        self._lock = Lock()

    def use(self, path: str, session: SparkSession) -> None:
        """Keep a table open, and close the least recently used ones."""
        with self._lock:
            self._paths[path] = None
            self._paths.move_to_end(path)
            too_many = len(self._paths) - self.max_tables
            closed = [self._paths.popitem(last=False)[0] for _ in range(too_many)]
        jvm: Any = session
        for each in closed:
            name = jvm._jvm.org.apache.hadoop.fs.Path(each)
            delta_log = jvm._jvm.org.apache.spark.sql.delta.DeltaLog
            delta_log.invalidateCache(jvm._jsparkSession, name)

    def committed(self) -> None:
        """Free what commits have left in the JVM, once per `max_tables` commits."""
        with self._lock:
            self._commits += 1
            is_due = self._commits % self.max_tables == 0
        if is_due:
            gc.collect()
