"""A batch's chunks as tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark_mysqlbinlog.checkpoints.load_state import Chunk
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.load.partition import LoadPartition
from pyspark_mysqlbinlog.names import Table

__all__ = ["load_tasks"]


def load_tasks(
    chunks: Sequence[Chunk],
    most: int,
    *,
    case_sensitive: bool,
    since: Position,
    server_uuid: str,
    epoch: int,
    conditions: Mapping[Table, str],
) -> list[LoadPartition]:
    """At most `most` tasks, each with about as many chunks as the others."""
    count = min(len(chunks), max(most, 1))
    return [
        LoadPartition(
            # One after the other, so that the parts of one table are read side by side.
            tuple(chunks[task::count]),
            case_sensitive,
            since,
            server_uuid,
            epoch,
            conditions,
        )
        for task in range(count)
    ]
