"""What tells that a log is still the one that a position lies in.

A file's name and its server's uuid do not: RESET MASTER begins with the same names once more, and a
copy of a machine that was restored has the same names, uuid and even files, but other events from
some place on. So a position is kept with the time at which its file was begun, and with the event
that ends right in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark_mysqlbinlog.checkpoints.json_values import number_of

__all__ = ["Fingerprint"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of a position.

    Attributes
    ----------
    created, server_id : as the header of the file's FORMAT_DESCRIPTION event tells them; seconds
        since 1970 UTC.
    length, checksum : bytes of the event that ends at the position, and the CRC32 of all but its
        own checksum; 0 at the beginning of a file, and where that event is not known.
    """

    created: int
    server_id: int
    length: int = 0
    checksum: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Fingerprint:
        """Raises KeyError, TypeError or ValueError for what `to_dict` does not give."""
        names = ("created", "server_id", "length", "checksum")
        return cls(*(number_of(value[name]) for name in names))
