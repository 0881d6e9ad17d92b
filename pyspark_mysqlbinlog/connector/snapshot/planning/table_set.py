"""The tables that a snapshot must read, as the query's tables come and go.

A table that exists when a snapshot begins is read. One that is created later is not: all of its
rows are in the binlog. One that becomes known otherwise is read: it existed before, but the account
had no grants on it, or information_schema omitted it because an ALTER TABLE was replacing its files
(MySQL 5.7 and earlier, MariaDB). One that gets a captured name by RENAME is read, because its rows
were logged under another name or as those of an uncaptured table (gh-ost and pt-osc end this way).
One that is dropped, or no longer captured, is forgotten, and read when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import (
    UNKNOWN_END,
    SnapshotState,
    TableSnapshotState,
)
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, is_dropped
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "advance",
    "after_failover",
    "after_gap",
    "altered_tables",
    "begin_load",
    "check_conditions",
    "follow_options",
    "next_sequence",
    "record_high_watermark",
    "reload_tables",
    "with_tables_read",
    "without_snapshot",
]


def begin_load(
    history: SchemaHistory, position: Position, captures: Callable[[str, str], bool]
) -> SnapshotState:
    """Return the state in which every captured table that exists at `position` is pending."""
    return SnapshotState(
        pending=tuple(map(TableSnapshotState, _there(history, position, captures)))
    )


def without_snapshot(
    history: SchemaHistory, position: Position, captures: Callable[[str, str], bool]
) -> SnapshotState:
    """Return the state of a stream that began without a snapshot: existing tables are complete."""
    return SnapshotState(completed=frozenset(_there(history, position, captures)))


def check_conditions(
    tables: Iterable[Table],
    history: SchemaHistory,
    position: Position,
    *,
    case_sensitive: bool,
    exists: Callable[[Table], bool] = lambda _: False,
) -> None:
    """Raise OptionError if `snapshotWhere` names a table that does not exist.

    A misspelt name would cause an unrestricted snapshot of the table.

    exists : whether the server has a table that exists neither at `position` nor, according to
        the history, later.
    """
    folded = table_folding(case_sensitive)
    there = {
        folded(table) for table in history.tables() if _is_ever_there(history, position, table)
    }
    for table in tables:
        if folded(table) not in there and not exists(table):
            raise OptionError(
                f"option snapshotWhere: table {'.'.join(table)} does not exist; correct its name or"
                " remove it"
            )


def follow_options(
    state: SnapshotState,
    history: SchemaHistory,
    position: Position,
    captures: Callable[[str, str], bool],
) -> SnapshotState:
    """Return the state for other captured tables: newly captured tables are pending."""
    kept = tuple(load for load in state.pending if captures(*load.table))
    completed = frozenset(table for table in state.completed if captures(*table))
    known = completed.union(load.table for load in kept)
    new = [table for table in _there(history, position, captures) if table not in known]
    return replace(state, completed=completed, pending=(*kept, *map(TableSnapshotState, new)))


def reload_tables(
    state: SnapshotState,
    name: str,
    history: SchemaHistory,
    position: Position,
    captures: Callable[[str, str], bool],
) -> SnapshotState:
    """Return the state in which all tables that `captures` selects are pending; records the ID.

    Raises OptionError if there are none: a typo would be recorded as done.
    """
    again = list(_there(history, position, captures))
    if not again:
        raise OptionError(
            f"option reload: expected captured tables that exist, found none for {name!r}:"
            " check its patterns"
        )
    return replace(state.reading_again(again), reload=name)


def advance(
    state: SnapshotState,
    history: SchemaHistory,
    position: Position,
    captures: Callable[[str, str], bool],
    *,
    created: Collection[Table],
    unknown: Collection[Table],
) -> SnapshotState:
    """Return the state at the end of a batch that begins at `state`, without chunks of its own.

    Parameters
    ----------
    history, position : where the batch ends.
    created : tables that were created in this batch.
    unknown : tables that got their names in this batch, and others whose rows are unknown.
    """
    there = set(_there(history, position, captures))
    # Tables without a version in the history are treated as existing.
    pending = tuple(
        load for load in state.pending if history.exists(position, *load.table) is not False
    )
    left = {load.table for load in pending}
    completed = state.completed.union(created) & there - left
    # One whose columns are unknown may be hidden from the account, which cannot read it.
    found = {
        table
        for table in there - left - completed
        if isinstance(history.state(position, *table), TableSchema)
    }
    state = replace(state.without_batch(), completed=completed, pending=pending)
    return state.reading_again(sorted(found.union(unknown) & there))


def altered_tables(
    state: SnapshotState, history: SchemaHistory, start: Position, end: Position
) -> dict[Table, Position]:
    """Return where tables, between `start` and `end`, differ from their snapshot rows.

    Those are tables that were unknown for a while, and tables altered at a position up to which
    rows were already read: such rows may have the columns from before or after the ALTER.
    """
    found = {}
    for table in history.tables():
        begun = [each for each in history.versions(*table) if start < each[0] <= end]
        until = state.high_watermarks.get(table, (0, 0))
        for at, what in begun:
            is_unknown = isinstance(what, UnknownSchema) and not what.is_dropped
            if is_unknown or (at.number, at.pos) <= until:
                found[table] = at
    return found


def record_high_watermark(state: SnapshotState, position: Position, end: Position) -> SnapshotState:
    """Record `end`, the binlog's end, as the limit of what chunks at an offset may have seen."""
    until = dict(state.high_watermarks)
    of_batch = {table for table, at in until.items() if at == UNKNOWN_END}
    until |= dict.fromkeys(of_batch.union(chunk.table for chunk in state.chunks), end.order)
    return replace(
        state,
        high_watermarks={table: at for table, at in until.items() if at > position.order},
    )


def next_sequence(state: SnapshotState, begin: Position) -> SnapshotState:
    """Return the state at the beginning of the next sequence of files, in its own positions."""
    until = {
        table: place
        for table, (number, pos) in state.high_watermarks.items()
        if (place := Position(number, pos, "").in_later_sequence(-1).order) > BEGINNING.order
    }
    # Every statement before the beginning is treated as one at the beginning.
    lost = dict.fromkeys(state.invalidated_at, begin.order)
    return replace(state.without_batch(), high_watermarks=until, invalidated_at=lost)


def with_tables_read(before: SnapshotState, planned: SnapshotState) -> SnapshotState:
    """Return a batch's state in which the tables that it reads have a high watermark.

    Those are also tables that the server no longer has, which the planner skips, and tables that
    were found to have no more rows.

    before : the state from which the batch was planned.
    """
    left = {load.table: load for load in planned.pending}
    read = {load.table for load in before.pending if left.get(load.table) != load}
    return replace(
        planned,
        completed=planned.completed | (read - left.keys()),
        high_watermarks={**planned.high_watermarks, **dict.fromkeys(read, UNKNOWN_END)},
    )


def after_failover(state: SnapshotState, position: Position, begin: Position) -> SnapshotState:
    """Return the state with which another server continues.

    Tables that were read ahead are read again: their rows may include changes that the other server
    never gets.

    position : where the lost server's binlog ends for the stream.
    begin : where the other server continues, in its own positions.
    """
    ahead = state.read_ahead_of(position.order)
    return replace(
        state.reading_again(sorted(ahead & state.tables)).without_batch(),
        high_watermarks={},
        # Every statement before the beginning is treated as one at the beginning.
        invalidated_at=dict.fromkeys(state.invalidated_at, begin.order),
    )


def after_gap(
    state: SnapshotState,
    history: SchemaHistory,
    position: Position,
    captures: Callable[[str, str], bool],
    *,
    reloads: bool,
) -> SnapshotState:
    """Return the state at a position before which a part of the binlog is lost.

    A table that was being read begins again: its rows after the greatest key are in the binlog. One
    that is new is read, because the lost part may have rows of it.

    reloads : whether all tables are read.
    """
    there = [*_there(history, position, captures)]
    completed = frozenset() if reloads else state.completed.intersection(there)
    return SnapshotState(
        completed=completed,
        pending=tuple(TableSnapshotState(table) for table in there if table not in completed),
        rows=state.rows,
        reload=state.reload,
    )


def _there(
    history: SchemaHistory, position: Position, captures: Callable[[str, str], bool]
) -> Iterator[Table]:
    """Yield the captured tables that exist at `position`, sorted."""
    for table in history.tables():
        if captures(*table) and history.exists(position, *table):
            yield table


def _is_ever_there(history: SchemaHistory, position: Position, table: Table) -> bool:
    """Whether a table exists at `position`, or at the end of the history."""
    return bool(history.exists(position, *table)) or not is_dropped(history.versions(*table)[-1])
