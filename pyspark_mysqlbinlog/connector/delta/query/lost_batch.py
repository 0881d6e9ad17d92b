"""Has the last batch of a checkpoint planned again, if its part of the binlog was purged.

A batch that was planned and not completed must be read again by the next process. If the server no
longer has its binlog, and no other one does (see read/replay.py), nothing can be applied, and the
tables must be reloaded. Only offsets can say so durably, and those of the batch are written
already. So they are removed: then Spark plans a batch of the same number, which begins where the
removed one began, and leads past the gap. What the tables may have of the removed batch is
overwritten by the reload.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.connector.delta.query.checkpoint_io import local_path
from pyspark_mysqlbinlog.connector.delta.query.checkpoint_offsets import BatchOffsets
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import is_classic
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.source.stream_failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream_gaps import is_lost
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["remove_lost_batch"]

_LOG = logging.getLogger(__name__)


def remove_lost_batch(spark: SparkSession, checkpoint: str, options: Options) -> None:
    """Remove the offsets of the last batch if it is not complete and can't be read any more.

    Does nothing while the server does not answer: then the query reports it.
    """
    folder = checkpoint.rstrip("/")
    planned, committed = (_numbers(spark, f"{folder}/{name}") for name in ("offsets", "commits"))
    last = max(planned, default=0)
    if last == 0 or last in committed:
        return
    offsets = BatchOffsets(folder)
    try:
        begin, end = offsets.end(spark, last - 1), offsets.end(spark, last)
        if begin.epoch != end.epoch or begin.order >= end.order:
            return  # it has no part of the binlog
        if offsets.query_id(spark) in {query.id for query in spark.streams.active}:
            return
        settings = options.bound_to(begin.server_uuid).server_settings()
        with ReplicaClient.connect(settings) as client:
            if not is_lost(client, begin, end):
                return
        if StreamFailover(options).replayed_after_purge(begin, end) is not None:
            return
    except MySQLBinlogError:
        return
    _LOG.warning(
        "batch %d, from %s to %s, was planned before, and the server has purged its binlog since:"
        " it is planned again",
        last,
        begin.position,
        end.position,
    )
    _remove(spark, f"{folder}/offsets", str(last))


def _numbers(spark: SparkSession, location: str) -> set[int]:
    """Return the numbers of the batches that have a file in a folder of the checkpoint."""
    path = local_path(location)
    names: list[str] = []
    if path is not None:
        names = [file.name for file in path.glob("*")]
    elif is_classic(spark):
        folder, files = _hadoop(spark, location)
        if files.exists(folder):
            names = [str(each.getPath().getName()) for each in files.listStatus(folder)]
    return {int(name) for name in names if name.isdecimal()}


def _remove(spark: SparkSession, location: str, name: str) -> None:
    path = local_path(location)
    if path is not None:
        for each in (name, f".{name}.crc"):
            Path(path, each).unlink(missing_ok=True)
        return
    file, files = _hadoop(spark, f"{location}/{name}")
    files.delete(file, False)


def _hadoop(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return a location as Hadoop's Path, and its FileSystem."""
    given: Any = spark
    path = given._jvm.org.apache.hadoop.fs.Path(location)
    return path, path.getFileSystem(given._jsc.hadoopConfiguration())
