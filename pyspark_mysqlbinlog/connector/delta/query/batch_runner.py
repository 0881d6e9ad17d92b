"""Applies one micro-batch after another to all tables of a mirror.

Each batch is read or collected as Arrow and processed table by table::

    changes --> in order --> states, by schema version --> last state per key --> merge
       |
       +--> append to the table's change log (see `change_log`)

A table's columns come from the offset at which the batch ends (see
`checkpoint/offsets.py`), and the applied position comes from its Delta table (see
`commit_markers`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.delta.query.applied_states import AppliedStates
from pyspark_mysqlbinlog.connector.delta.query.batch_server import BatchServer
from pyspark_mysqlbinlog.connector.delta.query.captured import CapturedTables
from pyspark_mysqlbinlog.connector.delta.query.cascade_warnings import CascadeWatch
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.offsets import BatchOffsets
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.targets import (
    check_checkpoint_targets,
)
from pyspark_mysqlbinlog.connector.delta.query.malloc_trim import trim_after_batch
from pyspark_mysqlbinlog.connector.delta.query.mirror_tables import MirrorTables, raise_error
from pyspark_mysqlbinlog.connector.delta.query.parallel import map_in_threads
from pyspark_mysqlbinlog.connector.delta.query.progress import (
    BatchTracker,
    MirrorProgress,
    ProgressTracker,
)
from pyspark_mysqlbinlog.connector.delta.query.unstored_stops import UnstoredStop
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.replay import BatchReplay
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import collected
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import Precompute, SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import precompute_states
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance
from pyspark_mysqlbinlog.connector.delta.store.places.templates import MirrorPlaces
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions, table_versions
from pyspark_mysqlbinlog.connector.options.logging_setup import configure_logging
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.reader import unpacked_schemas
from pyspark_mysqlbinlog.errors import (
    MirrorError,
    OffsetError,
)
from pyspark_mysqlbinlog.names import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchRunner"]


class BatchRunner:
    """Applies the batches of a mirror's query.

    Parameters
    ----------
    options, parsed : options of the source, as texts and parsed.
    checkpoint : the query's checkpointLocation.
    places : locations of the mirrored tables and of the change logs.
    engine, change_log_engine : writers of the mirrored tables and of the change logs.
    partition_by : ``database.table`` -> its partition columns.
    soft_delete : keep deleted rows, with true in `_deleted`.
    maintenance : compacts and vacuums the Delta tables; None without maintenance.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        parsed: Options,
        checkpoint: str,
        places: MirrorPlaces,
        *,
        engine: LazyEngine,
        change_log_engine: LazyEngine,
        partition_by: Mapping[str, tuple[str, ...]],
        soft_delete: bool,
        maintenance: Maintenance | None,
    ) -> None:
        self._parsed = parsed
        self._checkpoint = checkpoint
        self._places = places
        self._partition_by = partition_by
        self._keeps_deleted = soft_delete
        self._maintenance = maintenance
        self._reload = "" if parsed.reload is None else parsed.reload[0]
        self._captured: CapturedTables | None = None
        self._offsets = BatchOffsets(checkpoint)
        self._applied = AppliedStates(checkpoint)
        self._server = BatchServer(options)
        self._tables = MirrorTables(
            places,
            engine=engine,
            change_log_engine=change_log_engine,
            applied=self._applied,
            server=self._server,
        )
        self._known: tuple[SchemaHistory, dict[Table, TableVersions]] | None = None
        self._query: str | None = None
        self.reading = DirectReader(parsed, with_source=places.change_logs is not None)
        self._replay = BatchReplay(parsed, self.reading)
        self._recorder = ProgressTracker()
        self._cascades = CascadeWatch(options)

    @property
    def stopped(self) -> Mapping[str, str]:
        """Stopped tables and the reasons, as far as this process has seen."""
        return self._tables.stopped

    @property
    def progress(self) -> MirrorProgress:
        """Progress per table, up to this process's last batch or sub-batch.

        In Spark Connect, batches run in another process, and this stays empty.
        """
        return self._recorder.progress

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Apply one batch; called by foreachBatch."""
        configure_logging()
        self._tables.use_session(batch.sparkSession)
        end = self._offsets.end(batch.sparkSession, number)
        self._server.uuid = end.server_uuid
        if number == 0:
            self._captured_tables().check_partitioned_tables(
                self._tables_of(unpacked_schemas(end.schemas))
            )
            if self._places.tables is not None:
                self._server.check_row_image()
        tables = self._tables_of(unpacked_schemas(end.schemas))
        self._tables.begin(self._captured_tables(), tables)
        self._cascades.look(tables, end.schemas)
        record = self._recorder.begin(number, end, self._server.row_counts)
        # The first batch of a checkpoint is empty.
        before = end if number == 0 else self._offsets.end(batch.sparkSession, number - 1)
        with closing(self._sub_batches(batch, before, end)) as sub_batches:
            for sub_batch in sub_batches:
                self._apply_sub_batch(sub_batch, number, end, record, batch.sparkSession)
                del sub_batch  # may be large
                record.end_step(self.stopped)
        self._applied.write(batch.sparkSession)
        record.end(self.stopped)
        trim_after_batch(record.size)
        if self._maintenance is not None:
            self._maintenance.after_batch(self._tables.delta_places())
        # A requested reload follows the batches that are already planned.
        is_to_come = self._reload != (
            "" if end.snapshot_state is None else end.snapshot_state.reload
        )
        if self._tables.are_all_stopped and not (self._reload and is_to_come):
            reason = next(iter(self.stopped.values()))
            raise MirrorError(f"every table is stopped; the first: {reason}")

    def _sub_batches(self, batch: DataFrame, before: Offset, end: Offset) -> Generator[SubBatch]:
        """Yield the batch between two offsets as one or several sub-batches."""
        is_in_memory = self.reading.is_handed_over(before, end)
        replayed = None if is_in_memory else self._replay.read(before, end)
        if replayed is not None:
            yield replayed
            return
        try:
            if self.reading.can_read(before, end):
                yield from self.reading.sub_batches(before, end, self._precompute(end))
            else:
                with_source = self._places.change_logs is not None
                yield SubBatch.from_changes(before, end, collected(batch, with_source=with_source))
            return
        except Exception:
            # The server may be lost, or have purged the binlog. Nothing of the batch is applied
            # yet: with several hosts, batches are not split.
            is_in_memory = is_in_memory and not end.reads_chunks_since(before)
            replayed = None if is_in_memory else self._replay.read(before, end, has_failed=True)
            if replayed is None:
                raise
        yield replayed

    def _precompute(self, end: Offset) -> Precompute:
        """Return the function that precomputes states, for a batch that ends at `end`."""
        tables = (
            {} if self._places.tables is None else self._tables_of(unpacked_schemas(end.schemas))
        )
        schemas = {
            name: schema
            for name, versions in tables.items()
            if (schema := versions.only) is not None and not self._tables.is_stopped(name)
        }
        return partial(precompute_states, schemas=schemas, last_values=self._keeps_deleted)

    def _apply_sub_batch(
        self,
        sub_batch: SubBatch,
        number: int,
        end: Offset,
        record: BatchTracker,
        spark: SparkSession,
    ) -> None:
        """Apply one sub-batch.

        end : end of the batch; it has the schemas of the whole batch.
        """
        query = f"mysqlbinlog:query:{self._query_id(spark)}"
        self._applied.read(spark, query)
        first, last = sub_batch.first, sub_batch.last
        history = unpacked_schemas(end.schemas)
        if not sub_batch.covers_all_log:
            history = history.until(last.position).from_position(first.position)
        tables = self._tables_of(history)
        this = Batch(
            query,
            number,
            last.position if last.gap else first.position,
            last.position,
            CommitMarker(
                LogIdentity.of(last),
                pack_position(last.position),
                last.fingerprint,
                (query, number if sub_batch.is_last else number - 1),
            ),
            last.snapshot_state,
            reloads=self._parsed.reload_after_ddl,
            images=sub_batch.images,
            precomputed=sub_batch.precomputed,
            is_first_sub_batch=sub_batch.is_first,
            has_next_sub_batch=not sub_batch.is_last,
            snapshot_before=first.snapshot_state,
            log_before=(
                LogIdentity.of(first) if first.epoch != last.epoch and not last.gap else None
            ),
            is_gap=bool(last.gap),
            read_again=(first.read_ahead if first.server_uuid != last.server_uuid else frozenset()),
            is_replay=sub_batch.is_replay,
            limited=self.reading.limited,
            rows_where=partial(self.reading.rows_where, last),
        )
        unknown = sub_batch.changes_by_table.keys() - tables.keys()
        if unknown:
            raise OffsetError(f"the batch's offset has no columns for {sorted(unknown)}")
        self._apply_tables(
            {
                name: (sub_batch.changes_by_table.get(name, sub_batch.empty_changes), tables[name])
                for name in sorted(tables)
            },
            this,
            record,
            spark,
        )

    def _apply_tables(
        self,
        parts: Mapping[Table, tuple[pa.Table, TableVersions]],
        batch: Batch,
        record: BatchTracker,
        spark: SparkSession,
    ) -> None:
        """Apply the tables' parts in parallel; an error is raised when all others are done."""
        ways = [self._tables.apply] if self._places.tables is not None else []
        ways += [self._tables.append] if self._places.change_logs is not None else []

        def take(name: Table) -> tuple[list[tuple[int, float]], list[Exception]]:
            done, errors = [], []
            this = batch.of_table(name)
            for way in ways:
                began = monotonic()
                try:
                    done.append((way(name, *parts[name], this), monotonic() - began))
                except Exception as error:  # noqa: BLE001 (raised when the other tables are done)
                    errors.append(error)
            return done, errors

        failed = []
        for name, (done, errors) in zip(parts, map_in_threads(take, [*parts], spark), strict=True):
            failed += errors
            if done:
                changes, held = parts[name][0], partial(self._tables.count_of, name)
                record.add(name, changes, *done[0], held, images=batch.images.size_of(changes))
        for error in failed:
            if not isinstance(error, UnstoredStop):
                raise_error(error)
        for error in failed:
            assert isinstance(error, UnstoredStop)
            self._tables.stop_in_checkpoint(error, batch)

    def _query_id(self, spark: SparkSession) -> str:
        if self._query is None:
            check_checkpoint_targets(spark, self._checkpoint, self._places.given)
            self._query = self._offsets.query_id(spark)
        return self._query

    def _tables_of(self, history: SchemaHistory) -> dict[Table, TableVersions]:
        """Return the captured tables of a history, cached: most batches have the same history."""
        if self._known is None or self._known[0] != history:
            options = self._captured_tables()
            captured = [name for name in history.tables() if options.captures(name)]
            self._places.check_paths(captured)
            versions = table_versions(
                history, captured, options.as_delivered, options.delivered.renamed
            )
            self._known = history, versions
        return self._known[1]

    def _captured_tables(self) -> CapturedTables:
        if self._captured is None:
            case_sensitive = self.reading.server_facts().case_sensitive
            self._captured = CapturedTables.of(
                self._parsed, self._partition_by, case_sensitive=case_sensitive
            )
        return self._captured
