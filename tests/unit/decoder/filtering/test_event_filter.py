"""Events that the event filter keeps, and transaction boundaries that it reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.logs.events import (
    LogBuilder,
    dummy_rows_body,
    format_description_body,
    gtid_body,
    rows_body,
    rows_query_body,
    table_map,
)
from helpers.snapshots.filter_harness import GROUP, Filtered, captures, filtered, xa, xid
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import (
    Outcome,
    Prepared,
    PreparedXa,
    RolledBack,
    SavepointSet,
    XaCommitted,
    XaRolledBack,
)
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    OffsetError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.events import IGNORABLE_FLAG, Event, EventType

T = EventType
A, B = xid(b"a"), xid(b"b")


def test_filter_keeps_all_events_of_a_captured_transaction() -> None:
    log = LogBuilder().begin(gtid=5).rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.types == ["GTID", *GROUP]
    assert found.kept == log.events()
    assert found.ends == [log.pos]


def test_transaction_without_captured_tables_gives_only_a_boundary() -> None:
    log = LogBuilder().begin(gtid=5).rows(1, "x", 1).xid()
    found = filtered(log)
    assert found.types == []
    assert found.ends == [log.pos]


def test_filter_keeps_only_captured_tables_of_a_transaction() -> None:
    log = LogBuilder().begin().rows(1, "x", 1).rows(2, "t", 2).rows(3, "x", 3).rows(4, "u", 4).xid()
    found = filtered(log)
    assert found.types == ["QUERY", *GROUP[1:3], *GROUP[1:3], "XID"]
    assert [event.body[0] for event in found.kept if event.type == T.WRITE_ROWS_EVENT] == [2, 4]


def test_filter_keeps_only_captured_tables_of_a_statement() -> None:
    """A statement with triggers logs all its table maps first, and then the rows."""
    log = LogBuilder().begin()
    log.add(T.TABLE_MAP_EVENT, table_map(1, "x")).add(T.TABLE_MAP_EVENT, table_map(2, "t"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(2, 7, last=False))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 8)).xid()
    assert filtered(log).types == GROUP


def test_system_tables_are_never_captured() -> None:
    log = LogBuilder().begin()
    log.add(T.TABLE_MAP_EVENT, table_map(1, "user", "mysql"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1)).xid()
    assert Filtered(log.events(), lambda database, table: True).kept == []


def test_rows_query_event_is_kept_only_with_captured_rows() -> None:
    log = LogBuilder().begin()
    for sql, table in (("one", "x"), ("two", "t"), ("three", "x")):
        log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body(sql), IGNORABLE_FLAG).rows(1, table, 1)
    found = filtered(log.xid())
    assert found.types == ["QUERY", "ROWS_QUERY", *GROUP[1:]]
    assert found.kept[1].body == rows_query_body("two")


@pytest.mark.parametrize("gtid", [None, 5])
def test_text_before_a_transaction_is_not_passed_on(gtid: int | None) -> None:
    """It would follow BEGIN, and blocks rely on the order of positions."""
    log = LogBuilder().add(T.ROWS_QUERY_LOG_EVENT, rows_query_body("one"), IGNORABLE_FLAG)
    if gtid is not None:
        log.add(T.GTID_LOG_EVENT, gtid_body(gtid))
        log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body("two"), IGNORABLE_FLAG)
    found = filtered(log.begin().rows(1, "t", 1).xid())
    assert found.types == [*(["GTID"] if gtid else []), *GROUP]
    assert [event.start for event in found.kept] == sorted(event.start for event in found.kept)


def test_commit_logged_as_a_query_ends_the_transaction() -> None:
    """Servers end transactions on MyISAM tables like this."""
    log = LogBuilder().begin().rows(1, "t", 1).query("COMMIT")
    found = filtered(log)
    assert found.types == [*GROUP[:3], "QUERY"]
    assert found.ends == [log.pos]


@pytest.mark.parametrize("kind", [T.WRITE_ROWS_EVENT, T.UPDATE_ROWS_EVENT, T.DELETE_ROWS_EVENT_V1])
def test_dummy_rows_event_is_not_kept_by_the_filter(kind: EventType) -> None:
    log = LogBuilder().begin().add(T.TABLE_MAP_EVENT, table_map(1, "t"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1, last=False)).add(kind, dummy_rows_body()).xid()
    assert filtered(log).types == GROUP


def test_reused_table_id_refers_to_the_last_table_map() -> None:
    """The id is reused within a transaction and in a later one."""
    log = LogBuilder().begin().rows(1, "x", 1).rows(1, "t", 2).rows(1, "x", 3).xid()
    log.begin().rows(1, "u", 4).xid().begin().rows(1, "x", 5).xid()
    found = filtered(log)
    rows = [event.body[-4] for event in found.kept if event.type == T.WRITE_ROWS_EVENT]
    assert rows == [2, 4]


def test_table_id_of_an_earlier_transaction_is_rejected() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).xid().begin()
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 2))
    with pytest.raises(MalformedEventError, match="table id 1, expected one of a table map"):
        filtered(log)


# (statement, its reported kind or None, whether its event is kept)
DDL: list[tuple[str, StatementKind | None, bool]] = [
    ("CREATE TABLE t (id INT)", StatementKind.CREATE_TABLE, False),
    ("ALTER TABLE t ADD a INT", StatementKind.ALTER_TABLE, False),
    ("DROP TABLE x", StatementKind.DROP_TABLE, False),
    ("RENAME TABLE x TO t", StatementKind.RENAME_TABLE, False),
    ("DROP DATABASE d", StatementKind.DROP_DATABASE, False),
    ("TRUNCATE TABLE t", StatementKind.TRUNCATE, True),
    ("TRUNCATE TABLE x", StatementKind.TRUNCATE, False),
    ("GRANT SELECT ON *.* TO a", None, False),
    ("CREATE INDEX i ON t (a)", None, False),
]


@pytest.mark.parametrize("gtid", [False, True])
@pytest.mark.parametrize(("sql", "kind", "kept"), DDL)
def test_ddl_outside_a_transaction_ends_a_transaction_of_its_own(
    sql: str, kind: StatementKind | None, kept: bool, gtid: bool
) -> None:
    log = LogBuilder()
    if gtid:
        log.add(T.GTID_LOG_EVENT, bytes(25))
    log.query(sql)
    ddl_end = log.pos
    log.begin().rows(1, "t", 1).xid()
    found = filtered(log)
    expected = (["GTID"] if gtid else []) + ["QUERY"] if kept else []
    assert found.types == [*expected, *GROUP]
    assert found.ends == [ddl_end, log.pos]
    assert found.statements == ([] if kind is None else [kind])


# (statement, whether it is kept with the operation `ddl`)
KEPT_DDL: list[tuple[str, bool]] = [
    ("ALTER TABLE t ADD a INT", True),
    ("ALTER TABLE x ADD a INT", False),
    ("ALTER TABLE x RENAME t", True),
    ("DROP TABLE x, t", True),
    ("DROP TABLE x", False),
    ("RENAME TABLE x TO y, t TO z", True),
    ("DROP DATABASE other", True),
    ("CREATE DATABASE d", False),
    ("CREATE OR REPLACE DATABASE d", True),
    ("TRUNCATE TABLE t", True),
    ("ALTER TABLE t TRUNCATE PARTITION p0", True),
    ("ALTER TABLE x TRUNCATE PARTITION p0", False),
    ("GRANT SELECT ON *.* TO a", False),
]


@pytest.mark.parametrize(("sql", "kept"), KEPT_DDL)
def test_ddl_that_may_affect_captured_tables_is_kept_with_operation_ddl(
    sql: str, kept: bool
) -> None:
    log = LogBuilder().query(sql).begin().rows(1, "t", 1).xid()
    assert filtered(log, operations=frozenset({"truncate", "ddl"})).types == [
        *(["QUERY"] if kept else []),
        *GROUP,
    ]
    # TRUNCATE is kept without the operation `ddl`, too.
    kept = kept and "TRUNCATE" in sql
    assert filtered(log).types == [*(["QUERY"] if kept else []), *GROUP]


def test_ddl_inside_a_transaction_does_not_end_it() -> None:
    """Such DDL is CREATE TEMPORARY TABLE and, on 5.6, CREATE TABLE … SELECT."""
    log = LogBuilder().begin().query("CREATE TABLE t (id INT)").rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.types == GROUP
    assert found.ends == [log.pos]
    assert found.statements == [StatementKind.CREATE_TABLE]


def test_savepoint_statements_are_dropped_and_end_no_transaction() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).query("SAVEPOINT `s`").rows(2, "x", 1)
    log.query("ROLLBACK TO `s`").rows(3, "t", 2).query("RELEASE SAVEPOINT `s`").xid()
    found = filtered(log)
    assert found.types == ["QUERY", *GROUP[1:3], *GROUP[1:3], "XID"]
    assert found.ends == [log.pos]


def test_one_phase_xa_transaction_commits_without_pending_xa() -> None:
    log = xa(LogBuilder(), b"a", "t", one_phase=True)
    found = filtered(log)
    assert found.types == ["QUERY", "TABLE_MAP", "WRITE_ROWS", "XA_PREPARE"]
    assert found.ends == [log.pos]
    assert found.filtering.pending_xa == ()
    assert filtered(xa(LogBuilder(), b"a", "x", one_phase=True)).types == []


@pytest.mark.parametrize("verb", ["XA COMMIT", "XA ROLLBACK"])
def test_prepared_xa_without_captured_rows_is_pending_until_it_ends(verb: str) -> None:
    log = xa(xa(LogBuilder(), b"b", "x"), b"a", "x")
    prepared = filtered(log)
    assert prepared.filtering.pending_xa == (B, A)
    assert len(prepared.ends) == 2
    log.query(f"{verb} {B}").begin().rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.filtering.pending_xa == (A,)
    assert found.types == GROUP
    assert len(found.ends) == 4


def test_format_description_and_stop_events_are_no_transaction_boundaries() -> None:
    log = LogBuilder().format_description().begin().rows(1, "t", 1).xid().add(T.STOP_EVENT, b"")
    found = filtered(log)
    assert found.types == GROUP
    assert len(found.ends) == 1


STATEMENTS = st.lists(
    st.tuples(
        st.sampled_from(["t", "u", "x", "y"]), st.integers(1, 3), st.booleans(), st.booleans()
    ),
    max_size=6,
)


@given(st.lists(st.tuples(STATEMENTS, st.booleans(), st.booleans()), max_size=6))
def test_filter_of_random_logs_keeps_captured_rows_and_all_boundaries(
    transactions: list[tuple[list[tuple[str, int, bool, bool]], bool, bool]],
) -> None:
    log = LogBuilder()
    ends = []
    rows: list[int] = []
    texts: list[str] = []
    count = 0
    for statements, gtid, as_query in transactions:
        log.begin(gtid=1 if gtid else None)
        for table, table_id, text, dummy in statements:
            count += 1
            if text:
                log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body(f"{count}"), IGNORABLE_FLAG)
            log.rows(table_id, table, count)
            if dummy:
                log.add(T.WRITE_ROWS_EVENT, dummy_rows_body())
            if table in {"t", "u"}:
                rows.append(count)
                texts += [f"{count}"] if text else []
        if as_query:
            log.query("COMMIT")
        else:
            log.xid()
        ends.append(log.pos)
    found = filtered(log)
    assert found.ends == ends
    values = [event.body[-4] for event in found.kept if event.type == T.WRITE_ROWS_EVENT]
    assert values == rows
    kept_texts = [
        event.body[1:].decode() for event in found.kept if event.type == T.ROWS_QUERY_LOG_EVENT
    ]
    assert kept_texts == texts
    # The kept events are whole transactions: filtering them again keeps all of them.
    assert Filtered(found.kept).kept == found.kept


# --- XA transactions and rollbacks


def outcomes(log: LogBuilder | list[Event], **settings: Any) -> list[Outcome]:
    """Return all outcomes that the filter reports for the events."""
    filtering = EventFilter(captures, **settings)
    found = []
    for event in log.events() if isinstance(log, LogBuilder) else log:
        filtering.feed(event)
        if filtering.outcome is not None:
            found.append(filtering.outcome)
    return found


def test_xa_with_captured_rows_gives_prepared_then_committed_or_rolled_back() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).xid()
    begin = log.pos
    end = xa(log.add(T.GTID_LOG_EVENT, gtid_body(1)), b"a", "t").pos
    prepared = PreparedXa(A, log.file, begin, end)
    xa(log, b"b", "x")
    assert filtered(log).filtering.pending_xa == (str(prepared), B)
    assert PreparedXa.parse(str(prepared)) == prepared
    log.add(T.GTID_LOG_EVENT, gtid_body(2)).query(f"XA COMMIT {A}")
    *_, gtid, commit = log.events()
    assert outcomes(log) == [Prepared(prepared), XaCommitted(prepared, gtid, commit)]
    # After a restart, the pending transactions are those of the offset.
    again = outcomes(log.events()[-2:], pending_xa=(B, str(prepared)))
    assert again == [XaCommitted(prepared, gtid, commit)]
    log = xa(LogBuilder(), b"a", "t").query(f"XA ROLLBACK {A}")
    assert outcomes(log)[1:] == [XaRolledBack(A)]
    assert filtered(log).filtering.pending_xa == ()


def test_more_than_256_pending_xa_transactions_are_all_known() -> None:
    """An offset stores only the last 256; others are searched in the binlog before the start."""
    log = LogBuilder()
    for number in range(300):
        xa(log, number.to_bytes(2, "big"), "t")
    assert len(filtered(log).filtering.pending_xa) == 300


def test_rename_of_table_with_prepared_xa_rows_after_a_restart_is_rejected() -> None:
    """After a restart of the server, 5.7 allows this RENAME (measured on 5.7.41)."""
    rename = "RENAME TABLE t TO old"
    log = LogBuilder()
    xa(log, b"a", "t").query(rename)
    filtered(log)  # accepted: without a restart, tables of prepared transactions are locked
    body = format_description_body()
    log = xa(LogBuilder(), b"a", "t")
    # A creation time in the FORMAT_DESCRIPTION shows that the server was started.
    log.add(T.FORMAT_DESCRIPTION_EVENT, body[:52] + b"\x01\x02\x03\x04" + body[56:]).query(rename)
    with pytest.raises(UnsupportedTransactionError, match=r"renamed to d\.old while XA"):
        filtered(log)
    log = LogBuilder().query(rename)
    with pytest.raises(UnsupportedTransactionError, match=r"renamed to d\.old while XA"):
        filtered(log, pending_xa=(f"{A} mysql-bin.000001:4-900",))
    filtered(log, pending_xa=(A,))


def test_damaged_pending_xa_of_an_offset_raises_offset_error() -> None:
    for text in ("X'61' a:1-2", f"{A} a:1", f"{A} :1-2", f"{A} a:x-2"):
        with pytest.raises(OffsetError, match="is damaged"):
            PreparedXa.parse(text)
    assert PreparedXa.parse(A) is None


def test_rollbacks_of_captured_rows_give_rolled_back_outcomes() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).query("ROLLBACK")
    assert outcomes(log) == [RolledBack()]
    log = LogBuilder().query(f"XA START {A}").rows(1, "t", 1).query(f"XA ROLLBACK {A}")
    assert outcomes(log) == [RolledBack()]
    log = LogBuilder().begin().rows(1, "t", 1).query("SAVEPOINT `s`").rows(2, "x", 1)
    log.query("ROLLBACK TO `s`").rows(3, "t", 1).query("ROLLBACK TO `S`").xid()
    assert outcomes(log) == [SavepointSet("s"), RolledBack("s")]


def test_filter_holds_events_after_a_savepoint_and_within_xa() -> None:
    filtering = EventFilter(captures)
    log = LogBuilder().begin().rows(1, "t", 1).query("SAVEPOINT `s`").xid()
    xa(log, b"a", "t")
    held = []
    for event in log.events():
        filtering.feed(event)
        held.append((filtering.is_held, filtering.has_xa))
    no, held_, xa_ = (False, False), (True, False), (True, True)
    assert held == [no, no, no, held_, no, xa_, xa_, xa_, xa_, no]
