"""The Delta tables and change logs that a mirror's query writes, and which of them are stopped.

A Delta table is opened when a batch first includes its MySQL table. A table that cannot be kept
equal to the server's is stopped with a reason and a remedy; the others continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from pyspark_mysqlbinlog.connector.delta.query.applied_states import AppliedStates
from pyspark_mysqlbinlog.connector.delta.query.batch_server import BatchServer
from pyspark_mysqlbinlog.connector.delta.query.captured import CapturedTables
from pyspark_mysqlbinlog.connector.delta.query.former_tables import former_tables
from pyspark_mysqlbinlog.connector.delta.query.table_failures import (
    may_concern_table,
    run_for_table,
    store_error,
)
from pyspark_mysqlbinlog.connector.delta.query.unstored_stops import UnstoredStop, can_write_any
from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
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
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["MirrorTables", "raise_error"]

_LOG = logging.getLogger(__name__)
_Kept = TypeVar("_Kept", MirroredTable, ChangeLog)


class MirrorTables:
    """The tables of one query.

    Parameters
    ----------
    places : locations of the mirrored tables and of the change logs.
    engine, change_log_engine : writers of the mirrored tables and of the change logs.
    applied : states of the Delta tables, as recorded in the checkpoint.
    server : the server that a batch comes from.
    """

    def __init__(
        self,
        places: MirrorPlaces,
        *,
        engine: LazyEngine,
        change_log_engine: LazyEngine,
        applied: AppliedStates,
        server: BatchServer,
    ) -> None:
        self._places = places
        self._engine = engine
        self._change_log_engine = change_log_engine
        self._applied = applied
        self._server = server
        self._captured: CapturedTables | None = None
        self._tables: dict[Table, MirroredTable] = {}
        self._change_logs: dict[Table, ChangeLog] = {}
        self._unopened: dict[str, str] = {}
        # Tables whose Delta table belongs to another MySQL table at the batch's end -> that table.
        self._former: Mapping[Table, Table] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Spark Connect runs batches in another process; opened tables stay in this one.
        return self.__dict__ | {"_tables": {}, "_change_logs": {}, "_unopened": {}}

    @property
    def stopped(self) -> Mapping[str, str]:
        """Stopped tables and the reasons, as far as this process has seen."""
        # A batch may add tables while another thread reads this property.
        tables, logs = [*self._tables.items()], [*self._change_logs.items()]
        stopped = {".".join(name): table.stopped for name, table in tables} | {
            _name_of_log(name): log.stopped for name, log in logs
        }
        stopped |= self._unopened
        return {name: reason for name, reason in stopped.items() if reason is not None}

    @property
    def are_all_stopped(self) -> bool:
        """Whether there are tables and all of them are stopped."""
        count = len(self._tables) + len(self._change_logs) + len(self._unopened)
        return 0 < count == len(self.stopped)

    def is_stopped(self, name: Table) -> bool:
        """Return whether a mirrored table is stopped."""
        table = self._tables.get(name)
        return (table is not None and table.stopped is not None) or ".".join(name) in self._unopened

    def use_session(self, spark: SparkSession) -> None:
        """Use the session of the batch that begins."""
        self._engine.begin(spark)
        if self._places.change_logs is not None:
            self._change_log_engine.begin(spark)

    def begin(self, captured: CapturedTables, tables: Mapping[Table, TableVersions]) -> None:
        """Record which tables of a batch have lost their catalog name to another table.

        tables : those of the whole batch, because a replayed sub-batch must skip the same tables.
        """
        self._captured = captured
        if isinstance(self._places.tables, NameTemplate):
            self._former = former_tables(tables, self._places.tables)
        for name in self._former:
            self._tables.pop(name, None)

    def apply(self, name: Table, changes: pa.Table, versions: TableVersions, batch: Batch) -> int:
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

    def append(self, name: Table, changes: pa.Table, versions: TableVersions, batch: Batch) -> int:
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
        """Run `work` for a table, or stop the table; UnstoredStop if Delta cannot store the stop.

        kept : the opened tables, by name.
        """
        label = _name_of_log(name) if is_log else ".".join(name)
        if label in self._unopened and not (
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
            _LOG.error("%s: replication stopped: %s", label, error.message)
            count = 0
        self._unopened.pop(label, None)
        state = kept[name].state
        if state is not None:
            self._applied.note(name, state, is_log=is_log)
        return count

    def stop_in_checkpoint(self, unstored: UnstoredStop, batch: Batch) -> None:
        """Stop a table in the checkpoint alone, or raise the cause.

        A later start reads the stop from the checkpoint.
        """
        name, is_log = unstored.table, unstored.is_log
        state = self._applied.of(name, is_log=is_log)
        if not unstored.is_of_table:
            raise_error(unstored.cause)
        if state is None or state.stopped is None:
            if not can_write_any(self._running_targets()):
                raise_error(unstored.cause)
            state = AppliedState.of_unopened(state, batch, unstored.reason)
            self._applied.note(name, state, is_log=is_log)
        label = _name_of_log(name) if is_log else ".".join(name)
        self._unopened[label] = str(state.stopped)
        _LOG.error(
            "%s: replication stopped; only the checkpoint records it, because the Delta table"
            " cannot be opened or written: %s",
            label,
            state.stopped,
        )

    def _running_targets(self) -> Iterator[DeltaTarget]:
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
            captured = self._captured_tables()
            table = self._tables[name] = MirroredTable(
                name,
                self._target(name, versions, captured),
                self._server.fingerprint_at,
                self._applied.of(name),
                transforms=captured.transforms_hash(versions),
            )
            log_row_identity(name, versions.versions)
            if table.stopped is not None:
                _LOG.error("%s.%s: replication is still stopped: %s", *name, table.stopped)
        return table

    def _opened_log(self, name: Table) -> ChangeLog:
        log = self._change_logs.get(name)
        if log is None:
            assert self._places.change_logs is not None
            target = self._change_log_engine.target(self._places.change_logs.render(name))
            state = self._applied.of(name, is_log=True)
            log = ChangeLog(name, target, self._server.fingerprint_at, state)
            self._change_logs[name] = log
            if log.stopped is not None:
                _LOG.error(
                    "the change log of %s.%s: replication is still stopped: %s", *name, log.stopped
                )
        return log

    def _target(
        self, name: Table, versions: TableVersions, captured: CapturedTables
    ) -> DeltaTarget:
        assert self._places.tables is not None
        schemas = [what for _, what in versions.versions if isinstance(what, TableSchema)]
        partition_by = [*map(delta_name, captured.partition_columns(name, schemas))]
        place = self._places.tables.render(name)
        if isinstance(place, CatalogName):
            former = frozenset(each for each, last in self._former.items() if last == name)
            place = replace(place, former_sources=former)
        target = self._engine.target(place, partition_by)
        if target.columns() is None:
            captured.check_partition_columns(name, schemas)
        return target

    def _captured_tables(self) -> CapturedTables:
        assert self._captured is not None, "no batch has begun"
        return self._captured

    def count_of(self, name: Table) -> int:
        """Return the row count of a Delta table; 0 if there is only a change log."""
        return self._tables[name].count() if name in self._tables else 0

    def delta_places(self) -> Iterator[DeltaPlace]:
        """Yield the paths, URIs or names of the Delta tables."""
        if self._places.tables is not None:
            yield from map(self._places.tables.render, self._tables)
        yield from (log.uri for log in self._change_logs.values())


def raise_error(error: BaseException) -> NoReturn:
    """Raise an error of a batch; StoreError for one of the store or the catalog."""
    shown = store_error(error)
    if shown is not error:
        raise shown from error
    raise error


def _name_of_log(name: Table) -> str:
    return f"the change log of {'.'.join(name)}"
