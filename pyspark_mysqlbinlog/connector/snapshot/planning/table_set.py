"""Which tables a load has to read, as the query's tables come and go.

A table that is there where a load begins is read. One that is created later is not: all of its rows
are in the log. One that gets a wanted name by RENAME is read, whatever it was before: its rows were
logged under another name, or as those of a table that nobody wanted (gh-ost and pt-osc end so). One
that is dropped, or not wanted any more, is forgotten, and read when it comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, is_dropped
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, table_folding

__all__ = [
    "advance",
    "altered_tables",
    "begin_load",
    "check_conditions",
    "follow_options",
    "next_sequence",
    "record_high_watermark",
    "reload_tables",
]


def begin_load(
    history: SchemaHistory, position: Position, wants: Callable[[str, str], bool]
) -> SnapshotState:
    """Every wanted table that is there at `position` is to be read."""
    return SnapshotState(pending=tuple(map(TableSnapshotState, _there(history, position, wants))))


def check_conditions(
    tables: Iterable[Table],
    history: SchemaHistory,
    position: Position,
    *,
    case_sensitive: bool,
    exists: Callable[[Table], bool] = lambda _: False,
) -> None:
    """OptionError where `snapshotWhere` names a table that is not there.

    With a misspelt name a table would be loaded in full.

    exists : whether the server has a table that is neither there at `position` nor, as far as the
        history tells, later.
    """
    folded = table_folding(case_sensitive)
    there = {
        folded(table) for table in history.tables() if _is_ever_there(history, position, table)
    }
    for table in tables:
        if folded(table) not in there and not exists(table):
            raise OptionError(
                f"option snapshotWhere: there is no table {'.'.join(table)}; correct its name or"
                " leave it out"
            )


def follow_options(
    state: SnapshotState,
    history: SchemaHistory,
    position: Position,
    wants: Callable[[str, str], bool],
) -> SnapshotState:
    """The query wants other tables than before: those that it did not want are to be read."""
    kept = tuple(load for load in state.pending if wants(*load.table))
    completed = frozenset(table for table in state.completed if wants(*table))
    known = completed.union(load.table for load in kept)
    new = [table for table in _there(history, position, wants) if table not in known]
    return replace(state, completed=completed, pending=(*kept, *map(TableSnapshotState, new)))


def reload_tables(
    state: SnapshotState,
    name: str,
    history: SchemaHistory,
    position: Position,
    wants: Callable[[str, str], bool],
) -> SnapshotState:
    """All tables that `wants` are to be read again, under a name that is remembered.

    Raises OptionError where there are none: a typo would be remembered as done.
    """
    again = list(_there(history, position, wants))
    if not again:
        raise OptionError(
            f"option reload: expected tables that are there and wanted, found none for {name!r}:"
            " check its patterns"
        )
    return replace(_read_again(state, again), reload=name)


def advance(
    state: SnapshotState,
    history: SchemaHistory,
    position: Position,
    wants: Callable[[str, str], bool],
    unknown: Collection[Table],
) -> SnapshotState:
    """The state where a batch ends that begins at `state`; it has no chunks of its own yet.

    Parameters
    ----------
    history, position : where the batch ends.
    unknown : tables that got their names in this batch, and others whose rows nobody knows.
    """
    there = set(_there(history, position, wants))
    pending = tuple(load for load in state.pending if not _is_gone(history, position, load.table))
    left = {load.table for load in pending}
    # What was not there before and is now, was created: its rows are in the log.
    completed = frozenset(there - left)
    state = replace(state.without_batch(), completed=completed, pending=pending)
    return _read_again(state, [table for table in sorted(unknown) if table in there])


def altered_tables(
    state: SnapshotState, history: SchemaHistory, start: Position, end: Position
) -> dict[Table, Position]:
    """Where tables look other, behind `start` and up to `end`, than their loaded rows may.

    Those are tables that were not known for a while, and tables that are altered at a place up to
    which rows were read already: such rows may have the columns of before, or of behind it.
    """
    found = {}
    for table in history.tables():
        begun = [each for each in history.versions(*table) if start < each[0] <= end]
        until = state.high_watermarks.get(table, (0, 0))
        for at, what in begun:
            is_unknown = isinstance(what, UnknownSchema) and not what.gone
            if is_unknown or (at.number, at.pos) <= until:
                found[table] = at
    return found


def record_high_watermark(state: SnapshotState, position: Position, end: Position) -> SnapshotState:
    """The state at an offset's position, when the log ends at `end`: up to there it may be seen."""
    place = position.number, position.pos
    until = {table: at for table, at in state.high_watermarks.items() if at > place}
    now = end.number, end.pos
    if now > place:
        until |= {chunk.table: now for chunk in state.chunks}
    return replace(state, high_watermarks=until)


def next_sequence(state: SnapshotState, begin: Position) -> SnapshotState:
    """The state at the beginning of the log's next sequence of files, in positions of its own."""
    until = {
        table: place
        for table, (number, pos) in state.high_watermarks.items()
        if (place := Position(number, pos, "").in_later_sequence(-1).order) > BEGINNING.order
    }
    # Every statement before the beginning counts as one right there.
    lost = dict.fromkeys(state.invalidated_at, begin.order)
    return replace(state.without_batch(), high_watermarks=until, invalidated_at=lost)


def _read_again(state: SnapshotState, tables: Collection[Table]) -> SnapshotState:
    pending = tuple(load for load in state.pending if load.table not in tables)
    return replace(
        state,
        completed=state.completed.difference(tables),
        pending=(*pending, *map(TableSnapshotState, tables)),
    )


def _there(
    history: SchemaHistory, position: Position, wants: Callable[[str, str], bool]
) -> Iterator[Table]:
    """The wanted tables that are there at `position`, sorted."""
    for table in history.tables():
        state = history.state(position, *table)
        is_dropped = isinstance(state, UnknownSchema) and state.gone
        if wants(*table) and state is not None and not is_dropped:
            yield table


def _is_ever_there(history: SchemaHistory, position: Position, table: Table) -> bool:
    """Whether a table is there at `position`, or where the history ends."""
    state = history.state(position, *table)
    if state is not None and not _is_gone(history, position, table):
        return True
    return not is_dropped(history.versions(*table)[-1])


def _is_gone(history: SchemaHistory, position: Position, table: Table) -> bool:
    """Whether the log says so; a table of which it says nothing is there."""
    state = history.state(position, *table)
    return isinstance(state, UnknownSchema) and state.gone
