"""The driver's part of a snapshot: the chunks that a batch reads.

A table is divided by its key, one chunk after the other. The server finds the end of the next chunk
by an index-only read, so chunks have equal row counts for any distribution of keys. While Spark
runs a batch, a thread plans the next one ahead; only the state in an offset counts.

The first batch is one small chunk, for a low time to first row. The following batches grow: their
chunks have as many rows as were planned before, times a factor, until they are full. A batch has
one chunk for each connection, or the equivalent in small tables. If a batch is applied in
sub-batches, no chunk exceeds one. A table without a key is one chunk, and begins a batch of one
sub-batch: only Spark reads it, and together with its whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.log.retry import LOG, call_with_retry
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schema
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import last_bound, next_bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import Hides, choose_key
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import (
    TableSize,
    is_dropped,
    table_sizes,
)
from pyspark_mysqlbinlog.errors import LostConnectionError, UnknownSchemaError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["BatchLimits", "ChunkPlanner"]

T = TypeVar("T")
WaitUntilVisible = Callable[[ReplicaClient, Table], None]

_MIN_CHUNK_ROWS, _MAX_CHUNK_ROWS = 1_000, 1_000_000
_FIRST_CHUNK_ROWS = 5_000
# A chunk of the second batch has 40,000 rows: they are found while the first one is read. Chunks of
# the third batch are full.
_GROWTH = 8
# Time limit to find more chunks of a batch, once there is one.
_MORE_CHUNKS_SECONDS = 0.5
# Time limit for the thread to close its connection at the end of a query.
_CLOSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of a batch; None is unlimited.

    Attributes
    ----------
    chunks : the number of full chunks; small tables count by their share.
    weight : the factor for bytes of snapshot rows.
    sub_batches : the sub-batches of the batch, each with so many bytes; no chunk is larger.
    """

    rows: int | None = None
    bytes: int | None = None
    chunks: int | None = None
    weight: float = 1.0
    sub_batches: int = 1

    @classmethod
    def of(
        cls,
        rows: int | None,
        size: int | None,
        chunks: int,
        *,
        weight: float = 1.0,
        sub_batches: int = 1,
    ) -> BatchLimits:
        """Return half of a batch's limits (the rest is the binlog's); unlimited without `size`."""
        if size is None:
            return cls()
        return cls(
            None if rows is None else max(rows // 2, 1),
            max(size // 2, 1),
            chunks,
            weight,
            sub_batches,
        )


class ChunkPlanner:
    """Finds the chunks of batches, over its own persistent connection.

    Parameters
    ----------
    begin_checks : returns a function that waits until everything that was in the binlog at the
        time of the call is visible in a table, or raises.
    chunk_bytes : the approximate size of a chunk.
    retry_timeout : seconds to retry for if the connection is lost.
    hides : whether values of a column must not be stored; bounds of chunks are stored.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        begin_checks: Callable[[], WaitUntilVisible],
        case_sensitive: bool,
        chunk_bytes: int,
        retry_timeout: float,
        hides: Hides | None = None,
    ) -> None:
        self._settings = settings
        self._begin_checks = begin_checks
        self._case_sensitive = case_sensitive
        self._chunk_bytes = chunk_bytes
        self._retry_timeout = retry_timeout
        self._hides = hides
        self._client: ReplicaClient | None = None
        # The only thread that uses the connection.
        self._thread = ThreadPoolExecutor(1, "mysqlbinlog-load")
        self._ahead: _Ahead | None = None
        self._sizes: dict[Table, TableSize] = {}

    def close(self) -> None:
        """Close the connection, at the latest when the thread has finished its current work."""
        self.forget()
        # The thread may wait for a visibility check; the end of a query must not wait for that.
        wait_for([self._thread.submit(self._disconnect)], _CLOSE_SECONDS)

    @property
    def sizes(self) -> Mapping[Table, TableSize]:
        """The approximate sizes of the tables planned so far, if known."""
        return self._sizes

    def plan_ahead(self, state: SnapshotState, limits: BatchLimits) -> None:
        """Start planning the batch that `next_batch` will return."""
        if self._ahead is None:
            self._ahead = self._plan(state.without_batch(), limits)

    def forget(self) -> None:
        """Discard the batch that is planned ahead.

        A state can equal an earlier one although its tables contain other rows.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.planned.cancel()

    def next_batch(
        self, state: SnapshotState, limits: BatchLimits, *, patience: float
    ) -> SnapshotState | None:
        """Return the state at the end of a batch that reads at least one next chunk.

        Skips tables that no longer exist. So a returned state without chunks has none pending.

        patience : seconds to wait; returns None if the batch is not planned by then, and planning
            continues.
        """
        state = state.without_batch()
        ahead, self._ahead = self._ahead, None
        if ahead is None or (ahead.state, ahead.limits) != (state, limits):
            if ahead is not None:
                # Otherwise it would delay the new plan for as long as a visibility check takes.
                ahead.planned.cancel()
            ahead = self._plan(state, limits)
        try:
            planned = ahead.planned.result(patience)
        except TimeoutError:
            self._ahead = ahead
            return None
        if planned.pending and planned.chunks:
            # If the binlog adds tables meanwhile, the batch is planned again.
            self._ahead = self._plan(planned.without_batch(), limits)
        return planned

    def _plan(self, state: SnapshotState, limits: BatchLimits) -> _Ahead:
        return _Ahead(state, limits, self._thread.submit(self._planned, state, limits))

    # --- in the thread

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _sizes_of(self, state: SnapshotState) -> dict[Table, TableSize]:
        """Return the sizes of all pending tables; queried once."""
        if any(load.table not in self._sizes for load in state.pending):
            needed = {load.table for load in state.pending}
            found = self._query(lambda client: table_sizes(client, needed))
            self._sizes = {table: found.get(table, TableSize()) for table in needed}
        return self._sizes

    def _planned(self, state: SnapshotState, limits: BatchLimits) -> SnapshotState:
        # A batch read needs no quick first batch.
        grows = limits.chunks is not None
        is_first = grows and state.rows == 0
        most_rows = max(_FIRST_CHUNK_ROWS, _GROWTH * state.rows) if grows else _MAX_CHUNK_ROWS
        budget = _Budget(limits)
        # The snapshots of all pending tables began before this.
        wait_until_visible = self._begin_checks()
        chunks: list[Chunk] = []
        pending, completed = list(state.pending), set(state.completed)
        empty = set[Table]()
        rows = 0
        while pending and not (chunks and (is_first or budget.is_spent(len(chunks)))):
            load = pending.pop(0)
            size = self._sizes_of(state)[load.table]
            full = self._full_chunk(size, most_rows)
            most = max(1, min(full, budget.rows_left(size.row_bytes)))
            planned = self._query(partial(self._next_chunk, load, most, wait_until_visible))
            if planned is None:
                LOG.warning("%s no longer exists: its snapshot is skipped", ".".join(load.table))
                # In the binlog it exists until the DROP.
                completed.add(load.table)
                continue
            if planned.chunk is not None:
                if not planned.chunk.key and limits.sub_batches > 1:
                    if chunks:
                        pending.insert(0, load)
                        break
                    budget = _Budget(replace(limits, sub_batches=1))
                chunks.append(planned.chunk)
            elif load.after is None:
                empty.add(load.table)
            # An empty table counts too: it ends the first batch.
            count = max(1, size.rows) if planned.rows is None else planned.rows
            rows += count
            budget.spend(count, count * size.row_bytes, full * size.row_bytes)
            if planned.rest is None:
                completed.add(load.table)
            else:
                pending.insert(0, planned.rest)
        return replace(
            state,
            completed=frozenset(completed),
            pending=tuple(pending),
            chunks=tuple(chunks),
            rows=state.rows + rows,
            empty=frozenset(empty),
        )

    def _full_chunk(self, size: TableSize, most: int) -> int:
        """Return the number of rows of a full chunk, which only its size limits."""
        return min(
            most, max(_MIN_CHUNK_ROWS, min(_MAX_CHUNK_ROWS, self._chunk_bytes // size.row_bytes))
        )

    def _next_chunk(
        self,
        load: TableSnapshotState,
        rows: int,
        wait_until_visible: WaitUntilVisible,
        client: ReplicaClient,
    ) -> _Planned | None:
        schema = read_table_schema(client, load.table, case_sensitive=self._case_sensitive)
        if schema is None:
            if is_dropped(client, load.table):
                return None
            # That has waited for a RENAME to this name, which is visible now.
            schema = read_table_schema(client, load.table, case_sensitive=self._case_sensitive)
        if schema is None:
            raise UnknownSchemaError(
                "the server returns no definition of an existing table; start again with the same"
                " checkpoint",
                table=".".join(load.table),
            )
        key = choose_key(client, schema, self._hides)
        if key is None:
            return _Planned(Chunk(load.table), None, None)
        if load.key != key.fingerprint:
            if load.key:
                LOG.warning(
                    "the key %s of %s changed since its snapshot began: restarting it from the"
                    " beginning",
                    key.name,
                    schema.full_name,
                )
            # The bound must be read when everything before the start is visible: rows after the
            # bound are left to the binlog.
            wait_until_visible(client, load.table)
            last = last_bound(client, load.table, key)
            load = TableSnapshotState(load.table, key.fingerprint, None, last)
        if load.last is None:
            # The table was empty when its snapshot began.
            return _Planned(None, 0, None)
        upto, count = next_bound(client, load.table, key, load.after, load.last, rows=rows)
        if upto is None:
            # No rows are left.
            return _Planned(None, 0, None)
        chunk = Chunk(load.table, key.fingerprint, load.after, upto)
        return _Planned(chunk, count, None if upto == load.last else replace(load, after=upto))

    def _query(self, question: Callable[[ReplicaClient], T]) -> T:
        """Query the server, over a new connection if the old one is lost."""
        while True:
            if self._client is None:
                self._client = call_with_retry(
                    self._retry_timeout, ReplicaClient.connect, self._settings
                )
            try:
                return question(self._client)
            except LostConnectionError as error:
                LOG.warning("the snapshot's connection is lost, connecting again: %s", error)
                self._client.close()
                self._client = None


@dataclass(frozen=True, slots=True)
class _Planned:
    """A chunk, if any; its rows, None if not counted; the rest of its table."""

    chunk: Chunk | None
    rows: int | None
    rest: TableSnapshotState | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A batch that is being planned ahead."""

    state: SnapshotState
    limits: BatchLimits
    planned: Future[SnapshotState]


class _Budget:
    """The remaining limits of a batch."""

    def __init__(self, limits: BatchLimits) -> None:
        self._rows, self._chunks = limits.rows, limits.chunks
        self._step = None if limits.bytes is None else int(limits.bytes / limits.weight)
        self._bytes = None if self._step is None else self._step * limits.sub_batches
        self._share = 0.0
        self._until = monotonic() + _MORE_CHUNKS_SECONDS

    def rows_left(self, row_bytes: int) -> int:
        """Return how many rows the next chunk may have."""
        left = [_MAX_CHUNK_ROWS]
        if self._rows is not None:
            left.append(self._rows)
        if self._bytes is not None and self._step is not None:
            left.append(min(self._step, self._bytes) // row_bytes)
        return min(left)

    def spend(self, rows: int, size: int, full: int) -> None:
        """Account for a planned chunk; `full` is the size of a full chunk in this batch."""
        if self._rows is not None:
            self._rows -= rows
        if self._bytes is not None:
            self._bytes -= size
            if self._bytes * rows < size:
                # The bytes that are left are less than an average row.
                self._bytes = 0
        # A small table has a minimum cost for a task.
        self._share += max(size / full, 0.01)

    def is_spent(self, chunks: int) -> bool:
        """Whether a batch of so many chunks is full; each connection gets at least one chunk."""
        if self._chunks is not None:
            if self._share >= self._chunks:
                return True
            if monotonic() > self._until and (chunks >= self._chunks or self._share < 1):
                return True
        return any(left is not None and left <= 0 for left in (self._rows, self._bytes))
