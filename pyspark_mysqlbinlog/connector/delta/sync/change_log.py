"""The change log of one table: each change that the stream brings, appended to a Delta table.

A change from the log is new when it lies behind the boundary up to which the change log has
everything; a loaded row is, unless its batch is there. Both are told by the transaction identifiers
of the very commit that appended them (see `commit_markers`), and nothing else is stored.

A query joins a change log once, in the first batch of its checkpoint: there it is made sure that
nothing is left out between the two. Whoever replays the log must know, too, where it has all rows
of the table anew: in front of the rows of a load, where a table was created that the query did not
know at its start, and where the table got another name, for there are none under this one then.
There stands a row with `op` RESET; rows from before it count no more.
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
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity, Mark
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.ddl import is_drop
from pyspark_mysqlbinlog.connector.delta.sync.keyless_snapshot import drops_after
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import (
    FingerprintAt,
    LogIdentityCheck,
    held_fingerprint,
    position_of,
)
from pyspark_mysqlbinlog.connector.delta.sync.table import STOPPED
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.errors import MirrorError, OptionError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["COLUMNS", "RESET", "ChangeLog", "begins_load"]

_LOG = logging.getLogger(__name__)

RESET = "reset"
# Of the struct `source`, as in the stream.
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
# The stream's own.
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
# A property: the log of the server whose changes it has.
_CHANGES = "mysqlbinlog.changeLogSource"
# An identifier: which load of the table goes on; 0 for none.
_LOADING = "mysqlbinlog:loading"
# An identifier: which load of the table was the last to begin.
_LAST_LOAD = "mysqlbinlog:lastLoad"
# Of that number, for the batch in which the load began; those above are the query's.
_BATCH_BITS = 32
_LOAD_ANEW = "load the table anew, or give another place for its change log"


@dataclass(frozen=True, slots=True)
class _Held:
    """What the change log's last commit tells.

    Attributes
    ----------
    boundary : up to this place it has everything; 0 where it has nothing of this log.
    last : the greatest place of its rows: those of a load lie behind the boundary.
    loading : which load goes on; 0 for none.
    """

    boundary: int = 0
    last: int = 0
    loading: int = 0

    @classmethod
    def of(cls, target: DeltaTarget, log: LogIdentity) -> _Held:
        numbers = (str(log), _last_of(log), _LOADING)
        return cls(*(target.applied(name) or 0 for name in numbers))


class ChangeLog:
    """One table's. `append` raises MirrorError where a change would be missing.

    Attributes
    ----------
    uri : where it is.
    stopped : why nothing is appended any more; None while it is.
    state : what the change log had after the query's last batch; None where that is not known.
    """

    def __init__(
        self,
        table: Table,
        target: DeltaTarget,
        look_at: FingerprintAt,
        state: AppliedState | None = None,
    ) -> None:
        self.state = state
        self._table = table
        self._name = ".".join(table)
        self._target = target
        self._same_log = LogIdentityCheck(self._name, target, look_at, _LOAD_ANEW)
        self.uri = target.uri
        self._is_joined = self._is_left = False
        self._joined_in: LogIdentity | None = None
        self._loading = 0
        self.stopped = target.properties().get(STOPPED) or None

    def stop(self, error: MirrorError, batch: Batch) -> None:
        """Append no more, in this query or a later one, until one can join it again.

        batch : in which it goes wrong.
        """
        self._target.look_again()
        if self._target.columns() is None:
            self._target.create(COLUMNS, {})
        self._target.set_properties({STOPPED: error.message})
        self.stopped, self._is_left = error.message, True
        # What it had before is still asked for: the batch may come again.
        known = self.state or AppliedState.of(self._target, batch)
        # Changes are missing from the first stop on.
        first = batch.number if known.stopped_in is None else min(known.stopped_in, batch.number)
        self.state = replace(known, stopped=error.message, stopped_in=first)
        self._note_chunks(batch)

    def _note_chunks(self, batch: Batch) -> None:
        """Note that a batch's chunks are missing. No position in the log shows that."""
        if self.state is not None and batch.loads(self._table):
            self.state = replace(self.state, lacks_chunks=True)

    def append(self, changes: pa.Table, now: TableVersions, batch: Batch) -> int:
        """Append what is new of one batch's changes; returns how many."""
        if batch.log_before is not None:
            if not self._is_left and (missing := None if self._is_joined else self._missing(batch)):
                raise missing
            self._enter_log(batch.log_before, batch)
            if not self._is_left and self._target.columns() is not None:
                self.state = AppliedState.of(self._target, batch)
            return 0
        if self._joined_in != batch.mark.log:
            # One whose table was gone where the log before ended has not entered this one.
            self._joined_in, self._is_joined = batch.mark.log, False
        is_loaded = batch.loads(self._table)
        left = _renamed_away(changes, now.versions, pack_position(batch.start))
        is_quiet = not (changes.num_rows or left or is_loaded or self._loading)
        if is_quiet and (self._is_joined or not _is_known(now.versions)):
            return 0
        if not (changes.num_rows or is_loaded) and self._only_passed_by(now, batch):
            return 0
        done = self._target.applied(batch.query)
        self._is_left = is_left = self._is_left or self._was_left(batch)
        may_begin = begins_load(batch, self._table) or (
            batch.has_read_none(self._table) and (batch.begins_reload or not is_left)
        )
        if is_left and not may_begin:
            self._note_chunks(batch)
            # What comes next may begin after the place that it was stopped for.
            if self.stopped is None and self.state is not None and self.state.stopped is not None:
                # The Delta table does not have the stop.
                raise self._error(self.state.stopped)
            return 0
        missing = None if self._is_joined else self._missing(batch)
        if missing is not None:
            if not may_begin:
                raise missing
            done = None
        begins: int | None = None
        if done is None:
            if self.stopped is not None and not batch.is_first and not may_begin:
                return 0
            begins = self._join(now, batch, may_begin=may_begin)
        elif self.stopped is not None:
            self._go_on_again()  # it was another query that could not join
        if done is not None and not self._is_joined:
            self._check_log(now, batch, may_begin=may_begin)
        held = _Held.of(self._target, batch.mark.log)
        if missing is not None or is_left:
            # Its marks tell more than its rows, where an older version of them was put back.
            held = replace(held, boundary=min(held.boundary, pack_position(batch.start)), loading=0)
        is_new_load = begins_load(batch, self._table) and not self._has_begun(batch)
        is_done = done is not None and done >= batch.number
        if is_done and held.boundary >= batch.mark.version and not is_new_load:
            self._remember(held.loading, batch)
            return 0
        if done is not None and not self._is_joined:
            self._same_log.check_resumable(held.boundary, batch.start, batch.mark.log)
        load = self._load_of(batch, held) if is_loaded else 0
        if load and load != held.loading:
            begins = self._begin_of_load(now, batch)
        rows = drop_applied(changes, held.boundary)
        loading = 0 if batch.completes_snapshot(self._table) else load
        places = {at for at in left if at > held.boundary}
        if begins is not None:
            places.add(begins)
        if done is None or places or rows.num_rows or loading != held.loading:
            count = rows.num_rows
            rows = rows.select(COLUMNS.names).cast(COLUMNS)
            rows = pa.concat_tables([*(self._begin_row(at, batch) for at in sorted(places)), rows])
            mark = self._mark(rows, batch, replace(held, loading=loading))
            if load and load != held.loading:
                mark = replace(mark, more=(*mark.more, (_LAST_LOAD, _last_load(batch))))
            self._target.append(rows, mark)
        else:
            count = 0
        self._remember(loading, batch)
        return count

    def _only_passed_by(self, now: TableVersions, batch: Batch) -> bool:
        """Whether there was no change log ever, and the name came and went within the batch."""
        if self.state is not None or self._target.columns() is not None:
            return False
        return _begins_in(now, batch.start) is not None and is_dropped(now.versions[-1])

    def _enter_log(self, before: LogIdentity, batch: Batch) -> None:
        """Continue in the log into which a batch leads.

        The change log has everything of the one before, of which nothing is left.
        """
        done = self._target.applied(batch.query)
        if self._is_left or self._was_left(batch):
            return  # it is stopped
        if done is None:
            return  # what comes next is appended after this query has joined it
        known = self._target.properties().get(_CHANGES)
        if known in {None, str(batch.mark.log)}:
            return
        if known != str(before):
            raise self._of_another_log(known, before)
        log, held = batch.mark.log, _Held.of(self._target, before)
        more = (_last_of(log), 0), (_LOADING, held.loading)
        self._target.set_properties({_CHANGES: str(log)}, replace(batch.mark, more=more))

    def _check_log(self, now: TableVersions, batch: Batch, *, may_begin: bool) -> None:
        """MirrorError unless it is in the log of a batch, which some batch has led it into.

        may_begin : all rows of the table come from here on.
        """
        log, known = batch.mark.log, self._target.properties().get(_CHANGES, "")
        if known == str(log):
            return
        if may_begin and batch.loads(self._table) and log.continues(known):
            self._target.set_properties({_CHANGES: str(log)})
            return
        # A table that was gone where the log before ended has nothing of it that is missing.
        if not known.startswith(log.of_server) or _begins_in(now, batch.start) is None:
            raise self._of_another_log(known, log)
        self._target.set_properties({_CHANGES: str(log)}, Mark(log, pack_position(batch.start)))

    def _of_another_log(self, known: str | None, log: LogIdentity) -> MirrorError:
        # After a change of the base name the epoch is larger, and `seq` stays in order.
        remedy = _LOAD_ANEW if log.continues(known) else "give another place for its change log"
        return self._error(f"its changes are from another log ({known}, now {log}): {remedy}")

    def _remember(self, loading: int, batch: Batch) -> None:
        self._is_joined, self._loading = True, loading
        if self._target.columns() is not None:
            self.state = AppliedState.of(self._target, batch)

    def _missing(self, batch: Batch) -> MirrorError | None:
        """What the change log lacks of what was written down of it; None where it has all.

        Where there is none, `_join` tells whether one may begin.
        """
        if self.state is None or self._target.columns() is None:
            return None
        what = self.state.missing_in(self._target, batch.query)
        return None if what is None else self._error(f"{what}; {_LOAD_ANEW}")

    def _was_left(self, batch: Batch) -> bool:
        """Whether this query has stopped it in an earlier batch, and changes may be missing since.

        The batches' numbers in Delta do not tell: those of an older checkpoint come once more.
        """
        left = None if self.state is None else self.state.stopped_in
        if left is None or left >= batch.number or self._has_begun(batch):
            return False
        # Another query may have brought the changes, but not the rows of a load. Those have no
        # place in the log: without traffic all of a load is at one place.
        if batch.loads(self._table) or (self.state is not None and self.state.lacks_chunks):
            return True
        held = _Held.of(self._target, batch.log_before or batch.mark.log)
        return held.boundary < pack_position(batch.start)

    def _has_begun(self, batch: Batch) -> bool:
        """Whether a load began in this very batch, which comes once more."""
        return self.stopped is None and self._target.applied(_LAST_LOAD) == _last_load(batch)

    def _load_of(self, batch: Batch, held: _Held) -> int:
        """The number of the load of which a batch is a part.

        MirrorError where the change log does not have the load that the batch goes on with.
        """
        this = _load_number(batch)
        if begins_load(batch, self._table):
            return this
        if _is_of_query(held.loading, this):
            return held.loading
        if batch.has_read_none(self._table):
            return this
        if held.loading:
            raise self._error(f"its load, which another query began, is not done; {_LOAD_ANEW}")
        raise self._error(
            "it does not have the load that this batch goes on with: an older copy, or another"
            f" table, is in its place, or another query has loaded it; {_LOAD_ANEW}"
        )

    def _join(self, now: TableVersions, batch: Batch, *, may_begin: bool) -> int | None:
        """Go on in the change log, or begin it.

        may_begin : as in `_check_log`.

        Gives the place from which on all of the table's rows come, where there was a gap before it.
        """
        columns, log = self._target.columns(), str(batch.mark.log)
        if columns is not None and columns != COLUMNS:
            raise OptionError(
                f"history: {self.uri} has other columns than a change log: give another place"
            )
        known = self._target.properties().get(_CHANGES)
        held = _Held.of(self._target, batch.mark.log)
        new = _begins_in(now, batch.start)
        begins: int | None = None
        if known is None or (not held.boundary and self._target.is_empty()):
            if not self._target.is_empty():
                raise OptionError(
                    f"history: {self.uri} has rows that no mirror wrote: give another place"
                )
            self._check_beginning(new, batch)
        elif known != log:
            self._check_log(now, batch, may_begin=may_begin)
        else:
            begins = self._go_on(held, new, batch)
        if columns is None:
            self._target.create(COLUMNS, {_CHANGES: log})
        elif known != log:
            self._target.set_properties({_CHANGES: log})
        if self.stopped is not None:
            self._go_on_again()
        return begins

    def _go_on_again(self) -> None:
        self._target.set_properties({STOPPED: ""})
        self.stopped, self._is_left = None, False

    def _check_beginning(self, new: int | None, batch: Batch) -> None:
        """A change log that is not there yet may begin with this batch."""
        if not batch.is_first and not batch.loads(self._table) and new is None:
            raise self._error(
                "there is no change log of it, or not any more, and the query is past"
                f" {batch.start} already: what changed before would be missing; {_LOAD_ANEW}"
            )

    def _go_on(self, held: _Held, new: int | None, batch: Batch) -> int | None:
        """As `_join`, for a change log that has changes of this log."""
        begins: int | None = None
        if batch.loads(self._table):
            begin = pack_position(batch.start)
        elif new is not None and held.boundary < pack_position(batch.start):
            begin = begins = new
        elif held.loading:
            raise self._error(f"its load, which another query began, is not done; {_LOAD_ANEW}")
        else:
            self._same_log.check_no_gap(held.boundary, batch.start)
            begin = held.boundary
        # What lies behind all of its rows keeps their order, whatever became of the log in between.
        if begin <= max(held.boundary, held.last):
            self._same_log.check_same_log(held.boundary, batch.start, batch.mark.log)
        return begins

    def _begin_of_load(self, now: TableVersions, batch: Batch) -> int:
        """The place from which on all rows of a loaded table come."""
        assert batch.load is not None
        if self._table in batch.load.invalidated_at:
            return pack(*batch.load.invalidated_at[self._table])
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
            "seq": {"epoch": batch.mark.log.epoch, **row},
            "source": {**row, "file": position.file},
        }
        return pa.Table.from_pylist([begin], COLUMNS)

    def _mark(self, rows: pa.Table, batch: Batch, held: _Held) -> Mark:
        """What goes with rows; a boundary that lies behind the batch stays."""
        mark, log = batch.mark, batch.mark.log
        if held.boundary > mark.version:
            fingerprint = held_fingerprint(self._target, log)
            mark = replace(mark, version=held.boundary, fingerprint=fingerprint)
        last = max(held.last, pc.max(packed_positions(rows)).as_py() or 0)
        return replace(mark, more=((_last_of(log), last), (_LOADING, held.loading)))

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _last_of(log: LogIdentity) -> str:
    return f"{log}:last"


def begins_load(batch: Batch, table: Table) -> bool:
    """Whether a load of a table begins in a batch, or begins again behind a statement."""
    if batch.load is None or batch.starts_snapshot(table):
        return batch.load is not None
    before = {} if batch.load_before is None else batch.load_before.invalidated_at
    lost = batch.load.invalidated_at.get(table)
    return lost is not None and lost != before.get(table)


def _load_number(batch: Batch) -> int:
    """A number for a load that begins in a batch; not 0."""
    query = int.from_bytes(blake2b(batch.query.encode(), digest_size=4).digest()) >> 1 | 1
    return query << _BATCH_BITS | batch.number


def _last_load(batch: Batch) -> int:
    """A number for the load that begins in this very batch, and in no other of its number."""
    this = f"{batch.query} {batch.number} {pack_position(batch.start)}"
    return int.from_bytes(blake2b(this.encode(), digest_size=8).digest()) >> 1


def _is_of_query(load: int, other: int) -> bool:
    """Whether two loads are of the same query."""
    return load >> _BATCH_BITS == other >> _BATCH_BITS


def _renamed_away(changes: pa.Table, versions: tuple[Version, ...], start: int) -> list[int]:
    """Where a table got another name, behind a place: there its rows under this one end.

    No row tells of it. Of a statement that drops the table there is one, right in front.
    """
    found = []
    for gone in drops_after(versions, start):
        before = changes.filter(pc.less(packed_positions(changes), gone))
        last = sorted_by_seq(before).slice(max(before.num_rows - 1, 0)).select(["op", "source"])
        told = [row["source"]["query"] for row in last.to_pylist() if row["op"] == "ddl"]
        if not any(map(is_drop, told)):
            found.append(gone)
    return found


def _is_known(versions: tuple[Version, ...]) -> bool:
    return any(isinstance(what, TableSchema) for _, what in versions)


def _begins_in(now: TableVersions, start: Position) -> int | None:
    """From which place on all rows come of a table that was not there when a batch began.

    Where it was created, it has none. If another table took its name, rows from before are missing
    until that one is gone in its turn; None where it stays. A statement may give a name and take it
    away again, and the table is not there in front of it nor behind it.
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
        if not what.gone:
            return None
    return max(pack_position(start), pack_position(now.versions[0][0])) if now.versions else None
