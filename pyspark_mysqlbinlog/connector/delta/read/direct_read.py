"""Reads the batches of a mirror directly, in the mirror's own process.

A batch is collected in this process in any case. To read it with Spark takes several times as long,
because of planning, the tasks' processes, and IPC rows through the JVM. The stream reader writes a
handoff file if it has all of a batch in memory (see `BatchHandoff`); for other batches the binlog
is read again. A long batch is read in sub-batches: while one is applied, the next is read. `policy`
decides which batches Spark reads.

The sub-batches of a snapshot deliver its rows part by part, the first one with all of the batch's
binlog. Each of them leaves the Delta tables like a batch that ends there: with some of the rows,
at the positions at which they were read, and all changes of the binlog up to the batch's end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.checkpoints.versions import valid_from
from pyspark_mysqlbinlog.connector.delta.read.policy import ReadPolicy, log_bytes
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import of_batches
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import Precompute, SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import packed_positions
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken, prefetched
from pyspark_mysqlbinlog.connector.log.server_facts import server_facts
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.reader import read_range, unpacked_schemas
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.sub_batches import (
    SubBatchBoundaries,
    max_snapshot_sub_batches,
)
from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_stretches
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.snapshot.tasks import chunk_tasks
from pyspark_mysqlbinlog.connector.source.arrow_ipc import check_json
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.names import Table, table_folding

__all__ = ["DirectReader"]

# Conditions per transaction: a thousand keys each.
_MAX_SELECTIONS = 100
# One is applied while another is read.
MAX_SUB_BATCHES_BUFFERED = 2
# Limit for large chunks.
MAX_CONCURRENT_CHUNKS = 2


class DirectReader:
    """Reads the batches of one mirror.

    Parameters
    ----------
    options : of its stream; a sub-batch has about `maxBytesPerTrigger` of captured binlog.
    with_source : changes have the column `source`, and images as texts.
    """

    def __init__(self, options: Options, *, with_source: bool) -> None:
        self._options = options
        self._sub_batch_bytes = options.max_bytes_per_trigger
        self._with_source = with_source
        self._schema = arrow_schema(check_json(options))
        # A server's UUID -> its facts.
        self._facts: dict[str, ServerFacts] = {}
        self._policy = ReadPolicy(options.table_filter_hash)
        # Handoff files of the stream reader; None if there are none.
        self.handoff: BatchHandoff | None = None

    def can_read(self, first: Offset, last: Offset) -> bool:
        """Return whether the batch between two offsets is read directly."""
        return self._policy.can_read(
            first,
            last,
            self._sub_batch_bytes,
            is_handed_off=lambda: self.is_handed_over(first, last),
            uses_handoff=lambda: self.handoff is not None and self.handoff.is_active(),
        )

    def is_handed_over(self, first: Offset, last: Offset) -> bool:
        """Return whether a handoff file has the batch between two offsets."""
        return self._handed_over(first, last) is not None

    def limited(self, table: Table) -> bool:
        """Return whether chunks of a table are read with a condition."""
        if self._options.snapshot_where is None:
            return False
        case_sensitive = self.server_facts().case_sensitive
        folded = table_folding(case_sensitive)
        return folded(table) in map(folded, self._options.conditions(case_sensitive))

    def rows_where(
        self, last: Offset, table: Table, conditions: Iterator[str]
    ) -> Generator[tuple[pa.Table, ImageStore]]:
        """Read the rows of a table that meet a condition, as snapshot rows, in parts.

        A part has about `maxBytesPerTrigger`. Many conditions share a connection, a transaction and
        the visibility check of its watermark.

        last : end of the batch; no row is older.
        """
        while selections := tuple(islice(conditions, _MAX_SELECTIONS)):
            task = ChunkPartition(
                (Chunk(table),),
                self.server_facts(last.server_uuid).case_sensitive,
                since=last.position,
                server_uuid=last.server_uuid,
                epoch=last.epoch,
                selections=selections,
            )
            held: list[pa.RecordBatch] = []
            typed = not self._with_source
            with closing(read_chunks(self._options, task, self._schema, typed=typed)) as batches:
                for batch in batches:
                    held.append(batch)
                    if sum(each.nbytes for each in held) >= self._sub_batch_bytes:
                        yield self._loaded_rows(held)
                        held = []
            if held:
                yield self._loaded_rows(held)

    def of_log(self, first: Offset, last: Offset) -> tuple[pa.Table, ImageStore]:
        """Read all changes of the binlog between two offsets; raises as `read_range` does."""
        return self._table_of(self._all_of_log(first, last))

    def _loaded_rows(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, ImageStore]:
        changes, images = self._table_of(batches)
        return changes.filter(pc.equal(changes.column("op"), "r")), images

    def sub_batches(
        self, first: Offset, last: Offset, precompute: Precompute
    ) -> Generator[SubBatch]:
        """Read the batch between two offsets; raises as `read_range` and `read_chunks` do.

        Close the generator if not all sub-batches are taken: it may hold a thread and a connection.

        precompute : precomputes states of a sub-batch while the previous one is applied. It runs in
            the reading thread, and not if the batch is read as one sub-batch.
        """
        if last.reads_chunks_since(first):
            # When a batch is replayed, a change log would have rows twice; and after a statement
            # that changed a table, the second sub-batch would not include the statement.
            is_parted = not self._with_source and not _changes_tables(last)
            cut = self._snapshot_in_sub_batches
        else:
            # A snapshot that begins in a batch applies to all of it.
            is_long = log_bytes(first, last) > self._sub_batch_bytes
            is_parted = (
                first.snapshot == last.snapshot
                and is_long
                and self._handed_over(first, last) is None
            )
            cut = self._log_in_sub_batches
        if not is_parted or self._options.can_fail_over:
            # Another server repeats a batch as a whole.
            return self._whole(first, last)
        sub_batches = partial(self._with_precomputed, partial(cut, first, last), precompute)
        return prefetched(sub_batches, lambda _: 1, most=MAX_SUB_BATCHES_BUFFERED)

    def _whole(self, first: Offset, last: Offset) -> Generator[SubBatch]:
        """Read the batch as one sub-batch."""
        batches = self._all_of_log(first, last)
        if last.reads_chunks_since(first):
            for part in self._read_chunks(last):
                batches += part
        yield SubBatch.from_changes(first, last, self._table_of(batches))

    def _with_precomputed(
        self,
        cut: Callable[[CancelToken], Generator[SubBatch]],
        precompute: Precompute,
        interrupt: CancelToken,
    ) -> Generator[SubBatch]:
        """Yield a batch's sub-batches, each with its precomputed states."""
        with closing(cut(interrupt)) as sub_batches:
            while (sub_batch := next(sub_batches, None)) is not None:
                interrupt.check()
                made = [
                    replace(
                        sub_batch,
                        precomputed=precompute(sub_batch.changes_by_table, sub_batch.images),
                    )
                ]
                del sub_batch  # may be large
                yield made.pop()

    def _log_in_sub_batches(
        self, first: Offset, last: Offset, interrupt: CancelToken
    ) -> Generator[SubBatch]:
        """Yield the sub-batches of a batch without snapshot rows."""
        found = SubBatchBoundaries(self._sub_batch_bytes, interrupt.check)
        begin, size = first, 0
        held: list[pa.RecordBatch] = []
        with closing(self._read_log(first, last, found)) as stretches:
            for stretch in stretches:
                held += stretch
                size += sum(batch.nbytes for batch in stretch)
                while (boundary := found.next_boundary(_last_place(stretch))) is not None:
                    position = boundary.position
                    # A range that is read again has the same boundaries again.
                    if position.order > begin.position.order:
                        end = replace(begin, position=position, fingerprint=boundary.fingerprint)
                        before, held = _parted(held, pack_position(position))
                        brought = self._table_of(before)
                        yield SubBatch.from_changes(
                            begin,
                            end,
                            brought,
                            is_whole=False,
                            is_first=begin is first,
                            is_last=False,
                        )
                        del before, brought  # may be large
                        begin = end
        self._policy.record_selectivity(first, last, size)
        is_only = begin is first
        yield SubBatch.from_changes(
            begin, last, self._table_of(held), is_whole=is_only, is_first=is_only
        )

    def _snapshot_in_sub_batches(
        self, first: Offset, last: Offset, interrupt: CancelToken
    ) -> Generator[SubBatch]:
        """Yield the sub-batches of a batch with snapshot rows, whose binlog alters no table."""
        held, size = self._all_of_log(first, last), 0
        is_first = True
        with closing(self._read_chunks(last)) as parts:
            for part in parts:
                interrupt.check()
                # A full sub-batch is yielded when more rows arrive: there may be none.
                if size >= self._sub_batch_bytes:
                    brought = self._table_of(held)
                    held, size = [], 0
                    yield SubBatch.from_changes(
                        first, last, brought, is_first=is_first, is_last=False
                    )
                    del brought  # may be large
                    is_first = False
                held += part
                size += sum(batch.nbytes for batch in part)
        yield SubBatch.from_changes(first, last, self._table_of(held), is_first=is_first)

    def _table_of(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, ImageStore]:
        """Return these changes and their images, as `collected` does."""
        return of_batches(batches, self._schema, with_source=self._with_source)

    def _all_of_log(self, first: Offset, last: Offset) -> list[pa.RecordBatch]:
        """Return record batches of all changes between two offsets."""
        batches = [batch for stretch in self._read_log(first, last) for batch in stretch]
        if self._handed_over(first, last) is None:
            self._policy.record_selectivity(first, last, sum(batch.nbytes for batch in batches))
        return batches

    def _read_log(
        self, first: Offset, last: Offset, boundaries: SubBatchBoundaries | None = None
    ) -> Generator[list[pa.RecordBatch]]:
        """Yield record batches, one list per stretch of binlog, in order."""
        if first.position == last.position:
            return
        options = self._options
        parts = self._handed_over(first, last)
        if parts is None:
            parts = range_partitions(
                first,
                last,
                None,
                facts=self.server_facts(last.server_uuid),
                target_bytes=options.target_partition_bytes,
                max_fetches=1,
            )
        for part in parts:
            if self._with_source:
                with closing(
                    read_range(options, part, self._schema, boundaries=boundaries)
                ) as batches:
                    for batch in batches:
                        yield [batch]
            else:
                yield from read_typed_stretches(options, part, self._schema, boundaries=boundaries)

    def _handed_over(self, first: Offset, last: Offset) -> Sequence[RangePartition] | None:
        """Return the binlog's ranges between two offsets, with their events, from a handoff file.

        None if there is none, or if they are longer than a sub-batch: then the binlog is read.
        """
        ranges = None if self.handoff is None else self.handoff.read(first, last)
        if ranges is None:
            return None
        size = sum(len(block.data) for part in ranges for block in part.blocks or ())
        return ranges if size <= self._sub_batch_bytes else None

    def _read_chunks(self, last: Offset) -> Generator[list[pa.RecordBatch]]:
        """Yield the chunks of the batch that ends at an offset, a few at a time, in order.

        Each is read to its end, even if the consumer is slow: its transaction prevents others from
        altering the table. A few are read ahead.
        """
        options = self._options
        most = options.max_connections
        tasks = chunk_tasks(
            options,
            last,
            # Each sub-batch has some of them.
            max(most, max_snapshot_sub_batches()),
            case_sensitive=self.server_facts(last.server_uuid).case_sensitive,
            in_turn=True,
        )
        # Many chunks are small. Full ones take memory.
        is_many = sum(len(task.chunks) for task in tasks) > len(tasks)
        at_once = most if is_many else min(most, MAX_CONCURRENT_CHUNKS)

        def read(task: ChunkPartition) -> list[pa.RecordBatch]:
            return [*read_chunks(options, task, self._schema, typed=not self._with_source)]

        reading = deque[Future[list[pa.RecordBatch]]]()
        with ThreadPoolExecutor(at_once) as threads:
            for task in tasks:
                reading.append(threads.submit(read, task))
                if len(reading) >= at_once:
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()

    def server_facts(self, server_uuid: str = "") -> ServerFacts:
        """Return the facts of a server, which is queried once; raises as `server_facts` does.

        server_uuid : of one of several servers; empty for any.
        """
        if server_uuid not in self._facts:
            self._facts[server_uuid] = server_facts(self._options.bound_to(server_uuid))
        return self._facts[server_uuid]


def _changes_tables(last: Offset) -> bool:
    """Return whether a table is altered or appears in the batch that ends at an offset."""
    history = unpacked_schemas(last.schemas)
    return any(
        # Versions that are valid at the batch's start are stored as valid from position 0.
        pack_position(valid_from(version))
        for name in history.tables()
        for version in history.versions(*name)
    )


def _last_place(stretch: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """Return (file number, byte offset) of a stretch's last change."""
    lasts = (batch.column("seq")[-1].as_py() for batch in stretch if batch.num_rows)
    return max(((each["file"], each["pos"]) for each in lasts), default=(0, 0))


def _parted(
    batches: Iterable[pa.RecordBatch], place: int
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Split the changes, in order within each batch, at a packed position."""
    before, after = [], []
    for batch in filter(len, batches):
        count = batch.num_rows
        # Usually all of them are before it.
        if packed_positions(batch.slice(count - 1))[0].as_py() >= place:
            count = pc.sum(pc.less(packed_positions(batch), place)).as_py()
        if count:
            before.append(batch.slice(0, count))
        if count < batch.num_rows:
            after.append(batch.slice(count))
    return before, after
