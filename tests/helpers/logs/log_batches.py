"""A change log in a delta-rs table, and the batches that are appended to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from helpers.mirrors.table_batches import NAME
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.change_log import COLUMNS, ChangeLog
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["LogBatches", "change_row", "log_position"]

_SCHEMA = TableSchema(*NAME, (ColumnSchema("id", "int", nullable=False),), ("id",))


def log_position(pos: int, base: str = "bin") -> Position:
    """Return a position in the only file with this base name."""
    return Position.of(f"{base}.000001", pos)


def change_row(op: str, pos: int, number: int, *, epoch: int = 0) -> dict[str, Any]:
    """Return one row of the stream: `r` of a snapshot, or `c` of the binlog."""
    row = -1 if op == "r" else 0
    place = {"file": 1, "pos": pos, "row": row}
    source = {"file": "bin.000001", "pos": pos, "row": row, "query": None}
    after = f'{{"id": {number}}}'
    return {"op": op, "after": after, "seq": {"epoch": epoch, **place}, "source": source}


class LogBatches:
    """A change log, and the progress of the query that writes it.

    Attributes
    ----------
    state : the checkpoint's entry for the change log, as `AppliedStates` stores it.
    """

    def __init__(self, folder: Path, query: str = "q") -> None:
        self.folder, self.query = folder, query
        self.number, self.start = 0, log_position(100)
        self.log_of_batch = LogIdentity("uuid", 0, "bin")
        self.load: SnapshotState | None = None
        self.state: AppliedState | None = None
        self.again()

    def again(self) -> None:
        """Open the change log as a new process does, with the checkpoint's state."""
        self.target: DeltalakeTarget = DeltalakeEngine().target(str(self.folder))
        self.log = ChangeLog(NAME, self.target, lambda _: None, self.state)

    def batch(
        self,
        end: int,
        *rows: dict[str, Any],
        load: SnapshotState | None = None,
        fails: bool = False,
        is_recorded: bool = True,
        into: LogIdentity | None = None,
    ) -> None:
        """Append one batch that ends at `end`; stop the change log if that fails.

        fails : appending the rows fails.
        is_recorded : the checkpoint records the batch; otherwise the process ends before that.
        into : identity of the new binlog in which a batch without rows ends.
        """
        before = self.log_of_batch
        log = self.log_of_batch = into or before
        position = log_position(end, log.base)
        batch = Batch(
            self.query,
            self.number,
            self.start,
            position,
            CommitMarker(log, pack_position(position), None, (self.query, self.number)),
            load,
            snapshot_before=self.load,
            log_before=before if into is not None else None,
        )
        self.number, self.start, self.load = self.number + 1, position, load
        changes = pa.Table.from_pylist(list(rows), COLUMNS)
        versions = TableVersions(((Position.of(f"{log.base}.000001", 4), _SCHEMA),))
        try:
            if fails:
                raise MirrorError("the disk of the test", table="d.t")
            self.log.append(changes, versions, batch)
        except MirrorError as error:
            self.log.stop(error, batch)
        if is_recorded:
            self.state = self.log.state

    def ops(self) -> list[tuple[str, str | None]]:
        """Return `op` and `after` of each row, ordered by `seq`."""
        rows: Sequence[dict[str, Any]] = self.target._there().to_pyarrow_table().to_pylist()
        ordered = sorted(rows, key=lambda row: tuple(row["seq"].values()))
        return [(row["op"], row["after"]) for row in ordered]
