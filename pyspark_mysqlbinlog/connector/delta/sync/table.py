"""Applies batches to one table of a mirror: the new changes of each go to its Delta table.

An initial snapshot runs while the binlog is followed. A snapshot row has a position of which it was
verified that the row's SELECT saw everything before it. That position is read when a batch's tasks
run, so it is at the batch's end or after it, and a snapshot row is never older than the contents of
the Delta table. Hence it cannot restore a deleted row, and deletes leave no tombstones: changes
after a delete are newer than it. If an older snapshot row does occur, the table is stopped.

When a table's snapshot is complete, every row that the server has was written since it began: by
the snapshot, or from the binlog. Older rows were deleted while the table was not followed, and are
removed.

That is true only for the Delta table in which the snapshot began, with all rows that it has
delivered so far. So the table records the snapshot and its start. A batch that continues a snapshot
must find it, in a table that has the recorded state (see `applied_states`). A batch that begins a
snapshot needs no earlier state. Nor does a batch of a snapshot that has read no row of the table
yet, which may as well begin there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL, SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position, unpack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import (
    Section,
    drop_applied,
    packed_positions,
    sections,
)
from pyspark_mysqlbinlog.connector.delta.rows.states import key_of, sorted_by_seq
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity, Mark
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.partition_checks import check_partition_values
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import (
    KEYED_SNAPSHOT_OF_KEYLESS_TABLE,
    RELOAD_HINT,
    TableSnapshot,
    Walk,
    delta_schema,
)
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import conditions_of
from pyspark_mysqlbinlog.connector.delta.sync.keyless_snapshot import (
    KeylessSnapshot,
    find_keyless_snapshot,
    is_keyless,
    keyless_rows,
    last_drop_after,
    schema_fingerprint,
)
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import (
    FingerprintAt,
    LogIdentityCheck,
    held_fingerprint,
    position_of,
)
from pyspark_mysqlbinlog.connector.delta.sync.multiset import check_multiset_supported
from pyspark_mysqlbinlog.connector.delta.sync.snapshot_record import (
    LAST_LOADED,
    LOADING,
    SnapshotRecord,
)
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError, MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["LOG", "STOPPED", "MirroredTable"]

_LOG = logging.getLogger(__name__)

# Properties of a Delta table: why it is stopped; the binlog of its `seq`; the position of a
# complete keyless snapshot, and its columns.
STOPPED = "mysqlbinlog.stopped"
LOG = "mysqlbinlog.sourceLog"
LOADED = "mysqlbinlog.snapshotPosition"


class MirroredTable:
    """One table. `apply` raises MirrorError if the Delta table cannot be kept equal.

    Parameters
    ----------
    look_at : returns a position's fingerprint in the current binlog.
    state : the Delta table's state after the query's last batch; None if not known.

    Attributes
    ----------
    stopped : why replication of the table stopped; None if it has not.
    state : the Delta table's current state.
    """

    def __init__(
        self,
        table: Table,
        target: DeltaTarget,
        look_at: FingerprintAt,
        state: AppliedState | None = None,
    ) -> None:
        self.state = state
        self._look_at = look_at
        self._table = table
        self._name = ".".join(table)
        self._target = target
        self._last: tuple[Version, ...] = ()
        self._is_checked = False
        self._checked_in: LogIdentity | None = None
        properties = target.properties()
        self.stopped = properties.get(STOPPED) or None
        self._loading = SnapshotRecord.of(properties.get(LOADING, ""))
        self._last_loaded = SnapshotRecord.of(properties.get(LAST_LOADED, ""))
        if self._loading and self._loading.void and self.stopped is None:
            self._say_void(self._loading.void)

    def stop(self, error: MirrorError, batch: Batch) -> None:
        """Stop replication, in this query and later ones, until the table is reloaded.

        batch : in which the error occurred.
        """
        self._target.look_again()
        if self._target.columns() is None:
            self._loading = None
            self._target.create(pa.schema([pa.field(SEQ, SEQ_TYPE)]), {})
        self._target.set_properties({STOPPED: error.message})
        self.stopped = error.message
        self._note_state(batch)

    def count(self) -> int:
        """Return the row count of the Delta table."""
        return self._target.count()

    def apply(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int:
        """Apply one batch's changes; returns how many of them were new."""
        if batch.log_before is not None:
            missing = None if self._is_checked else self._missing(now, batch)
            if missing is not None:
                raise missing
            self._enter_log(batch.log_before, batch)
            self._note_state(batch)
            return 0
        if self._checked_in != batch.mark.log:
            # A table that did not exist where the previous binlog ended has not entered this one.
            self._checked_in, self._is_checked = batch.mark.log, False
        is_quiet = not changes.num_rows and now.versions == self._last and not self._loading
        if is_quiet and not batch.loads(self._table):
            return 0
        missing = None if self._is_checked else self._missing(now, batch)
        count = self._take(changes, now, batch, missing)
        self._note_state(batch)
        return count

    def _note_state(self, batch: Batch) -> None:
        if self.stopped is not None and self.state is not None and self.state.stopped is not None:
            return  # stopped in an earlier batch
        if self._target.columns() is not None:
            self.state = AppliedState.of(self._target, batch, self.stopped)

    def _take(
        self, changes: pa.Table, now: TableVersions, batch: Batch, missing: MirrorError | None
    ) -> int:
        """Apply one batch's changes; see `apply`.

        missing : the error if the Delta table lacks recorded changes.
        """
        if missing is None and self._has_completed(batch):
            self._pass_over(batch)
            changes, batch = _without_loaded(changes), batch.without_snapshot(self._table)
        if missing is None and self._is_done(batch):
            # The process may have ended right before the last sub-batch.
            if self.stopped is None:
                self._maybe_end_load(now, batch)
            return 0
        if self._may_begin_load(batch, missing):
            self._begin_load(now, batch, is_as_left=missing is None)
        elif missing is not None:
            raise missing
        if self.stopped is not None:
            return 0
        if not self._is_checked:
            self._check_mirror(now, batch)
        if batch.loads(self._table):
            self._check_load(batch)
            self._note_condition(batch)
        whole = find_keyless_snapshot(changes, self._name)
        if whole is not None:
            if batch.has_keyed_chunk(self._table):
                # Its rows may have the same position as those that were read at once.
                raise self._error(KEYED_SNAPSHOT_OF_KEYLESS_TABLE)
            self._take_whole(whole, now, batch)
            return whole.rows.num_rows
        since = self._counts_since(changes, now, batch)
        if since is None:
            self._maybe_end_load(now, batch)
            return 0
        count = self._bring_in(sorted_by_seq(changes), now, batch, since)
        self._maybe_end_load(now, batch)
        return count

    def _enter_log(self, before: LogIdentity, batch: Batch) -> None:
        """Continue in the binlog into which a batch leads.

        The table has everything of the previous one, which has ended.
        """
        log, target = batch.mark.log, self._target
        if self.stopped is not None or target.columns() is None:
            return
        known = target.properties().get(LOG)
        if known is None and target.applied(str(before)) is not None:
            known = str(before)  # the writing process ended before it could record that
        if known in {None, str(log)}:
            return  # it has no rows yet, or the batch is replayed
        if known != str(before):
            raise self._of_another_log(known, before)
        if self._is_restored():
            raise self._error(f"an older version of its rows was restored; {RELOAD_HINT}")
        applied = target.applied(str(before)) or 0
        if applied > pack_position(batch.start):
            number, pos = unpack_position(applied)
            raise self._error(
                f"the Delta table is complete up to position {pos} of binlog file number"
                f" {number}, but the server's binlog of this name ends before it, at {batch.start};"
                f" {RELOAD_HINT}"
            )
        target.set_properties({LOG: str(log)}, batch.mark)

    def _is_restored(self) -> bool:
        """Return whether an older version of its rows was restored, unless checked already."""
        is_new = self.state is None and not self._loading
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
        is_begun = self._loading is not None and self._loading.is_begun_by(batch)
        if batch.starts_snapshot(self._table) and not is_begun:
            return False
        done = self._target.applied(batch.query)
        if done is None or done < batch.number:
            return False
        return (self._target.applied(str(batch.mark.log)) or 0) >= batch.mark.version

    def _has_completed(self, batch: Batch) -> bool:
        """Return whether the table is complete already, with all snapshot rows of a batch."""
        last = self._last_loaded
        if self.stopped is not None or self._loading is not None or last is None:
            return False
        return last.has_completed(batch, self._table)

    def _pass_over(self, batch: Batch) -> None:
        """Record that a batch's chunks are not needed; later batches may have more of them."""
        assert self._last_loaded is not None
        passed = self._last_loaded.passed_by(batch, self._table)
        if passed != self._last_loaded:
            self._target.set_properties({LAST_LOADED: passed.text()})
            self._last_loaded = passed

    def _bring_in(self, changes: pa.Table, now: TableVersions, batch: Batch, since: int) -> int:
        applied = max(self._target.applied(str(batch.mark.log)) or 0, since)
        self._check_shape_of_load(now, batch, applied)
        changes = drop_applied(changes, applied)
        # A Delta table that is ahead of the batch has later columns, too.
        if changes.num_rows or applied <= batch.mark.version:
            self._check_new_loads(changes, batch, applied)
            mark, comes = batch.mark, now.came_by_rename
            if applied > mark.version:
                self._check_no_later_shape(now)
                # Otherwise the changes between the two would be applied again.
                known = held_fingerprint(self._target, mark.log)
                mark = replace(mark, version=applied, fingerprint=known)
            walk = Walk(
                self._name,
                self._target,
                mark,
                applied,
                comes,
                load=self._load_of(batch),
                images=batch.images,
                gone=last_drop_after(now.versions, applied),
                prepared=batch.prepared.get(self._table),
            )
            for section in sections(changes, _from(now.versions, applied)):
                walk.take(section)
            walk.finish()
            self._name_log(batch.mark)
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

    def _take_whole(self, whole: KeylessSnapshot, now: TableVersions, batch: Batch) -> None:
        """Replace the Delta table's rows with a complete keyless snapshot."""
        _, schema = now.versions[-1]
        if not isinstance(schema, TableSchema):
            self._leave_out("its columns are not known where its snapshot was read", batch)
            return
        if whole.place < batch.mark.version:
            raise self._error(f"its snapshot is older than the batch that has it; {RELOAD_HINT}")
        check_multiset_supported(schema, soft_deletes=self._target.soft_deletes)
        self._check_all_rows(batch)
        try:
            rows = keyless_rows(whole, schema)
        except MirrorError as error:
            self._leave_out(error.message.removesuffix(f"; {RELOAD_HINT}"), batch)
            return
        check_partition_values(self._target, rows, self._name)
        place = position_of(whole.place, batch.start)
        try:
            fingerprint = self._look_at(place)
        except MySQLBinlogError:
            fingerprint = None  # it is needed only if the checkpoint is lost
        mark = Mark(batch.mark.log, whole.place, fingerprint)
        self._target.replace(rows, mark)
        shape = {LOADED: f"{whole.place} {schema_fingerprint(schema)}"}
        self._end_load(batch, replace(mark, batch=batch.mark.batch), shape)
        self._last = ()
        _LOG.debug("%s: snapshot completed, as of %s", self._name, place)

    def _check_all_rows(self, batch: Batch) -> None:
        """MirrorError if a keyless snapshot would remove rows that its condition excluded."""
        had_rows = self._loading is not None and self._loading.had_rows
        if had_rows and batch.limited(self._table):
            raise self._left_out_error("the table has no key")

    def _check_none_left_out(self, begin: Mapping[str, int], batch: Batch) -> None:
        """MirrorError if rows are older than a `seq`, possibly because of a condition.

        Without their key they cannot be read from the server.
        """
        is_limited = self._loading is not None and self._loading.is_limited
        if (is_limited or batch.limited(self._table)) and self._target.older(begin, [SEQ]).num_rows:
            raise self._left_out_error("its key has changed")

    def _left_out_error(self, why: str) -> MirrorError:
        return self._error(
            f"{why}, and snapshotWhere limits its snapshot: it is not known which rows the"
            f" condition excluded; remove the table from snapshotWhere, and {RELOAD_HINT}"
        )

    def _check_shape_of_load(self, now: TableVersions, batch: Batch, applied: int) -> None:
        """MirrorError if the table had other columns at the position of a keyless snapshot.

        It was read with the columns at the end of the batch that delivered it. A snapshot in
        progress replaces its rows.
        """
        if self._loading:
            return
        if not pack_position(batch.start) <= applied <= batch.mark.version:
            return
        at, _, shape = self._target.properties().get(LOADED, "").partition(" ")
        if at != str(applied):
            return
        for _, schema in _from(now.versions, applied)[:1]:
            if isinstance(schema, TableSchema) and schema_fingerprint(schema) != shape:
                raise self._error(f"it was altered during its snapshot; {RELOAD_HINT}")

    def _counts_since(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int | None:
        """Return from where changes are applied; None if they wait for a keyless snapshot."""
        if self._loading is None:
            return 0
        loading = self._loading
        waits, keyless = loading.waits, is_keyless(now.versions)
        if not waits and not keyless:
            return 0
        gone = last_drop_after(now.versions, pack_position(batch.start))
        if waits and gone is not None and not (keyless and batch.loads(self._table)):
            # The table whose snapshot was pending was dropped.
            self._note_load(replace(loading, waits=False))
            return gone
        if not keyless and loading.void is None and isinstance(now.versions[-1][1], TableSchema):
            if not batch.reloads:
                raise self._error(f"it got a key while its snapshot was pending; {RELOAD_HINT}")
            return self._count_since_key(loading, now, batch)
        is_read = batch.has_keyed_chunk(self._table)
        if is_read or pc.any(pc.equal(changes.column("op"), "r")).as_py():
            self._leave_out(KEYED_SNAPSHOT_OF_KEYLESS_TABLE, batch)
        elif not waits:
            self._note_wait(loading)
        return None

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

    def _check_load(self, batch: Batch) -> None:
        """MirrorError unless the Delta table has the snapshot that this batch continues."""
        if self._has_load(batch) or self._is_to_begin(batch):
            return
        if self._loading and self._loading.is_ahead_of(batch):
            raise self._error(
                "the Delta table is newer than the checkpoint, and has a later snapshot than the"
                f" one that this batch continues; {RELOAD_HINT}"
            )
        if self._loading:
            raise self._error(f"a snapshot by another query is incomplete; {RELOAD_HINT}")
        raise self._error(
            "the Delta table does not have the snapshot that this batch continues: it was replaced"
            f" by an older copy or another table, or another query read it; {RELOAD_HINT}"
        )

    def _has_load(self, batch: Batch) -> bool:
        """Return whether this query's snapshot is in progress, begun by this batch or earlier."""
        loading = self._loading
        if loading is None or loading.query != batch.query:
            return False
        return not loading.is_ahead_of(batch)

    def _is_to_begin(self, batch: Batch) -> bool:
        return batch.starts_snapshot(self._table) or batch.has_read_none(self._table)

    def _may_begin_load(self, batch: Batch, missing: MirrorError | None) -> bool:
        """Return whether a snapshot of the table is to begin with this batch."""
        if self.stopped is not None and not batch.is_first_step:
            return False  # the previous sub-batch may have stopped it, and is missing
        if batch.starts_snapshot(self._table):
            return True
        if not batch.loads(self._table) or not batch.has_read_none(self._table):
            return False
        if self.stopped is not None or (
            self.state is not None and self.state.is_stopped(self._target, batch.query)
        ):
            return batch.begins_reload
        return missing is not None or not self._has_load(batch)

    def _count_since_key(self, loading: SnapshotRecord, now: TableVersions, batch: Batch) -> int:
        """Return the position from which the table has a key, by which its snapshot reads it.

        Nothing of it was read yet, so the snapshot may as well begin there: earlier rows are void.
        """
        since = pack_position(batch.start)
        for start, what in reversed(now.versions):
            if not isinstance(what, TableSchema) or not what.row_key:
                break
            since = max(pack_position(start), pack_position(batch.start))
        number, pos = unpack_position(since)
        begin = batch.begin | {"file": number, "pos": pos}
        self._check_none_left_out(begin, batch)
        self._target.empty(begin)
        mark = Mark(batch.mark.log, since)
        self._note_load(replace(loading, waits=False, begin=begin), mark=mark)
        return since

    def _leave_out(self, why: str, batch: Batch) -> None:
        """Skip snapshot rows that do not fit the table as the stream knows it so far.

        They are read again: the statement that makes them fit restarts the snapshot.
        """
        if not batch.reloads or self._loading is None:
            raise self._error(
                why if why == KEYED_SNAPSHOT_OF_KEYLESS_TABLE else f"{why}; {RELOAD_HINT}"
            )
        if self._loading.void is None or not self._loading.waits:
            self._note_wait(replace(self._loading, void=why))
            self._say_void(why)

    def _note_wait(self, loading: SnapshotRecord) -> None:
        """Record that changes wait for a keyless snapshot."""
        had_rows = loading.had_rows or not self._target.is_empty()
        self._note_load(replace(loading, waits=True, had_rows=had_rows))

    def _check_mirror(self, now: TableVersions, batch: Batch) -> None:
        """MirrorError unless the Delta table continues where the batch begins."""
        known = self._log_of_rows(batch)
        if known is None:
            was_there = now.versions and pack_position(now.versions[0][0]) == 0
            if was_there and not batch.is_first and not self._loading:
                raise self._error(
                    "the Delta table no longer exists, or was replaced by another one;"
                    f" {RELOAD_HINT}"
                )
            self._is_checked = True
            return
        log = batch.mark.log
        if known != str(log) and _comes_back(now, batch) and known.startswith(log.of_server):
            # It did not exist where the previous binlog ended, and Delta's rows of it are removed.
            self._target.set_properties({LOG: str(log)}, Mark(log, pack_position(batch.start)))
            known = str(log)
        if known != str(log):
            raise self._of_another_log(known, log)
        if self._is_restored():
            raise self._error(f"an older version of its rows was restored; {RELOAD_HINT}")
        if self._loading and self._loading.query != batch.query:
            raise self._error(f"a snapshot by another query is incomplete; {RELOAD_HINT}")
        applied = self._target.applied(str(batch.mark.log))
        if applied is not None:
            same = LogIdentityCheck(self._name, self._target, self._look_at, RELOAD_HINT)
            if batch.is_first:
                same.check_no_gap(applied, batch.start)
                same.check_same_log(applied, batch.start, batch.mark.log)
            else:
                same.check_resumable(applied, batch.start, batch.mark.log)
        self._is_checked = True

    def _log_of_rows(self, batch: Batch) -> str | None:
        """Return the binlog of the rows' positions; None if the Delta table has no rows yet.

        MirrorError if no mirror wrote them.
        """
        log = str(batch.mark.log)
        known, columns = self._target.properties().get(LOG), self._target.columns()
        is_mirror = columns is not None and SEQ in columns.names
        if known is None and is_mirror and self._target.applied(log) is not None:
            return log  # the writing process ended before it could record that
        if known is None and not self._target.is_empty():
            raise self._error(
                "the Delta table has rows that no mirror wrote: set another target, or remove the"
                " table"
            )
        return known

    def _check_new_loads(self, changes: pa.Table, batch: Batch, applied: int = 0) -> None:
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

    def _begin_load(self, now: TableVersions, batch: Batch, *, is_as_left: bool) -> None:
        """Record the snapshot that begins with this batch.

        is_as_left : the Delta table has its recorded state.
        """
        if is_as_left and self._loading is not None and self._loading.is_begun_by(batch):
            # This very batch began it, and is replayed: the table may have some of it already.
            self._is_checked = True
            return
        columns = self._target.columns()
        schemas = [what for _, what in now.versions if isinstance(what, TableSchema)]
        if columns is None and not schemas:
            return  # without a Delta table or known columns there are no rows yet
        if schemas and (columns is None or _has_only_a_stop(self._target)):
            self._target.create(delta_schema(schemas[-1]), {})
        log = self._log_of_rows(batch)
        if log not in {None, str(batch.mark.log)} or self._target.has_since(batch.begin):
            # Rows of another binlog are older than any of this one.
            self._target.reset_seq()
        # Not the number of a later batch: the table may have lost its rows of this one.
        before = batch.query, batch.number - 1
        begin = Mark(batch.mark.log, pack_position(batch.start), batch=before)
        more = {LOG: str(batch.mark.log), STOPPED: ""}
        had_rows, is_limited = not self._target.is_empty(), batch.limited(self._table)
        begun = SnapshotRecord.of_batch(batch, had_rows=had_rows, is_limited=is_limited)
        is_followed = is_as_left and self.state is not None and self.stopped is None
        if not is_followed and had_rows:
            for schema in schemas[:1]:
                self._remove_ambiguous_rows(schema, batch)
        self._note_load(begun, more, begin)
        self.stopped = None
        self._is_checked = True

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
                raise self._left_out_error("its key has changed")
            # If this snapshot has no condition, it replaces all of them.
            self._target.empty(batch.begin)

    def _note_condition(self, batch: Batch) -> None:
        """Record that the batch's chunks are read with a condition.

        A process without the condition may end the snapshot.
        """
        loading = self._loading
        if loading is None or loading.is_limited or not batch.has_keyed_chunk(self._table):
            return
        if batch.limited(self._table):
            self._note_load(replace(loading, is_limited=True))

    def _note_load(
        self,
        loading: SnapshotRecord,
        more: Mapping[str, str] | None = None,
        mark: Mark | None = None,
    ) -> None:
        self._loading = loading
        self._target.set_properties({LOADING: loading.text(), **(more or {})}, mark)

    def _load_of(self, batch: Batch) -> TableSnapshot | None:
        if not batch.loads(self._table):
            return None

        def remove_older() -> None:
            assert self._loading is not None
            self._check_none_left_out(self._loading.begin, batch)
            self._target.empty(self._loading.begin)

        if not batch.reloads:
            return TableSnapshot(None, None, remove_older)

        def restart_after(seq: Mapping[str, int]) -> None:
            assert self._loading is not None
            self._note_load(replace(self._loading, begin=dict(seq)))

        def note_void(why: str) -> None:
            assert self._loading is not None
            self._note_load(replace(self._loading, void=why))
            self._say_void(why)

        # Both are recorded before what follows from them: after a kill, the next process may not
        # see the statement again.
        return TableSnapshot(
            restart_after=restart_after,
            on_unreadable=note_void,
            remove_older=remove_older,
            is_unread=self._loading is not None and self._loading.is_unread_before(batch),
        )

    def _maybe_end_load(self, now: TableVersions, batch: Batch) -> None:
        """If the snapshot is complete, remove rows deleted while the table was not followed."""
        if not self._loading or not batch.completes_snapshot(self._table):
            return
        if self._loading.is_ahead_of(batch):
            return
        load = self._loading
        if load.waits and load.void is None:
            return
        # A dropped table has no such rows.
        if (
            load.void is not None
            and last_drop_after(now.versions, pack_position(batch.start)) is None
        ):
            is_known = bool(now.versions) and isinstance(now.versions[-1][1], TableSchema)
            if is_known and not batch.may_read_ahead(self._table):
                raise self._unexplained(load.void, batch)
            return
        if load.is_limited and not self._read_rest(load.begin, now, batch):
            return  # the next batch tries again
        self._target.empty(load.begin)
        self._end_load(batch, batch.mark)
        _LOG.debug("%s: snapshot completed", self._name)

    def _end_load(self, batch: Batch, mark: Mark, more: Mapping[str, str] | None = None) -> None:
        """Record that the snapshot is complete."""
        ended = {LOADING: "", **(more or {})}
        if self._loading is not None:
            self._last_loaded = replace(self._loading, completed_in=batch.number)
            ended[LAST_LOADED] = self._last_loaded.text()
        self._target.set_properties(ended, mark)
        self._loading = None

    def _read_rest(self, begin: Mapping[str, int], now: TableVersions, batch: Batch) -> bool:
        """Read the rows that the snapshot has not written because of its condition.

        begin : of the snapshot.

        False if the server has altered the table, and the stream has not reached the statement yet.
        """
        schema = now.versions[-1][1] if now.versions else None
        if not isinstance(schema, TableSchema) or not schema.row_key:
            return True
        keys = self._target.older(begin, key_of(schema))
        if any(column.null_count for column in keys.columns):
            raise self._left_out_error("its key has changed")
        if keys.num_rows:
            _LOG.info("%s: reading %d rows that snapshotWhere excluded", self._name, keys.num_rows)
        assert batch.rows_where is not None
        reading = batch.rows_where(self._table, conditions_of(schema, keys))
        with closing(reading):
            for rows, images in reading:
                self._check_new_loads(rows, batch)
                unread: list[str] = []
                walk = Walk(
                    self._name,
                    self._target,
                    batch.mark,
                    batch.mark.version,
                    frozenset(),
                    load=TableSnapshot(None, unread.append, lambda: None),
                    images=images,
                )
                walk.take(Section(*now.versions[-1], sorted_by_seq(rows)))
                if unread and pc.max(packed_positions(rows)).as_py() <= batch.mark.version:
                    raise self._unexplained(unread[0], batch)
                if unread:
                    return False
                walk.finish()
        return True

    def _say_void(self, why: str) -> None:
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

    def _name_log(self, mark: Mark) -> None:
        """Record the binlog of the positions."""
        if self._target.columns() is not None and LOG not in self._target.properties():
            self._target.set_properties({LOG: str(mark.log)})

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _comes_back(now: TableVersions, batch: Batch) -> bool:
    """Return whether the earlier batches show that the table did not exist at a batch's start."""
    return not batch.is_first and now.is_absent_at(batch.start)


def _has_only_a_stop(target: DeltaTarget) -> bool:
    """Return whether `stop` created the Delta table: it has no other columns and no partitions."""
    columns = target.columns()
    return columns is not None and columns.names == [SEQ] and target.is_empty()


def _without_loaded(changes: pa.Table) -> pa.Table:
    """Return the changes that come from the binlog."""
    row = pc.struct_field(changes.column("seq").cast(SEQ_TYPE), "row")
    is_loaded = pc.or_(pc.equal(changes.column("op"), "r"), pc.less_equal(row, ROW_BEFORE_ALL))
    return changes.filter(pc.invert(is_loaded))


def _from(versions: tuple[Version, ...], applied: int) -> tuple[Version, ...]:
    """Return the versions, beginning with the one whose columns the Delta table has."""
    first = 0
    for at, (start, _) in enumerate(versions):
        if pack_position(start) <= applied:
            first = at
    return versions[first:]
