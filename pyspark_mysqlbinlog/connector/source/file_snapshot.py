"""The snapshot of a stream that reads files: none, or one that a server has completed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["FileSnapshot"]


class FileSnapshot:
    """Carries the state of a snapshot from offset to offset; see `StreamSnapshot`."""

    def at(
        self, offset: Offset, _end_of_log: Callable[[], Position] | None = None
    ) -> SnapshotState | None:
        """Return the state at an offset; OptionError if its snapshot is not done."""
        state = offset.snapshot_state
        if state is not None and not state.is_done:
            raise OptionError(
                "option path: the checkpoint has a snapshot of tables that is not done, and files"
                " have no tables; continue on the server (option host) until it is done"
            )
        return state

    def begin_ahead(self, _offset: Offset, _most_bytes: int | None) -> None:
        """Do nothing: there are no chunks."""

    def step(self, *_: object) -> NoReturn:
        """Never called: `at` returns no state with chunks."""
        raise AssertionError

    def reads_exactly(self, _state: SnapshotState, _history: SchemaHistory) -> bool:
        """Whether a pending table has no key: there are none."""
        return False

    def advanced(
        self, tail: LogTail, state: SnapshotState | None, start: Position, boundary: BoundaryState
    ) -> SnapshotState | None:
        """Return the state at a batch's end.

        OptionError if a table got a captured name: its rows would have to be snapshotted.
        """
        if state is None:
            return None
        if renamed := tail.renamed(start, boundary.position):
            names = ", ".join(".".join(name) for name in sorted(renamed))
            raise OptionError(
                f"option path: {names} got a captured name up to {boundary.position}, and its"
                " existing rows must be snapshotted; continue on the server (option host)"
            )
        created = tail.created(start, boundary.position)
        return replace(state.without_batch(), completed=state.completed.union(created))

    def next_sequence(self, *_: object) -> NoReturn:
        """Never called: files are one sequence."""
        raise AssertionError

    def changes_tables(self, buffer: LogBuffer, start: Position, end: Position) -> bool:
        """Whether tables change between two positions."""
        return buffer.has_changes(start, end)

    def on_statement(self) -> None:
        """Return no callback."""

    def tasks(self, _last: Offset, _most: int) -> Sequence[ChunkPartition]:
        """Return no tasks."""
        return []

    def report(self) -> dict[str, Any] | None:
        """Return no progress."""
        return None

    def close(self) -> None:
        """Do nothing."""
