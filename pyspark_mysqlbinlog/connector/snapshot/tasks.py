"""The chunks of a batch as tasks."""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.names import table_folding

__all__ = ["chunk_tasks"]


def chunk_tasks(
    options: Options, last: Offset, most: int, *, case_sensitive: bool, in_turn: bool = False
) -> list[ChunkPartition]:
    """Return at most `most` tasks, each with about the same number of chunks.

    last : where the batch ends.
    case_sensitive : whether the server distinguishes table names by case.
    in_turn : the first task has the first chunks; else the parts of a table are in different tasks,
        and read in parallel.
    """
    captures = options.table_filter(case_sensitive).captures
    planned = () if last.snapshot_state is None else last.snapshot_state.chunks
    # Possibly planned by a query that captured other tables.
    chunks = [chunk for chunk in planned if captures(*chunk.table)]
    folded = table_folding(case_sensitive)
    given = options.conditions(case_sensitive)
    conditions = {
        chunk.table: given[folded(chunk.table)] for chunk in chunks if folded(chunk.table) in given
    }
    count = min(len(chunks), max(most, 1))
    return [
        ChunkPartition(
            tuple(chunks[task * len(chunks) // count : (task + 1) * len(chunks) // count])
            if in_turn
            else tuple(chunks[task::count]),
            case_sensitive,
            since=last.position,
            server_uuid=last.server_uuid,
            epoch=last.epoch,
            conditions=conditions,
        )
        for task in range(count)
    ]
