"""What a batch of a mirror brings, read by the mirror's own process.

It is collected in this process in any case, and Spark's way there takes several times as long: its
planning, its tasks' processes, packets through the JVM. The stream's reader hands a batch over if
it has all of it in memory (see `BatchHandoff`); for other batches the log is read again. A long
batch is read in steps: while one is applied, the next is read. These are left to Spark:

* Short stretches of log, where nothing is ever handed over: they travel in its tasks, and no other
  connection is needed for them. But one that comes alone (the first of a query, the end of a
  backlog, one after a quiet minute) is read here, since a second may go by until Python has started
  for Spark's tasks.
* Stretches of no more than a step in which most of the log is of tables that nobody wants.
* Tables that are read as a whole, which may be large: Spark can end a task, and nobody a thread.

The steps of a load have its rows one part after the other, the first with all of the batch's log.
Each of them leaves the Delta tables as a batch would that ends right there: with some of the rows,
under the positions at which they were read, and all of the log up to the batch's end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import monotonic

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.checkpoints.versions import valid_from
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import by_table, of_batches
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.connector.delta.rows.sections import packed_positions
from pyspark_mysqlbinlog.connector.log.prefetch import Interrupt, prefetched
from pyspark_mysqlbinlog.connector.log.server_facts import server_facts
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.handoff import BatchHandoff
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.reader import read_range, unpacked_schemas
from pyspark_mysqlbinlog.connector.ranges.split import MAX_INLINE_BYTES_PER_BATCH, RangePartition
from pyspark_mysqlbinlog.connector.ranges.sub_batches import (
    SubBatchBoundaries,
    max_snapshot_sub_batches,
)
from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_stretches
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.snapshot.tasks import load_tasks
from pyspark_mysqlbinlog.connector.source.arrow_ipc import check_json
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.names import Table, table_folding

__all__ = ["DirectReader", "Prepare", "Step"]


# Of each table's changes, and the images that they refer to.
Prepare = Callable[[Mapping[Table, pa.Table], ImageStore], Mapping[Table, PrecomputedStates]]

# Conditions of one transaction: a thousand keys each.
_SELECTIONS = 100
# Bytes of log, up to which Spark's tasks carry all that is wanted.
_LEAST = MAX_INLINE_BYTES_PER_BATCH
# Where so little of the log is wanted (its rows, as Arrow, have less than this share of its bytes),
# so many batches are left to Spark: it asks the server for nothing twice.
MIN_SELECTIVITY = 0.2
BATCHES_LEFT_TO_SPARK = 50
# One is brought in while another is read.
MAX_SUB_BATCHES_BUFFERED = 2
# Large chunks that are read at once.
MAX_CONCURRENT_CHUNKS = 2
# Seconds after which Spark ends a Python process that has nothing to do.
WORKER_IDLE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Step:
    """A batch, or a part of it that is brought in by itself.

    Attributes
    ----------
    first, last : where it begins and ends. An offset inside of the batch has a position and its
        fingerprint; all else is that of the batch's first offset. Those of a load's steps are the
        batch's.
    parts : each table's changes.
    nothing : no changes, for tables that have none.
    images : the typed images that changes refer to.
    prepared : what the changes of tables leave, as far as it was made ahead.
    is_whole : it has all of the batch's log, or stands behind one that has it.
    is_first : nothing of the batch comes before it.
    is_last : nothing of the batch comes after it.
    """

    first: Offset
    last: Offset
    parts: Mapping[Table, pa.Table]
    nothing: pa.Table
    images: ImageStore
    prepared: Mapping[Table, PrecomputedStates] = field(default_factory=dict)
    is_whole: bool = True
    is_first: bool = True
    is_last: bool = True

    @classmethod
    def of(
        cls,
        first: Offset,
        last: Offset,
        brought: tuple[pa.Table, ImageStore],
        *,
        is_whole: bool = True,
        is_first: bool = True,
        is_last: bool = True,
    ) -> Step:
        """One with these changes, of all tables, and their images."""
        changes, images = brought
        return cls(
            first,
            last,
            by_table(changes),
            changes.schema.empty_table(),
            images,
            is_whole=is_whole,
            is_first=is_first,
            is_last=is_last,
        )


class DirectReader:
    """Reads what one mirror takes.

    Parameters
    ----------
    options : of its stream; a step has about `maxBytesPerTrigger` of wanted log.
    with_source : changes have the column `source`, and images as texts.
    """

    def __init__(self, options: Options, *, with_source: bool) -> None:
        self._options = options
        self._step_bytes = options.max_bytes_per_trigger
        self._with_source = with_source
        self._schema = arrow_schema(check_json(options))
        self._facts: ServerFacts | None = None
        self._left = 0
        self._last_short = -math.inf
        # Where the reader of the stream's log hands over what it carries.
        self.handoff: BatchHandoff | None = None

    def takes(self, first: Offset, last: Offset) -> bool:
        """Whether the batch between two offsets is read here."""
        begin, end = first.position, last.position
        # What was planned by a query that wanted other tables is mended by the source, which knows
        # how; and without the kernel many had better decode side by side.
        is_plain = {first.tables, last.tables} == {self._options.table_filter_hash}
        if not is_plain or implementation() == "python":
            return False
        if first.epoch != last.epoch:
            return False
        if last.load is not None and last.loads_since(first):
            return all(chunk.key for chunk in last.load.chunks)
        # Of nothing Spark need not be asked.
        return (
            begin == end
            or self._handed_over(first, last) is not None
            or self._should_read_log(_size(first, last))
        )

    def limited(self, table: Table) -> bool:
        """Whether chunks of a table are read with a condition."""
        if self._options.snapshot_where is None:
            return False
        case_sensitive = self.server_facts().case_sensitive
        folded = table_folding(case_sensitive)
        return folded(table) in map(folded, self._options.conditions(case_sensitive))

    def rows_where(
        self, last: Offset, table: Table, conditions: Iterator[str]
    ) -> Generator[tuple[pa.Table, ImageStore]]:
        """Read the rows of a table for which a condition holds, as loaded rows, in parts.

        A part has about `maxBytesPerTrigger`. Many conditions share a connection, a transaction and
        the proof of its watermark.

        last : where the batch ends; no row is older.
        """
        while selections := tuple(islice(conditions, _SELECTIONS)):
            task = ChunkPartition(
                (Chunk(table),),
                self.server_facts().case_sensitive,
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
                    if sum(each.nbytes for each in held) >= self._step_bytes:
                        yield self._loaded_rows(held)
                        held = []
            if held:
                yield self._loaded_rows(held)

    def _loaded_rows(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, ImageStore]:
        changes, images = self._table_of(batches)
        return changes.filter(pc.equal(changes.column("op"), "r")), images

    def _should_read_log(self, size: float) -> bool:
        """Whether so many bytes of log are read here, when nothing is loaded beside them."""
        now = monotonic()
        is_alone = now - self._last_short > WORKER_IDLE_SECONDS
        is_short = size <= min(_LEAST, self._step_bytes)
        self._last_short = now if is_short else -math.inf
        if size > self._step_bytes:
            # Spark would bring all of it at once.
            return True
        # Of what is not handed over although others are, not all travels in Spark's tasks.
        is_carried = self.handoff is None or not self.handoff.works()
        if is_short and not is_alone and is_carried:
            return False
        if self._left:
            self._left -= 1
            return False
        return True

    def steps(self, first: Offset, last: Offset, prepare: Prepare) -> Generator[Step]:
        """The batch between two offsets; raises as `read_range` and `read_chunks` do.

        Whoever does not take all steps must close it: it may hold a thread and a connection.

        prepare : makes what can be made of a step while the one before it is brought in. It runs in
            the thread that reads, and not at all where the batch is read as one step.
        """
        if last.loads_since(first):
            # A change log would have rows twice when the batch comes once more; and behind a
            # statement that changed a table nobody would tell the second step of it.
            is_parted = not self._with_source and not _changes_tables(last)
            cut = self._load_in_steps
        else:
            # Where a load begins it counts for all of the batch.
            is_long = _size(first, last) > self._step_bytes
            is_parted = (
                first.snapshot == last.snapshot
                and is_long
                and self._handed_over(first, last) is None
            )
            cut = self._in_steps
        if not is_parted:
            return self._whole(first, last)
        steps = partial(self._prepared, partial(cut, first, last), prepare)
        return prefetched(steps, lambda _: 1, most=MAX_SUB_BATCHES_BUFFERED)

    def _whole(self, first: Offset, last: Offset) -> Generator[Step]:
        """The batch as one step."""
        batches = self._all_of_log(first, last)
        if last.loads_since(first):
            for part in self._read_chunks(last):
                batches += part
        yield Step.of(first, last, self._table_of(batches))

    def _prepared(
        self, cut: Callable[[Interrupt], Generator[Step]], prepare: Prepare, interrupt: Interrupt
    ) -> Generator[Step]:
        """A batch by its steps, each with what can be made ahead."""
        with closing(cut(interrupt)) as steps:
            while (step := next(steps, None)) is not None:
                interrupt.check()
                made = [replace(step, prepared=prepare(step.parts, step.images))]
                del step  # may be large
                yield made.pop()

    def _in_steps(self, first: Offset, last: Offset, interrupt: Interrupt) -> Generator[Step]:
        """The batch by its steps; it loads nothing."""
        found = SubBatchBoundaries(self._step_bytes, interrupt.check)
        begin, size = first, 0
        held: list[pa.RecordBatch] = []
        with closing(self._read_log(first, last, found)) as stretches:
            for stretch in stretches:
                held += stretch
                size += sum(batch.nbytes for batch in stretch)
                while (boundary := found.before(_last_place(stretch))) is not None:
                    position = boundary.position
                    # A range that has to be read once more has the same boundaries again.
                    if position.order > begin.position.order:
                        end = replace(begin, position=position, fingerprint=boundary.fingerprint)
                        before, held = _parted(held, pack_position(position))
                        brought = self._table_of(before)
                        yield Step.of(
                            begin,
                            end,
                            brought,
                            is_whole=False,
                            is_first=begin is first,
                            is_last=False,
                        )
                        del before, brought  # may be large
                        begin = end
        self._record_selectivity(first, last, size)
        is_only = begin is first
        yield Step.of(begin, last, self._table_of(held), is_whole=is_only, is_first=is_only)

    def _load_in_steps(self, first: Offset, last: Offset, interrupt: Interrupt) -> Generator[Step]:
        """The batch by its steps; its log changes no table."""
        held, size = self._all_of_log(first, last), 0
        is_first = True
        with closing(self._read_chunks(last)) as parts:
            for part in parts:
                interrupt.check()
                # What comes behind the last one may be nothing.
                if size >= self._step_bytes:
                    brought = self._table_of(held)
                    held, size = [], 0
                    yield Step.of(first, last, brought, is_first=is_first, is_last=False)
                    del brought  # may be large
                    is_first = False
                held += part
                size += sum(batch.nbytes for batch in part)
        yield Step.of(first, last, self._table_of(held), is_first=is_first)

    def _record_selectivity(self, first: Offset, last: Offset, wanted: int) -> None:
        """Leave what comes to Spark where little of the log between two offsets was wanted.

        wanted : bytes of its changes, as Arrow.
        """
        size = _size(first, last)
        if _LEAST < size < math.inf and wanted < MIN_SELECTIVITY * size:
            self._left = BATCHES_LEFT_TO_SPARK

    def _table_of(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, ImageStore]:
        """What `collected` gives of the same changes."""
        return of_batches(batches, self._schema, with_source=self._with_source)

    def _all_of_log(self, first: Offset, last: Offset) -> list[pa.RecordBatch]:
        """Record batches of all changes between two offsets."""
        batches = [batch for stretch in self._read_log(first, last) for batch in stretch]
        if self._handed_over(first, last) is None:
            self._record_selectivity(first, last, sum(batch.nbytes for batch in batches))
        return batches

    def _read_log(
        self, first: Offset, last: Offset, steps: SubBatchBoundaries | None = None
    ) -> Generator[list[pa.RecordBatch]]:
        """Record batches, stretch by stretch of log: all of one come before those of the next."""
        if first.position == last.position:
            return
        options = self._options
        parts = self._handed_over(first, last)
        if parts is None:
            parts = range_partitions(
                first,
                last,
                None,
                facts=self.server_facts(),
                target_bytes=options.target_partition_bytes,
                max_fetches=1,
            )
        for part in parts:
            if self._with_source:
                with closing(read_range(options, part, self._schema, steps=steps)) as batches:
                    for batch in batches:
                        yield [batch]
            else:
                yield from read_typed_stretches(options, part, self._schema, steps=steps)

    def _handed_over(self, first: Offset, last: Offset) -> Sequence[RangePartition] | None:
        """The log's ranges between two offsets, with their events; None where they are read.

        So is what is longer than a step.
        """
        ranges = None if self.handoff is None else self.handoff.take(first, last)
        if ranges is None:
            return None
        size = sum(len(block.data) for part in ranges for block in part.blocks or ())
        return ranges if size <= self._step_bytes else None

    def _read_chunks(self, last: Offset) -> Generator[list[pa.RecordBatch]]:
        """The chunks of the batch that ends there, some at a time, in their order.

        What is read is read to its end, whoever is slow to take it: its transaction keeps others
        from altering the table. A few are read ahead.
        """
        options = self._options
        most = options.max_connections
        tasks = load_tasks(
            options,
            last,
            # Each step has some of them.
            max(most, max_snapshot_sub_batches()),
            case_sensitive=self.server_facts().case_sensitive,
            in_turn=True,
        )
        # Where there are many they are small. Full ones take memory.
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

    def server_facts(self) -> ServerFacts:
        """Asked of the server once; raises as `server_facts` does."""
        if self._facts is None:
            self._facts = server_facts(self._options)
        return self._facts


def _size(first: Offset, last: Offset) -> float:
    """Bytes of log between two offsets; infinite where only the server knows how long a file is."""
    begin, end = first.position, last.position
    return end.pos - begin.pos if begin.file == end.file else math.inf


def _changes_tables(last: Offset) -> bool:
    """Whether a table becomes another one in the batch that ends there, or appears in it."""
    history = unpacked_schemas(last.schemas)
    return any(
        # What holds where the batch begins is said to hold from the beginning.
        pack_position(valid_from(version))
        for name in history.tables()
        for version in history.versions(*name)
    )


def _last_place(stretch: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    """(file number, byte offset) of a stretch's last change."""
    lasts = (batch.column("seq")[-1].as_py() for batch in stretch if batch.num_rows)
    return max(((each["file"], each["pos"]) for each in lasts), default=(0, 0))


def _parted(
    batches: Iterable[pa.RecordBatch], place: int
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """The changes before a packed position, and those after it; each batch is in order."""
    before, behind = [], []
    for batch in filter(len, batches):
        count = batch.num_rows
        # Mostly all of them are before it.
        if packed_positions(batch.slice(count - 1))[0].as_py() >= place:
            count = pc.sum(pc.less(packed_positions(batch), place)).as_py()
        if count:
            before.append(batch.slice(0, count))
        if count < batch.num_rows:
            behind.append(batch.slice(count))
    return before, behind
