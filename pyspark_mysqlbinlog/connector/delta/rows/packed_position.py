"""A position as one integer with the same order, for Delta's transaction identifiers::

62               40 39                                     0
+------------------+----------------------------------------+
|   file number    |              byte offset               |
+------------------+----------------------------------------+
"""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.errors import InvalidPositionError

__all__ = ["pack", "pack_position", "unpack_position"]

_POS_BITS = 40
_FILE_BITS = 23


def pack(number: int, pos: int) -> int:
    """Pack a file number and a byte offset as one integer; InvalidPositionError if too large."""
    if not (0 <= number < 1 << _FILE_BITS and 0 <= pos < 1 << _POS_BITS):
        raise InvalidPositionError(
            f"position {pos} in binlog file number {number}: a Delta table's transaction"
            f" identifier can hold files up to {(1 << _FILE_BITS) - 1:,} and positions up to"
            f" {(1 << _POS_BITS) - 1:,}; RESET MASTER restarts the numbers"
        )
    return number << _POS_BITS | pos


def pack_position(position: Position) -> int:
    """Return a position as one integer."""
    return pack(position.number, position.pos)


def unpack_position(packed: int) -> tuple[int, int]:
    """Return the file number and the byte offset of a packed position."""
    return packed >> _POS_BITS, packed & ((1 << _POS_BITS) - 1)
