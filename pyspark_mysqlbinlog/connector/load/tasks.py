"""A batch's chunks as tasks."""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.load.partition import LoadPartition
from pyspark_mysqlbinlog.connector.options.model import Options

__all__ = ["load_tasks"]


def load_tasks(
    options: Options, last: Offset, most: int, *, case_sensitive: bool
) -> list[LoadPartition]:
    """At most `most` tasks, each with about as many chunks as the others.

    last : where the batch ends.
    case_sensitive : whether the server tells table names by case.
    """
    wants = options.table_filter(case_sensitive).wants
    planned = () if last.load is None else last.load.chunks
    # Planned, maybe, by a query that wanted other tables.
    chunks = [chunk for chunk in planned if wants(*chunk.table)]
    conditions = options.conditions(case_sensitive)
    count = min(len(chunks), max(most, 1))
    return [
        LoadPartition(
            # One after the other, so that the parts of one table are read side by side.
            tuple(chunks[task::count]),
            case_sensitive,
            since=last.position,
            server_uuid=last.server_uuid,
            epoch=last.epoch,
            conditions=conditions,
        )
        for task in range(count)
    ]
