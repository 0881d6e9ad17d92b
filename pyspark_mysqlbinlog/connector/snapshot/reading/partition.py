"""The partition that describes the chunks of one task to an executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.datasource import InputPartition

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.names import Table

__all__ = ["ChunkPartition"]


@dataclass
class ChunkPartition(InputPartition):
    """The chunks of one task, read one after the other over one connection.

    Attributes
    ----------
    case_sensitive : whether the server distinguishes table names by case.
    since : a position in the server's binlog; no watermark is before it.
    server_uuid : of the server that the offset belongs to; empty if it has none.
    epoch : of `seq`.
    conditions : an SQL condition for each table that is snapshotted in part.
    selections : SQL conditions, if each chunk is read by one SELECT for each of them.
    """

    chunks: tuple[Chunk, ...]
    case_sensitive: bool
    since: Position
    server_uuid: str = ""
    epoch: int = 0
    conditions: Mapping[Table, str] = field(default_factory=dict)
    selections: tuple[str, ...] = ()

    def selections_of(self, table: Table) -> Sequence[str | None]:
        """Return a condition for each SELECT of a table; None for all of its rows."""
        return self.selections or (self.conditions.get(table),)
