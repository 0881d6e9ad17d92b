"""XA COMMIT of transactions that were prepared before the read began, on real servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from helpers.logs.live_log import new_database
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
    """Yield a function that runs statements in one session."""
    with session_of(any_server, tables) as run:
        yield run


@contextmanager
def session_of(server: Server, database: str) -> Iterator[Xa]:
    with server.connect(database=database, autocommit=True) as connection:
        cursor = connection.cursor()

        def run(*statements: str) -> None:
            for statement in statements:
                cursor.execute(statement)

        yield run


@pytest.fixture
def xid() -> str:
    """Return an XID that no other test uses, because a server keeps prepared transactions."""
    return f"'{os.urandom(6).hex()}'"


def prepares(server: Server) -> bool:
    """Return whether the server logs XA transactions at XA PREPARE; 5.6 logs them at commit."""
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
    # The XID is used again: the XA PREPARE nearest to the commit counts.
    prepare(session, xid, "INSERT INTO other VALUES (2)")
    session(f"XA COMMIT {xid}")
    insert(any_server, f"{tables}.t", 7)
    assert stream.latest(start) == start
    end = stream.next_batch(start)
    assert ids(stream.rows(start, end)) == [7]
    # The batch is fetched, as after a restart.
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
    # The tail retries on its own; on a busy machine it may do so before this call.
    assert soon in (start, end)
    assert ids(stream.rows(start, end)) == [7]
    assert bool(failures) == (not prepares(any_server))


@pytest.mark.parametrize("is_known", [True, False])
def test_xa_rows_prepared_earlier_are_delivered_at_commit(  # noqa: PLR0917 (fixtures)
    any_server: Server,
    tables: str,
    session: Xa,
    xid: str,
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
    is_known: bool,
) -> None:
    """They are prepared before the start or in an earlier batch; read inline and fetched."""
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


def test_compressed_xa_rows_prepared_before_the_start_are_delivered_at_commit(
    mysql9: Server, xid: str, new_stream: NewStream
) -> None:
    with new_database(mysql9, "compressed_earlier_xa") as database:
        mysql9.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
        with session_of(mysql9, database) as run:
            run("SET binlog_transaction_compression = ON")
            prepare(run, xid, "INSERT INTO t VALUES (2)")
            stream = new_stream(mysql9, f"{database}.t")
            start = stream.initial()
            stream.latest(start)
            run(f"XA COMMIT {xid}")
        insert(mysql9, f"{database}.t", 7)
        stream.wait_for_tail(mysql9)
        end = stream.next_batch(start)
        rows = stream.rows(start, end)
        assert ids(rows) == [2, 7]
        assert new_stream(mysql9, f"{database}.t").rows(start, end) == rows


def test_prepared_xa_rows_of_newly_captured_table_are_delivered(
    any_server: Server, tables: str, session: Xa, xid: str, new_stream: NewStream
) -> None:
    """The offset's pending transaction has no rows of the tables that were captured then."""
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
    """One transaction is prepared before the start, the other one never."""
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
    """The server logs the rolled-back rows because the transaction drops a temporary table."""
    stream = new_stream(any_server, f"{tables}.t")
    start = stream.initial()
    stream.latest(start)
    if any_server.is_mysql9():
        session("SET xa_detach_on_prepare = OFF")  # otherwise 9.x rejects the temporary table
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
