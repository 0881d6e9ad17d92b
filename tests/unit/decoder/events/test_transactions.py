"""The transaction state after each event, for all kinds of transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers.logs.events import LogBuilder, gtid_body, xa_prepare_body
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionContext, TransactionState
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import Query

T = EventType
# number u64 | domain u32 | flags u8
MARIADB_GTID = (1).to_bytes(8, "little") + bytes(4) + bytes(1)
XID = "X'61',X'',1"

# (log, the state after each event: "." no transaction, "n" only its GTID, "b" begun, "e" ended)
LOGS: list[tuple[Callable[[LogBuilder], LogBuilder], str]] = [
    (lambda log: log.begin().rows(1, "t", 1).xid(), "bbbe"),
    (lambda log: log.begin(1).rows(1, "t", 1).query("COMMIT"), "nbbbe"),
    (
        lambda log: log.add(T.ANONYMOUS_GTID_LOG_EVENT, gtid_body()).query(
            "create table t (a int)"
        ),
        "ne",
    ),
    (lambda log: log.query("drop table t").begin(), "eb"),
    (lambda log: log.begin().query("drop temporary table t").query("ROLLBACK"), "bbe"),
    (lambda log: log.begin().query("SAVEPOINT a").query("ROLLBACK TO a").xid(), "bbbe"),
    (lambda log: log.query("SAVEPOINT a").begin(), ".b"),
    (lambda log: log.add(T.MARIADB_GTID_EVENT, MARIADB_GTID).xid(), "be"),
    (
        lambda log: (
            log.query(f"XA START {XID}")
            .query(f"XA END {XID}")
            .add(T.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a"))
            .query(f"XA COMMIT {XID}")
        ),
        "bbee",
    ),
    (lambda log: log.query(f"XA START {XID}").query(f"XA ROLLBACK {XID}"), "be"),
]


def letter(state: TransactionState) -> str:
    if state.ended:
        assert not state.in_progress
        return "e"
    if state.in_group:
        return "b"
    return "n" if state.in_progress else "."


@pytest.mark.parametrize(("build", "letters"), LOGS)
def test_transaction_state_tracks_start_and_end_of_all_transaction_kinds(
    build: Callable[[LogBuilder], LogBuilder], letters: str
) -> None:
    state, context = TransactionState(), TransactionContext()
    found = ""
    for event in build(LogBuilder()).events():
        if event.type == T.QUERY_EVENT:
            query = Query.parse(event.body)
            statement = classify(query.sql, query.database)
            state.follow(event, statement)
            context.follow(event, query, statement)
        else:
            state.follow(event)
            context.follow(event)
        found += letter(state)
        assert letter(context.state) == letter(state)
    assert found == letters
