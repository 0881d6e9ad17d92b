"""Changes the last planned batch of a checkpoint if it can't be read as it was planned.

A batch that was planned and not completed must be read again by the next process. Only offsets
record durably how it is to be read, and the batch's offsets are already written.

* If the server has purged its part of the binlog, and no other one has it (see read/replay.py),
  nothing can be applied, and the tables must be reloaded. So the batch's offsets are removed: then
  Spark plans a batch of the same number, which begins where the removed one began, and leads past
  the gap. What the tables may have of the removed batch is overwritten by the reload.
* If the server is lost, another one can repeat the batch's part of the binlog, but not the rows of
  a snapshot, which were to be read from the lost one. So the batch's end is replaced by one at the
  same position, after which these tables are pending from their beginnings. That is valid whichever
  server continues, also if the lost one is back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.files import (
    hadoop,
    local_path,
    remove,
)
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.offsets import BatchOffsets
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import is_classic
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.source.stream.failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.gaps import is_lost
from pyspark_mysqlbinlog.errors import ConnectionFailedError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["change_lost_batch"]

_LOG = logging.getLogger(__name__)


def change_lost_batch(spark: SparkSession, checkpoint: str, options: Options) -> None:
    """Change the offsets of the last batch if it is not complete and can't be read any more.

    Does nothing while the server does not answer and no other server replaces it: the query
    reports that.
    """
    if options.fail_on_data_loss and not options.can_fail_over:
        return
    folder = checkpoint.rstrip("/")
    planned, committed = (_numbers(spark, f"{folder}/{name}") for name in ("offsets", "commits"))
    last = max(planned, default=0)
    if last == 0 or last in committed:
        return
    offsets = BatchOffsets(folder)
    try:
        begin, end = offsets.end(spark, last - 1), offsets.end(spark, last)
        if offsets.query_id(spark) in {query.id for query in spark.streams.active}:
            return
        failover = StreamFailover(options, for_mirror=True)
        has_purged = _has_purged(begin, end, options)
        repeatable = failover.without_chunks(begin, end, has_purged=has_purged)
        if repeatable is not None:
            _LOG.warning(
                "batch %d, to %s, was planned on the server %s, which is lost or has purged its"
                " binlog: it is repeated without the rows of a snapshot, and these tables are read"
                " again: %s",
                last,
                end.position,
                end.server_uuid,
                ", ".join(".".join(table) for table in sorted(repeatable.read_ahead)),
            )
            offsets.replace_end(spark, last, repeatable)
        elif (
            not options.fail_on_data_loss
            and has_purged
            and failover.replayed_after_purge(begin, end) is None
        ):
            _LOG.warning(
                "batch %d, from %s to %s, was planned before, and the server has purged its binlog"
                " since: it is planned again",
                last,
                begin.position,
                end.position,
            )
            remove(spark, f"{folder}/offsets/{last}")
    except MySQLBinlogError:
        return


def _has_purged(begin: Offset, end: Offset, options: Options) -> bool:
    """Return whether the server of a batch has purged a part of its binlog."""
    if begin.epoch != end.epoch or begin.order >= end.order:
        return False  # it has no part of the binlog
    settings = options.bound_to(begin.server_uuid).server_settings()
    try:
        with ReplicaClient.connect(settings) as client:
            return is_lost(client, begin, end)
    except ConnectionFailedError:
        return False


def _numbers(spark: SparkSession, location: str) -> set[int]:
    """Return the numbers of the batches that have a file in a folder of the checkpoint."""
    path = local_path(location)
    names: list[str] = []
    if path is not None:
        names = [file.name for file in path.glob("*")]
    elif is_classic(spark):
        folder, files = hadoop(spark, location)
        if files.exists(folder):
            names = [str(each.getPath().getName()) for each in files.listStatus(folder)]
    return {int(name) for name in names if name.isdecimal()}
