"""Fingerprint of a position: identifies the binlog that contains it.

A file's name and its server's uuid do not suffice. RESET MASTER starts with the same names again. A
restored copy of a machine has the same names, uuid and even files, but other events from some
position on. So a position is stored with the time at which its file was begun, and with the event
that ends directly before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark_mysqlbinlog.checkpoints.json_values import number_of

__all__ = ["PositionFingerprint"]


@dataclass(frozen=True, slots=True)
class PositionFingerprint:
    """The fingerprint of a position.

    Attributes
    ----------
    created, server_id : from the header of the file's FORMAT_DESCRIPTION event; seconds since 1970
        UTC.
    length, checksum : bytes of the event that ends at the position, and the CRC32 of all except its
        own checksum; 0 at the beginning of a file, and if that event is not known.
    """

    created: int
    server_id: int
    length: int = 0
    checksum: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> PositionFingerprint:
        """Raise KeyError, TypeError or ValueError for values that `to_dict` does not return."""
        names = ("created", "server_id", "length", "checksum")
        return cls(*(number_of(value[name]) for name in names))
