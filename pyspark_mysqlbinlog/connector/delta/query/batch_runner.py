"""Applies one micro-batch after another to all tables of a mirror.

Each batch is read or collected as Arrow and processed table by table::

    changes --> in order --> states, by schema version --> last state per key --> merge
       |
       +--> append to the table's change log (see `change_log`)

A table's columns come from the offset at which the batch ends (see
`checkpoint/offsets.py`), and the applied position comes from its Delta table (see
`commit_markers`). A table that cannot be kept equal to the server's is stopped with a reason and a
remedy; the others continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.delta.query.applied_states import AppliedStates
from pyspark_mysqlbinlog.connector.delta.query.captured import CapturedTables
from pyspark_mysqlbinlog.connector.delta.query.cascade_warnings import CascadeWatch
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.offsets import BatchOffsets
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.targets import (
    check_checkpoint_targets,
)
from pyspark_mysqlbinlog.connector.delta.query.former_tables import former_tables
from pyspark_mysqlbinlog.connector.delta.query.malloc_trim import trim_after_batch
from pyspark_mysqlbinlog.connector.delta.query.parallel import map_in_threads
from pyspark_mysqlbinlog.connector.delta.query.progress import (
    BatchTracker,
    MirrorProgress,
    ProgressTracker,
)
from pyspark_mysqlbinlog.connector.delta.query.table_failures import (
    may_concern_table,
    run_for_table,
    store_error,
)
from pyspark_mysqlbinlog.connector.delta.query.unstored_stops import UnstoredStop, can_write_any
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.replay import BatchReplay
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import collected
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import Precompute, SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import precompute_states
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance
from pyspark_mysqlbinlog.connector.delta.store.places.names import (
    CatalogName,
    DeltaPlace,
    NameTemplate,
)
from pyspark_mysqlbinlog.connector.delta.store.places.templates import MirrorPlaces
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.change_log import (
    ChangeLog,
    starts_or_restarts_snapshot,
)
from pyspark_mysqlbinlog.connector.delta.sync.multiset import log_row_identity
from pyspark_mysqlbinlog.connector.delta.sync.table import MirroredTable
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions, table_versions
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.logging_setup import configure_logging
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.reader import unpacked_schemas
from pyspark_mysqlbinlog.connector.server.settings import check_row_image
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import table_sizes
from pyspark_mysqlbinlog.errors import (
    ConnectionFailedError,
    MirrorError,
    OffsetError,
)
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.tables import TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchRunner"]

_LOG = logging.getLogger(__name__)
_Kept = TypeVar("_Kept", MirroredTable, ChangeLog)


class BatchRunner:
    """Applies the batches of a mirror's query.

    Parameters
    ----------
    options, parsed : of the source, as texts and parsed.
    checkpoint : the query's checkpointLocation.
    places : of the mirrored tables and of the change logs.
    engine, change_log_engine : their writers.
    partition_by : ``database.table`` -> its partition columns.
    soft_delete : keep deleted rows, with true in `_deleted`.
    maintenance : of the Delta tables' files; None without any.
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
        self._options = options
        self._parsed = parsed
        self._checkpoint = checkpoint
        self._places = places
        self._engine = engine
        self._change_log_engine = change_log_engine
        self._partition_by = partition_by
        self._keeps_deleted = soft_delete
        self._maintenance = maintenance
        self._reload = "" if parsed.reload is None else parsed.reload[0]
        self._captured: CapturedTables | None = None
        self._offsets = BatchOffsets(checkpoint)
        self._applied = AppliedStates(checkpoint)
        self._tables: dict[Table, MirroredTable] = {}
        self._change_logs: dict[Table, ChangeLog] = {}
        self._unopened: dict[str, str] = {}
        # Of the batch: tables whose Delta table belongs to another one at its end.
        self._former: Mapping[Table, Table] = {}
        self._known: tuple[SchemaHistory, dict[Table, TableVersions]] | None = None
        self._query: str | None = None
        # Of the server whose batch is applied.
        self._server_uuid = ""
        self.reading = DirectReader(parsed, with_source=places.change_logs is not None)
        self._replay = BatchReplay(parsed, self.reading)
        self._recorder = ProgressTracker()
        self._cascades = CascadeWatch(options)

    @property
    def stopped(self) -> Mapping[str, str]:
        """Stopped tables and the reasons, as far as this process has seen."""
        # A batch may add tables while another thread asks.
        tables, logs = [*self._tables.items()], [*self._change_logs.items()]
        stopped = {".".join(name): table.stopped for name, table in tables} | {
            _name_of_log(name): log.stopped for name, log in logs
        }
        stopped |= self._unopened
        return {name: reason for name, reason in stopped.items() if reason is not None}

    @property
    def progress(self) -> MirrorProgress:
        """What was done per table, up to this process's last batch or sub-batch.

        In Spark Connect, batches run in another process, and this stays empty.
        """
        return self._recorder.progress

    def __getstate__(self) -> dict[str, Any]:
        # Spark Connect runs batches in another process; opened tables stay in this one.
        return self.__dict__ | {"_tables": {}, "_change_logs": {}, "_unopened": {}}

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Apply one batch; called by foreachBatch."""
        configure_logging()
        self._engine.begin(batch.sparkSession)
        if self._places.change_logs is not None:
            self._change_log_engine.begin(batch.sparkSession)
        end = self._offsets.end(batch.sparkSession, number)
        self._server_uuid = end.server_uuid
        if number == 0:
            self._captured_tables().check_partitioned_tables(
                self._tables_of(unpacked_schemas(end.schemas))
            )
            if self._places.tables is not None:
                self._check_row_image()
        tables = self._tables_of(unpacked_schemas(end.schemas))
        self._note_former_tables(tables)
        self._cascades.look(tables, end.schemas)
        record = self._recorder.begin(number, end, self._row_counts)
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
            self._maintenance.after_batch(self._delta_places())
        reasons = list(self.stopped.values())
        count = len(self._tables) + len(self._change_logs) + len(self._unopened)
        # A requested reload follows the batches that are already planned.
        is_to_come = self._reload != (
            "" if end.snapshot_state is None else end.snapshot_state.reload
        )
        if reasons and len(reasons) == count and not (self._reload and is_to_come):
            raise MirrorError(f"every table is stopped; the first: {reasons[0]}")

    def _note_former_tables(self, tables: Mapping[Table, TableVersions]) -> None:
        """Note which tables of a batch have lost their catalog name to another one.

        tables : those of the whole batch: a sub-batch that is repeated must skip the same ones.
        """
        if isinstance(self._places.tables, NameTemplate):
            self._former = former_tables(tables, self._places.tables)
        for name in self._former:
            self._tables.pop(name, None)

    def _check_row_image(self) -> None:
        """Raise BinlogSettingsError if most updates of a table would stop it."""
        # A lost server is not asked: later, an update without some columns stops its table.
        with suppress(ConnectionFailedError), ReplicaClient.connect(self._settings()) as client:
            check_row_image(client)

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
            # Its server was lost while the batch was read, of which nothing is applied.
            is_in_memory = is_in_memory and not end.reads_chunks_since(before)
            replayed = None if is_in_memory else self._replay.read(before, end, has_failed=True)
            if replayed is None:
                raise
        yield replayed

    def _precompute(self, end: Offset) -> Precompute:
        """Return what precomputes the states of sub-batches, in a batch that ends at `end`."""
        tables = (
            {} if self._places.tables is None else self._tables_of(unpacked_schemas(end.schemas))
        )
        schemas = {
            name: schema
            for name, versions in tables.items()
            if (schema := versions.only) is not None and not self._is_stopped(name)
        }
        return partial(precompute_states, schemas=schemas, last_values=self._keeps_deleted)

    def _is_stopped(self, name: Table) -> bool:
        table = self._tables.get(name)
        return (table is not None and table.stopped is not None) or ".".join(name) in self._unopened

    def _apply_sub_batch(
        self,
        sub_batch: SubBatch,
        number: int,
        end: Offset,
        record: BatchTracker,
        spark: SparkSession,
    ) -> None:
        """Apply one sub-batch.

        end : of the batch, with the schemas of all of it.
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
        ways = [self._apply_to_mirror] if self._places.tables is not None else []
        ways += [self._append] if self._places.change_logs is not None else []

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
                changes, held = parts[name][0], partial(self._count_of, name)
                record.add(name, changes, *done[0], held, images=batch.images.size_of(changes))
        for error in failed:
            if not isinstance(error, UnstoredStop):
                _raise(error)
        for error in failed:
            assert isinstance(error, UnstoredStop)
            self._stop_in_checkpoint(error, batch)

    def _apply_to_mirror(
        self, name: Table, changes: pa.Table, versions: TableVersions, batch: Batch
    ) -> int:
        """Apply one table's part of a batch; stop a table that cannot be kept equal.

        Returns the number of new changes.
        """
        if name in self._former:
            return 0
        return self._run(
            name,
            self._tables,
            lambda: self._opened(name, versions),
            lambda table: table.apply(changes, versions, batch),
            batch,
        )

    def _append(self, name: Table, changes: pa.Table, versions: TableVersions, batch: Batch) -> int:
        """Append one table's part of a batch to its change log; stop a change log with a gap."""
        return self._run(
            name,
            self._change_logs,
            lambda: self._opened_log(name),
            lambda log: log.append(changes, versions, batch),
            batch,
            is_log=True,
        )

    def _run(
        self,
        name: Table,
        kept: dict[Table, _Kept],
        opened: Callable[[], _Kept],
        work: Callable[[_Kept], int],
        batch: Batch,
        *,
        is_log: bool = False,
    ) -> int:
        """Do a table's part of a batch, or stop it; UnstoredStop if Delta cannot store the stop.

        kept : the opened tables, by name.
        """
        told = _name_of_log(name) if is_log else ".".join(name)
        if told in self._unopened and not (
            batch.begins_reload or starts_or_restarts_snapshot(batch, name)
        ):
            return 0
        try:
            count = run_for_table(name, lambda: work(opened()), lambda: kept.pop(name, None))
        except MirrorError as error:
            try:
                opened().stop(error, batch)
            except BaseException as failure:
                if not isinstance(failure, Exception) and not may_concern_table(failure):
                    raise
                kept.pop(name, None)
                raise UnstoredStop(name, error, failure, is_log=is_log) from None
            _LOG.error("%s: replication stopped: %s", told, error.message)
            count = 0
        self._unopened.pop(told, None)
        state = kept[name].state
        if state is not None:
            self._applied.note(name, state, is_log=is_log)
        return count

    def _stop_in_checkpoint(self, unstored: UnstoredStop, batch: Batch) -> None:
        """Stop a table in the checkpoint alone, or raise the cause.

        A later start reads the stop from the checkpoint.
        """
        name, is_log = unstored.table, unstored.is_log
        state = self._applied.of(name, is_log=is_log)
        if not unstored.is_of_table:
            _raise(unstored.cause)
        if state is None or state.stopped is None:
            if not can_write_any(self._targets_in_step()):
                _raise(unstored.cause)
            state = AppliedState.of_unopened(state, batch, unstored.reason)
            self._applied.note(name, state, is_log=is_log)
        told = _name_of_log(name) if is_log else ".".join(name)
        self._unopened[told] = str(state.stopped)
        _LOG.error(
            "%s: replication stopped; only the checkpoint records it, because the Delta table"
            " cannot be opened or written: %s",
            told,
            state.stopped,
        )

    def _targets_in_step(self) -> Iterator[DeltaTarget]:
        """Yield new objects for the Delta tables that are not stopped."""
        for name, table in self._tables.items():
            if self._places.tables is not None and table.stopped is None:
                yield self._engine.target(self._places.tables.render(name))
        for log in self._change_logs.values():
            if log.stopped is None:
                yield self._change_log_engine.target(log.uri)

    def _opened(self, name: Table, versions: TableVersions) -> MirroredTable:
        table = self._tables.get(name)
        if table is None:
            target = self._target(name, versions)
            state = self._applied.of(name)
            table = self._tables[name] = MirroredTable(
                name,
                target,
                self._fingerprint_at,
                state,
                transforms=self._captured_tables().transforms_hash(versions),
            )
            log_row_identity(name, versions.versions)
            if table.stopped is not None:
                _LOG.error("%s.%s: replication is still stopped: %s", *name, table.stopped)
        return table

    def _row_counts(self, tables: Collection[Table]) -> Mapping[Table, int]:
        """Return the estimated row counts of tables on the server."""
        with ReplicaClient.connect(self._settings()) as client:
            return {name: size.rows for name, size in table_sizes(client, tables).items()}

    def _opened_log(self, name: Table) -> ChangeLog:
        log = self._change_logs.get(name)
        if log is None:
            assert self._places.change_logs is not None
            target = self._change_log_engine.target(self._places.change_logs.render(name))
            state = self._applied.of(name, is_log=True)
            log = self._change_logs[name] = ChangeLog(name, target, self._fingerprint_at, state)
            if log.stopped is not None:
                _LOG.error(
                    "the change log of %s.%s: replication is still stopped: %s", *name, log.stopped
                )
        return log

    def _count_of(self, name: Table) -> int:
        """Return the row count of a Delta table; 0 if there is only a change log."""
        return self._tables[name].count() if name in self._tables else 0

    def _delta_places(self) -> Iterator[DeltaPlace]:
        """Yield the paths, URIs or names of the Delta tables."""
        if self._places.tables is not None:
            yield from map(self._places.tables.render, self._tables)
        yield from (log.uri for log in self._change_logs.values())

    def _target(self, name: Table, versions: TableVersions) -> DeltaTarget:
        assert self._places.tables is not None
        schemas = [what for _, what in versions.versions if isinstance(what, TableSchema)]
        wanted = self._captured_tables()
        partition_by = [*map(delta_name, wanted.partition_columns(name, schemas))]
        place = self._places.tables.render(name)
        if isinstance(place, CatalogName):
            former = frozenset(each for each, last in self._former.items() if last == name)
            place = replace(place, former_sources=former)
        target = self._engine.target(place, partition_by)
        if target.columns() is None:
            wanted.check_partition_columns(name, schemas)
        return target

    def _fingerprint_at(self, position: Position) -> PositionFingerprint | None:
        return ServerLog(self._settings()).fingerprint_at(position)

    def _settings(self) -> ServerSettings:
        """Return how to connect to the server of the batch."""
        return parse_options(self._options).bound_to(self._server_uuid).server_settings()

    def _query_id(self, spark: SparkSession) -> str:
        if self._query is None:
            check_checkpoint_targets(spark, self._checkpoint, self._places.given)
            self._query = self._offsets.query_id(spark)
        return self._query

    def _tables_of(self, history: SchemaHistory) -> dict[Table, TableVersions]:
        """Return the captured tables of a history; most batches have those of the one before."""
        if self._known is None or self._known[0] != history:
            options = self._captured_tables()
            wanted = [name for name in history.tables() if options.captures(name)]
            self._places.check_paths(wanted)
            versions = table_versions(
                history, wanted, options.as_delivered, options.delivered.renamed
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


def _raise(error: BaseException) -> NoReturn:
    """Raise an error of a batch; StoreError for one of the store or the catalog."""
    told = store_error(error)
    if told is not error:
        raise told from error
    raise error


def _name_of_log(name: Table) -> str:
    return f"the change log of {'.'.join(name)}"
