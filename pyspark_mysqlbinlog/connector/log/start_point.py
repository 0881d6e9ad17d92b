"""Resolve a start point in a server's binlog: `earliest`, a file and position, a time."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.log_protocol import Log
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.time_lookup import first_since
from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    FilePosition,
    Latest,
    PlaceInBinlog,
    Snapshot,
    Timestamp,
)
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import BinlogPurgedError, InvalidPositionError
from pyspark_mysqlbinlog.protocol.events import IDENTIFYING_GTID_TYPES, EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["canonical", "check_before_gtid", "check_there", "pack_position"]

# Events at the beginning of a file, before its first transaction.
_FILE_HEAD = frozenset(
    {
        int(EventType.FORMAT_DESCRIPTION_EVENT),
        int(EventType.PREVIOUS_GTIDS_LOG_EVENT),
        int(EventType.MARIADB_GTID_LIST_EVENT),
        int(EventType.MARIADB_BINLOG_CHECKPOINT_EVENT),
    }
)


def pack_position(
    client: ReplicaClient, log: ServerLog, files: Mapping[str, int], place: PlaceInBinlog
) -> Position:
    """Return the position of a start point.

    files : the binlog files, oldest first, with their sizes in bytes.
    """
    match place:
        case Latest() | Snapshot():
            return canonical(log, current_position(client))
        case Earliest():
            return log.position(next(iter(files)), FIRST_EVENT)
        case FilePosition(file, pos):
            check_there(files, file, pos)
            return canonical(log, log.position(file, pos))
        case Timestamp(seconds):
            begins = [log.position(file, FIRST_EVENT) for file in files]
            found = first_since(log, begins, seconds)
            return found or canonical(log, current_position(client))


def check_there(files: Mapping[str, int], file: str, pos: int) -> None:
    """Raise BinlogPurgedError or InvalidPositionError for a position in none of the files."""
    size = files.get(file)
    if size is None:
        names = [*files]
        raise BinlogPurgedError(
            f"the server has no binlog {file!r}: expected one from {names[0]} to"
            f" {names[-1]}; it was purged, or it belongs to another server",
            file=file,
            position=pos,
        )
    if pos > max(size, FIRST_EVENT):
        raise InvalidPositionError(
            f"the position is past the end of its file, which has {size} bytes; set one that SHOW"
            f" BINLOG EVENTS IN '{file}' lists",
            file=file,
            position=pos,
        )


def check_before_gtid(log: Log, position: Position, found: PositionFingerprint | None) -> None:
    """Raise InvalidPositionError for a position between a transaction and its GTID event.

    The transaction would be delivered without its GTID, which counts as executed there.

    found : the position's fingerprint; without an event, nothing is checked.
    """
    if found is None or not found.length:
        return
    begin = position._replace(pos=position.pos - found.length)
    before = next(iter(log.events(begin)), None)
    if before is not None and before.type in IDENTIFYING_GTID_TYPES:
        raise InvalidPositionError(
            "option startingOffset: the position is between a transaction and its GTID event; set"
            f" {position.file}:{begin.pos}, where the GTID event begins",
            file=position.file,
            position=position.pos,
        )


def canonical(log: Log, position: Position) -> Position:
    """Return a boundary's canonical spelling: after a file's head it is the file's beginning."""
    if position.pos == FIRST_EVENT:
        return position
    begin = position._replace(pos=FIRST_EVENT)
    for event in log.events(begin):
        if event.file != position.file or event.start >= position.pos:
            return begin
        if event.type not in _FILE_HEAD:
            return position
    return begin
