"""XA COMMIT of what was prepared before a reading began: on real servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import ids, insert
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.errors import ConnectionFailedError
from pyspark_mysqlbinlog.protocol.events import Event

Xa = Callable[..., None]


@pytest.fixture
def tables(any_server: Server, any_database: str) -> str:
    for name in ("t", "other"):
        any_server.execute(f"CREATE TABLE `{any_database}`.{name} (id INT PRIMARY KEY)")
    return any_database


@pytest.fixture
def session(any_server: Server, tables: str) -> Iterator[Any]:
    """Statements of one session."""
    with any_server.connect(database=tables, autocommit=True) as connection:
        cursor = connection.cursor()

        def run(*statements: str) -> None:
            for statement in statements:
                cursor.execute(statement)

        yield run


@pytest.fixture
def xid() -> str:
    """Of no other test: a server keeps the prepared ones."""
    return f"'{os.urandom(6).hex()}'"


def prepares(server: Server) -> bool:
    """Whether the log has an XA transaction when it is prepared; 5.6 has it when it commits."""
    return not server.version().startswith("5.6")


def prepare(run: Xa, xid: str, *statements: str) -> None:
    run(f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}")


def test_xa_commit_of_uncaptured_tables_is_skipped(
    any_server: Server, tables: str, session: Xa, xid: str, new_stream: NewStream
) -> None:
    prepare(session, xid, "INSERT INTO other VALUES (1)")
    any_server.execute("FLUSH BINARY LOGS")
    stream = new_stream(any_server, f"{tables}.t")
    start = stream.initial()
    session(f"XA COMMIT {xid}")
    # Of a number that is used again: the nearest counts.
    prepare(session, xid, "INSERT INTO other VALUES (2)")
    session(f"XA COMMIT {xid}")
    insert(any_server, f"{tables}.t", 7)
    assert stream.latest(start) == start
    end = stream.next_batch(start)
    assert ids(stream.rows(start, end)) == [7]
    # By a pull, as after a restart.
    assert ids(new_stream(any_server, f"{tables}.t").rows(start, end)) == [7]


def test_failed_search_for_prepared_xa_is_tried_again(
    any_server: Server,
    tables: str,
    session: Xa,
    new_stream: NewStream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    xid = f"'{os.urandom(6).hex()}'"
    search = PreparedXaSearch.find
    failures = ["gave up after 3 tries"]

    def fail_once(self: PreparedXaSearch, found: str, commit: Event) -> PreparedXa | None:
        if failures:
            raise ConnectionFailedError(failures.pop())
        return search(self, found, commit)

    monkeypatch.setattr(PreparedXaSearch, "find", fail_once)
    prepare(session, xid, "INSERT INTO other VALUES (1)")
    stream = new_stream(any_server, f"{tables}.t")
    start = stream.initial()
    stream.latest(start)
    session(f"XA COMMIT {xid}")
    insert(any_server, f"{tables}.t", 7)
    soon = stream.latest(start)
    end = stream.next_batch(start)
    # The tail tries again by itself; on a busy machine it may have been quicker than the question.
    assert soon in (start, end)
    assert ids(stream.rows(start, end)) == [7]
    assert bool(failures) == (not prepares(any_server))


@pytest.mark.parametrize("is_known", [True, False])
def test_xa_rows_prepared_earlier_are_delivered_at_commit(  # noqa: PLR0917 - fixtures
    any_server: Server,
    tables: str,
    session: Xa,
    xid: str,
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
    is_known: bool,
) -> None:
    """Prepared before the stream began, or in an earlier batch; carried, and by a pull."""
    caplog.set_level("INFO")
    insert(any_server, f"{tables}.t", 1)
    if is_known:
        stream = new_stream(any_server, f"{tables}.t")
        start = stream.initial()
        stream.latest(start)
    prepare(session, xid, "INSERT INTO other VALUES (1)", "INSERT INTO t VALUES (2)")
    any_server.execute("FLUSH BINARY LOGS")
    if is_known:
        insert(any_server, f"{tables}.t", 3)
        start = stream.next_batch(start)
        assert len(start["prepared_xa"]) == prepares(any_server)
        # As after a restart.
        stream.reader.stop()
    stream = new_stream(any_server, f"{tables}.t")
    start = start if is_known else stream.initial()
    stream.latest(start)
    session(f"XA COMMIT {xid}")
    insert(any_server, f"{tables}.t", 7)
    stream.wait_for_tail(any_server)
    end = stream.next_batch(start)
    rows = stream.rows(start, end)
    assert ids(rows) == [2, 7]
    assert new_stream(any_server, f"{tables}.t").rows(start, end) == rows
    assert end["prepared_xa"] == []
    searched = [line for line in caplog.messages if "searching the binlog before" in line]
    assert bool(searched) == (not is_known and prepares(any_server))


def test_prepared_xa_rows_of_newly_captured_table_are_delivered(
    any_server: Server, tables: str, session: Xa, xid: str, new_stream: NewStream
) -> None:
    """Its pending transactions hold no rows of the tables that were wanted then."""
    first = new_stream(any_server, f"{tables}.t")
    start = first.initial()
    first.latest(start)
    prepare(session, xid, "INSERT INTO other VALUES (1)")
    insert(any_server, f"{tables}.t", 1)
    end = first.next_batch(start)
    assert len(end["prepared_xa"]) == prepares(any_server)
    session(f"XA COMMIT {xid}")
    insert(any_server, f"{tables}.t", 7)
    second = new_stream(any_server, f"{tables}.t,{tables}.other", payload="json")
    second.latest(end)
    second.wait_for_tail(any_server)
    assert ids(second.rows(end, second.next_batch(end))) == [1, 7]


def test_rolled_back_xa_transactions_yield_no_rows(
    any_server: Server, tables: str, session: Xa, xid: str, new_stream: NewStream
) -> None:
    """Prepared before the start, and never prepared: neither has rows."""
    prepare(session, xid, "INSERT INTO t VALUES (1)")
    stream = new_stream(any_server, f"{tables}.t")
    start = stream.initial()
    stream.latest(start)
    session(f"XA ROLLBACK {xid}")
    session(f"XA START {xid}", "INSERT INTO t VALUES (2)", f"XA END {xid}", f"XA ROLLBACK {xid}")
    insert(any_server, f"{tables}.t", 7)
    assert ids(stream.rows(start, stream.next_batch(start))) == [7]


def test_logged_rows_of_rolled_back_xa_transaction_are_skipped(
    any_server: Server, tables: str, session: Xa, xid: str, new_stream: NewStream
) -> None:
    """A temporary table that is dropped inside makes a server log what it rolls back."""
    stream = new_stream(any_server, f"{tables}.t")
    start = stream.initial()
    stream.latest(start)
    if any_server.is_mysql9():
        session("SET xa_detach_on_prepare = OFF")  # else it takes no temporary table
    session(
        f"XA START {xid}",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMPORARY TABLE tmp (a INT)",
        "DROP TEMPORARY TABLE tmp",
        f"XA END {xid}",
        f"XA ROLLBACK {xid}",
    )
    insert(any_server, f"{tables}.t", 7)
    assert ids(stream.rows(start, stream.next_batch(start))) == [7]
