"""Applies batches to one table of a mirror: the new changes of each go to its Delta table.

An initial snapshot runs while the binlog is followed. Each snapshot row has a position, and it was
verified that the row's SELECT saw every change before that position. The position is read when a
batch's tasks run, so it is at the batch's end or after it, and a snapshot row is never older than
the contents of the Delta table. Hence it cannot restore a deleted row, and deletes leave no
tombstones: changes after a delete are newer than it. If an older snapshot row does occur, the table
is stopped.

The beginning and the end of a snapshot are in `table_snapshot`.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL, SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import (
    drop_applied,
    split_by_schema,
)
from pyspark_mysqlbinlog.connector.delta.rows.states import sorted_by_seq
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import RESTORED
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import (
    TableBatchWriter,
    delta_schema,
)
from pyspark_mysqlbinlog.connector.delta.sync.constants import (
    KEYED_SNAPSHOT_OF_KEYLESS_TABLE,
    RELOAD_HINT,
    SOURCE_LOG,
    STOPPED,
    TRANSFORMS,
)
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import (
    FingerprintAt,
    LogIdentityCheck,
    held_fingerprint,
    source_log,
)
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.keyless_snapshot import (
    find_keyless_snapshot,
    last_drop_after,
)
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.table_snapshot import SnapshotTracker
from pyspark_mysqlbinlog.connector.delta.sync.synced_table import SyncedTable
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["MirroredTable"]


class MirroredTable(SyncedTable):
    """One mirrored table. `apply` raises MirrorError if Delta cannot be kept equal to MySQL.

    transforms : a hash of the masks and the filter of its rows; empty if there are none.
    """

    def __init__(
        self,
        table: Table,
        target: DeltaTarget,
        fingerprint_at: FingerprintAt,
        state: AppliedState | None = None,
        *,
        transforms: str = "",
    ) -> None:
        super().__init__(table, target, fingerprint_at, state)
        self._transforms = transforms
        self._last: tuple[Version, ...] = ()
        self._snapshot = SnapshotTracker(table, target, fingerprint_at)
        if self.stopped is None:
            self._snapshot.warn_of_unreadable_rows()

    def stop(self, error: MirrorError, batch: Batch) -> None:
        """Stop replication, in this query and later ones, until the table is reloaded.

        batch : in which the error occurred.
        """
        self._target.forget_state()
        if self._target.columns() is None:
            self._snapshot.forget()
            self._target.create(pa.schema([pa.field(SEQ, SEQ_TYPE)]), {})
        self._target.set_properties({STOPPED: error.message})
        self.stopped = error.message
        self._record_state(batch)

    def count(self) -> int:
        """Return the row count of the Delta table."""
        return self._target.count()

    def apply(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int:
        """Apply one batch's changes; returns how many of them were new."""
        if batch.log_before is not None and not batch.is_gap:
            missing = None if self._is_checked else self._missing(now, batch)
            if missing is not None:
                raise missing
            self._enter_log(batch.log_before, batch)
            self._record_state(batch)
            return 0
        self._check_again_in(batch.marker.log)
        if batch.is_gap and not batch.snapshots(self._table):
            self._remove_lost(batch)
            self._record_state(batch)
            return 0
        is_quiet = not changes.num_rows and now.versions == self._last and not self._snapshot.record
        if is_quiet and not batch.snapshots(self._table):
            return 0
        missing = None if self._is_checked else self._missing(now, batch)
        count = self._apply_batch(changes, now, batch, missing)
        self._record_state(batch)
        return count

    def _record_state(self, batch: Batch) -> None:
        if self.stopped is not None and self.state is not None and self.state.stopped is not None:
            return  # stopped in an earlier batch
        if self._target.columns() is not None:
            self.state = AppliedState.of(self._target, batch, self.stopped)

    def _apply_batch(
        self, changes: pa.Table, now: TableVersions, batch: Batch, missing: MirrorError | None
    ) -> int:
        """Apply one batch's changes; see `apply`.

        missing : the error if the Delta table lacks recorded changes.
        """
        if missing is None and self.stopped is None and self._snapshot.has_completed(batch):
            self._snapshot.skip(batch)
            changes, batch = _without_loaded(changes), batch.without_snapshot(self._table)
        if missing is None and self._is_done(batch):
            # The process may have ended right before the last sub-batch.
            if self.stopped is None:
                self._snapshot.finish(now, batch)
            return 0
        if self._may_begin_snapshot(batch, missing):
            self._begin_snapshot(now, batch, is_as_left=missing is None)
        elif missing is not None:
            raise missing
        if self.stopped is not None:
            return 0
        self._check_not_in_part(self._target.txn_version(str(batch.marker.log)) or 0, batch)
        if not self._is_checked:
            self._check_mirror(now, batch)
        if batch.snapshots(self._table):
            self._snapshot.check_continued_by(batch)
            self._snapshot.record_condition(batch)
        whole = find_keyless_snapshot(changes, self._name)
        if whole is not None:
            if batch.has_keyed_chunk(self._table):
                # Rows that were read by a key may have the same position as the keyless snapshot.
                raise self._error(KEYED_SNAPSHOT_OF_KEYLESS_TABLE)
            if self._snapshot.replace_rows(whole, now, batch):
                self._last = ()
            return whole.rows.num_rows
        since = self._snapshot.changes_apply_from(changes, now, batch)
        if since is None:
            self._snapshot.finish(now, batch)
            return 0
        count = self._apply_changes(sorted_by_seq(changes), now, batch, since)
        self._snapshot.finish(now, batch)
        return count

    def _may_begin_snapshot(self, batch: Batch, missing: MirrorError | None) -> bool:
        """Return whether a snapshot of the table is to begin with this batch."""
        if self.stopped is not None and not batch.is_first_sub_batch:
            return False  # the previous sub-batch may have stopped it, and is missing
        if batch.starts_snapshot(self._table):
            return True
        if not batch.snapshots(self._table) or not batch.has_read_none(self._table):
            return False
        if self.stopped is not None or (
            self.state is not None and self.state.is_stopped(self._target, batch.query)
        ):
            return batch.begins_reload
        return missing is not None or not self._snapshot.is_continued_by(batch)

    def _begin_snapshot(self, now: TableVersions, batch: Batch, *, is_as_left: bool) -> None:
        """Begin a snapshot with this batch.

        is_as_left : the Delta table has its recorded state.
        """
        if is_as_left and self._snapshot.is_begun_by(batch):
            # This very batch began it, and is replayed: the table may have some of it already.
            self._is_checked = True
            return
        is_followed = (
            is_as_left and not batch.is_gap and self.state is not None and self.stopped is None
        )
        if self._snapshot.begin(now, batch, is_followed=is_followed):
            self.stopped = None
            self._is_checked = True

    def _enter_log(self, before: LogIdentity, batch: Batch) -> None:
        """Continue in another binlog, into which a batch without changes leads.

        The table has all changes of the previous binlog, which has ended.
        """
        log, target = batch.marker.log, self._target
        if self.stopped is not None or target.columns() is None:
            return
        known = target.properties().get(SOURCE_LOG)
        if known is None and target.txn_version(str(before)) is not None:
            known = str(before)  # the writing process ended before it could record that
        if known in {None, str(log)}:
            return  # it has no rows yet, or the batch is replayed
        if known != str(before):
            raise self._of_another_log(known, before)
        if self._is_restored():
            raise self._error(f"{RESTORED}; {RELOAD_HINT}")
        applied = target.txn_version(str(before)) or 0
        self._check_not_ahead(applied, batch, "the Delta table", RELOAD_HINT)
        target.set_properties({SOURCE_LOG: str(log)}, batch.marker)

    def _remove_lost(self, batch: Batch) -> None:
        """Remove the rows of a table that was dropped in a lost part of the binlog."""
        if self.stopped is None and self._target.columns() is not None:
            self._target.delete_older_than(batch.begin)
            self._snapshot.drop(batch)

    def _is_restored(self) -> bool:
        """Return whether an older version of its rows was restored, unless checked already."""
        is_new = self.state is None and not self._snapshot.record
        return is_new and self._target.was_restored()

    def _of_another_log(self, known: str | None, log: LogIdentity) -> MirrorError:
        return self._error(f"its rows are from another binlog ({known}, now {log}); {RELOAD_HINT}")

    def _is_done(self, batch: Batch) -> bool:
        """Return whether the Delta table has all of a batch.

        Its number alone does not show this: with a checkpoint that was restored from a copy,
        batches of the same query repeat numbers of others. They may have other chunks, and begin
        other snapshots.
        """
        if batch.has_chunk(self._table):
            return False
        if batch.starts_snapshot(self._table) and not self._snapshot.is_begun_by(batch):
            return False
        done = self._target.txn_version(batch.query)
        if done is None or done < batch.number:
            return False
        return (self._target.txn_version(str(batch.marker.log)) or 0) >= batch.marker.position

    def _apply_changes(
        self, changes: pa.Table, now: TableVersions, batch: Batch, since: int
    ) -> int:
        """Apply the changes after `since` that the Delta table does not have; returns how many."""
        applied = max(self._target.txn_version(str(batch.marker.log)) or 0, since)
        self._snapshot.check_columns(now, batch, applied)
        changes = drop_applied(changes, applied)
        # A Delta table that is ahead of the batch has later columns, too.
        if changes.num_rows or applied <= batch.marker.position:
            self._snapshot.check_not_older(changes, batch, applied)
            marker = batch.marker
            if applied > marker.position:
                self._check_no_later_shape(now)
                # Otherwise the changes between the two would be applied again.
                known = held_fingerprint(self._target, marker.log)
                marker = replace(marker, position=applied, fingerprint=known)
            walk = TableBatchWriter(
                self._name,
                self._target,
                marker,
                applied,
                now,
                load=self._snapshot.hooks(batch),
                images=batch.images,
                dropped_at=last_drop_after(now.versions, applied),
                precomputed=batch.precomputed.get(self._table),
            )
            for section in split_by_schema(changes, now.since(applied)):
                walk.add_section(section)
            walk.flush()
            self._name_log(batch.marker)
            self._last = now.versions if len(now.versions) == 1 else ()
        return changes.num_rows

    def _check_no_later_shape(self, now: TableVersions) -> None:
        """MirrorError unless the Delta table, which is ahead of the batch, has its columns."""
        held, what = self._target.columns(), now.versions[-1][1]
        if held is None or not isinstance(what, TableSchema):
            return
        found = {(field.name, str(field.type)) for field in held}
        others = found ^ {(field.name, str(field.type)) for field in delta_schema(what)}
        if others:
            different = ", ".join(sorted({name for name, _ in others}))
            raise self._error(
                f"the Delta table has later columns than a batch of its snapshot ({different}): it"
                f" is newer than the checkpoint; {RELOAD_HINT}"
            )

    def _missing(self, now: TableVersions, batch: Batch) -> MirrorError | None:
        """Return the error if the Delta table lacks what was recorded of it; None if it has all."""
        if self.state is None:
            return None
        if self.stopped is None and self.state.is_stopped(self._target, batch.query):
            return self._error(str(self.state.stopped))
        if self.stopped is not None or now.is_absent_at(batch.start):
            # A table that does not exist needs no earlier state.
            return None
        what = self.state.missing_in(self._target, batch.query)
        return None if what is None else self._error(f"{what}; {RELOAD_HINT}")

    def _check_mirror(self, now: TableVersions, batch: Batch) -> None:
        """MirrorError unless the Delta table continues where the batch begins."""
        known = source_log(self._target, self._name, batch.marker.log)
        if known is None:
            was_there = now.versions and pack_position(now.versions[0][0]) == 0
            if was_there and not batch.is_first and not self._snapshot.record:
                raise self._error(
                    "the Delta table no longer exists, or was replaced by another one;"
                    f" {RELOAD_HINT}"
                )
            self._is_checked = True
            return
        log = batch.marker.log
        if known != str(log) and _comes_back(now, batch) and known.startswith(log.of_server):
            # It did not exist where the previous binlog ended: its rows in Delta are removed.
            marker = CommitMarker(log, pack_position(batch.start))
            self._target.set_properties({SOURCE_LOG: str(log)}, marker)
            known = str(log)
        if known != str(log):
            raise self._of_another_log(known, log)
        if self._is_restored():
            raise self._error(f"{RESTORED}; {RELOAD_HINT}")
        snapshot = self._snapshot.record
        if snapshot and snapshot.query != batch.query:
            raise self._error(f"a snapshot by another query is incomplete; {RELOAD_HINT}")
        applied = self._target.txn_version(str(batch.marker.log))
        if applied is not None:
            same = LogIdentityCheck(self._name, self._target, self._fingerprint_at, RELOAD_HINT)
            if batch.is_first:
                same.check_no_gap(applied, batch.start)
                same.check_same_log(applied, batch.start, batch.marker.log)
            elif not batch.is_replay:  # the lost server cannot be queried
                same.check_resumable(applied, batch.start, batch.marker.log)
        self._is_checked = True

    def _name_log(self, marker: CommitMarker) -> None:
        """Record the binlog of the rows' positions, and a hash of the masks and the row filter."""
        if self._target.columns() is None:
            return
        known, noted = self._target.properties(), {}
        if SOURCE_LOG not in known:
            noted[SOURCE_LOG] = str(marker.log)
        if known.get(TRANSFORMS, "") != self._transforms:
            noted[TRANSFORMS] = self._transforms
        if noted:
            self._target.set_properties(noted)


def _comes_back(now: TableVersions, batch: Batch) -> bool:
    """Return whether the earlier batches show that the table did not exist at a batch's start."""
    return not batch.is_first and now.is_absent_at(batch.start)


def _without_loaded(changes: pa.Table) -> pa.Table:
    """Return the changes that come from the binlog."""
    row = pc.struct_field(changes.column("seq").cast(SEQ_TYPE), "row")
    is_loaded = pc.or_(pc.equal(changes.column("op"), "r"), pc.less_equal(row, ROW_BEFORE_ALL))
    return changes.filter(pc.invert(is_loaded))
