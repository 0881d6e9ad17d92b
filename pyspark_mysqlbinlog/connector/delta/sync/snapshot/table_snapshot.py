"""The initial snapshot of one table of a mirror: from the batch that begins it to its last row.

When a table's snapshot is complete, every row that the server has was written to the Delta table
since the snapshot began: by the snapshot, or from the binlog. Older rows were deleted on the server
while the table was not followed. They are removed.

That is true only for the Delta table in which the snapshot began, with all rows that it has
delivered so far. So the table records the snapshot and its start (see `snapshot_record`). A batch
that continues a snapshot must find it, in a table that has the recorded state (see
`applied_states`). A batch that begins a snapshot needs no earlier state. Nor does a batch of a
snapshot that has read no row of the table yet, which may as well begin there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position, unpack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import SchemaSection, packed_positions
from pyspark_mysqlbinlog.connector.delta.rows.states import key_of, sorted_by_seq
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.partition_checks import check_partition_values
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import (
    TableBatchWriter,
    TableSnapshot,
    delta_schema,
)
from pyspark_mysqlbinlog.connector.delta.sync.constants import (
    KEYED_SNAPSHOT_OF_KEYLESS_TABLE,
    LAST_SNAPSHOT,
    RELOAD_HINT,
    SNAPSHOT_IN_PROGRESS,
    SNAPSHOT_POSITION,
    SOURCE_LOG,
    STOPPED,
)
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import conditions_of
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import (
    FingerprintAt,
    position_of,
    source_log,
)
from pyspark_mysqlbinlog.connector.delta.sync.multiset import check_multiset_supported
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.keyless_snapshot import (
    KeylessSnapshot,
    is_keyless,
    keyless_rows,
    last_drop_after,
    schema_fingerprint,
)
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.snapshot_record import SnapshotRecord
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError, MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["SnapshotTracker"]

_LOG = logging.getLogger(__name__)


class SnapshotTracker:
    """The snapshots of one table, as its Delta table records them.

    Parameters
    ----------
    fingerprint_at : returns a position's fingerprint in the current binlog.

    Attributes
    ----------
    record : the snapshot in progress; None without one.
    """

    def __init__(self, table: Table, target: DeltaTarget, fingerprint_at: FingerprintAt) -> None:
        self._table = table
        self._name = ".".join(table)
        self._target = target
        self._fingerprint_at = fingerprint_at
        properties = target.properties()
        self.record = SnapshotRecord.of(properties.get(SNAPSHOT_IN_PROGRESS, ""))
        self._last = SnapshotRecord.of(properties.get(LAST_SNAPSHOT, ""))

    def forget(self) -> None:
        """Forget the snapshot in progress: the Delta table no longer exists."""
        self.record = None

    def drop(self, batch: Batch) -> None:
        """Record that the table has no rows in the batch's binlog, and no snapshot in progress."""
        ended = {SNAPSHOT_IN_PROGRESS: "", SOURCE_LOG: str(batch.marker.log)}
        self._target.set_properties(ended, batch.marker)
        self.record = None

    def has_completed(self, batch: Batch) -> bool:
        """Return whether the table is complete already, with all snapshot rows of a batch."""
        if self.record is not None or self._last is None:
            return False
        return self._last.has_completed(batch, self._table)

    def skip(self, batch: Batch) -> None:
        """Record that a batch's chunks are not needed; later batches may have more of them."""
        assert self._last is not None
        passed = self._last.passed_by(batch, self._table)
        if passed != self._last:
            self._target.set_properties({LAST_SNAPSHOT: passed.text()})
            self._last = passed

    def is_begun_by(self, batch: Batch) -> bool:
        """Return whether a batch, or an earlier attempt at it, began the snapshot in progress."""
        return self.record is not None and self.record.is_begun_by(batch)

    def is_continued_by(self, batch: Batch) -> bool:
        """Return whether this query's snapshot is in progress, begun by this batch or earlier."""
        record = self.record
        if record is None or record.query != batch.query:
            return False
        return not record.is_ahead_of(batch)

    def begin(self, now: TableVersions, batch: Batch, *, is_followed: bool) -> bool:
        """Record the snapshot that begins with a batch; False if there are no rows to read yet.

        is_followed : all changes up to the batch's start are in the Delta table.
        """
        columns = self._target.columns()
        schemas = [what for _, what in now.versions if isinstance(what, TableSchema)]
        if columns is None and not schemas:
            return False  # without a Delta table or known columns there are no rows yet
        if schemas and (columns is None or _has_only_a_stop(self._target)):
            self._target.create(delta_schema(schemas[-1]), {})
        log = source_log(self._target, self._name, batch.marker.log)
        is_other = log not in {None, str(batch.marker.log)} and not batch.is_gap
        if is_other or self._target.has_since(batch.begin):
            # Rows of another binlog are older than any of this one.
            self._target.reset_seq()
        # If the table has the number of a later batch, this replaces it: the table may have lost
        # the rows of this batch.
        before = batch.query, batch.number - 1
        begin = CommitMarker(batch.marker.log, pack_position(batch.start), batch=before)
        more = {SOURCE_LOG: str(batch.marker.log), STOPPED: ""}
        had_rows, is_limited = not self._target.is_empty(), batch.limited(self._table)
        begun = SnapshotRecord.of_batch(batch, had_rows=had_rows, is_limited=is_limited)
        if not is_followed and had_rows:
            for schema in schemas[:1]:
                self._remove_ambiguous_rows(schema, batch)
        self._record(begun, more, begin)
        return True

    def _remove_ambiguous_rows(self, schema: TableSchema, batch: Batch) -> None:
        """Remove all rows if several may have equal keys, because a merge would keep them.

        The table was not followed, so its key may have been another one when they were written.
        """
        types = {field.name: field.type for field in self._target.columns() or ()}
        key, expected = key_of(schema), delta_schema(schema)
        if not key or not types.keys() >= set(key):
            return  # a key column is NULL in all of them, so no merge matches them
        if any(types[name] != expected.field(name).type for name in key) or (
            self._target.has_duplicates(key)
        ):
            if batch.limited(self._table):
                raise self._excluded_error("its key has changed")
            # If this snapshot has no condition, it replaces all of them.
            self._target.delete_older_than(batch.begin)

    def check_continued_by(self, batch: Batch) -> None:
        """MirrorError unless the Delta table has the snapshot that this batch continues."""
        may_begin = batch.starts_snapshot(self._table) or batch.has_read_none(self._table)
        if self.is_continued_by(batch) or may_begin:
            return
        if self.record and self.record.is_ahead_of(batch):
            raise self._error(
                "the Delta table is newer than the checkpoint, and has a later snapshot than the"
                f" one that this batch continues; {RELOAD_HINT}"
            )
        if self.record:
            raise self._error(f"a snapshot by another query is incomplete; {RELOAD_HINT}")
        raise self._error(
            "the Delta table does not have the snapshot that this batch continues: it was replaced"
            f" by an older copy or another table, or another query read it; {RELOAD_HINT}"
        )

    def record_condition(self, batch: Batch) -> None:
        """Record that the batch's chunks are read with a condition.

        A process without the condition may end the snapshot.
        """
        record = self.record
        if record is None or record.is_limited or not batch.has_keyed_chunk(self._table):
            return
        if batch.limited(self._table):
            self._record(replace(record, is_limited=True))

    def check_not_older(self, changes: pa.Table, batch: Batch, applied: int = 0) -> None:
        """MirrorError if a snapshot row may be older than the contents of the Delta table.

        applied : packed position up to which it is complete, if that is after the batch's start.
        """
        loaded = changes.select(["seq"]).filter(pc.equal(changes.column("op"), "r"))
        least = max(pack_position(batch.start), applied)
        if loaded.num_rows and pc.min(packed_positions(loaded)).as_py() < least:
            raise self._error(
                "a snapshot row is older than the Delta table, which is complete up to"
                f" {position_of(least, batch.start)}; {RELOAD_HINT}"
            )

    def check_columns(self, now: TableVersions, batch: Batch, applied: int) -> None:
        """MirrorError if the table had other columns at the position of a keyless snapshot.

        It was read with the columns at the end of the batch that delivered it. A snapshot in
        progress replaces its rows.
        """
        if self.record:
            return
        if not pack_position(batch.start) <= applied <= batch.marker.position:
            return
        at, _, shape = self._target.properties().get(SNAPSHOT_POSITION, "").partition(" ")
        if at != str(applied):
            return
        for _, schema in now.since(applied)[:1]:
            if isinstance(schema, TableSchema) and schema_fingerprint(schema) != shape:
                raise self._error(f"it was altered during its snapshot; {RELOAD_HINT}")

    def changes_apply_from(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int | None:
        """Return the packed position from which changes apply; None if they wait for a snapshot."""
        if self.record is None:
            return 0
        record = self.record
        waits, keyless = record.waits, is_keyless(now.versions)
        if not waits and not keyless:
            return 0
        dropped_at = last_drop_after(now.versions, pack_position(batch.start))
        if waits and dropped_at is not None and not (keyless and batch.snapshots(self._table)):
            # The table whose snapshot was pending was dropped.
            self._record(replace(record, waits=False))
            return dropped_at
        if not keyless and record.void is None and isinstance(now.versions[-1][1], TableSchema):
            if not batch.reloads:
                raise self._error(f"it got a key while its snapshot was pending; {RELOAD_HINT}")
            return self._apply_from_key(record, now, batch)
        is_read = batch.has_keyed_chunk(self._table)
        if is_read or pc.any(pc.equal(changes.column("op"), "r")).as_py():
            self._skip_rows(KEYED_SNAPSHOT_OF_KEYLESS_TABLE, batch)
        elif not waits:
            self._record_wait(record)
        return None

    def _apply_from_key(self, record: SnapshotRecord, now: TableVersions, batch: Batch) -> int:
        """Return the position from which the table has a key, by which its snapshot reads it.

        No row was read yet, so the snapshot may as well begin there. Earlier rows are removed.
        """
        since = pack_position(batch.start)
        for start, what in reversed(now.versions):
            if not isinstance(what, TableSchema) or not what.row_key:
                break
            since = max(pack_position(start), pack_position(batch.start))
        number, pos = unpack_position(since)
        begin = batch.begin | {"file": number, "pos": pos}
        self._check_no_older_row_excluded(begin, batch)
        self._target.delete_older_than(begin)
        marker = CommitMarker(batch.marker.log, since)
        self._record(replace(record, waits=False, begin=begin), marker=marker)
        return since

    def _skip_rows(self, why: str, batch: Batch) -> None:
        """Skip snapshot rows that do not fit the table's schema at the stream's position.

        They are read again: the statement that makes them fit restarts the snapshot.
        """
        if not batch.reloads or self.record is None:
            raise self._error(
                why if why == KEYED_SNAPSHOT_OF_KEYLESS_TABLE else f"{why}; {RELOAD_HINT}"
            )
        if self.record.void is None or not self.record.waits:
            self._record_wait(replace(self.record, void=why))
            self._warn_unreadable_row(why)

    def _record_wait(self, record: SnapshotRecord) -> None:
        """Record that changes wait for a keyless snapshot."""
        had_rows = record.had_rows or not self._target.is_empty()
        self._record(replace(record, waits=True, had_rows=had_rows))

    def replace_rows(self, whole: KeylessSnapshot, now: TableVersions, batch: Batch) -> bool:
        """Replace the Delta table's rows with a complete keyless snapshot.

        False if its rows do not fit the table's schema at the stream's position.
        """
        _, schema = now.versions[-1]
        if not isinstance(schema, TableSchema):
            self._skip_rows("its columns are not known where its snapshot was read", batch)
            return False
        if whole.place < batch.marker.position:
            raise self._error(f"its snapshot is older than the batch that has it; {RELOAD_HINT}")
        check_multiset_supported(schema, soft_deletes=self._target.soft_deletes)
        self._check_nothing_excluded(batch)
        try:
            rows = keyless_rows(whole, schema)
        except MirrorError as error:
            self._skip_rows(error.message.removesuffix(f"; {RELOAD_HINT}"), batch)
            return False
        check_partition_values(self._target, rows, self._name)
        place = position_of(whole.place, batch.start)
        try:
            fingerprint = self._fingerprint_at(place)
        except MySQLBinlogError:
            fingerprint = None  # it is needed only if the checkpoint is lost
        marker = CommitMarker(batch.marker.log, whole.place, fingerprint)
        self._target.replace(rows, marker)
        shape = {SNAPSHOT_POSITION: f"{whole.place} {schema_fingerprint(schema)}"}
        self._finish_record(batch, replace(marker, batch=batch.marker.batch), shape)
        _LOG.debug("%s: snapshot completed, as of %s", self._name, place)
        return True

    def _check_nothing_excluded(self, batch: Batch) -> None:
        """MirrorError if a keyless snapshot would remove rows that its condition excluded."""
        had_rows = self.record is not None and self.record.had_rows
        if had_rows and batch.limited(self._table):
            raise self._excluded_error("the table has no key")

    def hooks(self, batch: Batch) -> TableSnapshot | None:
        """Return the callbacks of a batch's writer during the snapshot; None without a snapshot."""
        if not batch.snapshots(self._table):
            return None

        def remove_older() -> None:
            assert self.record is not None
            self._check_no_older_row_excluded(self.record.begin, batch)
            self._target.delete_older_than(self.record.begin)

        if not batch.reloads:
            return TableSnapshot(None, None, remove_older)

        def restart_after(seq: Mapping[str, int]) -> None:
            assert self.record is not None
            self._record(replace(self.record, begin=dict(seq)))

        def record_unreadable(why: str) -> None:
            assert self.record is not None
            self._record(replace(self.record, void=why))
            self._warn_unreadable_row(why)

        # Both write the record before the writer continues: after a kill, the next process may not
        # see the statement again.
        return TableSnapshot(
            restart_after=restart_after,
            on_unreadable=record_unreadable,
            remove_older=remove_older,
            is_unread=self.record is not None and self.record.is_unread_before(batch),
        )

    def finish(self, now: TableVersions, batch: Batch) -> None:
        """If the snapshot is complete, remove rows deleted while the table was not followed."""
        if not self.record or not batch.completes_snapshot(self._table):
            return
        if self.record.is_ahead_of(batch):
            return
        record = self.record
        if record.waits and record.void is None:
            return
        # A dropped table has no unreadable rows.
        if (
            record.void is not None
            and last_drop_after(now.versions, pack_position(batch.start)) is None
        ):
            is_known = bool(now.versions) and isinstance(now.versions[-1][1], TableSchema)
            if is_known and not batch.may_read_ahead(self._table):
                raise self._unexplained(record.void, batch)
            return
        if record.is_limited and not self._read_rest(record.begin, now, batch):
            return  # the next batch tries again
        self._target.delete_older_than(record.begin)
        self._finish_record(batch, batch.marker)
        _LOG.debug("%s: snapshot completed", self._name)

    def _finish_record(
        self, batch: Batch, marker: CommitMarker, more: Mapping[str, str] | None = None
    ) -> None:
        """Record that the snapshot is complete."""
        ended = {SNAPSHOT_IN_PROGRESS: "", **(more or {})}
        if self.record is not None:
            self._last = replace(self.record, completed_in=batch.number)
            ended[LAST_SNAPSHOT] = self._last.text()
        self._target.set_properties(ended, marker)
        self.record = None

    def _read_rest(self, begin: Mapping[str, int], now: TableVersions, batch: Batch) -> bool:
        """Read the rows that the snapshot has not written because of its condition.

        begin : `begin` of the snapshot's record.

        False if the server has altered the table, and the stream has not reached the statement yet.
        """
        schema = now.versions[-1][1] if now.versions else None
        if not isinstance(schema, TableSchema) or not schema.row_key:
            return True
        keys = self._target.older(begin, key_of(schema))
        if any(column.null_count for column in keys.columns):
            raise self._excluded_error("its key has changed")
        if keys.num_rows:
            _LOG.info("%s: reading %d rows that snapshotWhere excluded", self._name, keys.num_rows)
        assert batch.rows_where is not None
        reading = batch.rows_where(self._table, conditions_of(schema, keys))
        with closing(reading):
            for rows, images in reading:
                self.check_not_older(rows, batch)
                unread: list[str] = []
                walk = TableBatchWriter(
                    self._name,
                    self._target,
                    batch.marker,
                    batch.marker.position,
                    now,
                    load=TableSnapshot(None, unread.append, lambda: None),
                    images=images,
                )
                walk.add_section(SchemaSection(*now.versions[-1], sorted_by_seq(rows)))
                if unread and pc.max(packed_positions(rows)).as_py() <= batch.marker.position:
                    raise self._unexplained(unread[0], batch)
                if unread:
                    return False
                walk.flush()
        return True

    def _check_no_older_row_excluded(self, begin: Mapping[str, int], batch: Batch) -> None:
        """MirrorError if rows are older than a `seq`, possibly because of a condition.

        Without their key they cannot be read from the server.
        """
        is_limited = self.record is not None and self.record.is_limited
        if (is_limited or batch.limited(self._table)) and self._target.older(begin, [SEQ]).num_rows:
            raise self._excluded_error("its key has changed")

    def _excluded_error(self, why: str) -> MirrorError:
        return self._error(
            f"{why}, and snapshotWhere limits its snapshot: it is not known which rows the"
            f" condition excluded; remove the table from snapshotWhere, and {RELOAD_HINT}"
        )

    def warn_of_unreadable_rows(self) -> None:
        """Warn if rows of the snapshot in progress could not be read."""
        if self.record and self.record.void:
            self._warn_unreadable_row(self.record.void)

    def _warn_unreadable_row(self, why: str) -> None:
        _LOG.warning(
            "%s: a snapshot row does not fit the table's columns (%s). The table is reloaded at the"
            " statement that changes them, or stopped if the binlog has none",
            self._name,
            why,
        )

    def _unexplained(self, why: str, batch: Batch) -> MirrorError:
        if not batch.reloads:
            return self._error(f"it was altered during its snapshot ({why}); {RELOAD_HINT}")
        if why == KEYED_SNAPSHOT_OF_KEYLESS_TABLE:
            return self._error(why)
        return self._error(
            f"a snapshot row does not fit the table's columns ({why}), and no statement changed"
            " them: correct the value or exclude the column (excludeColumns), and"
            f" {RELOAD_HINT}"
        )

    def _record(
        self,
        record: SnapshotRecord,
        more: Mapping[str, str] | None = None,
        marker: CommitMarker | None = None,
    ) -> None:
        self.record = record
        self._target.set_properties({SNAPSHOT_IN_PROGRESS: record.text(), **(more or {})}, marker)

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _has_only_a_stop(target: DeltaTarget) -> bool:
    """Return whether a stop created the Delta table: it has no other columns and no partitions."""
    columns = target.columns()
    return columns is not None and columns.names == [SEQ] and target.is_empty()
