"""The change log of one table: each change of the stream, appended to a Delta table.

A change from the binlog is new if it is after the boundary up to which the change log is complete.
A snapshot row is new unless its batch was appended. Both are recorded in the transaction
identifiers of the commit that appended the rows (see `commit_markers`); nothing else is stored.

A query joins a change log once, in the first batch of its checkpoint: there it checks that no
change is missing between the change log's end and the query's start. A reader that replays the
change log must also know where all rows of the table follow again: before the rows of a snapshot,
where a table was created that the query did not know at its start, and where the table was renamed,
because no rows exist under this name then. At these positions there is a row with `op` RESET;
earlier rows no longer count.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import Version, is_dropped, valid_from
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, pack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import drop_applied, packed_positions
from pyspark_mysqlbinlog.connector.delta.rows.states import sorted_by_seq
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.constants import CHANGE_LOG_SOURCE, STOPPED
from pyspark_mysqlbinlog.connector.delta.sync.ddl import is_drop
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import (
    FingerprintAt,
    LogIdentityCheck,
    held_fingerprint,
    position_of,
)
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.keyless_snapshot import drops_after
from pyspark_mysqlbinlog.connector.delta.sync.synced_table import SyncedTable
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError, OptionError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["COLUMNS", "RESET", "ChangeLog", "starts_or_restarts_snapshot"]

_LOG = logging.getLogger(__name__)

RESET = "reset"
# Fields of the struct `source`, as in the stream.
_SOURCE: list[pa.Field[Any]] = [
    pa.field("server_id", pa.int64()),
    pa.field("file", pa.string()),
    pa.field("pos", pa.int64()),
    pa.field("row", pa.int32()),
    pa.field("tx_pos", pa.int64()),
    pa.field("thread_id", pa.int64()),
    pa.field("gtid", pa.string()),
    pa.field("query", pa.string()),
    pa.field("key", pa.list_(pa.string())),
    pa.field("missing", pa.list_(pa.string())),
    pa.field("invalid_dates", pa.list_(pa.string())),
]
# Columns, as in the stream.
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("op", pa.string()),
    pa.field("ts", pa.timestamp("us", "UTC")),
    pa.field("database", pa.string()),
    pa.field("table", pa.string()),
    pa.field("before", pa.string()),
    pa.field("after", pa.string()),
    pa.field("seq", SEQ_TYPE),
    pa.field("source", pa.struct(_SOURCE)),
]
COLUMNS = pa.schema(_COLUMNS)
# A transaction identifier: the snapshot of the table in progress; 0 for none.
_LOADING = "mysqlbinlog:loading"
# A transaction identifier: the last snapshot of the table that began.
_LAST_LOAD = "mysqlbinlog:lastLoad"
# Low bits of a snapshot's number: the batch in which it began. The high bits identify the query.
_BATCH_BITS = 32
_LOAD_ANEW = "reload the table, or set another path for its change log"


@dataclass(frozen=True, slots=True)
class _ChangeLogState:
    """The state in the change log's last commit.

    Attributes
    ----------
    boundary : packed position up to which it is complete; 0 if it has nothing of this binlog.
    last : maximum position of its rows; snapshot rows are after the boundary.
    snapshot : the snapshot in progress; 0 for none.
    """

    boundary: int = 0
    last: int = 0
    snapshot: int = 0

    @classmethod
    def of(cls, target: DeltaTarget, log: LogIdentity) -> _ChangeLogState:
        numbers = (str(log), _last_of(log), _LOADING)
        return cls(*(target.txn_version(name) or 0 for name in numbers))


class ChangeLog(SyncedTable):
    """One table's change log. `append` raises MirrorError if a change would be missing.

    Attributes
    ----------
    uri : URI of its Delta table.
    """

    def __init__(
        self,
        table: Table,
        target: DeltaTarget,
        fingerprint_at: FingerprintAt,
        state: AppliedState | None = None,
    ) -> None:
        super().__init__(table, target, fingerprint_at, state)
        self._same_log = LogIdentityCheck(self._name, target, fingerprint_at, _LOAD_ANEW)
        self.uri = target.uri
        self._is_left = False
        self._snapshot = 0

    def stop(self, error: MirrorError, batch: Batch) -> None:
        """Stop appending, in this query and later ones, until one can join the change log again.

        batch : in which the error occurred.
        """
        self._target.forget_state()
        if self._target.columns() is None:
            self._target.create(COLUMNS, {})
        self._target.set_properties({STOPPED: error.message})
        self.stopped, self._is_left = error.message, True
        # Its earlier state is still checked: the batch may be replayed.
        known = self.state or AppliedState.of(self._target, batch)
        # Changes are missing from the first stop on.
        first = batch.number if known.stopped_in is None else min(known.stopped_in, batch.number)
        self.state = replace(known, stopped=error.message, stopped_in=first)
        self._note_chunks(batch)

    def _note_chunks(self, batch: Batch) -> None:
        """Record that a batch's chunks are missing, which no binlog position shows."""
        if self.state is not None and batch.snapshots(self._table):
            self.state = replace(self.state, lacks_chunks=True)

    def append(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int:
        """Append the new changes of one batch; returns how many."""
        if batch.log_before is not None and not batch.is_gap:
            missing = None if self._is_left or self._is_checked else self._missing(batch)
            if missing is not None:
                raise missing
            self._enter_log(batch.log_before, batch)
            if not self._is_left and self._target.columns() is not None:
                self.state = AppliedState.of(self._target, batch)
            return 0
        self._check_again_in(batch.marker.log)
        if batch.is_gap and not batch.snapshots(self._table):
            self._reset_lost(batch)
            return 0
        is_loaded = batch.snapshots(self._table)
        left = _renamed_away(changes, now.versions, pack_position(batch.start))
        is_quiet = not (changes.num_rows or left or is_loaded or self._snapshot)
        if is_quiet and (self._is_checked or not _is_known(now.versions)):
            return 0
        if not (changes.num_rows or is_loaded) and self._only_passed_by(now, batch):
            return 0
        done = self._target.txn_version(batch.query)
        self._is_left = is_left = self._is_left or self._was_left(batch)
        may_begin = starts_or_restarts_snapshot(batch, self._table) or (
            batch.has_read_none(self._table) and (batch.begins_reload or not is_left)
        )
        if is_left and not may_begin:
            self._note_chunks(batch)
            # The next change may be after the position of the stop.
            if self.stopped is None and self.state is not None and self.state.stopped is not None:
                # Only the checkpoint records the stop; the Delta table does not.
                raise self._error(self.state.stopped)
            return 0
        missing = None if self._is_checked else self._missing(batch)
        if missing is not None:
            if not may_begin:
                raise missing
            done = None
        begins: int | None = None
        if done is None:
            if self.stopped is not None and not batch.is_first and not may_begin:
                return 0
            begins = self._attach(now, batch, may_begin=may_begin)
        elif self.stopped is not None:
            self._resume_after_stop()  # the stop is another query's, which could not join
        if done is not None and not self._is_checked:
            self._check_log(now, batch, may_begin=may_begin)
        held = _ChangeLogState.of(self._target, batch.marker.log)
        self._check_not_in_part(held.boundary, batch)
        if missing is not None or is_left:
            # If an older version of its rows was restored, its markers claim more than its rows.
            held = replace(
                held, boundary=min(held.boundary, pack_position(batch.start)), snapshot=0
            )
        is_new_load = starts_or_restarts_snapshot(batch, self._table) and not self._has_begun(batch)
        is_done = done is not None and done >= batch.number
        if is_done and held.boundary >= batch.marker.position and not is_new_load:
            self._record_state(held.snapshot, batch)
            return 0
        # If another server repeats the batch, the lost server cannot be queried.
        if done is not None and not self._is_checked and not batch.is_replay:
            self._same_log.check_resumable(held.boundary, batch.start, batch.marker.log)
        load = self._snapshot_of(batch, held) if is_loaded else 0
        if load and load != held.snapshot:
            begins = self._begin_of_snapshot(now, batch)
        rows = drop_applied(changes, held.boundary)
        loading = 0 if batch.completes_snapshot(self._table) else load
        places = {at for at in left if at > held.boundary}
        if begins is not None:
            places.add(begins)
        if done is None or places or rows.num_rows or loading != held.snapshot:
            count = rows.num_rows
            rows = rows.select(COLUMNS.names).cast(COLUMNS)
            rows = pa.concat_tables([*(self._begin_row(at, batch) for at in sorted(places)), rows])
            marker = self._marker(rows, batch, replace(held, snapshot=loading))
            if load and load != held.snapshot:
                marker = replace(
                    marker,
                    extra_transactions=(
                        *marker.extra_transactions,
                        (_LAST_LOAD, _last_load(batch)),
                    ),
                )
            self._target.append(rows, marker)
        else:
            count = 0
        self._record_state(loading, batch)
        return count

    def _only_passed_by(self, now: TableVersions, batch: Batch) -> bool:
        """Return whether there is no change log, and the table existed only within the batch."""
        if self.state is not None or self._target.columns() is not None:
            return False
        return _begins_in(now, batch.start) is not None and is_dropped(now.versions[-1])

    def _enter_log(self, before: LogIdentity, batch: Batch) -> None:
        """Continue in another binlog, into which a batch without changes leads.

        The change log has all changes of the previous binlog, which has ended.
        """
        done = self._target.txn_version(batch.query)
        if self._is_left or self._was_left(batch):
            return  # stopped
        if done is None:
            return  # later changes are appended after this query has joined it
        known = self._target.properties().get(CHANGE_LOG_SOURCE)
        if known in {None, str(batch.marker.log)}:
            return
        if known != str(before):
            raise self._of_another_log(known, before)
        log, held = batch.marker.log, _ChangeLogState.of(self._target, before)
        self._check_not_ahead(held.boundary, batch, "the change log", _LOAD_ANEW)
        more = (_last_of(log), 0), (_LOADING, held.snapshot)
        self._target.set_properties(
            {CHANGE_LOG_SOURCE: str(log)}, replace(batch.marker, extra_transactions=more)
        )

    def _reset_lost(self, batch: Batch) -> None:
        """Record that a table was dropped in a lost part of the binlog."""
        if self._is_left or self._was_left(batch) or self._target.txn_version(batch.query) is None:
            return
        log = batch.marker.log
        if (self._target.txn_version(str(log)) or 0) < batch.marker.position:
            reset = self._begin_row(pack_position(batch.start), batch)
            held = _ChangeLogState.of(self._target, log)
            self._target.append(reset, self._marker(reset, batch, replace(held, snapshot=0)))
        self._target.set_properties({CHANGE_LOG_SOURCE: str(log)})
        self._record_state(0, batch)

    def _check_log(self, now: TableVersions, batch: Batch, *, may_begin: bool) -> None:
        """MirrorError unless the change log has entered the binlog of this batch.

        may_begin : all rows of the table follow.
        """
        log, known = batch.marker.log, self._target.properties().get(CHANGE_LOG_SOURCE, "")
        if known == str(log):
            return
        is_earlier = log.continues(known) or known == str(batch.log_before)
        if may_begin and batch.snapshots(self._table) and is_earlier:
            self._target.set_properties({CHANGE_LOG_SOURCE: str(log)})
            return
        # A table that did not exist where the previous binlog ended lacks nothing of it.
        if not known.startswith(log.of_server) or _begins_in(now, batch.start) is None:
            raise self._of_another_log(known, log)
        marker = CommitMarker(log, pack_position(batch.start))
        self._target.set_properties({CHANGE_LOG_SOURCE: str(log)}, marker)

    def _of_another_log(self, known: str | None, log: LogIdentity) -> MirrorError:
        # After a change of the base name the epoch is larger, and `seq` stays in order.
        remedy = _LOAD_ANEW if log.continues(known) else "set another path for its change log"
        return self._error(f"its changes are from another binlog ({known}, now {log}): {remedy}")

    def _record_state(self, loading: int, batch: Batch) -> None:
        self._is_checked, self._snapshot = True, loading
        if self._target.columns() is not None:
            self.state = AppliedState.of(self._target, batch)

    def _missing(self, batch: Batch) -> MirrorError | None:
        """Return the error if the change log lacks what was recorded of it; None if it has all.

        If there is no change log, `_attach` decides whether one may begin.
        """
        if self.state is None or self._target.columns() is None:
            return None
        what = self.state.missing_in(self._target, batch.query)
        return None if what is None else self._error(f"{what}; {_LOAD_ANEW}")

    def _was_left(self, batch: Batch) -> bool:
        """Return whether this query stopped it in an earlier batch, so changes may be missing.

        Batch numbers in Delta do not show this: those of an older checkpoint are replayed.
        """
        left = None if self.state is None else self.state.stopped_in
        if left is None or left >= batch.number or self._has_begun(batch):
            return False
        # Another query may have appended the changes, but not the snapshot rows. No position shows
        # those: without traffic, all of a snapshot is at one position.
        if batch.snapshots(self._table) or (self.state is not None and self.state.lacks_chunks):
            return True
        log = batch.marker.log
        if batch.log_before is not None and not batch.is_gap:
            log = batch.log_before
        held = _ChangeLogState.of(self._target, log)
        return held.boundary < pack_position(batch.start)

    def _has_begun(self, batch: Batch) -> bool:
        """Return whether a snapshot began in this very batch, which is replayed."""
        return self.stopped is None and self._target.txn_version(_LAST_LOAD) == _last_load(batch)

    def _snapshot_of(self, batch: Batch, held: _ChangeLogState) -> int:
        """Return the number of the snapshot that a batch is a part of.

        MirrorError if the change log does not have the snapshot that the batch continues.
        """
        this = _load_number(batch)
        if starts_or_restarts_snapshot(batch, self._table):
            return this
        if _is_of_query(held.snapshot, this):
            return held.snapshot
        if batch.has_read_none(self._table):
            return this
        if held.snapshot:
            raise self._error(f"a snapshot by another query is incomplete; {_LOAD_ANEW}")
        raise self._error(
            "it does not have the snapshot that this batch continues: it was replaced by an older"
            f" copy or by another table, or another query read its snapshot; {_LOAD_ANEW}"
        )

    def _attach(self, now: TableVersions, batch: Batch, *, may_begin: bool) -> int | None:
        """Continue the change log, or begin it.

        may_begin : as in `_check_log`.

        Returns the packed position after which all rows of the table follow, if a gap precedes it.
        """
        columns, log = self._target.columns(), str(batch.marker.log)
        if columns is not None and columns != COLUMNS:
            raise OptionError(
                f"change_log: {self.uri} has other columns than a change log: set another path"
            )
        known = self._target.properties().get(CHANGE_LOG_SOURCE)
        held = _ChangeLogState.of(self._target, batch.marker.log)
        new = _begins_in(now, batch.start)
        begins: int | None = None
        if known is None or (not held.boundary and self._target.is_empty()):
            if not self._target.is_empty():
                raise OptionError(
                    f"change_log: {self.uri} has rows that no mirror wrote: set another path"
                )
            self._check_beginning(new, batch)
        elif known != log:
            self._check_log(now, batch, may_begin=may_begin)
        else:
            begins = self._resume(held, new, batch)
        if columns is None:
            self._target.create(COLUMNS, {CHANGE_LOG_SOURCE: log})
        elif known != log:
            self._target.set_properties({CHANGE_LOG_SOURCE: log})
        if self.stopped is not None:
            self._resume_after_stop()
        return begins

    def _resume_after_stop(self) -> None:
        self._target.set_properties({STOPPED: ""})
        self.stopped, self._is_left = None, False

    def _check_beginning(self, new: int | None, batch: Batch) -> None:
        """Check that a change log that does not exist yet may begin with this batch."""
        if not batch.is_first and not batch.snapshots(self._table) and new is None:
            raise self._error(
                "it has no change log, or no longer one, and the query is already past"
                f" {batch.start}: earlier changes would be missing; {_LOAD_ANEW}"
            )

    def _resume(self, held: _ChangeLogState, new: int | None, batch: Batch) -> int | None:
        """Join a change log that has changes of this binlog; see `_attach`."""
        begins: int | None = None
        if batch.snapshots(self._table):
            begin = pack_position(batch.start)
        elif new is not None and held.boundary < pack_position(batch.start):
            begin = begins = new
        elif held.snapshot:
            raise self._error(f"a snapshot by another query is incomplete; {_LOAD_ANEW}")
        else:
            self._same_log.check_no_gap(held.boundary, batch.start)
            begin = held.boundary
        # Changes after all of its rows are in order even if the binlog was reset: no check then.
        if begin <= max(held.boundary, held.last):
            self._same_log.check_same_log(held.boundary, batch.start, batch.marker.log)
        return begins

    def _begin_of_snapshot(self, now: TableVersions, batch: Batch) -> int:
        """Return the packed position after which all rows of a table in snapshot follow."""
        assert batch.snapshot is not None
        if self._table in batch.snapshot.invalidated_at:
            return pack(*batch.snapshot.invalidated_at[self._table])
        start = pack_position(batch.start)
        return max((at for at in now.came_by_rename if at >= start), default=start)

    def _begin_row(self, at: int, batch: Batch) -> pa.Table:
        position = position_of(at, batch.start)
        row = {"file": position.number, "pos": position.pos, "row": ROW_BEFORE_ALL}
        begin = {
            "op": RESET,
            "ts": datetime.now(UTC),
            "database": self._table[0],
            "table": self._table[1],
            "seq": {"epoch": batch.marker.log.epoch, **row},
            "source": {**row, "file": position.file},
        }
        return pa.Table.from_pylist([begin], COLUMNS)

    def _marker(self, rows: pa.Table, batch: Batch, held: _ChangeLogState) -> CommitMarker:
        """Return the commit marker for rows; a boundary after the batch is kept."""
        marker, log = batch.marker, batch.marker.log
        if held.boundary > marker.position:
            fingerprint = held_fingerprint(self._target, log)
            marker = replace(marker, position=held.boundary, fingerprint=fingerprint)
        last = max(held.last, pc.max(packed_positions(rows)).as_py() or 0)
        return replace(
            marker, extra_transactions=((_last_of(log), last), (_LOADING, held.snapshot))
        )


def _last_of(log: LogIdentity) -> str:
    return f"{log}:last"


def starts_or_restarts_snapshot(batch: Batch, table: Table) -> bool:
    """Return whether a table's snapshot begins in a batch, or restarts after a statement."""
    if batch.snapshot is None or batch.starts_snapshot(table):
        return batch.snapshot is not None
    before = {} if batch.snapshot_before is None else batch.snapshot_before.invalidated_at
    lost = batch.snapshot.invalidated_at.get(table)
    return lost is not None and lost != before.get(table)


def _load_number(batch: Batch) -> int:
    """Return a number for a snapshot that begins in a batch; not 0."""
    query = int.from_bytes(blake2b(batch.query.encode(), digest_size=4).digest()) >> 1 | 1
    return query << _BATCH_BITS | batch.number


def _last_load(batch: Batch) -> int:
    """Return an id of the snapshot that begins in a batch: a hash of query, number and start."""
    this = f"{batch.query} {batch.number} {pack_position(batch.start)}"
    return int.from_bytes(blake2b(this.encode(), digest_size=8).digest()) >> 1


def _is_of_query(load: int, other: int) -> bool:
    """Return whether two snapshots are of the same query."""
    return load >> _BATCH_BITS == other >> _BATCH_BITS


def _renamed_away(changes: pa.Table, versions: tuple[Version, ...], start: int) -> list[int]:
    """Return the packed positions after `start` at which the table was renamed to another name.

    No row of the stream records a rename. A DROP has a row, right before the position.
    """
    found = []
    for dropped_at in drops_after(versions, start):
        before = changes.filter(pc.less(packed_positions(changes), dropped_at))
        last = sorted_by_seq(before).slice(max(before.num_rows - 1, 0)).select(["op", "source"])
        statements = [row["source"]["query"] for row in last.to_pylist() if row["op"] == "ddl"]
        if not any(map(is_drop, statements)):
            found.append(dropped_at)
    return found


def _is_known(versions: tuple[Version, ...]) -> bool:
    return any(isinstance(what, TableSchema) for _, what in versions)


def _begins_in(now: TableVersions, start: Position) -> int | None:
    """Return the position after which all rows of a table follow that did not exist at `start`.

    A created table has no rows at first. If another table was renamed to this name, its earlier
    rows are missing; then the position is where it is dropped, or None if it is not. A statement
    may add a name and remove it again; then the table exists neither before nor after it.
    """
    versions = iter(now.versions)
    for at, what in versions:
        if isinstance(what, TableSchema):
            made = pack_position(at)
            if made < pack_position(start):
                return None
            if made not in now.came_by_rename:
                return made
            return next(
                (pack_position(valid_from(later)) for later in versions if is_dropped(later)),
                None,
            )
        if not what.is_dropped:
            return None
    return max(pack_position(start), pack_position(now.versions[0][0])) if now.versions else None
