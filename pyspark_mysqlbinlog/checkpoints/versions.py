"""What a table looks like from a position on, or why that is not known."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["UnknownFrom", "Version", "is_gone", "start_of"]


@dataclass(frozen=True, slots=True)
class UnknownFrom:
    """In place of a schema: why there is none. `gone`: the table does not exist."""

    reason: str
    gone: bool = False


Version = tuple[Position, TableSchema | UnknownFrom]


def start_of(version: Version) -> Position:
    """The sort key of versions."""
    return version[0]


def is_gone(version: Version) -> bool:
    """Whether the table does not exist from there on."""
    what = version[1]
    return isinstance(what, UnknownFrom) and what.gone
