"""Delta tables with delta-rs (the package `deltalake`): in process, without jars in the JVM.

A table is opened once, and refreshed before each commit. A merge does not read all files: its
condition has the minimum and the maximum of each key column in the batch as literals, by which
delta-rs skips files. If no existing row can have one of the keys, or for a few rows, there is no
merge (see `fast_writes`).

A commit is made on the very version that was read (see `commits`), and never moved after other
commits: delta-rs would move an overwrite after a compaction, and the table would have each row
twice. Columns whose statistics would be wrong have none (see `deltars.stats`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import cast_column
from pyspark_mysqlbinlog.connector.delta.rows.columns import (
    DELETED,
    OLDEST_SEQ,
    SEQ,
    SEQ_TYPE,
    TOMBSTONE,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.commits import CommittingTarget
from pyspark_mysqlbinlog.connector.delta.store.compactions import (
    Commit,
    removed_files,
)
from pyspark_mysqlbinlog.connector.delta.store.deltars.fast_writes import append_or_replace
from pyspark_mysqlbinlog.connector.delta.store.deltars.multiset import (
    count_equal_rows,
    rewrite_equal_rows,
)
from pyspark_mysqlbinlog.connector.delta.store.deltars.sql import (
    has_duplicates,
    has_rows,
    quoted,
    rows_where,
)
from pyspark_mysqlbinlog.connector.delta.store.deltars.stats import (
    long_in_shape,
    stats_properties_excluding,
    wide_decimal_columns,
    wide_decimals_in_files,
)
from pyspark_mysqlbinlog.connector.delta.store.deltars.txn_numbers import TxnNumbers
from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import check_no_foreign_writes
from pyspark_mysqlbinlog.connector.delta.store.interface import check_same_deletes
from pyspark_mysqlbinlog.connector.delta.store.metadata_markers import (
    COMMIT_MARKERS,
    MetadataMarkers,
)
from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace
from pyspark_mysqlbinlog.connector.delta.store.predicates import is_before, pruning_conditions

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyspark.sql import SparkSession

__all__ = ["DeltalakeEngine", "DeltalakeTarget"]

# Two compactions at once leave rows twice (see `compactions`): this prevents it in one process.
_COMPACTING = Lock()
# Held while properties are set, and while delta-rs writes batches that Python makes. Its writing
# threads wait for Python's interpreter lock, but delta-rs 1.6.6 keeps that lock while it sets
# properties (13 other calls release it). Both at the same time would hang the process.
_INTERPRETER_IN_USE = Lock()
_DATAFUSION = {pa.int32(): "Int32", pa.int64(): "Int64"}


class DeltalakeEngine:
    """Tables on local disk or in an object store.

    storage_options : for delta-rs: keys, regions, endpoints.
    properties : of created tables.
    soft_delete : keep deleted rows, with true in a column of their own.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        soft_delete: bool = False,
    ) -> None:
        self._storage = dict(storage_options or {})
        self._properties = dict(properties or {})
        self._soft_delete = soft_delete

    def begin(self, spark: SparkSession) -> None:
        """Do nothing: Spark is not needed."""

    def target(self, place: DeltaPlace, partition_by: Sequence[str] = ()) -> DeltalakeTarget:
        """Return the Delta table of a path or URI, which may not exist yet."""
        assert isinstance(place, str), f"delta-rs resolves no names of catalogs, found {place}"
        return DeltalakeTarget(
            place, self._storage, self._properties, partition_by, soft_delete=self._soft_delete
        )


class DeltalakeTarget(CommittingTarget):
    """One Delta table; see `interface.DeltaTarget`."""

    # Spark reads the instants of delta-rs's partition values in its session's time zone.
    preserves_partition_time_zone = False

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str],
        properties: Mapping[str, str],
        partition_by: Sequence[str],
        *,
        soft_delete: bool,
    ) -> None:
        super().__init__(uri)
        self._storage = dict(storage_options)
        self._properties = dict(properties)
        self._partition_by = list(partition_by)
        self.soft_deletes = soft_delete
        self._table: DeltaTable | None = None
        self._txn_numbers = TxnNumbers(self._commit_lines)
        # A version of the table, and its commit markers, if Delta for Spark wrote them.
        self._marker_cache: tuple[int, Mapping[str, int]] | None = None
        # Columns without statistics; None until the table's files were inspected.
        self._long: AbstractSet[str] | None = None

    def _opened(self) -> DeltaTable | None:
        """Return the table as of the first read, or after this object's last commit.

        Other writers' commits are checked before each commit: that takes milliseconds, and in an
        object store a request.
        """
        if self._table is None:
            try:
                table = DeltaTable(self.uri, storage_options=self._storage)
            except TableNotFoundError:
                return None
            check_same_deletes(self, [field.name for field in table.schema().fields])
            self._table = table
        if self._expected_version is None:
            # After an error, it is not known what was written.
            self._table.update_incremental()
            self._expected_version = self._table.version()
        return self._table

    def _there(self) -> DeltaTable:
        table = self._opened()
        assert table is not None, f"{self.uri} does not exist"
        return table

    def _now(self) -> DeltaTable:
        """Return the table at its newest version."""
        table = self._there()
        table.update_incremental()
        return table

    def _commit(
        self,
        write: Callable[[DeltaTable], object],
        long: AbstractSet[str] = frozenset(),
        columns: pa.Schema | None = None,
    ) -> None:
        """Write once, on the table's last version.

        long : columns in which long decimals are, or may be, written.
        columns : the table's columns after the write; None if they do not change.
        """

        def attempt(_: int) -> int:
            table = self._there()
            self._import_markers(table)
            self._keep_stats_exact(table, long, columns)
            self._check_no_foreign_writes(table)
            version = table.version()
            write(table)
            # A merge without a row to write makes no commit.
            return min(version + 1, table.version())

        self._expected_version = self._until_committed(attempt)

    def _newest_version(self) -> int:
        return self._now().version()

    def _history(self, count: int) -> list[Commit]:
        return [Commit.of(each) for each in self._there().history(count)]

    def _commits_after(self, version: int) -> list[Commit]:
        count = self._there().version() - version
        return self._history(count) if count > 0 else []

    def _is_conflict(self, error: Exception) -> bool:
        return isinstance(error, CommitFailedError)

    def _keep_stats_exact(
        self,
        table: DeltaTable,
        long: AbstractSet[str] = frozenset(),
        columns: pa.Schema | None = None,
    ) -> None:
        """Disable the statistics of columns with long decimals: `long`, and those found in files.

        columns : the table's columns after the write; None if they do not change.
        """
        if self._long is not None and long <= self._long:
            return
        held = _pyarrow(table.schema())
        known = wide_decimals_in_files(table, held) if self._long is None else self._long
        properties = stats_properties_excluding(table, columns or held, long | known)
        if properties:
            _set_properties(table, properties, _commit_properties(None))
            table.update_incremental()
        self._long = long | known

    def _check_no_foreign_writes(self, table: DeltaTable) -> None:
        """MirrorError if another writer has changed rows up to the table's version.

        The table is refreshed until it is current: delta-rs also lists commits after its version.
        """
        known, version = self._expected_version, table.version()
        assert known is not None
        since: list[dict[str, Any]] = []
        is_exact = version == known
        while not is_exact:
            since = table.history(version - known) if version > known else []
            table.update_incremental()
            is_exact = table.version() == version
            version = table.version()
        self._expected_version = version
        check_no_foreign_writes(
            self.uri,
            [Commit.of(each) for each in since],
            version - known,
            self._removed_files,
        )

    def _removed_files(self, version: int) -> AbstractSet[str]:
        return removed_files(self._commit_lines(version))

    def _commit_lines(self, version: int) -> list[str]:
        """Return the lines of a commit; FileNotFoundError if Delta has removed its file."""
        # pyarrow accepts it as one of its own handlers; the stubs have no common class.
        handler: Any = DeltaStorageHandler.from_table(self._there()._table)
        store = PyFileSystem(handler)
        with store.open_input_stream(f"_delta_log/{version:020}.json") as commit:
            return commit.readall().decode().split("\n")

    def _metadata_marker(self, table: DeltaTable) -> Mapping[str, int] | None:
        """Return the commit markers of a table that Delta for Spark wrote last; else None."""
        markers = MetadataMarkers.of(table.metadata().configuration)
        if markers is None:
            return None
        if self._marker_cache is None or self._marker_cache[0] != table.version():
            commits = (commit.get("userMetadata") for commit in table.history())
            boundary = table.transaction_version(markers.application)
            self._marker_cache = table.version(), markers.latest(commits, boundary, markers.numbers)
        return self._marker_cache[1]

    def _import_markers(self, table: DeltaTable) -> None:
        """Rewrite the commit markers of a table that Delta for Spark wrote last for delta-rs."""
        numbers = self._metadata_marker(table)
        if numbers is not None:
            _set_properties(table, {COMMIT_MARKERS: ""}, _writing(numbers.items()))
            table.update_incremental()

    def columns(self) -> pa.Schema | None:
        table = self._opened()
        if table is None:
            return None
        return pa.schema([field for field in _pyarrow(table.schema()) if field.name != DELETED])

    def properties(self) -> Mapping[str, str]:
        table = self._opened()
        return {} if table is None else table.metadata().configuration

    def partitioned_by(self) -> Sequence[str]:
        table = self._opened()
        return [] if table is None else table.metadata().partition_columns

    def txn_version(self, identifier: str) -> int | None:
        table = self._opened()
        if table is None:
            return None
        numbers = self._metadata_marker(table)
        if numbers is not None:
            return numbers.get(identifier)
        return self._txn_numbers.get(table, identifier)

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        self._long = None
        self._txn_numbers.forget()
        self._table = DeltaTable.create(
            self.uri,
            self._with_deleted(columns),
            mode="error" if self._opened() is None else "overwrite",
            partition_by=[name for name in self._partition_by if name in columns.names],
            configuration=self._properties | dict(properties),
            storage_options=self._storage,
            raise_if_key_not_exists=False,
        )
        self._expected_version = self._table.version()

    def has_since(self, seq: Mapping[str, int]) -> bool:
        table = self._now()
        if SEQ not in {field.name for field in table.schema().fields}:
            return False
        return has_rows(table, f"NOT {is_before(seq)}")

    def reset_seq(self) -> None:
        zero = (
            "named_struct("
            + ", ".join(
                f"'{field.name}', arrow_cast({OLDEST_SEQ}, '{_DATAFUSION[field.type]}')"
                for field in SEQ_TYPE
            )
            + ")"
        )
        self._commit(
            lambda table: table.update(
                updates={SEQ: zero}, commit_properties=_commit_properties(None)
            )
        )

    def dataset(self) -> Dataset:
        """Return the rows of the version that decisions are based on, to be read in parts."""
        return self._there().to_pyarrow_dataset()

    def count(self) -> int:
        table = self._opened()
        return 0 if table is None else table.count()

    def is_empty(self) -> bool:
        return not self.count()

    def forget_state(self) -> None:
        self._table = self._expected_version = self._marker_cache = self._long = None
        self._txn_numbers.forget()

    def add_columns(
        self, columns: Sequence[pa.Field[Any]], marker: CommitMarker | None = None
    ) -> None:
        fields = Schema.from_arrow(pa.schema(columns)).fields
        self._commit(
            lambda table: table.alter.add_columns(
                fields, commit_properties=_commit_properties(marker)
            )
        )

    def rewrite_columns(
        self, columns: pa.Schema, came_from: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        held_by = self.partitioned_by()
        columns = self._with_deleted(columns)
        if self.soft_deletes:
            came_from = {**came_from, DELETED: DELETED}

        def write(table: DeltaTable) -> None:
            # Batch by batch, so that memory does not grow with the table.
            held = table.to_pyarrow_dataset().scanner(columns=list(came_from.values()))
            batches = (_reshaped(batch, columns, came_from) for batch in held.to_batches())
            with _INTERPRETER_IN_USE:
                write_deltalake(
                    table,
                    pa.RecordBatchReader.from_batches(columns, batches),
                    partition_by=[name for name in held_by if name in columns.names],
                    mode="overwrite",
                    schema_mode="overwrite",
                    commit_properties=_commit_properties(marker),
                )

        held = _pyarrow(self._there().schema())
        self._commit(write, long_in_shape(held, columns, came_from), columns)

    def set_properties(
        self, properties: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        self._commit(lambda table: _set_properties(table, properties, _commit_properties(marker)))

    def older(self, before: Mapping[str, int], names: Sequence[str]) -> pa.Table:
        condition = is_before(before)
        if self.soft_deletes:
            condition += f" AND NOT {DELETED}"
        return rows_where(self._now(), names, condition)

    def has_duplicates(self, names: Sequence[str]) -> bool:
        return has_duplicates(self._now(), names)

    def delete_older_than(
        self, before: Mapping[str, int], marker: CommitMarker | None = None
    ) -> None:
        older, properties = is_before(before), _commit_properties(marker)
        if self.soft_deletes:
            self._commit(
                lambda table: table.update(
                    updates={DELETED: "true"},
                    predicate=f"{older} AND NOT {DELETED}",
                    commit_properties=properties,
                )
            )
        else:
            self._commit(lambda table: table.delete(older, commit_properties=properties))

    def remove_deleted(self) -> None:
        self._commit(
            lambda table: table.delete(DELETED, commit_properties=_commit_properties(None))
        )

    def merge(self, states: pa.Table, key: Sequence[str], marker: CommitMarker) -> None:
        same = [f"t.{quoted(name)} = s.{quoted(name)}" for name in key]
        predicate = " AND ".join([*same, *pruning_conditions(states, key, quoted)])
        if self.soft_deletes:
            states = states.append_column(DELETED, states.column(TOMBSTONE))
        long = wide_decimal_columns(states)

        def write(table: DeltaTable) -> None:
            properties = _commit_properties(marker)
            if append_or_replace(table, states, key, properties, soft_deletes=self.soft_deletes):
                return
            merger = table.merge(
                states,
                predicate,
                source_alias="s",
                target_alias="t",
                # Files may have inexact statistics of long keys; streamed_exec ignores them.
                streamed_exec=not long.isdisjoint(key),
                commit_properties=properties,
            )
            newer = f"s.{SEQ} > t.{SEQ}"
            if not self.soft_deletes:
                merger = merger.when_matched_delete(f"s.{TOMBSTONE} AND {newer}")
            comes = None if self.soft_deletes else f"NOT s.{TOMBSTONE}"
            (
                merger.when_matched_update_all(newer, except_cols=[TOMBSTONE])
                .when_not_matched_insert_all(comes, except_cols=[TOMBSTONE])
                .execute()
            )

        self._commit(write, long)

    def count_equal_rows(self, rows: pa.Table) -> list[int]:
        # The files of an older version may be deleted.
        return count_equal_rows(self._now(), rows)

    def rewrite_equal_rows(self, distinct: pa.Table, rows: pa.Table, marker: CommitMarker) -> int:
        removed = 0

        def write(table: DeltaTable) -> None:
            nonlocal removed
            removed = rewrite_equal_rows(table, distinct, rows, _commit_properties(marker))

        self._commit(write, wide_decimal_columns(rows))
        return removed

    def replace(self, rows: pa.Table, marker: CommitMarker) -> None:
        held_by = self.partitioned_by()
        self._commit(
            lambda table: write_deltalake(
                table,
                rows,
                partition_by=[name for name in held_by if name in rows.column_names],
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=_commit_properties(marker),
            ),
            wide_decimal_columns(rows),
            rows.schema,
        )

    def append(self, rows: pa.Table, marker: CommitMarker) -> None:
        properties = _commit_properties(marker)
        self._commit(
            lambda table: write_deltalake(table, rows, mode="append", commit_properties=properties),
            wide_decimal_columns(rows),
        )

    def compact(self) -> bool:
        """Rewrite small files as larger ones; False if another writer committed in between."""
        with _COMPACTING:
            try:
                table = self._now()
                self._keep_stats_exact(table)
                table.optimize.compact(commit_properties=_commit_properties(None))
            except CommitFailedError:
                return False
        return True

    def vacuum(self) -> int:
        return len(self._now().vacuum(dry_run=False))

    def _with_deleted(self, columns: pa.Schema) -> pa.Schema:
        return columns.append(pa.field(DELETED, pa.bool_())) if self.soft_deletes else columns


def _reshaped(
    batch: pa.RecordBatch, columns: pa.Schema, came_from: Mapping[str, str]
) -> pa.RecordBatch:
    values: list[Any] = [
        cast_column(batch.column(came_from[field.name]), field.type)
        if field.name in came_from
        else pa.nulls(batch.num_rows, field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(values, schema=columns)


def _pyarrow(schema: Schema) -> pa.Schema:
    # pyarrow accepts deltalake's schema through its C interface; its stubs do not.
    given: Any = schema.to_arrow()
    return pa.schema(given)


def _set_properties(
    table: DeltaTable, properties: Mapping[str, str], commit: CommitProperties
) -> None:
    with _INTERPRETER_IN_USE:
        table.alter.set_table_properties(
            dict(properties), raise_if_not_exists=False, commit_properties=commit
        )


def _commit_properties(marker: CommitMarker | None) -> CommitProperties:
    return _writing(() if marker is None else marker.app_transactions)


def _writing(identifiers: Iterable[tuple[str, int]]) -> CommitProperties:
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(name, number) for name, number in identifiers],
    )
