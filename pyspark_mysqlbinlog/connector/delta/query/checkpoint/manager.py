"""Selects Spark's checkpoint file manager for a query on local disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from pyspark_mysqlbinlog.connector.delta.query.checkpoint.files import local_path
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["use_filesystem_checkpoint_manager"]

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@contextmanager
def use_filesystem_checkpoint_manager(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Use Spark's FileSystem-based checkpoint manager for queries started in this block.

    Spark's default is Hadoop's FileContext, which starts `chmod` and `readlink` for each file if
    Hadoop's native library is missing: 30 processes and about 80 ms per batch on two cores. The
    alternative, Hadoop's FileSystem, starts 6, and also writes temporary files and renames them. A
    setting that the session already has, and a checkpoint elsewhere, are left alone.
    """
    if (
        not is_classic(spark)
        or local_path(checkpoint) is None
        or spark.conf.get(_MANAGER, None) is not None
        or not _has_class(spark, _BY_FILE_SYSTEM)
    ):
        yield
        return
    spark.conf.set(_MANAGER, _BY_FILE_SYSTEM)
    try:
        yield
    finally:
        spark.conf.unset(_MANAGER)


def _has_class(spark: SparkSession, name: str) -> bool:
    """Return whether the JVM has a class: other Spark versions may have it elsewhere."""
    given: Any = spark
    try:
        given._jvm.java.lang.Class.forName(name)
    except Py4JError:
        return False
    return True
