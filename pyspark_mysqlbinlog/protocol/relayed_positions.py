"""Positions in files that contain the events of another server: relay logs, and saved dumps.

A relay log begins with its replica's own FORMAT_DESCRIPTION, which has a flag. Then come the
source's events as they were received, each with a log_pos of the source's file. ROTATE events show
which file that is: an artificial one for each connection, the source's own at the end of a file,
and one of server id 0 for events that the replica did not store. After each, a FORMAT_DESCRIPTION
of the source may follow. A dump that a tool saved is the same without the replica's events. (MySQL:
rpl_replica.cc, queue_event; measured on 5.7.41 and 9.7.4.)

The position of such an event is where it is in the file that is read, as in any other file. Its
log_pos must be that position plus a shift, which may change only after a ROTATE or a
FORMAT_DESCRIPTION, and increase where a transaction begins: a replica does not store transactions
that it wrote itself, nor events such as PREVIOUS_GTIDS.
"""

from __future__ import annotations

import re

from pyspark_mysqlbinlog.errors import MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    IGNORABLE_FLAG,
    RELAY_LOG_FLAG,
    TRANSACTION_GTID_TYPES,
    EventType,
    type_name,
)

__all__ = ["RelayedPositions"]

_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_ROTATE = int(EventType.ROTATE_EVENT)
_IGNORABLE = int(EventType.IGNORABLE_LOG_EVENT)
_HEARTBEATS = (EventType.HEARTBEAT_LOG_EVENT, EventType.HEARTBEAT_LOG_EVENT_V2)
# Types of events before which events of the source may be missing.
_AFTER_GAPS = TRANSACTION_GTID_TYPES | {
    EventType.QUERY_EVENT,
    EventType.PREVIOUS_GTIDS_LOG_EVENT,
    EventType.MARIADB_GTID_LIST_EVENT,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
}
# MariaDB's replicas do not store the ANNOTATE_ROWS before a table map (measured on 10.11 and 11.8).
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_ENDS = (EventType.XID_EVENT, EventType.XA_PREPARE_LOG_EVENT)
# A replica that is shut down writes a STOP event of its own without the relay log flag.
_STOP = int(EventType.STOP_EVENT)
_RELEASE = re.compile(r"(\d+)\.(\d+)\.")


class RelayedPositions:
    """Follows the log_pos of the events in one file.

    Attributes
    ----------
    shift : the amount by which log_pos exceeds the position after the event, modulo 2^32; None if
        the next event determines it.
    """

    def __init__(self) -> None:
        self.shift: int | None = 0
        self._version = ""
        self._may_lack_positions = False

    def follow(self, kind: int, flags: int, log_pos: int | None, end: int) -> tuple[int, int]:
        """Check an event that ends at `end`; return the type and the flags to return it with.

        A ROTATE that does not end this file, and a heartbeat, become IGNORABLE. A
        FORMAT_DESCRIPTION in mid-file becomes artificial.

        log_pos : None if its server leaves it out.
        """
        if kind == _FORMAT_DESCRIPTION:
            if flags & RELAY_LOG_FLAG:
                self._check_own(kind, log_pos, end)
                return kind, flags
            self.shift = (log_pos - end) & 0xFFFFFFFF if log_pos else None
            return kind, flags | ARTIFICIAL_FLAG
        if kind == _ROTATE:
            if flags & RELAY_LOG_FLAG:
                self._check_own(kind, log_pos, end)
                return kind, flags
            self.shift = None
            return _IGNORABLE, flags | IGNORABLE_FLAG
        if kind in _HEARTBEATS:
            return _IGNORABLE, flags | IGNORABLE_FLAG
        if flags & RELAY_LOG_FLAG or kind == _STOP:
            self._check_own(kind, log_pos, end)
        else:
            self._check(kind, log_pos, end)
        return kind, flags

    def _check_own(self, kind: int, log_pos: int | None, end: int) -> None:
        """Check the position of an event that the replica wrote itself."""
        if log_pos != end & 0xFFFFFFFF:
            raise MalformedEventError(
                f"{type_name(kind)} of a relay log has log_pos {log_pos}, expected"
                f" {end & 0xFFFFFFFF}"
            )

    def _check(self, kind: int, log_pos: int | None, end: int) -> None:
        if log_pos is None:
            return
        if self.shift is not None:
            missing = (log_pos - end - self.shift) & 0xFFFFFFFF
            if missing and (missing >> 31 or not self._may_follow_gap(kind)):
                raise MalformedEventError(
                    f"{type_name(kind)} of another server has log_pos {log_pos}, expected"
                    f" {(end + self.shift) & 0xFFFFFFFF} after the event before it"
                )
        self.shift = (log_pos - end) & 0xFFFFFFFF

    def _may_follow_gap(self, kind: int) -> bool:
        if kind in _AFTER_GAPS or (kind in _ENDS and self._may_lack_positions):
            return True
        return kind == _TABLE_MAP and "mariadb" in self._version.lower()

    def written_by(self, version: str, flags: int, *, may_lack_positions: bool) -> None:
        """Check the version in a FORMAT_DESCRIPTION: statements of a file have one meaning.

        may_lack_positions : of the events after it; then a table map has none.
        """
        self._may_lack_positions = may_lack_positions
        if flags & RELAY_LOG_FLAG:
            return
        if self._version and _release(version) != _release(self._version):
            raise UnsupportedEventError(
                f"the source was {self._version} at the beginning of this file and is {version}"
                " from here on; read the source's own binlog"
            )
        self._version = version


def _release(version: str) -> tuple[str, bool]:
    found = _RELEASE.match(version)
    return found[0] if found else version, "mariadb" in version.lower()
