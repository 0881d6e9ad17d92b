"""Fingerprints of positions, as a log is read: see `checkpoints/fingerprint.py`."""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.checksum import event_checksum
from pyspark_mysqlbinlog.protocol.event_reader import FileHead
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["at_beginning", "after_event"]


def at_beginning(head: FileHead | None) -> PositionFingerprint | None:
    """Return the fingerprint of a file's beginning, or of any position without a known event."""
    return None if head is None else PositionFingerprint(*head)


def after_event(
    head: FileHead | None, found: Event | Run, pos: int | None = None
) -> PositionFingerprint | None:
    """Return the fingerprint of the position after an event or run, or one of its transactions.

    head : of their file.
    """
    if head is None:
        return None
    if isinstance(found, Event):
        return PositionFingerprint(*head, found.end - found.start, event_checksum(found))
    return PositionFingerprint(*head, *(found.last if pos is None else found.last_at(pos)))
