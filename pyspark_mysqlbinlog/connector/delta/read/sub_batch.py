"""A batch of the query, or a part of it, as it was read: the changes of each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import by_table
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.names import Table

__all__ = ["Precompute", "SubBatch"]

# Arguments: each table's changes, and the images that they refer to.
Precompute = Callable[[Mapping[Table, pa.Table], ImageStore], Mapping[Table, PrecomputedStates]]


@dataclass(frozen=True, slots=True)
class SubBatch:
    """A batch, or a part of it that is applied on its own.

    Attributes
    ----------
    first, last : its start and end. An offset inside of the batch has a position and its
        fingerprint; all else is that of the batch's first offset. The sub-batches of a snapshot
        have the batch's offsets.
    changes_by_table : each table's changes.
    empty_changes : no changes, for tables that have none.
    images : the typed images that changes refer to.
    precomputed : the tables' final states, as far as they were precomputed.
    covers_all_log : it has all of the batch's binlog, or follows a sub-batch that has it.
    is_first : nothing of the batch precedes it.
    is_last : nothing of the batch follows it.
    is_replay : it is a whole batch, as another server repeats it.
    """

    first: Offset
    last: Offset
    changes_by_table: Mapping[Table, pa.Table]
    empty_changes: pa.Table
    images: ImageStore
    precomputed: Mapping[Table, PrecomputedStates] = field(default_factory=dict)
    covers_all_log: bool = True
    is_first: bool = True
    is_last: bool = True
    is_replay: bool = False

    @classmethod
    def from_changes(
        cls,
        first: Offset,
        last: Offset,
        brought: tuple[pa.Table, ImageStore],
        *,
        is_whole: bool = True,
        is_first: bool = True,
        is_last: bool = True,
        is_replay: bool = False,
    ) -> SubBatch:
        """Return a sub-batch with these changes of all tables, and their images."""
        changes, images = brought
        return cls(
            first,
            last,
            by_table(changes),
            changes.schema.empty_table(),
            images,
            covers_all_log=is_whole,
            is_first=is_first,
            is_last=is_last,
            is_replay=is_replay,
        )
