"""Tables to snapshot, as the binlog and the options add and remove tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import (
    UNKNOWN_END,
    Chunk,
    SnapshotState,
    TableSnapshotState,
)
from pyspark_mysqlbinlog.connector.snapshot.planning.table_set import (
    advance,
    after_failover,
    after_gap,
    altered_tables,
    begin_load,
    check_conditions,
    follow_options,
    next_sequence,
    record_high_watermark,
    reload_tables,
    with_tables_read,
    without_snapshot,
)
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

BEGIN, LATER = Position.of("bin.000001", 4), Position.of("bin.000001", 400)
A, B, C = ("shop", "a"), ("shop", "b"), ("shop", "c")


def all_of_shop(database: str, _: str) -> bool:
    return database == "shop"


def history(*tables: tuple[str, str]) -> SchemaHistory:
    known = SchemaHistory()
    for table in tables:
        known = known.with_table(BEGIN, TableSchema(*table, ()))
    return known


def pending(*tables: tuple[str, str]) -> tuple[TableSnapshotState, ...]:
    return tuple(map(TableSnapshotState, tables))


def test_snapshot_begins_with_every_captured_table_that_exists() -> None:
    known = history(B, A, ("else", "a")).without(BEGIN, *C, "dropped", is_dropped=True)
    assert begin_load(known, BEGIN, all_of_shop) == SnapshotState(pending=pending(A, B))


def test_snapshot_includes_a_table_with_unknown_columns() -> None:
    known = history(A).without(BEGIN, *B, "it was altered")
    assert begin_load(known, BEGIN, all_of_shop).pending == pending(A, B)


@pytest.mark.parametrize(
    ("reloads", "completed", "left"), [(False, {A}, (B, C)), (True, set(), (A, B, C))]
)
def test_snapshot_after_a_binlog_gap_restarts_unfinished_tables(
    reloads: bool, completed: set[Table], left: tuple[Table, ...]
) -> None:
    """A is complete, B is in progress, C is new, and D no longer exists."""
    gone = ("shop", "d")
    state = SnapshotState(
        frozenset({A, gone}),
        (TableSnapshotState(B, "key", ("1",), ("9",)), TableSnapshotState(("shop", "e"))),
        chunks=(Chunk(B, "key", None, ("1",)),),
        rows=7,
        reload="id",
        high_watermarks={A: (3, 4)},
        invalidated_at={B: (2, 4)},
        empty=frozenset({A}),
    )
    found = after_gap(state, history(C, B, A), LATER, all_of_shop, reloads=reloads)
    expected = SnapshotState(frozenset(completed), pending(*left), rows=7, reload="id")
    assert found == expected


def test_created_table_is_complete_and_one_that_was_unknown_is_read() -> None:
    state = SnapshotState(frozenset({A}))
    followed = advance(
        state, history(A, B, C), LATER, all_of_shop, created={B, ("shop", "gone")}, unknown=()
    )
    assert followed == SnapshotState(frozenset({A, B}), pending(C))


def test_table_with_unknown_columns_is_read_when_its_columns_are_known() -> None:
    """The account may not see it: an ALTER of such a table shows only that it exists."""
    state = SnapshotState(frozenset({A}))
    altered = history(A).without(LATER, *B, "altered")
    assert advance(state, altered, LATER, all_of_shop, created=(), unknown=()) == state
    followed = advance(state, history(A, B), LATER, all_of_shop, created=(), unknown=())
    assert followed == SnapshotState(frozenset({A}), pending(B))


def test_existing_tables_are_complete_in_a_stream_without_a_snapshot() -> None:
    known = history(A, B).without(LATER, *B, "dropped", is_dropped=True)
    found = without_snapshot(known, LATER, all_of_shop)
    assert found == SnapshotState(frozenset({A}))
    assert advance(found, known, LATER, all_of_shop, created=(), unknown=()) == found


def test_renamed_table_is_read_even_if_its_name_was_completed() -> None:
    state = SnapshotState(frozenset({A}))
    followed = advance(state, history(A, B), LATER, all_of_shop, created=(), unknown={A, B})
    assert followed == SnapshotState(pending=pending(A, B))


def test_table_renamed_during_its_snapshot_is_read_from_the_beginning() -> None:
    state = SnapshotState(
        pending=(TableSnapshotState(A, "k", ("5",), ("9",)), TableSnapshotState(B))
    )
    followed = advance(state, history(A, B), LATER, all_of_shop, created=(), unknown={A})
    assert followed.pending == pending(B, A)


def test_dropped_table_is_removed_from_the_snapshot() -> None:
    known = history(A, B).without(LATER, *A, "dropped", is_dropped=True)
    state = SnapshotState(frozenset({B}), pending(A))
    assert advance(state, known, LATER, all_of_shop, created=(), unknown=()) == SnapshotState(
        frozenset({B})
    )


def test_pending_table_missing_from_the_history_stays_pending() -> None:
    state = SnapshotState(pending=pending(A, B))
    followed = advance(state, history(B), LATER, all_of_shop, created=(), unknown=())
    assert followed.pending == pending(A, B)


def test_chunks_of_a_batch_are_cleared_for_the_next_batch() -> None:
    state = SnapshotState(pending=pending(A), chunks=(Chunk(A),), rows=7)
    assert advance(state, history(A), LATER, all_of_shop, created=(), unknown=()) == SnapshotState(
        pending=pending(A), rows=7
    )


def test_changed_table_options_add_and_remove_snapshot_tables() -> None:
    state = SnapshotState(frozenset({A}), pending(B), rows=7)
    found = follow_options(state, history(A, B, C), LATER, lambda _, table: table in "bc")
    assert found == SnapshotState(frozenset(), pending(B, C), rows=7)
    back = follow_options(found, history(A, B, C), LATER, all_of_shop)
    assert back.pending == pending(B, C, A)


def test_reload_reads_its_tables_from_the_beginning() -> None:
    state = SnapshotState(frozenset({A, C}), (TableSnapshotState(B, "k", ("5",), ("9",)),))
    found = reload_tables(state, "fix", history(A, B, C), LATER, lambda _, table: table in "ab")
    assert found == SnapshotState(frozenset({C}), pending(A, B), reload="fix")


def test_reload_without_matching_tables_is_rejected() -> None:
    state = SnapshotState(frozenset({A}))
    with pytest.raises(OptionError, match="'fix'"):
        reload_tables(state, "fix", history(A), LATER, lambda _, table: table == "b")


END = Position.of("bin.000001", 900)


def test_high_watermarks_are_kept_until_the_binlog_reaches_them() -> None:
    state = SnapshotState(chunks=(Chunk(A), Chunk(B)), high_watermarks={C: (1, 500), A: (1, 450)})
    after = record_high_watermark(state, LATER, END)
    assert after.high_watermarks == {A: (1, 900), B: (1, 900), C: (1, 500)}
    assert record_high_watermark(after, END, END).high_watermarks == {}
    assert record_high_watermark(SnapshotState(chunks=(Chunk(A),)), END, END).high_watermarks == {}


def test_table_altered_up_to_its_high_watermark_is_reported_once() -> None:
    known = history(A, B, C)
    for table, pos in ((A, 600), (B, 700), (C, 600)):
        altered = TableSchema(*table, (), primary_key=("id",))
        known = known.with_table(Position.of("bin.000001", pos), altered)
    state = SnapshotState(high_watermarks={A: (1, 600), B: (1, 699)})
    assert altered_tables(state, known, LATER, END) == {A: Position.of("bin.000001", 600)}
    # Each position is reported once.
    assert altered_tables(state, known, END, Position.of("bin.000002", 4)) == {}


def test_table_with_unknown_columns_is_reported_as_altered() -> None:
    place = Position.of("bin.000001", 600)
    known = history(A, B).without(place, *A, "why").without(place, *B, "dropped", is_dropped=True)
    assert altered_tables(SnapshotState(), known, LATER, END) == {A: place}


def test_snapshot_condition_for_a_table_created_later_is_accepted() -> None:
    known = history(A).without(BEGINNING, *B, "created later", is_dropped=True)
    known = known.with_table(END, TableSchema(*B, ()))
    check_conditions([B], known, LATER, case_sensitive=True)
    asked: list[Table] = []

    def exists(table: Table) -> bool:
        asked.append(table)
        return table == C

    check_conditions([A, B, C], known, LATER, case_sensitive=True, exists=exists)
    assert asked == [C]
    with pytest.raises(OptionError, match=r"snapshotWhere: table .* does not exist"):
        check_conditions([("shop", "typo")], known, LATER, case_sensitive=True, exists=exists)


def test_next_sequence_drops_batch_state_and_high_watermarks() -> None:
    """Positions of the previous sequence have no meaning in the next one."""
    state = SnapshotState(
        completed=frozenset({B}),
        pending=(TableSnapshotState(A),),
        chunks=(Chunk(B),),
        empty=frozenset({C}),
        high_watermarks={B: (900, 44)},
        invalidated_at={A: (900, 44)},
    )
    begin = Position.of("other.000003", 4)
    assert next_sequence(state, begin) == SnapshotState(
        completed=frozenset({B}), pending=(TableSnapshotState(A),), invalidated_at={A: (3, 4)}
    )


def test_snapshot_condition_for_a_missing_table_is_rejected() -> None:
    known = history(A).without(LATER, *B, "dropped", is_dropped=True)
    check_conditions([A], known, LATER, case_sensitive=True)
    check_conditions([("SHOP", "A")], known, LATER, case_sensitive=False)
    for table, sensitive in ((B, False), (C, False), (("shop", "A"), True)):
        with pytest.raises(OptionError, match=r"snapshotWhere: table .* does not exist"):
            check_conditions([table], known, LATER, case_sensitive=sensitive)


def test_tables_that_a_batch_reads_have_an_unknown_high_watermark() -> None:
    """A is read, B in progress and C pending; D no longer exists, and E has no rows left."""
    d, e = ("shop", "d"), ("shop", "e")
    begun = TableSnapshotState(B, "key", ("'1'",), ("'9'",))
    before = SnapshotState(pending=(*pending(A, B, C, d), replace(begun, table=e)))
    planned = replace(
        before,
        completed=frozenset({A, e}),
        pending=(begun, *pending(C)),
        chunks=(Chunk(A), Chunk(B, "key", None, ("'1'",))),
    )
    after = with_tables_read(before, planned)
    assert after.high_watermarks == dict.fromkeys((A, B, d, e), UNKNOWN_END)
    assert after.completed == {A, d, e}
    assert after.read_ahead_of(LATER.order) == {A, B, d, e}
    known = record_high_watermark(after, BEGIN, LATER)
    assert known.high_watermarks == dict.fromkeys((A, B, d, e), (1, 400))
    assert SnapshotState.unpack(after.pack()) == after


def test_failover_reads_tables_again_that_were_read_ahead() -> None:
    """Only B was read ahead of the position. C is in progress, and D is pending after DDL."""
    d = ("shop", "d")
    state = SnapshotState(
        completed=frozenset({A, B}),
        pending=(TableSnapshotState(C, "key", ("'1'",), ("'9'",)), TableSnapshotState(d)),
        rows=7,
        reload="again",
        high_watermarks={A: (1, 400), B: (1, 401)},
        invalidated_at={d: (1, 300)},
    )
    begin = Position.of("other.000003", 4)
    assert after_failover(state, LATER, begin) == SnapshotState(
        completed=frozenset({A}),
        pending=pending(d, B, C),
        rows=7,
        reload="again",
        invalidated_at={d: (3, 4)},
    )


def test_completed_tables_without_high_watermarks_count_as_read_ahead() -> None:
    """A query that cannot fail over plans chunks without them."""
    state = SnapshotState(completed=frozenset({A, B}), pending=pending(C), chunks=(Chunk(B),))
    assert state.read_ahead_of(LATER.order) == {A, B}
    assert replace(state, chunks=()).read_ahead_of(LATER.order) == frozenset()
