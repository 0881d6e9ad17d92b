"""Find out whether a server has purged the file of a position, and where its binlog begins.

PURGE BINARY LOGS and the automatic purge remove the oldest files, in the order of the index. After
RESET MASTER the file is missing, too, but then the binlog ends before the position, unless it has
grown past it since.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.errors import BinlogPurgedError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["is_purged", "with_remedies"]


def is_purged(client: ReplicaClient, position: Position) -> bool:
    """Return whether the file of a position was purged.

    BinlogReplacedError if the binlog ends before the position.
    """
    files = binlog_files(client)
    *_, (name, size) = files.items()
    if FileOrder(lambda: files, position.file, files).position(name, size) < position:
        raise log_replaced(f"it ends at {name}:{size}, before it", position.file, position.pos)
    return position.file not in files


def with_remedies(
    client: ReplicaClient, position: Position, error: BinlogPurgedError
) -> BinlogPurgedError:
    """Return a stream's error with the first available position, and what to do.

    position : where the stream would continue.
    """
    oldest = next(iter(binlog_files(client)))
    return BinlogPurgedError(
        f"{error.message}. The first available position is {oldest}:{FIRST_EVENT}: to continue"
        " there without the changes in between, set failOnDataLoss=false",
        file=position.file,
        position=position.pos,
    )
