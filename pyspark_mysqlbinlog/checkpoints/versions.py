"""The schema of a table from a position on, or why it is not known."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["UnknownSchema", "Version", "is_dropped", "valid_from"]


@dataclass(frozen=True, slots=True)
class UnknownSchema:
    """Replaces a schema: why there is none. `is_dropped`: the table does not exist."""

    reason: str
    is_dropped: bool = False


Version = tuple[Position, TableSchema | UnknownSchema]


def valid_from(version: Version) -> Position:
    """Return the sort key of versions."""
    return version[0]


def is_dropped(version: Version) -> bool:
    """Whether the table does not exist from there on."""
    what = version[1]
    return isinstance(what, UnknownSchema) and what.is_dropped
