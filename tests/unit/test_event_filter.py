"""What the filter keeps, where it says the log may be cut, and what stops it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.statements import StatementKind
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    MySQLBinlogError,
    StatementFormatError,
    UnsupportedEventError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.events import (
    IGNORABLE_FLAG,
    ROWS_EVENT_TYPES,
    THREAD_SPECIFIC_FLAG,
    Event,
    EventType,
)

from decoding import CAPTURED, captured_ordinal, decoder, read_log, rows_of
from events import (
    LogBuilder,
    dummy_rows_body,
    incident_body,
    query_body,
    rows_body,
    rows_query_body,
    table_map,
    xa_prepare_body,
)
from replay import captured_schemas

T = EventType
Wants = Callable[[str, str], bool]


def wants(database: str, table: str) -> bool:
    """Tables d.t and d.u are wanted, d.x is not."""
    return database == "d" and table in {"t", "u"}


class Filtered:
    """A whole log through the filter."""

    def __init__(self, events: Iterable[Event], wanted: Wants = wants, **settings: Any) -> None:
        self.filtering = EventFilter(wanted, **settings)
        self.kept: list[Event] = []
        self.ends: list[int] = []
        self.statements: list[StatementKind] = []
        for event in events:
            self.kept += self.filtering.feed(event)
            if self.filtering.ended:
                self.ends.append(event.end)
            if self.filtering.statement is not None:
                self.statements.append(self.filtering.statement.statement.kind)

    @property
    def types(self) -> list[str]:
        return [
            T(event.type).name.removesuffix("_EVENT").removesuffix("_LOG") for event in self.kept
        ]


def filtered(log: LogBuilder, **settings: Any) -> Filtered:
    return Filtered(log.events(), **settings)


GROUP = ["QUERY", "TABLE_MAP", "WRITE_ROWS", "XID"]


def test_a_wanted_transaction_with_its_frame() -> None:
    log = LogBuilder().begin(gtid=5).rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.types == ["GTID", *GROUP]
    assert found.kept == log.events()
    assert found.ends == [log.pos]


def test_an_unwanted_transaction_is_a_boundary_and_nothing_else() -> None:
    log = LogBuilder().begin(gtid=5).rows(1, "x", 1).xid()
    found = filtered(log)
    assert found.types == []
    assert found.ends == [log.pos]


def test_tables_of_one_transaction_are_told_apart() -> None:
    log = LogBuilder().begin().rows(1, "x", 1).rows(2, "t", 2).rows(3, "x", 3).rows(4, "u", 4).xid()
    found = filtered(log)
    assert found.types == ["QUERY", *GROUP[1:3], *GROUP[1:3], "XID"]
    assert [event.body[0] for event in found.kept if event.type == T.WRITE_ROWS_EVENT] == [2, 4]


def test_one_statement_on_wanted_and_unwanted_tables() -> None:
    """Triggers: all table maps first, then the rows."""
    log = LogBuilder().begin()
    log.add(T.TABLE_MAP_EVENT, table_map(1, "x")).add(T.TABLE_MAP_EVENT, table_map(2, "t"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(2, 7, last=False))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 8)).xid()
    assert filtered(log).types == GROUP


def test_system_tables_are_never_wanted() -> None:
    log = LogBuilder().begin()
    log.add(T.TABLE_MAP_EVENT, table_map(1, "user", "mysql"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1)).xid()
    assert Filtered(log.events(), lambda database, table: True).kept == []


def test_rows_query_only_with_wanted_rows() -> None:
    log = LogBuilder().begin()
    for sql, table in (("one", "x"), ("two", "t"), ("three", "x")):
        log.add(T.ROWS_QUERY_LOG_EVENT, rows_query_body(sql), IGNORABLE_FLAG).rows(1, table, 1)
    found = filtered(log.xid())
    assert found.types == ["QUERY", "ROWS_QUERY", *GROUP[1:]]
    assert found.kept[1].body == rows_query_body("two")


def test_commit_as_a_query() -> None:
    """MyISAM."""
    log = LogBuilder().begin().rows(1, "t", 1).query("COMMIT")
    found = filtered(log)
    assert found.types == [*GROUP[:3], "QUERY"]
    assert found.ends == [log.pos]


@pytest.mark.parametrize("kind", [T.WRITE_ROWS_EVENT, T.UPDATE_ROWS_EVENT, T.DELETE_ROWS_EVENT_V1])
def test_dummy_rows_event_ends_a_statement(kind: EventType) -> None:
    log = LogBuilder().begin().add(T.TABLE_MAP_EVENT, table_map(1, "t"))
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1, last=False)).add(kind, dummy_rows_body()).xid()
    assert filtered(log).types == GROUP


def test_table_ids_are_reused() -> None:
    """Within a transaction and after it: the last table map counts."""
    log = LogBuilder().begin().rows(1, "x", 1).rows(1, "t", 2).rows(1, "x", 3).xid()
    log.begin().rows(1, "u", 4).xid().begin().rows(1, "x", 5).xid()
    found = filtered(log)
    rows = [event.body[-4] for event in found.kept if event.type == T.WRITE_ROWS_EVENT]
    assert rows == [2, 4]


def test_an_id_of_another_transaction_is_not_known() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).xid().begin()
    log.add(T.WRITE_ROWS_EVENT, rows_body(1, 2))
    with pytest.raises(MalformedEventError, match="table id 1, which no table map"):
        filtered(log)


# (statement, kind it is told to be or None, whether an event is kept)
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
def test_ddl_is_a_transaction_of_its_own(
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


# (statement, whether it is kept with `ddl`)
KEPT_DDL: list[tuple[str, bool]] = [
    ("ALTER TABLE t ADD a INT", True),
    ("ALTER TABLE x ADD a INT", False),
    ("ALTER TABLE x RENAME t", True),
    ("DROP TABLE x, t", True),
    ("DROP TABLE x", False),
    ("RENAME TABLE x TO y, t TO z", True),
    ("DROP DATABASE other", True),
    ("CREATE DATABASE d", False),
    ("TRUNCATE TABLE t", True),
    ("ALTER TABLE t TRUNCATE PARTITION p0", True),
    ("ALTER TABLE x TRUNCATE PARTITION p0", False),
    ("GRANT SELECT ON *.* TO a", False),
]


@pytest.mark.parametrize(("sql", "kept"), KEPT_DDL)
def test_ddl_that_may_give_rows_is_kept(sql: str, kept: bool) -> None:
    log = LogBuilder().query(sql).begin().rows(1, "t", 1).xid()
    assert filtered(log, ddl=True).types == [*(["QUERY"] if kept else []), *GROUP]
    # A truncate is no DDL: it is kept anyway.
    kept = kept and "TRUNCATE" in sql
    assert filtered(log).types == [*(["QUERY"] if kept else []), *GROUP]


def test_ddl_inside_of_a_transaction_ends_nothing() -> None:
    """CREATE TEMPORARY TABLE, and 5.6's CREATE TABLE … SELECT."""
    log = LogBuilder().begin().query("CREATE TABLE t (id INT)").rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.types == GROUP
    assert found.ends == [log.pos]
    assert found.statements == [StatementKind.CREATE_TABLE]


def test_savepoints() -> None:
    log = LogBuilder().begin().rows(1, "t", 1).query("SAVEPOINT `s`").rows(2, "x", 1)
    log.query("ROLLBACK TO `s`").rows(3, "t", 2).query("RELEASE SAVEPOINT `s`").xid()
    found = filtered(log)
    assert found.types == ["QUERY", *GROUP[1:3], *GROUP[1:3], "XID"]
    assert found.ends == [log.pos]


# (what follows BEGIN, words) that would make rows wrong
ROLLED_BACK: list[tuple[Callable[[LogBuilder], object], str]] = [
    (lambda log: log.rows(1, "t", 1).query("ROLLBACK"), "1 rows events of wanted tables ends in"),
    (
        lambda log: log.query("SAVEPOINT `s`").rows(1, "t", 1).query("ROLLBACK TO `s`"),
        "is rolled back to a savepoint",
    ),
    (
        lambda log: (
            log.query("SAVEPOINT `a`")
            .rows(1, "t", 1)
            .query("SAVEPOINT `b`")
            .query("ROLLBACK TO `a`")
        ),
        "is rolled back to a savepoint",
    ),
    (lambda log: log.rows(1, "t", 1).query("ROLLBACK TO `unknown`"), "rolled back to a savepoint"),
]


@pytest.mark.parametrize(("follow", "words"), ROLLED_BACK)
def test_rolled_back_rows_of_wanted_tables(
    follow: Callable[[LogBuilder], object], words: str
) -> None:
    log = LogBuilder().begin()
    follow(log)
    with pytest.raises(UnsupportedTransactionError, match=words) as caught:
        filtered(log)
    assert caught.value.file == log.file
    assert caught.value.position == log.events()[-1].start


def test_rolled_back_rows_of_other_tables() -> None:
    log = LogBuilder().begin().rows(1, "x", 1).query("ROLLBACK").begin().rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.types == GROUP
    assert len(found.ends) == 2


# (statement, error or None)
DML: list[tuple[str, str | None]] = [
    ("insert into t values (1)", "a change of d.t was logged as a statement"),
    ("update x join u using (id) set u.a = 1", "a change of d.u was logged as a statement"),
    ("delete from t where id = 1", "a change of d.t"),
    ("select f(1)", "a change of a table that its text does not tell"),
    ("create table t (a int) select 1 as a", "a change of d.t was logged as a statement"),
    ("create table if not exists t as (select 1 as a)", "a change of d.t"),
    ("create table x (a int) select 1 as a", None),
    ("create temporary table t select 1 as a", None),
    ("analyze format=json delete from t", "a change of d.t was logged as a statement"),
    ("analyze delete from x", None),
    ("insert into x values (1)", None),
    ("update x set a = 1", None),
    ("insert into other.t values (1)", None),
]


@pytest.mark.parametrize(("sql", "words"), DML)
def test_statement_format(sql: str, words: str | None) -> None:
    log = LogBuilder().begin().add(T.INTVAR_EVENT, bytes(9))
    start = log.pos
    log.query(sql).xid()
    if words is None:
        found = filtered(log)
        assert found.types == []
        assert found.ends == [log.pos]
        return
    with pytest.raises(StatementFormatError, match=words) as caught:
        filtered(log)
    assert (caught.value.file, caught.value.position) == (log.file, start)


# (statement, whether it stops, kinds told): all with the flag of temporary tables
FLAGGED: list[tuple[str, bool, list[StatementKind]]] = [
    ("truncate t", True, []),
    ("truncate x", False, [StatementKind.TRUNCATE]),
    ("TRUNCATE TABLE t /* generated by server */", False, [StatementKind.TRUNCATE]),
    ("alter table t add a int", False, [StatementKind.ALTER_TABLE]),
    ("alter table t truncate partition p", False, [StatementKind.ALTER_TABLE]),
]


@pytest.mark.parametrize(("sql", "stops", "kinds"), FLAGGED)
def test_the_flag_of_temporary_tables(sql: str, stops: bool, kinds: list[StatementKind]) -> None:
    """It is no proof that the statement's table is one."""
    log = LogBuilder().add(T.QUERY_EVENT, query_body(sql), THREAD_SPECIFIC_FLAG)
    if stops:
        with pytest.raises(UnsupportedEventError, match="a temporary one of its name") as caught:
            filtered(log)
        assert (caught.value.table, caught.value.file) == ("d.t", log.file)
        return
    assert filtered(log).statements == kinds


# (type, body, flags, error or None, words)
OTHER_EVENTS: list[tuple[int, bytes, int, type[MySQLBinlogError] | None, str]] = [
    (T.INCIDENT_EVENT, incident_body("LOST_EVENTS"), 0, UnsupportedEventError, "LOST_EVENTS"),
    (T.INCIDENT_EVENT, incident_body(), 0, UnsupportedEventError, r"incident \(1\)"),
    (T.EXECUTE_LOAD_QUERY_EVENT, b"", 0, MalformedEventError, "cut short"),
    (99, b"?", 0, UnsupportedEventError, "type 99 is not known here"),
    (99, b"?", IGNORABLE_FLAG, None, ""),
    (T.IGNORABLE_LOG_EVENT, b"", IGNORABLE_FLAG, None, ""),
    (T.PRE_GA_WRITE_ROWS_EVENT, b"", 0, UnsupportedEventError, "PRE_GA_WRITE_ROWS_EVENT"),
    (T.TRANSACTION_PAYLOAD_EVENT, b"", 0, UnsupportedEventError, "TRANSACTION_PAYLOAD_EVENT"),
    (T.PARTIAL_UPDATE_ROWS_EVENT, b"", 0, UnsupportedEventError, "PARTIAL_UPDATE"),
    (T.INTVAR_EVENT, b"", 0, None, ""),
    (T.RAND_EVENT, b"", 0, None, ""),
    (T.USER_VAR_EVENT, b"", 0, None, ""),
    (T.TRANSACTION_CONTEXT_EVENT, b"", 0, None, ""),
    (T.VIEW_CHANGE_EVENT, b"", 0, None, ""),
]


@pytest.mark.parametrize(("kind", "body", "flags", "error", "words"), OTHER_EVENTS)
def test_other_events(
    kind: int, body: bytes, flags: int, error: type[MySQLBinlogError] | None, words: str
) -> None:
    log = LogBuilder().begin().rows(1, "t", 1).add(kind, body, flags).xid()
    if error is None:
        assert filtered(log).types == GROUP
        return
    with pytest.raises(error, match=words) as caught:
        filtered(log)
    assert caught.value.position == log.events()[3].start


def test_a_statement_of_unknown_kind() -> None:
    with pytest.raises(UnsupportedEventError, match="unknown kind"):
        filtered(LogBuilder().query("FROBNICATE TABLE t"))


def xa(log: LogBuilder, gtrid: bytes, table: str, *, one_phase: bool = False) -> LogBuilder:
    xid = f"X'{gtrid.hex()}',X'',1"
    log.query(f"XA START {xid}").rows(1, table, 1).query(f"XA END {xid}")
    return log.add(T.XA_PREPARE_LOG_EVENT, xa_prepare_body(gtrid, one_phase=one_phase))


A = "X'61',X'',1"
B = "X'62',X'',1"


def test_xa_in_one_phase_commits() -> None:
    log = xa(LogBuilder(), b"a", "t", one_phase=True)
    found = filtered(log)
    assert found.types == ["QUERY", "TABLE_MAP", "WRITE_ROWS", "XA_PREPARE"]
    assert found.ends == [log.pos]
    assert found.filtering.pending_xa == ()
    assert filtered(xa(LogBuilder(), b"a", "x", one_phase=True)).types == []


@pytest.mark.parametrize("verb", ["XA COMMIT", "XA ROLLBACK"])
def test_xa_in_two_phases_without_wanted_rows(verb: str) -> None:
    log = xa(xa(LogBuilder(), b"b", "x"), b"a", "x")
    prepared = filtered(log)
    assert prepared.filtering.pending_xa == tuple(sorted([A, B]))
    assert len(prepared.ends) == 2
    log.query(f"{verb} {B}").begin().rows(1, "t", 1).xid()
    found = filtered(log)
    assert found.filtering.pending_xa == (A,)
    assert found.types == GROUP
    assert len(found.ends) == 4


def test_xa_in_two_phases_with_wanted_rows() -> None:
    with pytest.raises(UnsupportedTransactionError, match="XA PREPARE of X'61',X'',1 with rows"):
        filtered(xa(LogBuilder(), b"a", "t"))


def test_xa_commit_of_an_unknown_xid() -> None:
    log = LogBuilder().query(f"XA COMMIT {A}")
    with pytest.raises(UnsupportedTransactionError, match="was prepared before the start"):
        filtered(log)
    assert filtered(log, pending_xa=(A,)).ends == [log.pos]
    # What was rolled back leaves no rows, whatever it was.
    log = LogBuilder().query(f"XA ROLLBACK {A}")
    assert filtered(log).ends == [log.pos]


# (log, error, words): it begins in mid-transaction, or ends a file there
WRONG_PLACES: list[tuple[str, Callable[[LogBuilder], object], type[MySQLBinlogError], str]] = [
    ("table map", lambda log: log.rows(1, "t", 1), InvalidPositionError, "outside of any"),
    (
        "rows",
        lambda log: log.add(T.WRITE_ROWS_EVENT, rows_body(1, 1)),
        InvalidPositionError,
        "outside of any",
    ),
    ("xid", lambda log: log.xid(), InvalidPositionError, "XID_EVENT comes outside"),
    ("commit", lambda log: log.query("COMMIT"), InvalidPositionError, "outside of any"),
    (
        "xa prepare",
        lambda log: log.add(T.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a")),
        InvalidPositionError,
        "outside of any",
    ),
    (
        "file ends",
        lambda log: log.begin().rows(1, "t", 1).format_description(),
        MalformedEventError,
        "FORMAT_DESCRIPTION_EVENT comes inside a transaction",
    ),
    (
        "file ends behind gtid",
        lambda log: log.add(T.GTID_LOG_EVENT, bytes(25)).rotate("b.000002"),
        MalformedEventError,
        "ROTATE_EVENT comes inside a transaction",
    ),
    (
        "server stops",
        lambda log: log.begin().add(T.STOP_EVENT, b""),
        MalformedEventError,
        "STOP_EVENT comes inside",
    ),
    ("begin twice", lambda log: log.begin().begin(), MalformedEventError, "BEGIN comes inside"),
    (
        "gtid twice",
        lambda log: log.begin(gtid=1).add(T.GTID_LOG_EVENT, bytes(25)),
        MalformedEventError,
        "GTID_LOG_EVENT comes inside",
    ),
]


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [case[1:] for case in WRONG_PLACES],
    ids=[c[0] for c in WRONG_PLACES],
)
def test_wrong_places(
    build: Callable[[LogBuilder], object], error: type[MySQLBinlogError], words: str
) -> None:
    log = LogBuilder()
    build(log)
    with pytest.raises(error, match=words) as caught:
        filtered(log)
    assert caught.value.file == log.file


def test_files_are_no_transactions() -> None:
    log = LogBuilder().format_description().begin().rows(1, "t", 1).xid().add(T.STOP_EVENT, b"")
    found = filtered(log)
    assert found.types == GROUP
    assert len(found.ends) == 1


# --- captured logs


def load(scenario: str) -> tuple[dict[str, Any], list[Event]]:
    text = (CAPTURED / f"{scenario}.json").read_text(encoding="utf-8")
    described: dict[str, Any] = json.loads(text)
    return described, [event for file in described["files"] for event in read_log(CAPTURED / file)]


def without_two_phase_xa(events: list[Event]) -> list[Event]:
    """`transactions` without its two prepared XA transactions, which are not followed yet."""
    return [event for event in events if not 4606 <= event.start < 5780]


def rows_by_table(described: Mapping[str, Any], events: Iterable[Event]) -> list[dict[str, Any]]:
    decoding = decoder(captured_schemas(described), file_ordinal=captured_ordinal)
    return [dict(row) for row in rows_of(decoding.decode(events))]


SCENARIOS = ["transactions", "gtid_no_checksum", "rotations", "numbers", "strings"]


def choice(tables: list[str]) -> Callable[[str, str], bool]:
    return lambda _, table: table in tables


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_filtering_then_decoding_is_decoding_then_dropping(scenario: str) -> None:
    """For each table alone, and each pair: the same rows with the same seq, gtid and query."""
    described, events = load(scenario)
    if scenario == "transactions":
        events = without_two_phase_xa(events)
    names = list(described["tables"])
    everything = rows_by_table(described, events)
    assert everything
    for chosen in [[name] for name in names] + [list(pair) for pair in pairwise(names)]:
        kept = Filtered(events, choice(chosen)).kept
        found = rows_by_table(described, kept)
        assert found == [row for row in everything if row["table"] in chosen], chosen
        ids = {event.body[:6] for event in kept if event.type == T.TABLE_MAP_EVENT}
        rows = [event for event in kept if event.type in ROWS_EVENT_TYPES]
        assert all(event.body[:6] in ids for event in rows)


@pytest.mark.parametrize("scenario", ["gtid_no_checksum", "rotations", "numbers", "temporals"])
def test_every_boundary_is_a_place_to_start(scenario: str) -> None:
    """Cut at any boundary, the parts keep what the whole keeps."""
    _, events = load(scenario)
    whole = Filtered(events, lambda database, table: True)
    ends = [at for at, event in enumerate(events, 1) if event.end in whole.ends]
    assert len(ends) > 1
    for at in ends:
        if events[at - 1].type not in (T.XID_EVENT, T.QUERY_EVENT):
            continue
        parts = [
            Filtered(part, lambda database, table: True) for part in (events[:at], events[at:])
        ]
        assert parts[0].kept + parts[1].kept == whole.kept


def test_captured_xa() -> None:
    _, events = load("transactions")
    with pytest.raises(
        UnsupportedTransactionError, match="XA PREPARE of X'786131',X'',1"
    ) as caught:
        Filtered(events, lambda database, table: table == "a")
    assert caught.value.position == 4984
    found = Filtered(events, lambda database, table: table == "b")
    assert found.filtering.pending_xa == ()
    assert found.filtering.in_transaction is False


def test_captured_statements() -> None:
    _, events = load("statements")
    filtering = EventFilter(lambda database, table: True)
    refused = next(event for event in events if event.start == 1047)
    kept = [kept for event in events[: events.index(refused)] for kept in filtering.feed(event)]
    assert kept[-1].end == 853
    with pytest.raises(StatementFormatError, match=r"fx_statements\.t") as caught:
        filtering.feed(refused)
    assert caught.value.position == 1047
    assert Filtered(events, lambda database, table: table == "other").ends[-1] == 1798


# --- any sequence of statements

STATEMENTS = st.lists(
    st.tuples(
        st.sampled_from(["t", "u", "x", "y"]), st.integers(1, 3), st.booleans(), st.booleans()
    ),
    max_size=6,
)


@given(st.lists(st.tuples(STATEMENTS, st.booleans(), st.booleans()), max_size=6))
def test_any_log(
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
    # What is kept is itself a log of whole transactions that keeps all of itself.
    assert Filtered(found.kept).kept == found.kept
