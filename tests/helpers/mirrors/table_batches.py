"""One table of a mirror in a delta-rs table, and the batches that are applied to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, Version
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.table import MirroredTable
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["NAME", "Change", "TableBatches", "change", "changes_table", "position"]

NAME = ("d", "t")
Change = dict[str, Any]
_SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("seq", SEQ_TYPE),
        ("query", pa.string()),
        ("missing", pa.list_(pa.string())),
    ]
)


def position(pos: int) -> Position:
    """Return a position in the only file."""
    return Position.of("bin.000001", pos)


def change(
    op: str, pos: int, image: Any = None, *, row: int = 0, query: str | None = None
) -> Change:
    """Return one row of the stream; the image of a deleted row is its before image."""
    text = None if image is None else json.dumps(image)
    return {
        "op": op,
        "before": text if op == "d" else None,
        "after": text if op != "d" else None,
        "seq": {"epoch": 0, "file": 1, "pos": pos, "row": row},
        "query": query,
        "missing": None,
    }


def changes_table(*changes: Change) -> pa.Table:
    """Return the rows as a batch contains them."""
    return pa.Table.from_pylist(list(changes), _SCHEMA)


class TableBatches:
    """The table, and the progress of the query that writes it.

    Attributes
    ----------
    last : the last batch.
    states : the checkpoint's entry for the table by query, as `AppliedStates` stores it.
    """

    last: Batch

    def __init__(self, folder: Path, query: str = "q") -> None:
        self.folder, self.query = folder, query
        self.number, self.start = 0, 100
        self.load: SnapshotState | None = None
        # The entry for the table in each query's checkpoint.
        self.states: dict[str, AppliedState | None] = {}
        self._has_more = False
        # Reads rows that a snapshot's condition excludes.
        self.rows_where: Callable[[str], tuple[pa.Table, ImageStore]] | None = None
        # Whether chunks are read with a condition.
        self.is_limited = False
        self.again()

    def again(self) -> None:
        """Open the table as a new process does, with the checkpoint's state."""
        self.target: DeltalakeTarget = DeltalakeEngine().target(str(self.folder))
        self.table = MirroredTable(NAME, self.target, lambda _: None, self.states.get(self.query))

    def new_checkpoint(self, query: str) -> None:
        """Open the table for a query whose checkpoint has no entry for it."""
        self.query = query
        self.states.pop(query, None)
        self.again()

    def checkpoint(self) -> tuple[Any, ...]:
        """Return a copy of the checkpoint."""
        return self.number, self.start, self.load, dict(self.states)

    def put_back(self, copy: tuple[Any, ...]) -> None:
        """Resume from a copy of the checkpoint, in a new process."""
        self.number, self.start, self.load, self.states = copy
        self._has_more = False
        self.again()

    def batch(
        self,
        end: int,
        *changes: Change,
        versions: Sequence[tuple[int, TableSchema | UnknownSchema]],
        load: SnapshotState,
        reloads: bool = True,
        has_more: bool = False,
    ) -> None:
        """Apply one batch that ends at `end`, or one sub-batch of it.

        versions : of the table, each with the position where it begins.
        load : the snapshot's state at the end of the batch.
        has_more : this is a sub-batch, and the next call applies another one of the same batch.
        """
        is_first_step, self._has_more = not self._has_more, has_more
        self.number += is_first_step
        mark = CommitMarker(
            LogIdentity("uuid", 0, "mysql-bin"),
            pack_position(position(end)),
            None,
            (self.query, self.number - has_more),
        )
        now: list[Version] = [(position(start), what) for start, what in versions]
        reads = self.rows_where
        batch = Batch(
            self.query,
            self.number,
            position(self.start),
            position(end),
            mark,
            load,
            reloads=reloads,
            is_first_sub_batch=is_first_step,
            has_next_sub_batch=has_more,
            snapshot_before=self.load,
            limited=lambda _: self.is_limited,
            rows_where=None
            if reads is None
            else (lambda _, conditions: (reads(each) for each in conditions)),
        )
        self.last = batch
        rows = changes_table(*changes)
        self.table.apply(rows, TableVersions(tuple(now)), batch)
        self.states[self.query] = self.table.state
        if not has_more:
            self.start, self.load = end, load

    def rows(self) -> list[Any]:
        """Return the rows of the Delta table, sorted: values, or tuples of them."""
        table = self.target._there().to_pyarrow_table().drop(["_seq"])
        rows = [tuple(row.values()) for row in table.to_pylist()]
        return sorted(row[0] if len(row) == 1 else row for row in rows)
