"""One Delta table with Delta's jars in the Spark session: each commit is a Spark job.

A commit that conflicts with one that did not change rows is tried again (see `commits`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BooleanType, StructType, TimestampNTZType

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import with_tombstone
from pyspark_mysqlbinlog.connector.delta.rows.columns import (
    DELETED,
    OLDEST_SEQ,
    SEQ,
    SEQ_TYPE,
    TOMBSTONE,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.commits import CommittingTarget
from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit
from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import check_no_foreign_writes
from pyspark_mysqlbinlog.connector.delta.store.interface import check_same_deletes
from pyspark_mysqlbinlog.connector.delta.store.metadata_markers import (
    COMMIT_MARKERS,
    MetadataMarkers,
    has_commit_id,
    user_metadata,
)
from pyspark_mysqlbinlog.connector.delta.store.places.names import SOURCE_TABLE
from pyspark_mysqlbinlog.connector.delta.store.predicates import is_before, pruning_conditions
from pyspark_mysqlbinlog.connector.delta.store.spark import sql as spark_sql
from pyspark_mysqlbinlog.connector.delta.store.spark.multiset import (
    count_equal_rows,
    equality_conditions,
    multiset_merge_sql,
)
from pyspark_mysqlbinlog.connector.delta.store.spark.source_tables import SourceTable
from pyspark_mysqlbinlog.connector.delta.store.spark.sql import quoted, sql_type
from pyspark_mysqlbinlog.connector.delta.store.spark.versions import (
    APPLICATION,
    BOUNDARY,
    METADATA,
    DeltaVersion,
    SparkTable,
)
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["SparkTarget"]

_CONFLICT = re.compile(r"DELTA_(CONCURRENT|METADATA_CHANGED|PROTOCOL_CHANGED)")
_LITE_IMPOSSIBLE = "DELTA_CANNOT_VACUUM_LITE"
_STATES = "mysqlbinlog_states"


@dataclass(frozen=True, slots=True)
class _CommitMetadata:
    """Metadata of a commit.

    Attributes
    ----------
    markers : the table's markers after this commit.
    numbers : the markers' numbers after this commit.
    settings : settings of the session that write the transaction identifier.
    """

    markers: MetadataMarkers
    numbers: Mapping[str, int]
    settings: Mapping[str, str] = field(default_factory=dict)


class SparkTarget(CommittingTarget):
    """One Delta table; see `interface.DeltaTarget`.

    source : the MySQL table that it must be of.
    """

    preserves_partition_time_zone = True

    def __init__(
        self,
        table: SparkTable,
        properties: Mapping[str, str],
        partition_by: Sequence[str],
        *,
        soft_delete: bool,
        source: SourceTable,
    ) -> None:
        super().__init__(table.uri)
        self._source = source
        self._table_id: str | None = None
        self._table = table
        self._properties = dict(properties)
        self._partition_by = list(partition_by)
        self.soft_deletes = soft_delete

    def _opened(self) -> DeltaVersion | None:
        snapshot = self._table.last()
        if snapshot is None:
            return None
        self._source.check(snapshot.properties)
        if self._expected_version is None:
            check_same_deletes(self, snapshot.fields.names)
            self._expected_version = snapshot.version
        # A conflict makes the version unknown, but not the table.
        if self._table_id is None:
            self._table_id = snapshot.table_id
        if self._table_id != snapshot.table_id:
            raise MirrorError(
                f"{self.uri}: another program has removed the Delta table and created another one"
                " there; reload the table"
            )
        return snapshot

    def _created(self) -> DeltaVersion | None:
        """Return the newest version; None if there is no table, or no mirror has created it yet.

        Another program can create an empty table first, such as an external one of a catalog. For
        a table at a path this makes no difference: two MySQL tables never have the same path.
        """
        snapshot = self._opened()
        if snapshot is None or self._source.name is None or SEQ in snapshot.fields.names:
            return snapshot
        # Delta cannot read a table without columns.
        if not snapshot.fields.names or not self._has_rows():
            return None
        if SOURCE_TABLE not in snapshot.properties:
            raise self._source.foreign_rows_error()
        return snapshot

    def _there(self) -> DeltaVersion:
        snapshot = self._opened()
        assert snapshot is not None, f"{self.uri} does not exist"
        return snapshot

    def _commit(
        self,
        write: Callable[[], object],
        marker: CommitMarker | None = None,
        given: _CommitMetadata | None = None,
    ) -> None:
        """Record the MySQL table if necessary, and write once; see `_commit_once`."""
        if not self._source.is_recorded(self._there().properties):
            statement = self._with_properties(self._source.property)
            self._commit_once(lambda: self._table.sql(statement))
        self._commit_once(write, marker, given)

    def _commit_once(
        self,
        write: Callable[[], object],
        marker: CommitMarker | None = None,
        given: _CommitMetadata | None = None,
    ) -> None:
        """Write once, with a commit marker.

        given : the commit's metadata, instead of that of `marker`.
        """

        def attempt(version: int) -> tuple[str, _CommitMetadata | None]:
            self._check_no_foreign_writes(version)
            commit_id = str(uuid4())
            this = given if marker is None else self._metadata_of(marker)
            settings = {METADATA: user_metadata(commit_id)}
            if this is not None:
                metadata = this.markers.commit_metadata(this.numbers, commit_id)
                settings = {**this.settings, METADATA: metadata}
            with self._table.setting(settings):
                write()
            return commit_id, this

        commit_id, this = self._until_committed(attempt)
        now = self._there().version
        is_committed = self._check_no_foreign_writes(now, commit_id)
        if this is not None and is_committed:
            self._table.note(now, this.markers.application, this.numbers)
        self._table.release()

    def _newest_version(self) -> int:
        return self._there().version

    def _history(self, count: int) -> list[Commit]:
        return [Commit.of(row.asDict()) for row in self._table.history(count)]

    def _commits_after(self, version: int) -> list[Commit]:
        commits = self._table.commits(version, self._there().version)
        return [Commit.of(row.asDict()) for row in commits]

    def _removed_files(self, version: int) -> AbstractSet[str]:
        return self._table.removed_files(version)

    def _is_conflict(self, error: Exception) -> bool:
        return bool(_CONFLICT.search(str(error)))

    def _metadata_of(self, marker: CommitMarker) -> _CommitMetadata:
        """Return the metadata of a commit with a marker."""
        log = str(marker.log)
        snapshot = self._there()
        numbers = self._table.numbers(snapshot)
        markers = MetadataMarkers.of(snapshot.properties)
        if markers is None or markers.log != log:
            markers = MetadataMarkers.new(log, numbers)
            with self._table.setting({METADATA: markers.commit_metadata(numbers)}):
                self._table.sql(self._with_properties({COMMIT_MARKERS: markers.text}))
        boundary = numbers.get(log, -1)
        new = dict(marker.app_transactions)
        if marker.position < boundary:
            # The table is past it already.
            new = {name: new[name] for name in new if not name.startswith(log)}
        settings = {}
        # Spark skips a write, rows included, whose number is not greater than the last one.
        if marker.position > boundary:
            settings = {APPLICATION: markers.application, BOUNDARY: str(marker.position)}
        return _CommitMetadata(markers, {**numbers, **new}, settings)

    def _check_no_foreign_writes(self, version: int, commit_id: str | None = None) -> bool:
        """MirrorError if another writer has changed rows up to a version.

        Delta for Spark moves a commit after those of other writers. So the mirror's own commit is
        not always the next version; without a row to write there is none.

        commit_id : of the mirror's own commit, which may be among them; returns whether it is.
        """
        known, self._expected_version = self._expected_version, version
        assert known is not None
        if version == known:
            return False
        commits = self._table.commits(known, version)
        others = [
            Commit.of(row.asDict())
            for row in commits
            if commit_id is None or not has_commit_id(row["userMetadata"], commit_id)
        ]
        own = len(commits) - len(others)
        check_no_foreign_writes(self.uri, others, version - known - own, self._removed_files)
        return own > 0

    def _with_properties(self, properties: Mapping[str, str]) -> str:
        given = spark_sql.properties(properties)
        return f"ALTER TABLE {self._table.name} SET TBLPROPERTIES ({given})"

    def columns(self) -> pa.Schema | None:
        snapshot = self._created()
        if snapshot is None:
            return None
        columns = to_arrow_schema(snapshot.fields, timezone="UTC")
        return pa.schema([field for field in columns if field.name != DELETED])

    def properties(self) -> Mapping[str, str]:
        snapshot = self._created()
        return {} if snapshot is None else snapshot.properties

    def partitioned_by(self) -> Sequence[str]:
        snapshot = self._created()
        return [] if snapshot is None else snapshot.partitioned_by

    def txn_version(self, identifier: str) -> int | None:
        snapshot = self._created()
        return None if snapshot is None else self._table.numbers(snapshot).get(identifier)

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        columns = self._with_deleted(columns)
        properties = self._properties | dict(properties) | self._source.property
        held = self._opened()
        if held is not None:
            self._replace_empty(held, columns, properties)
            return
        partition_by = [name for name in self._partition_by if name in columns.names]
        by = ", ".join(map(quoted, partition_by))
        given = spark_sql.properties(properties)
        self.forget_state()
        self._table.create(
            f"({spark_sql.fields(columns)}) USING delta"
            + (f" PARTITIONED BY ({by})" if by else "")
            + (f" TBLPROPERTIES ({given})" if given else "")
        )

    def _replace_empty(
        self, held: DeltaVersion, columns: pa.Schema, properties: Mapping[str, str]
    ) -> None:
        """Give an empty table other columns and more properties, and its partitions."""
        missing = dict(properties.items() - held.properties.items())
        if missing:
            self.set_properties(missing)
        wanted = self._partition_by or held.partitioned_by
        partition_by = [name for name in wanted if name in columns.names]
        self._allow(columns)
        # CREATE OR REPLACE rejects other columns if the table is a path.
        with self._table.frame(columns.empty_table(), from_arrow_schema(columns)) as frame:
            self._commit(lambda: self._table.save(frame, "overwrite", partition_by))

    def has_since(self, seq: Mapping[str, int]) -> bool:
        return SEQ in self._there().fields.names and self._has_rows(f"WHERE NOT {is_before(seq)}")

    def _has_rows(self, condition: str = "") -> bool:
        # Only column names and integers of this package.
        query = f"SELECT 1 FROM {self._table.name} {condition} LIMIT 1"
        return bool(self._table.sql(query))

    def reset_seq(self) -> None:
        oldest = ", ".join(
            f"'{field.name}', CAST({OLDEST_SEQ} AS {sql_type(field.type)})" for field in SEQ_TYPE
        )
        self._commit(
            lambda: self._table.sql(f"UPDATE {self._table.name} SET {SEQ} = named_struct({oldest})")
        )

    def count(self) -> int:
        if self._created() is None:
            return 0
        # Only a name of this package.
        (row,) = self._table.sql(f"SELECT COUNT(*) AS rows FROM {self._table.name}")
        return int(row["rows"])

    def is_empty(self) -> bool:
        return self._created() is None or not self._has_rows()

    def forget_state(self) -> None:
        self._expected_version = self._table_id = None

    def add_columns(
        self, columns: Sequence[pa.Field[Any]], marker: CommitMarker | None = None
    ) -> None:
        fields = spark_sql.fields(columns)
        statement = f"ALTER TABLE {self._table.name} ADD COLUMNS ({fields})"
        self._allow(columns)
        self._commit(lambda: self._table.sql(statement), marker)

    def rewrite_columns(
        self, columns: pa.Schema, came_from: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        columns = self._with_deleted(columns)
        if self.soft_deletes:
            came_from = {**came_from, DELETED: DELETED}
        values = ", ".join(
            f"CAST({quoted(came_from[field.name]) if field.name in came_from else 'NULL'}"
            f" AS {sql_type(field.type)}) AS {quoted(field.name)}"
            for field in columns
        )
        held_by = [name for name in self.partitioned_by() if name in columns.names]
        self._allow(columns)

        def write() -> None:
            with self._table.query(f"SELECT {values} FROM {self._table.name}") as held:
                self._table.save(held, "overwrite", held_by)
            if self._there().fields.names != columns.names:
                raise self._has_another_mirror()

        self._commit(write, marker)

    def _allow(self, columns: Iterable[pa.Field[Any]]) -> None:
        """Let the table have a DATETIME: Delta for Spark requires a property in existing tables."""
        held = (field.dataType for field in self._there().fields)
        if any(map(_is_without_zone, columns)) and TimestampNTZType() not in held:
            self.set_properties({"delta.feature.timestampNtz": "supported"})

    def set_properties(
        self, properties: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        if marker is None:
            self._commit(lambda: self._table.sql(self._with_properties(properties)))
            return
        log = str(marker.log)
        snapshot = self._there()
        numbers = self._table.numbers(snapshot)
        markers = MetadataMarkers.of(snapshot.properties)
        given = {**numbers, **dict(marker.app_transactions)}
        if markers is None or markers.log != log or marker.position < numbers.get(log, -1):
            markers = MetadataMarkers.new(log, given)
        else:
            markers = MetadataMarkers(markers.application, log, given)
        statement = self._with_properties({**properties, COMMIT_MARKERS: markers.text})
        self._commit(lambda: self._table.sql(statement), None, _CommitMetadata(markers, given))

    def older(self, before: Mapping[str, int], names: Sequence[str]) -> pa.Table:
        condition = is_before(before)
        if self.soft_deletes:
            condition += f" AND NOT {DELETED}"
        columns = ", ".join(map(quoted, names))
        query = f"SELECT {columns} FROM {self._table.name} WHERE {condition}"
        return self._table.spark.sql(query).toArrow()

    def has_duplicates(self, names: Sequence[str]) -> bool:
        columns = ", ".join(map(quoted, names))
        query = f"SELECT 1 FROM {self._table.name} GROUP BY {columns} HAVING COUNT(*) > 1 LIMIT 1"
        return bool(self._table.sql(query))

    def delete_older_than(
        self, before: Mapping[str, int], marker: CommitMarker | None = None
    ) -> None:
        older = is_before(before)
        statement = f"DELETE FROM {self._table.name} WHERE {older}"
        if self.soft_deletes:
            deleted = f"{DELETED} = TRUE WHERE {older} AND NOT {DELETED}"
            statement = f"UPDATE {self._table.name} SET {deleted}"
        self._commit(lambda: self._table.sql(statement), marker)

    def remove_deleted(self) -> None:
        statement = f"DELETE FROM {self._table.name} WHERE {DELETED}"
        self._commit(lambda: self._table.sql(statement))

    def merge(self, states: pa.Table, key: Sequence[str], marker: CommitMarker) -> None:
        same = [f"t.{quoted(name)} = s.{quoted(name)}" for name in key]
        if self.soft_deletes:
            states = states.append_column(DELETED, states.column(TOMBSTONE))
        statement = spark_sql.merge(
            self._table.name,
            _STATES,
            [name for name in states.column_names if name != TOMBSTONE],
            [*same, *pruning_conditions(states, key, quoted)],
            soft_deletes=self.soft_deletes,
        )

        def write() -> None:
            # If Spark knows the marker's number already, it does nothing and returns no rows.
            if not self._table.sql(statement):
                raise self._has_another_mirror()

        with self._as_view(states):
            self._commit(write, marker)

    def count_equal_rows(self, rows: pa.Table) -> list[int]:
        equal = " AND ".join(equality_conditions(rows))
        with self._as_view(rows):
            # Only column names and integers of this package.
            query = f"SELECT t.* FROM {self._table.name} t LEFT SEMI JOIN {_STATES} s ON {equal}"
            with self._table.query(query) as found:
                return count_equal_rows(found, rows)

    def rewrite_equal_rows(self, distinct: pa.Table, rows: pa.Table, marker: CommitMarker) -> int:
        if not distinct.num_rows:
            self.append(rows, marker)
            return 0
        names = rows.column_names
        removing = with_tombstone(distinct.select(names), is_tombstone=True)
        both = pa.concat_tables([removing, with_tombstone(rows, is_tombstone=False)])
        statement = multiset_merge_sql(
            self._table.name, _STATES, names, equality_conditions(distinct)
        )
        removed = 0

        def write() -> None:
            nonlocal removed
            merged = self._table.sql(statement)
            if not merged:
                raise self._has_another_mirror()
            removed = merged[0]["num_deleted_rows"]

        with self._as_view(both):
            self._commit(write, marker)
        return removed

    def replace(self, rows: pa.Table, marker: CommitMarker) -> None:
        held = self.columns()
        if not rows.num_rows and self.is_empty() and held is not None and _equal(held, rows.schema):
            # Delta makes no commit if nothing changes.
            self.set_properties({}, marker)
            return
        held_by = [name for name in self.partitioned_by() if name in rows.column_names]
        self._allow(rows.schema)
        with self._table.frame(rows, from_arrow_schema(rows.schema)) as frame:
            self._save(frame, marker, "overwrite", held_by)

    def append(self, rows: pa.Table, marker: CommitMarker) -> None:
        if not rows.num_rows:
            self.set_properties({}, marker)
            return
        with self._frame(rows) as frame:
            self._save(frame, marker, "append")

    def _save(
        self, frame: DataFrame, marker: CommitMarker, mode: str, partition_by: Sequence[str] = ()
    ) -> None:
        def write() -> None:
            before = self._there().version
            self._table.save(frame, mode, partition_by)
            # If Spark knows the marker's number already, it does nothing.
            if self._there().version == before:
                raise self._has_another_mirror()

        self._commit(write, marker)

    @contextmanager
    def _as_view(self, states: pa.Table) -> Iterator[None]:
        with self._frame(states) as frame:
            frame.createOrReplaceTempView(_STATES)
            try:
                yield
            finally:
                self._table.spark.catalog.dropTempView(_STATES)

    def _frame(self, rows: pa.Table) -> AbstractContextManager[DataFrame]:
        """Yield rows, or states, as a DataFrame in the types of the table."""
        held = self._there().fields
        names = [name for name in rows.column_names if name != TOMBSTONE]
        fields = StructType([held[name] for name in names])
        if TOMBSTONE in rows.column_names:
            fields = fields.add(TOMBSTONE, BooleanType())
        return self._table.frame(rows, fields)

    def compact(self) -> bool:
        """Rewrite small files as larger ones; False if another writer committed in between."""
        try:
            self._table.sql(f"OPTIMIZE {self._table.name}")
        except Exception as error:
            if not self._is_conflict(error):
                raise
            return False
        return True

    def vacuum(self) -> int:
        # LITE removes only files that commits name. Otherwise files that are being written would
        # be removed, too, if the retention is shorter than a commit takes.
        before = self._there().version
        try:
            self._table.sql(f"VACUUM {self._table.name} LITE")
        except Exception as error:
            if _LITE_IMPOSSIBLE not in str(error):
                raise
            self._table.sql(f"VACUUM {self._table.name}")
        count = self._there().version - before
        commits = self._table.history(count) if count else []
        ends = [row for row in commits if row["operation"] == "VACUUM END"]
        return int(ends[0]["operationMetrics"]["numDeletedFiles"]) if ends else 0

    def _with_deleted(self, columns: pa.Schema) -> pa.Schema:
        return columns.append(pa.field(DELETED, pa.bool_())) if self.soft_deletes else columns

    def _has_another_mirror(self) -> RuntimeError:
        return RuntimeError(f"{self.uri}: another mirror writes this table; stop one of them")


def _is_without_zone(field: pa.Field[Any]) -> bool:
    return isinstance(field.type, pa.TimestampType) and field.type.tz is None


def _equal(columns: pa.Schema, others: pa.Schema) -> bool:
    return [(field.name, field.type) for field in columns] == [(f.name, f.type) for f in others]
