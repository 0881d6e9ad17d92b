"""Detect that a server's binlog was replaced, over separate connections."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.purged import is_purged, with_remedies
from pyspark_mysqlbinlog.connector.server.settings import binlog_files, current_position
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    BinlogReplacedError,
    LostConnectionError,
    MySQLBinlogError,
    PositionError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["IdleReplacementCheck", "explain_dump_error"]

LOG = logging.getLogger("pyspark_mysqlbinlog")

_ER_MASTER_FATAL_ERROR_READING_BINLOG = 1236
# Seconds between two checks while no events arrive.
_IDLE_CHECK_SECONDS = 60.0


def explain_dump_error(
    settings: ServerSettings,
    start: Position,
    known: PositionFingerprint | None,
    error: MySQLBinlogError,
) -> MySQLBinlogError:
    """Return a BinlogReplacedError instead of a dump's error, if the binlog was replaced.

    A server has no error for that: it reports missing files, positions, or I/O errors.

    Parameters
    ----------
    start, known : the boundary where the dump would resume, and its fingerprint.
    """
    if isinstance(error, BinlogPurgedError):
        return _explain_purge(settings, start, error)
    code = error.code if isinstance(error, ServerError) else None
    if code != _ER_MASTER_FATAL_ERROR_READING_BINLOG and not isinstance(error, PositionError):
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
        # The server can't be queried now: only the original error is known.
        return error
    return error


def _explain_purge(
    settings: ServerSettings, start: Position, error: BinlogPurgedError
) -> MySQLBinlogError:
    """Return a BinlogReplacedError if the file is missing for another reason than a purge."""
    try:
        with ReplicaClient.connect(settings) as client:
            return with_remedies(client, start, error) if is_purged(client, start) else error
    except BinlogReplacedError as found:
        return found
    except MySQLBinlogError:
        return error


class IdleReplacementCheck:
    """Checks an idle dump from time to time.

    After RESET MASTER a server may keep sending heartbeats for a file that no longer exists (5.6,
    5.7 and MariaDB 10.11 do). If its binlog ends elsewhere than the dump, twice, the connection is
    closed; the next one compares the fingerprint.

    Parameters
    ----------
    here : returns the end of the last event received.
    """

    def __init__(self, settings: ServerSettings, here: Callable[[], Position]) -> None:
        self._settings = settings
        self._here = here
        self._last: Position | None = None
        self._asked_at = monotonic()
        self._doubt: Position | None = None

    def heartbeat(self) -> None:
        """Handle a heartbeat; LostConnectionError if it is not credible."""
        here = self._here()
        if here != self._last:
            self._last, self._doubt, self._asked_at = here, None, monotonic()
        if self._doubt is None and monotonic() - self._asked_at < _IDLE_CHECK_SECONDS:
            return
        self._asked_at = monotonic()
        try:
            with ReplicaClient.connect(self._settings) as client:
                end = current_position(client)
        except MySQLBinlogError as error:
            LOG.info("the end of the server's binlog can't be queried: %s", error)
            return
        if end == here:
            self._doubt = None
        elif self._doubt is None:
            # It may have been written just now.
            self._doubt = end
        else:
            self._asked_at, self._doubt = monotonic(), None
            raise LostConnectionError(
                f"the server's binlog ends at {end}, and it sends nothing after {here}"
            )
