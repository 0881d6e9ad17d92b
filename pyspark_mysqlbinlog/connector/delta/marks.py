"""How far a Delta table has come, as Delta itself keeps it: one transaction identifier.

Each commit that brings changes writes the boundary up to which all of the table's changes are in
it. A change from before that boundary is in the table already, whoever brings it again: a batch
that Spark runs a second time, or a query whose checkpoint was lost and that began anew. So each
change counts once, without anything stored beside the table.

Delta's identifier is an application's name and a number that grows. The name tells the server and
the epoch, in which positions compare; the number is the file's number and the byte offset::

    62               40 39                                     0
    +------------------+----------------------------------------+
    |   file number    |              byte offset               |
    +------------------+----------------------------------------+
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.errors import InvalidPositionError

__all__ = ["Mark", "app_id", "place"]

_POS_BITS = 40
_FILE_BITS = 23


def app_id(server_uuid: str, epoch: int) -> str:
    """The identifier under which a server's marks are kept."""
    return f"mysqlbinlog:{server_uuid}:{epoch}"


def place(number: int, pos: int) -> int:
    """A position as one number that grows with it; InvalidPositionError where it does not fit."""
    if not (0 <= number < 1 << _FILE_BITS and 0 <= pos < 1 << _POS_BITS):
        raise InvalidPositionError(
            f"position {pos} in binlog file number {number}: a Delta table's transaction"
            f" identifier holds files up to {(1 << _FILE_BITS) - 1:,} and positions up to"
            f" {(1 << _POS_BITS) - 1:,}; RESET MASTER begins the numbers anew"
        )
    return number << _POS_BITS | pos


@dataclass(frozen=True, slots=True)
class Mark:
    """A boundary, as a transaction identifier has it."""

    app_id: str
    version: int

    @classmethod
    def of(cls, offset: Offset) -> Mark:
        """The mark of a batch that ends at this offset."""
        version = place(offset.position.number, offset.position.pos)
        return cls(app_id(offset.server_uuid, offset.epoch), version)
