"""The driver's part of a load: which chunks a batch reads.

A table is divided by its key, one chunk after the other: the server says where the next one ends,
by an index-only read, so chunks are even in rows whatever the keys look like. While Spark runs a
batch, the next one is planned ahead, in a thread; what counts is what an offset stores.

The first batch is one small chunk, so that the first rows are there soon. The batches behind it
grow: each has chunks of as many rows as were planned before, times a factor, until they are full.
They have one for each connection, or as many small tables as make up for it. Where a batch is
brought in by steps, no chunk is more than a step. A table without a key, which is one chunk, begins
a batch of one step: only Spark reads it, and at once with all of its batch.
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
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import choose_key
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import (
    TableSize,
    is_dropped,
    table_sizes,
)
from pyspark_mysqlbinlog.errors import LostConnectionError, UnknownSchemaError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings

__all__ = ["BatchLimits", "ChunkPlanner"]

T = TypeVar("T")
Prove = Callable[[ReplicaClient, Table], None]

_FEWEST_ROWS, _MOST_ROWS = 1_000, 1_000_000
_FIRST_ROWS = 5_000
# A chunk of the second batch has 40,000 rows: they are found while the first one is read. Chunks of
# the third are full ones.
_GROWTH = 8
# Seconds that finding a batch's chunks may take, once there is one.
_PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a batch may read; None is no limit.

    Attributes
    ----------
    chunks : full ones; small tables count by their share.
    weight : what a byte of loaded rows counts for.
    steps : by which the batch is brought in, each with so many bytes; no chunk is larger.
    """

    rows: int | None = None
    bytes: int | None = None
    chunks: int | None = None
    weight: float = 1.0
    steps: int = 1

    @classmethod
    def of(
        cls,
        rows: int | None,
        size: int | None,
        chunks: int,
        *,
        weight: float = 1.0,
        steps: int = 1,
    ) -> BatchLimits:
        """Half of a batch's limits, whose other half is the log's; without `size` there is none."""
        if size is None:
            return cls()
        return cls(
            None if rows is None else max(rows // 2, 1), max(size // 2, 1), chunks, weight, steps
        )


class ChunkPlanner:
    """Finds the chunks of batches, over a connection of its own that it keeps.

    Parameters
    ----------
    begin_proofs : gives what waits until everything that was in the log when it was given can be
        seen in a table, or raises.
    chunk_bytes : of a chunk, about.
    retry_timeout : seconds to try for when the connection is lost.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        begin_proofs: Callable[[], Prove],
        case_sensitive: bool,
        chunk_bytes: int,
        retry_timeout: float,
    ) -> None:
        self._settings = settings
        self._begin_proofs = begin_proofs
        self._case_sensitive = case_sensitive
        self._chunk_bytes = chunk_bytes
        self._retry_timeout = retry_timeout
        self._client: ReplicaClient | None = None
        # The one thread that uses the connection.
        self._thread = ThreadPoolExecutor(1, "mysqlbinlog-load")
        self._ahead: _Ahead | None = None
        self._sizes: dict[Table, TableSize] = {}

    def close(self) -> None:
        """Let go of the connection, at the latest when the thread has done what it is doing."""
        self.forget()
        # A proof may be waited for, and whoever ends a query shall not wait with it.
        wait_for([self._thread.submit(self._disconnect)], _PATIENCE)

    @property
    def sizes(self) -> Mapping[Table, TableSize]:
        """About how large the tables are of which batches were planned, as far as is known."""
        return self._sizes

    def plan_ahead(self, state: SnapshotState, limits: BatchLimits) -> None:
        """Begin to plan what `next_batch` will be asked for."""
        if self._ahead is None:
            self._ahead = self._plan(state.without_batch(), limits)

    def forget(self) -> None:
        """Plan anew what is asked for next.

        A state can be the same as before, and its tables hold other rows.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.planned.cancel()

    def next_batch(
        self, state: SnapshotState, limits: BatchLimits, *, patience: float
    ) -> SnapshotState | None:
        """The state at the end of a batch that reads the next chunks; at least one.

        Tables that are not there any more are passed over. So a state that comes back without
        chunks has none pending.

        patience : seconds to wait; None comes back where the batch is not planned by then, and
            planning goes on.
        """
        state = state.without_batch()
        ahead, self._ahead = self._ahead, None
        if ahead is None or (ahead.state, ahead.limits) != (state, limits):
            if ahead is not None:
                # Else one would wait behind the other for as long as a proof takes.
                ahead.planned.cancel()
            ahead = self._plan(state, limits)
        try:
            planned = ahead.planned.result(patience)
        except TimeoutError:
            self._ahead = ahead
            return None
        if planned.pending and planned.chunks:
            # Of no use where the log brings other tables meanwhile: then it is planned again.
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
        """Of all that wait; asked for once."""
        if any(load.table not in self._sizes for load in state.pending):
            wanted = {load.table for load in state.pending}
            found = self._asked(lambda client: table_sizes(client, wanted))
            self._sizes = {table: found.get(table, TableSize()) for table in wanted}
        return self._sizes

    def _planned(self, state: SnapshotState, limits: BatchLimits) -> SnapshotState:
        # A batch read has no first batch to be quick with.
        grows = limits.chunks is not None
        is_first = grows and state.rows == 0
        most_rows = max(_FIRST_ROWS, _GROWTH * state.rows) if grows else _MOST_ROWS
        budget = _Budget(limits)
        # The loads of all tables that wait had begun before this.
        prove = self._begin_proofs()
        chunks: list[Chunk] = []
        pending, completed = list(state.pending), set(state.completed)
        empty = set[Table]()
        rows = 0
        while pending and not (chunks and (is_first or budget.is_spent(len(chunks)))):
            load = pending.pop(0)
            size = self._sizes_of(state)[load.table]
            full = self._full_chunk(size, most_rows)
            most = max(1, min(full, budget.rows_left(size.row_bytes)))
            planned = self._asked(partial(self._next_chunk, load, most, prove))
            if planned is None:
                LOG.warning("%s is not there any more: it is not loaded", ".".join(load.table))
                continue
            if planned.chunk is not None:
                if not planned.chunk.key and limits.steps > 1:
                    if chunks:
                        pending.insert(0, load)
                        break
                    budget = _Budget(replace(limits, steps=1))
                chunks.append(planned.chunk)
            elif load.after is None:
                empty.add(load.table)
            # An empty table counts, too: the first batch is over.
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
        """The rows of a chunk that nothing but its size limits."""
        return min(most, max(_FEWEST_ROWS, min(_MOST_ROWS, self._chunk_bytes // size.row_bytes)))

    def _next_chunk(
        self, load: TableSnapshotState, rows: int, prove: Prove, client: ReplicaClient
    ) -> _Planned | None:
        schema = read_table_schema(client, load.table, case_sensitive=self._case_sensitive)
        if schema is None:
            if is_dropped(client, load.table):
                return None
            raise UnknownSchemaError(
                "the server does not describe a table that is there; start again with the same"
                " checkpoint",
                table=".".join(load.table),
            )
        key = choose_key(client, schema)
        if key is None:
            return _Planned(Chunk(load.table), None, None)
        if load.key != key.mark:
            if load.key:
                LOG.warning(
                    "the key %s of %s is another one than when its load began: it is loaded again"
                    " from its beginning",
                    key.name,
                    schema.full_name,
                )
            # The table's last row must be one that everything before the start lies before: rows
            # behind it are left to the log.
            prove(client, load.table)
            last = last_bound(client, load.table, key)
            load = TableSnapshotState(load.table, key.mark, None, last)
        if load.last is None:
            # It was empty when its load began.
            return _Planned(None, 0, None)
        upto, count = next_bound(client, load.table, key, load.after, load.last, rows=rows)
        if upto is None:
            # None of its rows is left.
            return _Planned(None, 0, None)
        chunk = Chunk(load.table, key.mark, load.after, upto)
        return _Planned(chunk, count, None if upto == load.last else replace(load, after=upto))

    def _asked(self, question: Callable[[ReplicaClient], T]) -> T:
        """What the server answers, over a new connection when the old one is lost."""
        while True:
            if self._client is None:
                self._client = call_with_retry(
                    self._retry_timeout, ReplicaClient.connect, self._settings
                )
            try:
                return question(self._client)
            except LostConnectionError as error:
                LOG.warning("the load's connection is lost, connecting again: %s", error)
                self._client.close()
                self._client = None


@dataclass(frozen=True, slots=True)
class _Planned:
    """A chunk, if there is any; its rows, None where nobody has counted; the rest of its table."""

    chunk: Chunk | None
    rows: int | None
    rest: TableSnapshotState | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A batch that is being planned."""

    state: SnapshotState
    limits: BatchLimits
    planned: Future[SnapshotState]


class _Budget:
    """What is left of a batch's limits."""

    def __init__(self, limits: BatchLimits) -> None:
        self._rows, self._chunks = limits.rows, limits.chunks
        self._step = None if limits.bytes is None else int(limits.bytes / limits.weight)
        self._bytes = None if self._step is None else self._step * limits.steps
        self._share = 0.0
        self._until = monotonic() + _PATIENCE

    def rows_left(self, row_bytes: int) -> int:
        """How many the next chunk may have."""
        left = [_MOST_ROWS]
        if self._rows is not None:
            left.append(self._rows)
        if self._bytes is not None and self._step is not None:
            left.append(min(self._step, self._bytes) // row_bytes)
        return min(left)

    def spend(self, rows: int, size: int, full: int) -> None:
        """A chunk is planned; `full` is the size of a full one in this batch."""
        if self._rows is not None:
            self._rows -= rows
        if self._bytes is not None:
            self._bytes -= size
            if self._bytes * rows < size:
                # Less than a row.
                self._bytes = 0
        # A small table costs a task something, too.
        self._share += max(size / full, 0.01)

    def is_spent(self, chunks: int) -> bool:
        """Whether a batch of so many chunks has enough; each connection shall have one."""
        if self._chunks is not None:
            if self._share >= self._chunks:
                return True
            if monotonic() > self._until and (chunks >= self._chunks or self._share < 1):
                return True
        return any(left is not None and left <= 0 for left in (self._rows, self._bytes))
