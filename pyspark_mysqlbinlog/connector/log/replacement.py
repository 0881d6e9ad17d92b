"""Whether a server's log was replaced, asked over connections of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.fingerprint import Fingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.server.settings import binlog_files, current_position
from pyspark_mysqlbinlog.errors import (
    BinlogReplacedError,
    LostConnectionError,
    MySQLBinlogError,
    PositionError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.server_errors import log_replaced

__all__ = ["IdleReplacementCheck", "explain_dump_error"]

LOG = logging.getLogger("pyspark_mysqlbinlog")

_DUMP_REFUSED = 1236
# Seconds between two looks while nothing comes.
_IDLE_CHECK_INTERVAL = 60.0


def explain_dump_error(
    settings: ServerSettings, start: Position, known: Fingerprint | None, error: MySQLBinlogError
) -> MySQLBinlogError:
    """A BinlogReplacedError in place of a dump's error, where the log was replaced.

    A server has no words for that: it speaks of files that are gone, of positions, or of I/O.

    Parameters
    ----------
    start, known : the boundary from which the dump would go on, and its fingerprint.
    """
    code = error.code if isinstance(error, ServerError) else None
    if code != _DUMP_REFUSED and not isinstance(error, PositionError):
        return error
    try:
        with ReplicaClient.connect(settings) as client:
            files = binlog_files(client)
            *_, (name, size) = files.items()
            if FileOrder(lambda: files, start.file, files).position(name, size) < start:
                return log_replaced(f"it ends at {name}:{size}, before it", start.file, start.pos)
        if known is not None:
            with ReplicaClient.connect(settings) as client:
                Dump(client, start, known, blocking=False)
    except BinlogReplacedError as found:
        return found
    except (MySQLBinlogError, ValueError):
        # It can't be asked now: what is known is the error.
        return error
    return error


class IdleReplacementCheck:
    """Looks after a dump in which nothing comes, now and then.

    A server may go on with heartbeats after RESET MASTER, of a file that is gone (5.6, 5.7 and
    MariaDB 10.11 do). Where its log ends elsewhere than the dump, twice, the connection is given
    up; the next one compares the fingerprint.

    Parameters
    ----------
    here : gives the end of the last event that came.
    """

    def __init__(self, settings: ServerSettings, here: Callable[[], Position]) -> None:
        self._settings = settings
        self._here = here
        self._last: Position | None = None
        self._asked_at = monotonic()
        self._doubt: Position | None = None

    def heartbeat(self) -> None:
        """The server says that nothing comes; LostConnectionError where that is doubtful."""
        here = self._here()
        if here != self._last:
            self._last, self._doubt, self._asked_at = here, None, monotonic()
        if self._doubt is None and monotonic() - self._asked_at < _IDLE_CHECK_INTERVAL:
            return
        self._asked_at = monotonic()
        try:
            with ReplicaClient.connect(self._settings) as client:
                end = current_position(client)
        except MySQLBinlogError as error:
            LOG.info("the server's end can't be asked for: %s", error)
            return
        if end == here:
            self._doubt = None
        elif self._doubt is None:
            # It may have been written just now.
            self._doubt = end
        else:
            self._asked_at, self._doubt = monotonic(), None
            raise LostConnectionError(
                f"the server's log ends at {end}, and it sends nothing behind {here}"
            )
